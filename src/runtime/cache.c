/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cache.c - evicts instances from memory when there are too many.
 *
 * Each shard has a ring of its residents, oldest first, and each resident a mark that says whether
 * it was used since the ring last reached it:
 *
 *     first in the ring --used--> mark cleared, to the end
 *                       --claimed, pinned, stale, a timer that is retried, an effect whose
 *                         record is in doubt--> to the end
 *                       --free--> claimed, out of the heap, store_next, handle released --> gone
 *
 * Frequently used instances stay, at the cost of one bit and without sorting. The bound is soft:
 * each new instance takes a few steps, and if none can leave, one more stays. On a store that does
 * not block, instances are never evicted: memory is their only place. */
#include "base/assert.h"
#include "runtime/runtime.h"

/* Residents inspected per new instance, and the maximum of evictions: more than one, so that
 * residents that had to stay leave later. */
#define STEPS_MAX     16
#define EVICTIONS_MAX 2

static bool is_tried_again(const struct det_armed *armed)
{
    return armed && det_armed_is_set(armed) && armed->tries;
}

/* Attempts that failed in the store are counted in memory only. */
static bool has_attempts(const struct det_resident *resident)
{
    const struct det_resident_more *more = resident->more;
    unsigned count = more && more->timers ? resident->served->machine->timer_count + 1u : 0;

    if (is_tried_again(resident->own))
        return true;
    for (unsigned i = 0; i < count; i++) {
        if (is_tried_again(&more->timers[i]))
            return true;
    }
    return false;
}

/* Doubtful records are known in memory only, see orphaned_effect.c. */
static bool has_doubted(const struct det_resident *resident)
{
    const struct det_resident_more *more = resident->more;

    if (!more)
        return false;
    DET_LIST_EACH(node, &more->effect_runs)
    {
        if (DET_CONTAINER(node, struct det_effect_run, node)->doubted)
            return true;
    }
    return false;
}

static bool can_leave(const struct det_resident *resident)
{
    return !resident->is_claimed && !resident->is_stale && !resident->pins && !resident->held &&
           resident->handle && !has_attempts(resident) && !has_doubted(resident);
}

static void drop_timer(struct det_shard *shard, struct det_armed *armed, det_time *next)
{
    if (!armed || !armed->has_place)
        return;
    if (det_heap_contains(&armed->due.node))
        det_heap_remove(&shard->due, &armed->due.node);
    armed->has_place = false;
    shard->promised--;
    if (det_armed_is_ours(armed) && armed->when < *next)
        *next = armed->when;
}

static void drop_effect_runs(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident_more *more,
    det_time *next)
{
    struct det_list *node;

    while ((node = det_list_take(&more->effect_runs))) {
        struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        if (effect_run->state == DET_EFFECT_RUN_DEAD) {
            det_effect_run_close(runtime, effect_run);
            continue;
        }
        det_assert(effect_run->state == DET_EFFECT_RUN_WAITING);
        if (!effect_run->row.is_foreign) {
            atomic_fetch_sub(&runtime->effect_runs, 1);
            *next = effect_run->row.next < *next ? effect_run->row.next : *next;
        }
        det_effect_run_drop(runtime, shard, effect_run);
    }
}

/* From now on only the store has the instance's due work; returns its earliest time. */
static det_time leave_heap(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    struct det_resident_more *more = resident->more;
    det_time next = DET_NEVER;

    drop_timer(shard, resident->own, &next);
    for (unsigned i = 0; more && more->timers && i <= resident->served->machine->timer_count; i++)
        drop_timer(shard, &more->timers[i], &next);
    if (more)
        drop_effect_runs(runtime, shard, more, &next);
    return next;
}

/* The lock is held before and after, but not meanwhile: threads that need the instance wait until
 * its handle is released, and then load it. The loop treats the instance as resident until eviction
 * is complete, and only then reads its work from the store. */
static void evict(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    struct det_served *served = resident->served;
    det_time next;

    det_resident_claim(runtime, shard, resident);
    next = leave_heap(runtime, shard, resident);
    det_shard_unlock(runtime, shard);
    runtime->ops->release(runtime->store, resident->handle);
    det_shard_lock(runtime, shard);
    resident->handle = NULL;
    shard->counts.evictions++;
    det_resident_remove(runtime, shard, resident);
    det_recover_at(served, next);
}

void det_cache_make_room(struct det_runtime *runtime, struct det_shard *shard)
{
    unsigned evictions = 0;

    if (runtime->ops->is_quick)
        return;
    for (int i = 0; i < STEPS_MAX && evictions < EVICTIONS_MAX; i++) {
        struct det_resident *resident;
        struct det_list *node;

        if (shard->counts.instances <= runtime->instances_max)
            return;
        node = det_list_take(&shard->ring);
        det_assert(node);
        /* The resident goes to the end in any case, so that others do not inspect it again. */
        det_list_append(&shard->ring, node);
        resident = DET_CONTAINER(node, struct det_resident, ring);
        if (!resident->is_used && can_leave(resident)) {
            evict(runtime, shard, resident);
            evictions++;
        } else {
            resident->is_used = false;
        }
    }
}
