/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate.c - names that changed: what is stored gets the new ones, and what was recorded
 * is understood by the old ones.
 *
 *     migrate:  renames + batch, position -> live rows get the new names -> everything fits? ->
 *               the definition: one transaction
 *     reading:  an event at a position <= that of a batch has the names from before it
 *
 * Invariants
 *   1. The position of a batch is taken from the sequence of the events, so that no event has it,
 *      and every later one has a higher one.
 *   2. Of one batch a name is changed once: names may be exchanged.
 *   3. A list of renames that was published stays until the store is closed: readers hold it. It
 *      is read when a machine is served, which is before anything of it is read. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "store/postgres/batch.h"
#include "store/renames.h"

#define PAGE_ROWS 512

/* Columns of RENAME_LIST. */
enum { OF_MACHINE, OF_KIND, OF_OLD_NAME, OF_NEW_NAME, OF_BATCH, OF_POSITION, OF_WHOLE };

struct postgres_renames {
    struct postgres_renames *before; /* the list that this one replaced */
    PGresult *rows;                  /* oldest first */
};

const char *det_postgres_renamed(
    const struct postgres_store *store, const char *machine, enum det_name_kind kind,
    int64_t position, const char *name)
{
    const struct postgres_renames *renames = store->renames;
    int64_t done = 0;

    for (int i = 0; renames && name && i < PQntuples(renames->rows); i++) {
        const PGresult *rows = renames->rows;

        if (det_postgres_number(rows, i, OF_POSITION) < position ||
            det_postgres_number(rows, i, OF_BATCH) == done ||
            strcmp(det_postgres_text(rows, i, OF_KIND), det_rename_kind_name(kind)) != 0 ||
            strcmp(det_postgres_text(rows, i, OF_OLD_NAME), name) != 0 ||
            strcmp(det_postgres_text(rows, i, OF_MACHINE), machine) != 0)
            continue;
        name = det_postgres_text(rows, i, OF_NEW_NAME);
        done = det_postgres_number(rows, i, OF_BATCH);
    }
    return name;
}

static void send_list(struct postgres_exchange *exchange, void *context)
{
    (void)context;
    det_postgres_ask(exchange, POSTGRES_RENAME_LIST, NULL);
}

static int take_list(struct postgres_exchange *exchange, void *context)
{
    for (int i = 0; i < PQntuples(exchange->results[0]); i++) {
        if (!det_postgres_bool(exchange->results[0], i, OF_WHOLE))
            return DET_ERR_CORRUPT;
    }
    *(PGresult **)context = exchange->results[0];
    exchange->results[0] = NULL;
    return 0;
}

/* The rows are only ever added to. */
int det_postgres_renames_publish(struct postgres_store *store, PGresult *rows_take)
{
    struct postgres_renames *known, *renames = NULL;

    det_mutex_lock(store->store.world, store->mutex);
    known = store->renames;
    if (PQntuples(rows_take) <= (known ? PQntuples(known->rows) : 0)) {
        det_mutex_unlock(store->store.world, store->mutex);
        PQclear(rows_take);
        return 0;
    }
    renames = DET_NEW(store->store.allocator, struct postgres_renames);
    if (renames) {
        *renames = (struct postgres_renames){ known, rows_take };
        store->renames = renames;
    }
    det_mutex_unlock(store->store.world, store->mutex);
    if (!renames)
        PQclear(rows_take);
    return renames ? 0 : DET_ERR_NO_MEMORY;
}

int det_postgres_renames_read(struct postgres_store *store, struct postgres_failure *retfail)
{
    PGresult *rows = NULL;
    const struct postgres_job job = { send_list, take_list, &rows, true, 0 };
    int r;

    r = det_postgres_run(store, &job, retfail);
    return r < 0 ? r : det_postgres_renames_publish(store, rows);
}

void det_postgres_renames_close(struct postgres_store *store)
{
    struct postgres_renames *renames = store->renames;

    while (renames) {
        struct postgres_renames *before = renames->before;

        PQclear(renames->rows);
        DET_DELETE(store->store.allocator, renames);
        renames = before;
    }
}

struct migration {
    struct postgres_session session;
    struct postgres_definition definition;
    struct postgres_batch *batch; /* its columns are used, one page after the other */
    const struct det_rename *renames;
    size_t count;
    int64_t number, position; /* of this batch of renames */
    uint64_t changed;
    PGresult *rows;
    struct det_error *reterr;
};

