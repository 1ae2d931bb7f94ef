/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate.c - renames: live rows get the new names, and recorded rows are read through the renames.
 *
 *     migrate:  renames + batch, position -> live rows get the new names -> everything fits? ->
 *               the definition: one transaction
 *     reading:  an event at a position <= that of a batch has the names from before it
 *
 * Invariants
 *   1. No event has the position of a batch, and every later event has a higher one.
 *   2. A batch changes a name once, so names may be exchanged.
 *   3. A row that does not match its checksum ends the migration: a new checksum would hide the
 *      damage. */
#include "store/sql/migrate.h"

#include "base/assert.h"
#include "base/text.h"
#include "store/renames.h"
#include "store/sql/definitions.h"
#include "store/sql/instance.h"
#include "store/sql/page.h"
#include "store/sql/renames.h"

/* Instances or snapshots read, and then written, at once. */
#define HEADS_AT_ONCE 512

/* Columns of RENAME_HEADS and RENAME_SNAPSHOTS; the last two are the snapshot's. */
enum { HEAD_KEY, HEAD_FIRST = 3, HEAD_CHECKSUM = 14, HEAD_HISTORY, HEAD_TAKEN_AT };

struct migration {
    struct det_sql_session *session;
    struct det_sql_definition definition;
    struct det_sql_values names; /* the machine and the batch */
    const struct det_rename *renames;
    size_t count;
    int64_t batch;
    uint64_t changed;
    struct det_renames *list; /* the list after the migration */
    struct det_sql_page page; /* struct det_sql_head_change */
    int64_t last_key;         /* of the page */
    size_t read;              /* rows of the page, changed or not */
    struct det_buffer history;
    struct det_error *reterr;
};

static int read_number(void *context, const struct det_sql_row *row)
{
    *(int64_t *)context = det_sql_number(row, 0);
    return det_sql_status(row);
}

/* A row that gets a new checksum must match its old one. */
static int check_damage(struct migration *migration)
{
    int64_t damaged = 0;
    struct det_sql_values values = { 0 };
    const struct det_sql_question question = { .statement = DET_SQL_RENAME_DAMAGED,
                                               .values = &values,
                                               .read = read_number,
                                               .context = &damaged,
                                               .has_row = true };
    int r;

    det_sql_add_text(&values, migration->definition.machine->name);
    r = det_sql_session_ask(migration->session, &question);
    if (r < 0 || !damaged)
        return r;
    return det_error_set(
        migration->reterr, DET_ERR_CORRUPT,
        "%lld row%s of %s %s damaged; run \"detent store verify\"; nothing was changed",
        (long long)damaged, det_plural((uint64_t)damaged), migration->definition.machine->name,
        det_is_or_are((uint64_t)damaged));
}

static int add_renames(struct migration *migration)
{
    const struct det_sql_question question = { .statement = DET_SQL_RENAME_BATCH,
                                               .read = read_number,
                                               .context = &migration->batch,
                                               .has_row = true };
    int64_t position = 0;
    int r;

    r = det_sql_session_ask(migration->session, &question);
    if (r == 0)
        r = migration->session->ops->take_position(migration->session, &position);
    for (size_t i = 0; r == 0 && i < migration->count; i++) {
        const struct det_rename *rename = &migration->renames[i];
        struct det_sql_values values = { 0 };
        struct det_sql_change change = { .statement = DET_SQL_RENAME_ADD, .values = &values };

        det_sql_add_text(&values, migration->definition.machine->name);
        det_sql_add_text(&values, det_rename_kind_name(rename->kind));
        det_sql_add_text(&values, rename->from);
        det_sql_add_text(&values, rename->to);
        det_sql_add_number(&values, migration->batch);
        det_sql_add_number(&values, position);
        r = det_sql_session_change(migration->session, &change);
    }
    det_sql_add_text(&migration->names, migration->definition.machine->name);
    det_sql_add_number(&migration->names, migration->batch);
    return r;
}

