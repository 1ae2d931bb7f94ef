/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* orphaned_effect.c - effects that a dead process may have begun.
 *
 * A process records the attempts of an effect when they have ended, which saves a commit for each.
 * But an attempt that ends the process would then never be recorded, and would be repeated for
 * ever. So an effect loaded from the store that a dead process may have begun is suspected:
 *
 *     suspected, due --> recorded as begun (attempts + 1, UNFINISHED, a backoff) --> runs
 *                                              the process ends: the next one finds the record,
 *                                              and gives up after the last attempt
 *     recorded, and DET_EFFECT_POSTPONED --> the record is reverted, and the effect is suspected
 *                                              as before
 *     it has run in this process --> not suspected while its instance is in memory; the store does
 *                                              not know whose attempt it was, so an instance that
 *                                              is evicted and loaded again is suspected again
 *
 * The thread of the pool that is about to run the effect makes the record, and not earlier: an
 * effect that only waits for a thread is not to blame. The very first attempt, right after the
 * commit that requested it, does not count if it ends the process.
 *
 * If the outcome of the record is unknown, the effect does not run. Until that is resolved, and if
 * a record could not be reverted, this process remembers the number of the attempt, so that it does
 * not take its own record for that of a dead process. */
#include "base/checked.h"
#include "runtime/keep.h"
#include "runtime/walk.h"

bool det_effect_run_is_spent(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run)
{
    return effect_run->is_suspected && effect_run->row.last_error == DET_ERR_UNFINISHED &&
           effect_run->row.attempts >= det_effect_run_policy(runtime, effect_run).attempts_max;
}

/* With the claim: no other thread changes the row. */
static int record(struct det_turn *turn, struct det_effect_run *effect_run)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_effect_policy policy = det_effect_run_policy(runtime, effect_run);
    struct det_store_effect_change change = { DET_STORE_UPDATE, effect_run->row };
    struct det_store_commit commit = { .effects = &change, .effect_count = 1 };
    int r;

    change.effect.last_error = DET_ERR_UNFINISHED;
    change.effect.reason = NULL;
    change.effect.next = det_add_time(
        det_runtime_now(runtime),
        det_effect_run_backoff(runtime, &policy, effect_run->row.attempts, 0));
    r = det_keep_commit(turn, &commit);
    det_shard_lock(runtime, turn->shard);
    if (r == 0) {
        effect_run->row.next = change.effect.next;
        effect_run->is_suspected = false;
        effect_run->doubted = 0;
    } else if (!det_runtime_is_certain(r)) {
        effect_run->doubted = effect_run->row.attempts;
    }
    det_shard_unlock(runtime, turn->shard);
    return r;
}

/* With the claim. A postponed effect is due at once for the next process. */
static void take_back(struct det_turn *turn, struct det_effect_run *effect_run)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_store_effect_change change = { DET_STORE_UPDATE, effect_run->row };
    struct det_store_commit commit = { .effects = &change, .effect_count = 1 };
    int r;

    change.effect.attempts--;
    change.effect.reason = effect_run->row.last_error ? effect_run->row.reason : NULL;
    change.effect.next = det_runtime_now(runtime);
    r = det_keep_commit(turn, &commit);
    if (r < 0)
        return;
    det_shard_lock(runtime, turn->shard);
    effect_run->row.next = change.effect.next;
    effect_run->doubted = 0;
    det_shard_unlock(runtime, turn->shard);
}

void det_effect_run_take_over(struct det_effect_run *effect_run, const struct det_effect_run *known)
{
    effect_run->is_suspected = known->is_suspected;
    if (!known->doubted || effect_run->row.attempts != known->doubted ||
        effect_run->row.last_error != DET_ERR_UNFINISHED)
        return;
    effect_run->doubted = known->doubted;
    effect_run->row.attempts--;
}

static bool is_gone(struct det_turn *turn, const struct det_effect_run *effect_run)
{
    bool is;

    det_shard_lock(turn->runtime, turn->shard);
    is = effect_run->is_gone;
    det_shard_unlock(turn->runtime, turn->shard);
    return is;
}

int det_effect_run_record(struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    const struct det_resident *resident = effect_run->due.resident;
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, resident->served->machine, resident->id, NULL);
    if (r < 0)
        return r;
    r = is_gone(&turn, effect_run) ? DET_ERR_NOT_FOUND : record(&turn, effect_run);
    det_walk_end(&turn);
    return r;
}

void det_effect_run_take_back(struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    const struct det_resident *resident = effect_run->due.resident;
    struct det_shard *shard = det_served_shard(runtime, resident->hash);
    struct det_turn turn;

    /* Until the record is reverted: the attempt is recorded, but did not happen. */
    det_shard_lock(runtime, shard);
    effect_run->is_suspected = true;
    effect_run->doubted = effect_run->row.attempts;
    det_shard_unlock(runtime, shard);
    if (det_walk_begin_last(&turn, runtime, resident->served->machine, resident->id) < 0)
        return;
    if (!is_gone(&turn, effect_run))
        take_back(&turn, effect_run);
    det_walk_end(&turn);
}