static void add_both(struct postgres_parameters *parameters, const struct migration *migration)
{
    det_postgres_add_text(parameters, migration->definition.machine->name);
    det_postgres_add_number(parameters, migration->number);
}

/* Nodes that live may serve the machine, and would go on by the old names. */
static int check_alone(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };
    int64_t nodes;
    int r;

    det_postgres_add_text(&parameters, migration->session.store->store.owner);
    r = det_postgres_session_ask(
        &migration->session, POSTGRES_RENAME_NODES, &parameters, &migration->rows);
    if (r < 0)
        return r;
    nodes = det_postgres_number(migration->rows, 0, 0);
    if (nodes == 0)
        return 0;
    return det_error_set(
        migration->reterr, DET_ERR_LOCKED,
        "%lld program%s at work on the store; stop %s first, nothing was changed", (long long)nodes,
        nodes == 1 ? " is" : "s are", nodes == 1 ? "it" : "them");
}

static int add_renames(struct migration *migration)
{
    int r;

    r = det_postgres_session_ask(
        &migration->session, POSTGRES_RENAME_BATCH, NULL, &migration->rows);
    if (r < 0)
        return r;
    migration->number = det_postgres_number(migration->rows, 0, 0);
    migration->position = det_postgres_number(migration->rows, 0, 1);
    for (size_t i = 0; r == 0 && i < migration->count; i++) {
        struct postgres_parameters parameters = { 0 };

        det_postgres_add_text(&parameters, migration->definition.machine->name);
        det_postgres_add_text(&parameters, det_rename_kind_name(migration->renames[i].kind));
        det_postgres_add_text(&parameters, migration->renames[i].from);
        det_postgres_add_text(&parameters, migration->renames[i].to);
        det_postgres_add_number(&parameters, migration->number);
        det_postgres_add_number(&parameters, migration->position);
        r = det_postgres_session_ask(&migration->session, POSTGRES_RENAME_ADD, &parameters, NULL);
    }
    return r;
}

/* The statements that need no look at the row. */
static int rename_columns(struct migration *migration)
{
    static const enum postgres_statement_id statements[] = {
        POSTGRES_RENAME_TIMERS,         POSTGRES_RENAME_TIMERS_END,   POSTGRES_RENAME_TIMER_EVENTS,
        POSTGRES_RENAME_OUTBOX_EFFECTS, POSTGRES_RENAME_OUTBOX_FROM,  POSTGRES_RENAME_OUTBOX_TO,
        POSTGRES_RENAME_OUTBOX_EVENT,   POSTGRES_RENAME_DEAD_EFFECTS, POSTGRES_RENAME_DEAD_FROM,
        POSTGRES_RENAME_DEAD_TO,        POSTGRES_RENAME_DEAD_EVENT,   POSTGRES_RENAME_DEFERRED,
        POSTGRES_RENAME_ANSWERS,
    };
    /* Those that count nothing. */
    static const enum postgres_statement_id sums[] = {
        POSTGRES_RENAME_ANSWER_EVENTS, POSTGRES_RENAME_SUM_TIMERS,   POSTGRES_RENAME_SUM_OUTBOX,
        POSTGRES_RENAME_SUM_DEAD,      POSTGRES_RENAME_SUM_DEFERRED, POSTGRES_RENAME_SUM_ANSWERS,
    };
    struct postgres_parameters parameters = { 0 };
    int r = 0;

    add_both(&parameters, migration);
    for (size_t i = 0; r == 0 && i < sizeof statements / sizeof *statements; i++) {
        r = det_postgres_session_ask(
            &migration->session, statements[i], &parameters, &migration->rows);
        if (r == 0 && statements[i] != POSTGRES_RENAME_TIMERS_END)
            migration->changed += strtoull(PQcmdTuples(migration->rows), NULL, 10);
    }
    for (size_t i = 0; r == 0 && i < sizeof sums / sizeof *sums; i++)
        r = det_postgres_session_ask(&migration->session, sums[i], &parameters, NULL);
    return r;
}

