/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate.c - names that changed: what is stored gets the new ones, and what was recorded is
 * understood by the old ones.
 *
 *     migrate:  renames + batch, position -> live rows get the new names -> everything fits? ->
 *               the definition: one transaction
 *     reading:  an event at a position <= that of a batch has the names from before it
 *
 * Positions up to that of a batch are never given again, not even when all events are gone: see
 * EVENT_LAST. */
#include <string.h>

#include "base/text.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* Reading. */

static int read_row(struct sqlite_call *call, struct det_renames *renames)
{
    const struct det_rename_row row = {
        .machine = det_sqlite_get_text(call, 0, false),
        .kind = det_sqlite_get_text(call, 1, false),
        .from = det_sqlite_get_text(call, 2, false),
        .to = det_sqlite_get_text(call, 3, false),
        .batch = det_sqlite_get_number(call, 4),
        .position = det_sqlite_get_number(call, 5),
    };
    int r;

    r = det_sqlite_get_whole(call, 6);
    return r < 0 ? r : det_renames_add(renames, &row);
}

static int ask_number(
    struct sqlite_connection *connection, enum sqlite_statement statement, int64_t *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, statement, &call);
    r = det_sqlite_step(&call);
    *ret = r > 0 ? det_sqlite_get_number(&call, 0) : 0;
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

/* All renames of the store; NULL: there are none. */
static int read_list(
    struct sqlite_store *store, struct sqlite_connection *connection, struct det_renames **ret)
{
    struct det_renames *renames;
    struct sqlite_call call;
    int64_t count = 0;
    int r;

    *ret = NULL;
    r = ask_number(connection, STATEMENT_RENAME_COUNT, &count);
    if (r < 0 || count == 0)
        return r;
    renames = det_renames_open(store->store.allocator, (size_t)count);
    if (!renames)
        return DET_ERR_NO_MEMORY;
    det_sqlite_call(connection, STATEMENT_RENAME_LIST, &call);
    while (det_renames_count(renames) < (size_t)count && (r = det_sqlite_step(&call)) > 0) {
        r = read_row(&call, renames);
        if (r < 0)
            break;
    }
    det_sqlite_end(&call);
    if (r < 0)
        det_renames_close(renames);
    else
        *ret = renames;
    return r < 0 ? r : 0;
}

static size_t count_of(const struct det_renames *renames)
{
    return renames ? det_renames_count(renames) : 0;
}

/* Takes the list. There are only ever more: of two who read at once the one with more wins. */
static void publish(struct sqlite_store *store, struct det_renames *renames_take)
{
    struct det_world *world = store->store.world;
    bool is_newer;

    det_mutex_lock(world, store->mutex);
    is_newer = count_of(renames_take) > count_of(store->renames);
    if (is_newer) {
        det_renames_replace(renames_take, store->renames);
        store->renames = renames_take;
    }
    det_mutex_unlock(world, store->mutex);
    if (!is_newer)
        det_renames_close(renames_take);
}

int det_sqlite_renames_refresh(struct sqlite_store *store, struct sqlite_connection *connection)
{
    struct det_renames *renames;
    int64_t count;
    int r;

    r = ask_number(connection, STATEMENT_RENAME_COUNT, &count);
    if (r < 0 || (size_t)count == count_of(store->renames))
        return r;
    r = read_list(store, connection, &renames);
    if (r == 0)
        publish(store, renames);
    return r;
}

int det_sqlite_renames_open(struct sqlite_store *store, struct sqlite_connection *connection)
{
    struct det_renames *renames;
    int r;

    r = read_list(store, connection, &renames);
    if (r == 0)
        publish(store, renames);
    return r;
}

/* Migrating. */

struct migration {
    struct sqlite_definition definition;
    const struct det_rename *renames;
    size_t count;
    int64_t batch;
    uint64_t changed;
    struct det_renames *list; /* as it is afterwards */
    struct det_error *reterr;
};

static int add_renames(struct sqlite_store *store, struct migration *migration)
{
    struct sqlite_call call;
    int r;

    r = ask_number(&store->writer, STATEMENT_RENAME_BATCH, &migration->batch);
    for (size_t i = 0; r == 0 && i < migration->count; i++) {
        const struct det_rename *rename = &migration->renames[i];

        det_sqlite_call(&store->writer, STATEMENT_RENAME_ADD, &call);
        det_sqlite_text(&call, migration->definition.machine->name);
        det_sqlite_text(&call, det_rename_kind_name(rename->kind));
        det_sqlite_text(&call, rename->from);
        det_sqlite_text(&call, rename->to);
        det_sqlite_number(&call, migration->batch);
        det_sqlite_number(&call, store->next_position);
        r = det_sqlite_run(&call);
    }
    /* No event and no start gets it. */
    store->next_position++;
    return r;
}

