/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contention.c - an instance of a shared store that other processes write to all the time.
 *
 *     conflict --> decide again --> conflict --> queue of the store --> decide again ... --> commit
 *                                                                   --> deadline: CONTENTION
 *
 * All processes share the queue, which serves them in the order of requests (PostgreSQL: an
 * advisory lock). The front of the queue competes only with first attempts, so it soon wins.
 * Without a queue, or after its failure, random pauses replace it. */
#include "base/checked.h"
#include "runtime/turn.h"

/* Decisions of a turn that must not wait: a turn of the loop; a turn of a batch, whose other turns
 * would wait, too; or a turn on a store with one writing process, where a conflict is a bug. */
#define ATTEMPTS_MAX 3
#define PAUSE_FIRST  (200 * DET_MICROSECOND)
#define PAUSE_MAX    (20 * DET_MILLISECOND)

static bool may_wait(const struct det_turn *turn)
{
    return turn->runtime->ops->is_shared && !turn->is_internal && !turn->is_batched;
}

static void pause_at_random(struct det_turn *turn, unsigned attempt)
{
    struct det_world *world = turn->runtime->world;
    det_time most = PAUSE_FIRST << (attempt < 7 ? attempt : 7);
    int r;

    if (most > PAUSE_MAX)
        most = PAUSE_MAX;
    r = det_world_sleep(world, (det_time)(det_world_random_u64(world) % (uint64_t)most));
    /* A simulated world that ends refuses to sleep; the deadline still limits the loop. */
    (void)r;
}

static bool is_closing(const struct det_turn *turn)
{
    bool is;

    det_shard_lock(turn->runtime, turn->shard);
    is = turn->shard->is_closing;
    det_shard_unlock(turn->runtime, turn->shard);
    return is;
}

/* Waits for its place in the queue; 0: at the front. */
static int enter_queue(struct det_contention *contention)
{
    struct det_turn *turn = contention->turn;
    struct det_runtime *runtime = turn->runtime;

    if (!runtime->ops->queue || !turn->resident->handle)
        return DET_ERR_UNSUPPORTED;
    return runtime->ops->queue(runtime->store, turn->resident->handle, &contention->place);
}

bool det_contention_next(struct det_contention *contention)
{
    struct det_turn *turn = contention->turn;
    struct det_runtime *runtime = turn->runtime;
    det_time now;

    if (!may_wait(turn)) {
        if (contention->attempts == ATTEMPTS_MAX)
            return false;
        contention->attempts++;
        return true;
    }
    now = det_world_now(runtime->world, DET_CLOCK_MONOTONIC);
    if (!contention->attempts)
        contention->until = det_add_time(now, runtime->options.send_deadline);
    if (now >= contention->until || is_closing(turn))
        return false;
    contention->attempts++;
    if (contention->attempts > 1 && !contention->place && enter_queue(contention) < 0)
        pause_at_random(turn, contention->attempts);
    return true;
}

int det_contention_end(struct det_contention *contention, int r)
{
    struct det_turn *turn = contention->turn;
    struct det_runtime *runtime = turn->runtime;

    if (contention->place)
        runtime->ops->leave_queue(runtime->store, contention->place);
    if (!turn->is_in_doubt || r != DET_ERR_CONFLICT)
        return r;
    return det_error_set(
        turn->error, DET_ERR_CONTENTION,
        "%s %s: other processes changed it during each attempt (%u); try again",
        turn->served->machine->name, turn->resident->id, contention->attempts + 1);
}
