/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_migrate.c - names that changed: what is stored gets the new ones, and what was recorded is
 * understood by the old ones.
 *
 *     migrate:  renames + batch, position -> live rows get the new names -> everything fits? ->
 *               the definition: one transaction
 *     reading:  an event at a position <= that of a batch has the names from before it
 *
 * Invariants
 *   1. Positions behind a batch are never used again, not even when all events are gone: see
 *      EVENT_LAST. So which names an event has follows from its position alone.
 *   2. Of one batch a name is changed once: names may be exchanged.
 *   3. A list of renames that was published stays until the store is closed: readers hold it. */
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/sqlite.h"

static const char *const kind_names[] = {
    [DET_NAME_STATE] = "state",
    [DET_NAME_EVENT] = "event",
    [DET_NAME_EFFECT] = "effect",
    [DET_NAME_TIMER] = "timer",
};
#define KIND_COUNT (sizeof kind_names / sizeof *kind_names)

/* One rename, as the table has it. */
struct rename {
    const char *machine, *from, *to;
    enum det_name_kind kind;
    int64_t batch, position;
};

struct sqlite_renames {
    struct sqlite_renames *before; /* the list that this one replaced */
    const struct det_allocator *allocator;
    struct det_arena arena;
    struct rename *items; /* oldest first */
    size_t count;
};

/* Reading. */

const char *det_sqlite_renamed(
    const struct sqlite_store *store, const struct det_machine *machine, enum det_name_kind kind,
    int64_t position, const char *name)
{
    const struct sqlite_renames *renames = store->renames;
    int64_t done = 0;

    if (!renames || !name)
        return name;
    for (size_t i = 0; i < renames->count; i++) {
        const struct rename *rename = &renames->items[i];

        if (rename->position < position || rename->batch == done || rename->kind != kind ||
            strcmp(rename->from, name) != 0 || strcmp(rename->machine, machine->name) != 0)
            continue;
        name = rename->to;
        done = rename->batch;
    }
    return name;
}

static int kind_of(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kind_names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

static int read_row(struct sqlite_call *call, struct sqlite_renames *renames)
{
    struct rename *rename = &renames->items[renames->count];
    int kind = kind_of(det_sqlite_get_text(call, 1, false));

    if (kind < 0)
        return DET_ERR_CORRUPT;
    rename->kind = (enum det_name_kind)kind;
    rename->machine = det_arena_copy(&renames->arena, det_sqlite_get_text(call, 0, false));
    rename->from = det_arena_copy(&renames->arena, det_sqlite_get_text(call, 2, false));
    rename->to = det_arena_copy(&renames->arena, det_sqlite_get_text(call, 3, false));
    rename->batch = det_sqlite_get_number(call, 4);
    rename->position = det_sqlite_get_number(call, 5);
    if (!rename->machine || !rename->from || !rename->to)
        return DET_ERR_NO_MEMORY;
    renames->count++;
    return 0;
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

static void close_list(struct sqlite_renames *renames)
{
    det_arena_deinit(&renames->arena);
    DET_DELETE(renames->allocator, renames);
}

/* All renames of the store; NULL: there are none. */
static int read_list(
    struct sqlite_store *store, struct sqlite_connection *connection, struct sqlite_renames **ret)
{
    struct sqlite_renames *renames = DET_NEW(store->store.allocator, struct sqlite_renames);
    struct sqlite_call call;
    int64_t count = 0;
    int r;

    if (!renames)
        return DET_ERR_NO_MEMORY;
    renames->allocator = store->store.allocator;
    det_arena_init(&renames->arena, renames->allocator);
    r = ask_number(connection, STATEMENT_RENAME_COUNT, &count);
    if (r == 0)
        renames->items = det_arena_array(&renames->arena, (size_t)count, sizeof *renames->items);
    if (r == 0 && !renames->items)
        r = DET_ERR_NO_MEMORY;
    if (r == 0) {
        det_sqlite_call(connection, STATEMENT_RENAME_LIST, &call);
        while (renames->count < (size_t)count && (r = det_sqlite_step(&call)) > 0) {
            r = read_row(&call, renames);
            if (r < 0)
                break;
        }
        det_sqlite_end(&call);
    }
    if (r >= 0 && renames->count > 0) {
        *ret = renames;
        return 0;
    }
    close_list(renames);
    *ret = NULL;
    return r < 0 ? r : 0;
}

static void publish(struct sqlite_store *store, struct sqlite_renames *renames)
{
    if (!renames)
        return;
    renames->before = store->renames;
    store->renames = renames;
}

int det_sqlite_renames_open(struct sqlite_store *store, struct sqlite_connection *connection)
{
    struct sqlite_renames *renames;
    int r;

    r = read_list(store, connection, &renames);
    if (r == 0)
        publish(store, renames);
    return r;
}

void det_sqlite_renames_close(struct sqlite_store *store)
{
    struct sqlite_renames *renames = store->renames;

    while (renames) {
        struct sqlite_renames *before = renames->before;

        close_list(renames);
        renames = before;
    }
}

/* Migrating. */

struct migration {
    struct sqlite_definition definition;
    const struct det_rename *renames;
    size_t count;
    int64_t batch;
    uint64_t changed;
    struct sqlite_renames *list; /* as it is afterwards */
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
        det_sqlite_text(&call, kind_names[rename->kind]);
        det_sqlite_text(&call, rename->from);
        det_sqlite_text(&call, rename->to);
        det_sqlite_number(&call, migration->batch);
        det_sqlite_number(&call, store->next_position - 1);
        r = det_sqlite_run(&call);
    }
    return r;
}

/* The new name by this batch; the same where it has none. */
static const char *new_name(
    const struct migration *migration, enum det_name_kind kind, const char *name)
{
    for (size_t i = 0; i < migration->count; i++) {
        if (migration->renames[i].kind == kind && strcmp(migration->renames[i].from, name) == 0)
            return migration->renames[i].to;
    }
    return name;
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
    return r;
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
    row->head.state = new_name(migration, DET_NAME_STATE, row->head.state);
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

/* Names separated by one space. */
static int rename_history(
    const struct migration *migration, const char *history, struct det_buffer *ret)
{
    char name[DET_NAME_MAX + 1];

    det_buffer_clear(ret);
    while (*history) {
        size_t length = strcspn(history, " ");

        if (length > DET_NAME_MAX)
            return DET_ERR_CORRUPT;
        memcpy(name, history, length);
        name[length] = '\0';
        det_buffer_append_text(ret, ret->size ? " " : "");
        det_buffer_append_text(ret, new_name(migration, DET_NAME_STATE, name));
        history += length + (history[length] == ' ');
    }
    return det_buffer_status(ret);
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
    row.head.state = new_name(migration, DET_NAME_STATE, row.head.state);
    r = rename_history(migration, old, history);
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
        det_sqlite_definition_close(store, &migration.definition);
    }
    if (r == 0) {
        publish(store, migration.list);
        store->prunings++; /* every handle reads its row again */
        *ret = migration.changed;
        return 0;
    }
    if (migration.list)
        close_list(migration.list);
    if (reterr && reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s: cannot migrate %s: %s", store->path, machine->name, det_error_text(r));
    return r;
}