/* All names get new checksums, which must not make damage right. */
static int check_damage(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };
    int64_t damaged;
    int r;

    det_postgres_add_text(&parameters, migration->definition.machine->name);
    r = det_postgres_session_ask(
        &migration->session, POSTGRES_RENAME_DAMAGED, &parameters, &migration->rows);
    damaged = r == 0 ? det_postgres_number(migration->rows, 0, 0) : 0;
    if (!damaged)
        return r;
    return det_error_set(
        migration->reterr, DET_ERR_CORRUPT,
        "%lld row%s of %s %s damaged; look with \"detent store verify\", nothing was changed",
        (long long)damaged, det_plural((uint64_t)damaged), migration->definition.machine->name,
        det_is_or_are((uint64_t)damaged));
}

/* The new name by this batch; the same where it has none. */
static const char *new_name(const struct migration *migration, const char *state)
{
    return det_rename_find(migration->renames, migration->count, DET_NAME_STATE, state);
}

static int rename_head(struct migration *migration, int row)
{
    struct postgres_batch *batch = migration->batch;
    struct det_chain_head head = det_postgres_head_read(migration->rows, row, 3);

    if (det_chain_head_checksum(&head) != (uint64_t)det_postgres_number(migration->rows, row, 14))
        return det_error_set(
            migration->reterr, DET_ERR_CORRUPT,
            "the row of %s %s is damaged; look with \"detent store verify\", nothing was changed",
            head.machine, head.id);
    head.state = new_name(migration, head.state);
    det_postgres_put_number(
        batch, POSTGRES_COLUMN_h_key, det_postgres_number(migration->rows, row, 0));
    det_postgres_put_text(batch, POSTGRES_COLUMN_h_state, head.state);
    det_postgres_put_number(batch, POSTGRES_COLUMN_h_checksum, det_chain_head_checksum(&head));
    batch->row_count++;
    return 0;
}

/* A damaged snapshot is ignored by those who read it, and stays as it is. */
static int rename_snapshot(struct migration *migration, int row)
{
    struct postgres_batch *batch = migration->batch;
    const PGresult *rows = migration->rows;
    struct det_chain_head head = det_postgres_head_read(rows, row, 3);
    const char *history = det_postgres_text(rows, row, 15);
    det_time taken_at = det_postgres_number(rows, row, 16);
    int r;

    if (det_chain_snapshot_checksum(&head, history, taken_at) !=
        (uint64_t)det_postgres_number(rows, row, 14))
        return 0;
    r = det_rename_history(migration->renames, migration->count, history, &batch->text);
    if (r < 0)
        return r;
    head.state = new_name(migration, head.state);
    history = det_buffer_text(&batch->text);
    det_postgres_put_number(batch, POSTGRES_COLUMN_h_key, det_postgres_number(rows, row, 0));
    det_postgres_put_text(batch, POSTGRES_COLUMN_h_state, head.state);
    det_postgres_put_number(
        batch, POSTGRES_COLUMN_h_checksum, det_chain_snapshot_checksum(&head, history, taken_at));
    det_postgres_put_text(batch, POSTGRES_COLUMN_s_history, history);
    batch->row_count++;
    return 0;
}

static int write_page(
    struct migration *migration, enum postgres_statement_id write, const uint8_t *columns,
    int column_count)
{
    struct postgres_batch *batch = migration->batch;
    const struct postgres_values values = { column_count, batch->values, batch->lengths };
    int r = 0;

    for (int i = 0; r == 0 && i < column_count; i++)
        r = det_postgres_column_finish(
            &batch->columns[columns[i]], columns[i], &batch->values[i], &batch->lengths[i]);
    if (r == 0)
        r = det_postgres_session_send(&migration->session, write, &values, NULL);
    if (r == 0)
        migration->changed += batch->row_count;
    return r;
}