/* The new name by this batch; the same where it has none. */
static const char *new_state(const struct migration *migration, const char *name)
{
    return det_rename_find(migration->renames, migration->count, DET_NAME_STATE, name);
}

/* The statements that need no look at the row. All have the machine and the batch. */
static int rename_columns(struct sqlite_store *store, struct migration *migration)
{
    static const enum sqlite_statement statements[] = {
        STATEMENT_RENAME_TIMERS,       STATEMENT_RENAME_TIMERS_END,
        STATEMENT_RENAME_TIMER_EVENTS, STATEMENT_RENAME_OUTBOX_EFFECTS,
        STATEMENT_RENAME_OUTBOX_FROM,  STATEMENT_RENAME_OUTBOX_TO,
        STATEMENT_RENAME_OUTBOX_EVENT, STATEMENT_RENAME_DEAD_EFFECTS,
        STATEMENT_RENAME_DEAD_FROM,    STATEMENT_RENAME_DEAD_TO,
        STATEMENT_RENAME_DEAD_EVENT,   STATEMENT_RENAME_DEFERRED,
        STATEMENT_RENAME_ANSWERS,
    };
    /* Those that count nothing. */
    static const enum sqlite_statement sums[] = {
        STATEMENT_RENAME_ANSWER_EVENTS, STATEMENT_RENAME_SUM,      STATEMENT_RENAME_SUM_TIMERS,
        STATEMENT_RENAME_SUM_OUTBOX,    STATEMENT_RENAME_SUM_DEAD, STATEMENT_RENAME_SUM_DEFERRED,
        STATEMENT_RENAME_SUM_ANSWERS,
    };
    struct sqlite_call call;
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof statements / sizeof *statements; i++) {
        det_sqlite_call(&store->writer, statements[i], &call);
        det_sqlite_text(&call, migration->definition.machine->name);
        det_sqlite_number(&call, migration->batch);
        r = det_sqlite_run(&call);
        if (r == 0 && statements[i] != STATEMENT_RENAME_TIMERS_END)
            migration->changed += (uint64_t)sqlite3_changes64(store->writer.database);
    }
    for (size_t i = 0; r == 0 && i < sizeof sums / sizeof *sums; i++) {
        det_sqlite_call(&store->writer, sums[i], &call);
        det_sqlite_text(&call, migration->definition.machine->name);
        det_sqlite_number(&call, migration->batch);
        r = det_sqlite_run(&call);
    }
    return r;
}

/* All names get new checksums, which must not make damage right. */
static int check_damage(struct sqlite_store *store, struct migration *migration)
{
    struct sqlite_call call;
    int64_t damaged = 0;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_RENAME_DAMAGED, &call);
    det_sqlite_text(&call, migration->definition.machine->name);
    r = det_sqlite_step(&call);
    if (r > 0)
        damaged = det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    if (r < 0 || !damaged)
        return r < 0 ? r : 0;
    return det_error_set(
        migration->reterr, DET_ERR_CORRUPT,
        "%s: %lld row%s of %s %s damaged; look with \"detent store verify\", nothing was changed",
        store->path, (long long)damaged, det_plural((uint64_t)damaged),
        migration->definition.machine->name, det_is_or_are((uint64_t)damaged));
}

static int set_state(
    struct sqlite_store *store, enum sqlite_statement statement, const struct sqlite_head *row,
    uint32_t checksum, const char *history)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, statement, &call);
    det_sqlite_number(&call, row->key);
    det_sqlite_text(&call, row->head.state);
    det_sqlite_number(&call, checksum);
    if (history)
        det_sqlite_text(&call, history);
    return det_sqlite_run(&call);
}

/* The state of an instance is under its checksum, so each row is looked at. */
static int rename_state(
    struct sqlite_store *store, struct migration *migration, struct sqlite_head *row)
{
    if (det_chain_head_checksum(&row->head) != row->checksum)
        return det_error_set(
            migration->reterr, DET_ERR_CORRUPT,
            "%s: the row of %s %s is damaged; look with \"detent store verify\", nothing was "
            "changed",
            store->path, row->head.machine, row->head.id);
    row->head.state = new_state(migration, row->head.state);
    migration->changed++;
    return set_state(
        store, STATEMENT_RENAME_INSTANCE, row, det_chain_head_checksum(&row->head), NULL);
}