/* Renames columns by SQL statements. */
static int rename_columns(struct migration *migration)
{
    static const struct {
        enum det_sql_statement statement;
        bool counts;
    } steps[] = {
        { DET_SQL_RENAME_TIMERS, true },       { DET_SQL_RENAME_TIMERS_END, false },
        { DET_SQL_RENAME_TIMER_EVENTS, true }, { DET_SQL_RENAME_OUTBOX_EFFECTS, true },
        { DET_SQL_RENAME_OUTBOX_FROM, true },  { DET_SQL_RENAME_OUTBOX_TO, true },
        { DET_SQL_RENAME_OUTBOX_EVENT, true }, { DET_SQL_RENAME_DEAD_EFFECTS, true },
        { DET_SQL_RENAME_DEAD_FROM, true },    { DET_SQL_RENAME_DEAD_TO, true },
        { DET_SQL_RENAME_DEAD_EVENT, true },   { DET_SQL_RENAME_DEFERRED, true },
        { DET_SQL_RENAME_ANSWERS, true },      { DET_SQL_RENAME_ANSWER_EVENTS, false },
        { DET_SQL_RENAME_SUM_TIMERS, false },  { DET_SQL_RENAME_SUM_OUTBOX, false },
        { DET_SQL_RENAME_SUM_DEAD, false },    { DET_SQL_RENAME_SUM_DEFERRED, false },
        { DET_SQL_RENAME_SUM_ANSWERS, false },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof steps / sizeof steps[0]; i++) {
        struct det_sql_change change = { .statement = steps[i].statement,
                                         .values = &migration->names };

        r = det_sql_session_change(migration->session, &change);
        if (r == 0 && steps[i].counts)
            migration->changed += change.rows;
    }
    return r;
}

static const char *new_state(const struct migration *migration, const char *state)
{
    return det_rename_find(migration->renames, migration->count, DET_NAME_STATE, state);
}

static int keep_change(struct migration *migration, struct det_sql_head_change *change)
{
    int r;

    r = det_sql_page_keep(&migration->page, &change->state);
    if (r == 0)
        r = det_sql_page_keep(&migration->page, &change->history);
    if (r == 0)
        r = det_sql_page_add(&migration->page, change);
    migration->changed += r >= 0;
    return r < 0 ? r : 0;
}

/* The checksum of the head covers the state of an instance. */
static int rename_head(void *context, const struct det_sql_row *row)
{
    struct migration *migration = context;
    struct det_sql_head_change change = { .key = det_sql_number(row, HEAD_KEY) };
    struct det_chain_head head;
    int r;

    migration->last_key = change.key;
    migration->read++;
    r = det_sql_head_read(row, HEAD_FIRST, &head);
    if (r < 0 && r != DET_ERR_CORRUPT)
        return r;
    if (r < 0 || det_chain_head_checksum(&head) != det_sql_count(row, HEAD_CHECKSUM))
        return det_error_set(
            migration->reterr, DET_ERR_CORRUPT,
            "the row of %s %s is damaged; run \"detent store verify\"; nothing was changed",
            head.machine, head.id);
    change.state = head.state = new_state(migration, head.state);
    change.checksum = det_chain_head_checksum(&head);
    return keep_change(migration, &change);
}

/* A damaged snapshot is ignored by readers, and is not changed. */
static int rename_snapshot(void *context, const struct det_sql_row *row)
{
    struct migration *migration = context;
    struct det_sql_head_change change = { .key = det_sql_number(row, HEAD_KEY) };
    const char *history = det_sql_text(row, HEAD_HISTORY);
    det_time taken_at = det_sql_number(row, HEAD_TAKEN_AT);
    struct det_chain_head head;
    int r;

    migration->last_key = change.key;
    migration->read++;
    r = det_sql_head_read(row, HEAD_FIRST, &head);
    if (r < 0)
        return r == DET_ERR_CORRUPT ? 0 : r;
    if (det_chain_snapshot_checksum(&head, history, taken_at) != det_sql_count(row, HEAD_CHECKSUM))
        return 0;
    r = det_rename_history(migration->renames, migration->count, history, &migration->history);
    if (r < 0)
        return r;
    change.state = head.state = new_state(migration, head.state);
    change.history = det_buffer_text(&migration->history);
    change.checksum = det_chain_snapshot_checksum(&head, change.history, taken_at);
    return keep_change(migration, &change);
}

static int write_page(struct migration *migration, bool are_snapshots)
{
    const struct det_sql_head_change *changes = det_sql_page_next(&migration->page, NULL);

    if (!changes)
        return 0;
    return migration->session->ops->write_heads(
        migration->session, changes, migration->page.rows.size / sizeof *changes, are_snapshots);
}

