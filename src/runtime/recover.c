/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recover.c - due work of instances that are not in memory.
 *
 * Timers and effects of instances in memory are in a heap. Those of all other instances are in the
 * store only; for each machine the runtime knows only the earliest time of them, `store_next`:
 *
 *     served --now--> the loop lists due work of the store --> loads it into a heap
 *                                              and after it? --> store_next --due--> lists again
 *     an instance leaves memory: store_next is not later than its earliest work
 *
 * Invariants
 *   1. Work that is due at T, and not in a heap, is in the store, and store_next <= T.
 *   2. Before listing, the loop sets store_next to DET_NEVER; other threads only make it earlier.
 *   3. The listing belongs to the loop; until the machine is served completely it belongs to the
 *      serving thread, under the runtime's mutex.
 *
 * On a store that does not block, instances stay in memory for ever: when the machine is first
 * served, all of its future work is loaded. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "runtime/node.h"
#include "runtime/turn.h"

/* Rows in a listing, unless rows in memory precede those that are not. */
#define LISTED ((size_t)256)

/* Layout of a row in the listing: this, and then its id with the final 0. */
struct listed {
    det_time due;
    bool is_timer;
};

static int list_one(void *context, const struct det_store_due *row)
{
    const struct listed head = { row->due, row->is_timer };
    struct det_served *served = context;
    struct det_recovery *recovery = &served->recovery;
    size_t length = strlen(row->id) + 1;
    char *place;
    int r;

    r = det_draft_room(
        served->runtime, &recovery->ids, &recovery->capacity, recovery->size + sizeof head + length,
        1);
    if (r < 0)
        return r;
    place = recovery->ids + recovery->size;
    memcpy(place, &head, sizeof head);
    memcpy(place + sizeof head, row->id, length);
    recovery->size += sizeof head + length;
    return 0;
}

static int list(struct det_served *served, det_time before, size_t limit, det_time *ret_next)
{
    struct det_runtime *runtime = served->runtime;

    served->recovery.size = served->recovery.loaded = 0;
    return runtime->ops->due(
        runtime->store, served->machine,
        &(struct det_store_due_query){ .before = before, .limit = limit }, list_one, served,
        ret_next);
}

static bool has_timer(const struct det_armed *armed, det_time due)
{
    return armed && det_armed_is_ours(armed) && armed->next == due;
}

/* True if this node already has the due work in memory: in the heap or in use. */
static bool has_work(struct det_resident *resident, const struct listed *listed)
{
    const struct det_machine *machine = resident->served->machine;
    const struct det_resident_more *more = resident->more;

    if (listed->is_timer && has_timer(resident->own, listed->due))
        return true;
    for (size_t i = 1; listed->is_timer && i < det_timer_slots(machine); i++) {
        if (has_timer(det_resident_timer(resident, det_timer_number(machine, i)), listed->due))
            return true;
    }
    if (listed->is_timer || !more)
        return false;
    DET_LIST_EACH(node, &more->effect_runs)
    {
        const struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        if (!effect_run->row.is_foreign && effect_run->row.next == listed->due)
            return true;
    }
    return false;
}

/* In a shared store the resident may be older than a change by another node that this node now
 * owns. */
static void doubt(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident,
    const struct listed *listed)
{
    if (!runtime->ops->is_shared || resident->is_stale || has_work(resident, listed))
        return;
    resident->is_stale = true;
    shard->stale++;
}

/* Loading an instance puts its timers into the heap and its effects into the pool. 1: it was not in
 * memory. */
static int bring(struct det_served *served, const char *id, const struct listed *listed)
{
    struct det_runtime *runtime = served->runtime;
    const struct det_index_slot *slot;
    struct det_turn turn;
    int r = 0;

    det_turn_init(&turn, runtime, served, det_served_hash(runtime, id));
    det_shard_lock(runtime, turn.shard);
    slot = det_index_find(det_served_index(runtime, served, turn.shard), turn.hash, id);
    if (slot && slot->resident->is_loading) {
        /* The result of its load is not known yet: list it again. */
        r = DET_ERR_BUSY;
    } else if (slot) {
        doubt(runtime, turn.shard, slot->resident, listed);
    } else {
        r = det_turn_peek(&turn, id);
        r = r < 0 ? r : 1;
    }
    det_shard_unlock(runtime, turn.shard);
    return r;
}

static const char *next_id(const struct det_recovery *recovery, struct listed *ret)
{
    const char *place;

    if (recovery->loaded >= recovery->size)
        return NULL;
    place = recovery->ids + recovery->loaded;
    memcpy(ret, place, sizeof *ret);
    return place + sizeof *ret;
}

