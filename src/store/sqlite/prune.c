/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prune.c - deletes the events that a snapshot covers, from the newest of them back. */
#include "base/assert.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/sqlite/sqlite.h"

struct pruning {
    struct sqlite_instance *instance;
    uint64_t sequence;
    det_time answers_before;
    uint64_t deleted;
};

/* Reads the last sequence to delete: that of the snapshot, if it is valid. */
static int read_limit(struct sqlite_store *store, struct pruning *pruning)
{
    struct sqlite_call call;
    struct sqlite_head row = { .head.sequence = 0 };
    int r;

    det_sqlite_call(&store->writer, STATEMENT_SNAPSHOT_READ, &call);
    det_sqlite_number(&call, pruning->instance->key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        r = det_sqlite_head_read(&call, &row);
        if (r == 0 && det_chain_snapshot_checksum(
                          &row.head, det_sqlite_get_text(&call, 15, false),
                          det_sqlite_get_number(&call, 16)) != row.checksum)
            r = DET_ERR_CORRUPT;
    }
    det_sqlite_end(&call);
    if (row.head.sequence < pruning->sequence)
        pruning->sequence = row.head.sequence;
    return r;
}

static int run_on(
    struct sqlite_store *store, enum sqlite_statement statement, int64_t first, int64_t second)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, statement, &call);
    det_sqlite_number(&call, first);
    if (sqlite3_bind_parameter_count(call.statement) > 1)
        det_sqlite_number(&call, second);
    return det_sqlite_run(&call);
}

/* Finds the newest event to delete; its successor in the chain, if any, becomes the first. */
static int find_cut(
    struct sqlite_store *store, const struct pruning *pruning, struct sqlite_step *kept,
    struct sqlite_step *cut)
{
    const struct sqlite_instance *instance = pruning->instance;
    uint64_t sequence = instance->sequence;
    int r;

    *kept = (struct sqlite_step){ .previous = instance->last_event };
    while (kept->previous && sequence > pruning->sequence) {
        r = det_sqlite_step_read(&store->writer, instance->key, kept->previous, sequence--, kept);
        if (r < 0)
            return r;
    }
    *cut = (struct sqlite_step){ .position = kept->previous, .sequence = sequence };
    return 0;
}

static int delete_from(struct sqlite_store *store, struct pruning *pruning, struct sqlite_step cut)
{
    int64_t key = pruning->instance->key;
    struct sqlite_step step;
    int r;

    while (cut.position) {
        r = det_sqlite_step_read(&store->writer, key, cut.position, cut.sequence, &step);
        if (r == 0)
            r = run_on(store, STATEMENT_EVENT_DELETE, cut.position, key);
        if (r < 0)
            return r;
        pruning->deleted++;
        cut.position = step.previous;
        cut.sequence--;
    }
    return 0;
}

/* The instance's last event may be the last of the log: without this, the next opening would
 * continue from a lower position and assign later ones again. */
static int cut_all(struct sqlite_store *store, const struct sqlite_instance *instance)
{
    int r;

    r = run_on(store, STATEMENT_INSTANCE_CUT, instance->key, 0);
    return r < 0 ? r : run_on(store, STATEMENT_POSITION_KEEP, store->next_position - 1, 0);
}

static int run_prune(struct sqlite_store *store, void *context)
{
    struct pruning *pruning = context;
    struct sqlite_instance *instance = pruning->instance;
    struct sqlite_step kept = { 0 }, cut = { 0 };
    int r;

    sqlite_assert_writing(store);
    det_assert(pruning->deleted == 0);
    r = det_sqlite_instance_refresh(store, instance);
    if (r == 0)
        r = read_limit(store, pruning);
    if (r == 0)
        r = find_cut(store, pruning, &kept, &cut);
    if (r == 0)
        r = run_on(store, STATEMENT_ANSWER_FORGET, instance->key, pruning->answers_before);
    if (r == 0)
        r = det_sqlite_own(store, instance->key, -SQLITE_OWNED_ANSWER * sqlite_changed_rows(store));
    if (r < 0 || !cut.position)
        return r;
    r = kept.position ? run_on(store, STATEMENT_EVENT_CUT, kept.position, instance->key)
                      : cut_all(store, instance);
    if (r == 0)
        r = run_on(store, STATEMENT_START_DELETE, instance->key, 0);
    /* Every handle reads the beginning of its chain again. */
    store->prunings++;
    return r < 0 ? r : delete_from(store, pruning, cut);
}

int det_sqlite_prune(
    struct det_store *base, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret)
{
    struct pruning pruning = { sqlite_instance_of(instance), sequence, answers_before, 0 };
    int r;

    det_contract_prune(instance, ret);
    r = det_sqlite_alone(sqlite_store_of(base), run_prune, &pruning);
    if (r < 0)
        return r;
    *ret = pruning.deleted;
    return 0;
}