/* All rows under a checksum, page by page. */
static int rename_pages(
    struct migration *migration, enum postgres_statement_id read,
    int (*change)(struct migration *migration, int row), enum postgres_statement_id write)
{
    static const uint8_t columns[] = { POSTGRES_COLUMN_h_key, POSTGRES_COLUMN_h_state,
                                       POSTGRES_COLUMN_h_checksum, POSTGRES_COLUMN_s_history };
    int column_count = write == POSTGRES_RENAME_SNAPSHOTS_SET ? 4 : 3;
    int64_t last = INT64_MIN;
    int r = 0, count = PAGE_ROWS;

    while (r == 0 && count == PAGE_ROWS) {
        struct postgres_parameters parameters = { 0 };

        add_both(&parameters, migration);
        det_postgres_add_number(&parameters, last);
        det_postgres_add_number(&parameters, PAGE_ROWS);
        r = det_postgres_session_ask(&migration->session, read, &parameters, &migration->rows);
        count = r == 0 ? PQntuples(migration->rows) : 0;
        if (count == 0)
            break;
        last = det_postgres_number(migration->rows, count - 1, 0);
        migration->batch->row_count = 0;
        for (int i = 0; i < 4; i++)
            det_postgres_column_clear(&migration->batch->columns[columns[i]]);
        for (int i = 0; r == 0 && i < count; i++)
            r = change(migration, i);
        if (r == 0)
            r = write_page(migration, write, columns, column_count);
    }
    return r;
}

/* What is there afterwards must fit, or nothing of it happened. */
static int check_and_keep(struct migration *migration)
{
    struct postgres_parameters name = { 0 }, definition = { 0 };
    int r;

    det_postgres_add_text(&name, migration->definition.machine->name);
    det_postgres_definition_add(&definition, &migration->definition);
    det_postgres_add_text(&definition, migration->definition.spec);
    r = det_postgres_session_ask(&migration->session, POSTGRES_USED_NAMES, &name, &migration->rows);
    if (r == 0)
        r = det_postgres_definition_fits(
            migration->definition.machine, migration->rows, migration->reterr);
    if (r == 0)
        r = det_postgres_session_ask(
            &migration->session, POSTGRES_DEFINITION_KEEP, &definition, NULL);
    return r;
}

static bool has_states(const struct migration *migration)
{
    for (size_t i = 0; i < migration->count; i++) {
        if (migration->renames[i].kind == DET_NAME_STATE)
            return true;
    }
    return false;
}

static int run(struct migration *migration)
{
    struct postgres_session *session = &migration->session;
    int r;

    r = det_postgres_session_ask(session, POSTGRES_BEGIN_WRITING, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_SCAN, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_RENAME_LOCK, NULL, NULL);
    if (r == 0)
        r = check_alone(migration);
    if (r == 0)
        r = check_damage(migration);
    if (r == 0)
        r = add_renames(migration);
    if (r == 0)
        r = rename_columns(migration);
    if (r == 0 && has_states(migration))
        r = rename_pages(migration, POSTGRES_RENAME_HEADS, rename_head, POSTGRES_RENAME_HEADS_SET);
    if (r == 0 && has_states(migration))
        r = rename_pages(
            migration, POSTGRES_RENAME_SNAPSHOTS, rename_snapshot, POSTGRES_RENAME_SNAPSHOTS_SET);
    if (r == 0)
        r = check_and_keep(migration);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_END_READING, NULL, NULL);
    return r;
}

static int migrate(struct migration *migration, struct postgres_store *store)
{
    int r;

    /* Its columns are a writer's, but no writer has them. */
    migration->batch = DET_NEW(store->store.allocator, struct postgres_batch);
    if (!migration->batch)
        return DET_ERR_NO_MEMORY;
    det_postgres_batch_init(migration->batch, store);
    r = det_postgres_session_open(&migration->session, store);
    if (r == 0) {
        r = run(migration);
        det_postgres_session_close(&migration->session);
    }
    PQclear(migration->rows);
    det_postgres_batch_deinit(migration->batch);
    DET_DELETE(store->store.allocator, migration->batch);
    return r;
}

int det_postgres_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr)
{
    struct postgres_store *store = postgres_store_of(base);
    struct migration migration = { .renames = renames, .count = count, .reterr = reterr };
    const struct postgres_failure *failure = &migration.session.failure;
    int r;

    if (store->sql.is_read_only)
        return det_error_set(
            reterr, DET_ERR_READ_ONLY, "%s cannot be migrated: %s", machine->name,
            det_error_text(DET_ERR_READ_ONLY));
    if (reterr)
        reterr->code = 0;
    r = det_postgres_definition_open(store, machine, &migration.definition);
    if (r == 0) {
        r = migrate(&migration, store);
        det_postgres_definition_close(store, &migration.definition);
    }
    if (r == 0) {
        *ret = migration.changed;
        return 0;
    }
    if (!reterr || reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s cannot be migrated: %s", machine->name,
            failure->action != POSTGRES_DONE ? failure->text : det_error_text(r));
    return r;
}