static void pass(struct det_recovery *recovery, const char *id)
{
    recovery->loaded += sizeof(struct listed) + strlen(id) + 1;
}

int det_recover_all(struct det_served *served)
{
    struct det_recovery *recovery = &served->recovery;
    struct listed listed;
    const char *id;
    det_time next;
    int r = 0;

    if (!recovery->is_listed)
        r = list(served, DET_NEVER, SIZE_MAX, &next);
    recovery->is_listed = r == 0;
    /* After a failure this continues at the same row. */
    while (r == 0 && (id = next_id(recovery, &listed))) {
        r = bring(served, id, &listed);
        if (r < 0)
            break;
        pass(recovery, id);
        r = 0;
    }
    if (r == 0)
        det_recover_deinit(served);
    return r;
}

void det_recover_deinit(struct det_served *served)
{
    struct det_recovery *recovery = &served->recovery;

    det_free(served->runtime->allocator, recovery->ids, recovery->capacity);
    recovery->ids = NULL;
    recovery->size = recovery->capacity = recovery->loaded = 0;
}

void det_recover_at(struct det_served *served, det_time when)
{
    det_time next = atomic_load(&served->store_next);

    while (when < next && !atomic_compare_exchange_weak(&served->store_next, &next, when))
        continue;
    det_due_kick(served->runtime, when);
}

/* Errors that do not pass by themselves. */
static bool is_for_good(int r)
{
    return r == DET_ERR_CORRUPT || r == DET_ERR_VERSION || r == DET_ERR_FOREIGN;
}

/* Each loss is reported once, as far as it is remembered. */
static void report_lost(struct det_served *served, const char *id, int code)
{
    struct det_recovery *recovery = &served->recovery;
    uint64_t hash = det_served_hash(served->runtime, id);
    struct det_error error;

    for (size_t i = 0; i < DET_LOST_KEPT; i++) {
        if (recovery->lost[i] == hash)
            return;
    }
    recovery->lost[recovery->lost_count++ % DET_LOST_KEPT] = hash;
    det_error_set(&error, code, "%s", det_turn_load_text(code));
    det_runtime_report_incident_at(
        served->runtime,
        &(struct det_incident){ .kind = DET_INCIDENT_NOT_LOADED,
                                .machine = served->machine,
                                .instance = id,
                                .name = "",
                                .code = code },
        &error);
}

/* Loads the listed instances. Returns how many were loaded; `next` becomes earlier if something
 * must be retried. */
static size_t bring_all(struct det_served *served, det_time now, det_time *next)
{
    struct det_recovery *recovery = &served->recovery;
    det_time again = det_add_time(now, DET_CHECK_SPAN);
    struct listed listed;
    const char *id;
    size_t brought = 0;

    for (; (id = next_id(recovery, &listed)); pass(recovery, id)) {
        int r = bring(served, id, &listed);

        brought += r > 0;
        if (is_for_good(r))
            report_lost(served, id, r);
        else if (r < 0 && r != DET_ERR_NOT_FOUND && again < *next)
            *next = again;
    }
    return brought;
}

/* Few enough that the first is not evicted before the last is loaded. */
static size_t first_limit(const struct det_runtime *runtime)
{
    size_t half = (size_t)runtime->options.instances_max / 2 + 1;

    return half < LISTED ? half : LISTED;
}

static void list_due(struct det_served *served, det_time now)
{
    struct det_recovery *recovery = &served->recovery;
    size_t limit = recovery->limit ? recovery->limit : first_limit(served->runtime);
    det_time next = det_add_time(now, DET_CHECK_SPAN);

    atomic_store(&served->store_next, DET_NEVER);
    recovery->limit = 0;
    if (list(served, now, limit, &next) == 0 && bring_all(served, now, &next) == 0 && next <= now)
        recovery->limit = limit <= SIZE_MAX / 2 ? limit * 2 : limit;
    det_recover_at(served, next);
}

void det_recover_due(struct det_runtime *runtime, det_time now)
{
    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            if (atomic_load(&s->store_next) > now)
                continue;
            atomic_fetch_add(&runtime->handled, 1);
            list_due(s, now);
            det_due_handled(runtime);
        }
    }
}

det_time det_recover_next(struct det_runtime *runtime)
{
    det_time first = DET_NEVER;

    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            det_time next = atomic_load(&s->store_next);

            first = next < first ? next : first;
        }
    }
    return first;
}