/* Iterates over all rows in the order of their keys. */
static int rename_rows(
    struct migration *migration, enum det_sql_statement statement,
    int (*read)(void *context, const struct det_sql_row *row))
{
    int r = 0;

    det_assert(migration->names.count == 2);
    migration->last_key = INT64_MIN;
    do {
        struct det_sql_values values = migration->names;
        const struct det_sql_question question = {
            .statement = statement, .values = &values, .read = read, .context = migration
        };

        det_sql_add_number(&values, migration->last_key);
        det_sql_add_number(&values, HEADS_AT_ONCE);
        migration->read = 0;
        det_sql_page_clear(&migration->page);
        r = det_sql_session_ask(migration->session, &question);
        if (r == 0)
            r = write_page(migration, statement == DET_SQL_RENAME_SNAPSHOTS);
    } while (r == 0 && migration->read == HEADS_AT_ONCE);
    return r;
}

static int rename_states(struct migration *migration)
{
    bool has_states = false;
    int r;

    for (size_t i = 0; i < migration->count; i++)
        has_states = has_states || migration->renames[i].kind == DET_NAME_STATE;
    if (!has_states)
        return 0;
    r = rename_rows(migration, DET_SQL_RENAME_HEADS, rename_head);
    return r < 0 ? r : rename_rows(migration, DET_SQL_RENAME_SNAPSHOTS, rename_snapshot);
}

/* The renamed rows must fit the definition, or the migration is rolled back. */
static int check_and_keep(struct migration *migration)
{
    struct det_sql_used used = { migration->definition.machine, migration->reterr };
    struct det_sql_values name = { 0 }, definition = { 0 };
    const struct det_sql_question names = { .statement = DET_SQL_USED_NAMES,
                                            .values = &name,
                                            .read = det_sql_used_check,
                                            .context = &used };
    struct det_sql_change keep = { .statement = DET_SQL_DEFINITION_KEEP, .values = &definition };
    int r;

    det_sql_add_text(&name, used.machine->name);
    det_sql_definition_add(&definition, &migration->definition);
    det_sql_add_text(&definition, det_buffer_text(&migration->definition.spec));
    r = det_sql_session_ask(migration->session, &names);
    return r < 0 ? r : det_sql_session_change(migration->session, &keep);
}

static int read_renames(struct migration *migration)
{
    const struct det_sql_question question = { .statement = DET_SQL_RENAME_LIST,
                                               .read = det_sql_renames_add,
                                               .context = migration->list };

    return det_sql_session_ask(migration->session, &question);
}

static int run_migration(struct det_sql_session *session, void *context)
{
    struct migration *migration = context;
    int r = 0;

    det_assert(migration->batch == 0 && migration->changed == 0);
    migration->session = session;
    if (session->ops->begin_migration)
        r = session->ops->begin_migration(session, migration->reterr);
    if (r == 0)
        r = check_damage(migration);
    if (r == 0)
        r = add_renames(migration);
    if (r == 0)
        r = rename_columns(migration);
    if (r == 0)
        r = rename_states(migration);
    if (r == 0)
        r = check_and_keep(migration);
    /* Operations that can fail come before the commit. */
    return r < 0 ? r : read_renames(migration);
}

static int migrate_store(
    struct det_store *store, struct migration *migration, struct det_error *retreason)
{
    int r;

    migration->list = det_renames_open(store->allocator);
    if (!migration->list)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&migration->history, store->allocator);
    det_sql_page_init(&migration->page, store->allocator, sizeof(struct det_sql_head_change));
    r = det_sql_transact(store, run_migration, migration, retreason);
    det_sql_page_deinit(&migration->page);
    det_buffer_deinit(&migration->history);
    if (r < 0)
        det_renames_close(migration->list);
    else
        det_sql_renames_publish(store, migration->list);
    return r;
}

int det_sql_migrate(
    struct det_store *store, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr)
{
    struct migration migration = { .renames = renames, .count = count, .reterr = reterr };
    struct det_error reason = { 0 };
    int r;

    if (reterr)
        reterr->code = 0;
    r = det_sql_definition_open(store, machine, &migration.definition);
    if (r == 0) {
        r = migrate_store(store, &migration, &reason);
        det_sql_definition_close(&migration.definition);
    }
    if (r == 0)
        *ret = migration.changed;
    else if (!reterr || reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s cannot be migrated: %s", machine->name, det_sql_reason(&reason, r));
    return r;
}
