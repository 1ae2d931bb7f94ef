/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* orphaned_effect.c - effects that another process has left behind.
 *
 * Whoever runs an effect records its attempts when they have ended: one commit less for each. But
 * then an attempt that ends the process is not recorded, and would be made again for ever. So what
 * comes from the store, where a process that is gone may have begun it, is suspected:
 *
 *     suspected, due --> recorded as begun (attempts + 1, UNFINISHED, a backoff) --> runs
 *                                              the process ends: the next one finds it so,
 *                                              and at the last attempt gives it up
 *     recorded, and DET_EFFECT_POSTPONED --> the record is taken back, and it is suspected
 *                                              as before
 *     it has run here, and this process is still there --> as any other, while its instance is in
 *                                              memory; the store cannot tell whose attempt it was,
 *                                              so what leaves and comes back is suspected again
 *
 * It is recorded by the thread of the pool that is about to run it, and not before: what only waits
 * for its turn is not to blame. The first attempt of all, right after the commit that asked for it,
 * does not count if it ends the process.
 *
 * When nobody can say whether it was recorded it does not run. Until that has come to an end, and
 * where a record could not be taken back, it is remembered, in this process alone, which attempt it
 * was: so that this record, should it be there, is not taken for that of a process that is gone. */
#include "base/checked.h"
#include "runtime/keep.h"
#include "runtime/walk.h"

bool det_effect_run_is_spent(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run)
{
    return effect_run->is_suspected && effect_run->row.last_error == DET_ERR_UNFINISHED &&
           effect_run->row.attempts >= det_effect_run_policy(runtime, effect_run).attempts_max;
}

/* With the claim: nobody else changes the row. */
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

/* The same. What was postponed is due at once for the next process. */
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

    r = det_walk_begin(&turn, runtime, resident->served->machine, resident->id);
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

    /* Until it is taken back: the attempt is recorded, and was none. */
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