static int rename_instances(struct sqlite_store *store, struct migration *migration)
{
    struct sqlite_head row = { .key = 0 };
    struct sqlite_call call;
    int r;

    do {
        det_sqlite_call(&store->writer, STATEMENT_RENAME_NEXT_INSTANCE, &call);
        det_sqlite_text(&call, migration->definition.machine->name);
        det_sqlite_number(&call, migration->batch);
        det_sqlite_number(&call, row.key);
        r = det_sqlite_step(&call);
        if (r > 0) {
            r = det_sqlite_head_read(&call, &row);
            if (r == 0)
                r = rename_state(store, migration, &row);
            r = r < 0 ? r : 1;
        }
        det_sqlite_end(&call);
    } while (r > 0);
    return r;
}

/* A damaged snapshot is ignored by those who read it, and stays as it is. */
static int rename_snapshot(
    struct sqlite_store *store, struct migration *migration, struct sqlite_call *call,
    struct det_buffer *history, int64_t *ret_key)
{
    struct sqlite_head row;
    const char *old;
    det_time taken_at;
    int r;

    *ret_key = det_sqlite_get_number(call, 0);
    r = det_sqlite_head_read(call, &row);
    if (r < 0)
        return r == DET_ERR_CORRUPT ? 0 : r;
    old = det_sqlite_get_text(call, 15, false);
    taken_at = det_sqlite_get_number(call, 16);
    if (det_chain_snapshot_checksum(&row.head, old, taken_at) != row.checksum)
        return 0;
    row.head.state = new_state(migration, row.head.state);
    r = det_rename_history(migration->renames, migration->count, old, history);
    if (r < 0)
        return r;
    migration->changed++;
    return set_state(
        store, STATEMENT_RENAME_SNAPSHOT, &row,
        det_chain_snapshot_checksum(&row.head, det_buffer_text(history), taken_at),
        det_buffer_text(history));
}

static int rename_snapshots(struct sqlite_store *store, struct migration *migration)
{
    struct sqlite_call call;
    struct det_buffer history;
    int64_t key = 0;
    int r;

    det_buffer_init(&history, store->store.allocator);
    do {
        det_sqlite_call(&store->writer, STATEMENT_RENAME_NEXT_SNAPSHOT, &call);
        det_sqlite_text(&call, migration->definition.machine->name);
        det_sqlite_number(&call, key);
        r = det_sqlite_step(&call);
        if (r > 0) {
            int done = rename_snapshot(store, migration, &call, &history, &key);

            r = done < 0 ? done : 1;
        }
        det_sqlite_end(&call);
    } while (r > 0);
    det_buffer_deinit(&history);
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

static int run_migration(struct sqlite_store *store, void *context)
{
    struct migration *migration = context;
    int r;

    r = check_damage(store, migration);
    if (r == 0)
        r = add_renames(store, migration);
    if (r == 0)
        r = rename_columns(store, migration);
    if (r == 0 && has_states(migration))
        r = rename_instances(store, migration);
    if (r == 0 && has_states(migration))
        r = rename_snapshots(store, migration);
    if (r == 0)
        r = det_sqlite_definition_fits(&store->writer, &migration->definition, migration->reterr);
    if (r == 0)
        r = det_sqlite_definition_keep(store, &migration->definition);
    /* What can fail comes before the commit. */
    return r < 0 ? r : read_list(store, &store->writer, &migration->list);
}

int det_sqlite_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct migration migration = { .renames = renames, .count = count, .reterr = reterr };
    int r;

    if (reterr)
        reterr->code = 0;
    r = det_sqlite_definition_open(store, machine, &migration.definition);
    if (r == 0) {
        r = det_sqlite_alone(store, run_migration, &migration);
        det_sqlite_definition_close(&migration.definition);
    }
    if (r == 0) {
        publish(store, migration.list);
        store->prunings++; /* every handle reads its row again */
        *ret = migration.changed;
        return 0;
    }
    det_renames_close(migration.list);
    if (reterr && reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s: cannot migrate %s: %s", store->path, machine->name, det_error_text(r));
    return r;
}
