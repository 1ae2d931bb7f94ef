/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* acquire.c - a turn acquires its instance: find, load, load again, wait. */
#include "base/checked.h"
#include "runtime/turn_batch.h"

void det_turn_init(
    struct det_turn *turn, struct det_runtime *runtime, struct det_served *served, uint64_t hash)
{
    *turn = (struct det_turn){
        .runtime = runtime,
        .served = served,
        .shard = det_served_shard(runtime, hash),
        .hash = hash,
        .earliest = DET_NEVER,
        .effect_run_change = DET_STORE_TAKE,
        .firing.change = DET_STORE_TAKE,
    };
    turn->to_run_last = &turn->to_run;
}

void det_turn_release(struct det_turn *turn)
{
    det_resident_release(turn->runtime, turn->shard, turn->resident);
    turn->is_claimed = false;
}

/* Resolves a commit in doubt whose outcome no turn has determined yet. The lock is held before and
 * after, but not meanwhile. */
static void end_doubt(struct det_turn *turn, bool is_new, uint64_t stood)
{
    uint32_t transitions;

    if (!turn->resident->is_in_doubt)
        return;
    turn->resident->is_in_doubt = false;
    det_shard_unlock(turn->runtime, turn->shard);
    transitions = det_turn_announce_found(turn, is_new, stood);
    det_shard_lock(turn->runtime, turn->shard);
    turn->shard->counts.transitions += transitions;
}

int det_turn_load(struct det_turn *turn)
{
    struct det_resident *resident = turn->resident;
    uint64_t stood = resident->head.sequence;
    bool is_new = !resident->handle;
    int r;

    det_shard_unlock(turn->runtime, turn->shard);
    r = det_resident_load(turn->runtime, turn->shard, resident);
    det_shard_lock(turn->runtime, turn->shard);
    turn->shard->counts.loads += r == 0;
    turn->is_fresh = turn->is_fresh || r == 0;
    if (r < 0 || !resident->is_stale)
        return r;
    resident->is_stale = false;
    turn->shard->stale--;
    end_doubt(turn, is_new, stood);
    return r;
}

const char *det_turn_load_text(int r)
{
    if (r == DET_ERR_VERSION)
        return "the stored instance does not fit the definition, or upcast could not convert it";
    return det_error_text(r);
}

/* Fills the error and returns it. */
static int fail_unloaded(const struct det_turn *turn, const char *id, int r)
{
    return det_error_set(
        turn->error, r, "%s %s cannot be loaded: %s", turn->served->machine->name, id,
        det_turn_load_text(r));
}

static int load_new(struct det_turn *turn, const char *id)
{
    int r;

    if (!det_store_id_is_valid(id))
        return det_error_set(
            turn->error, DET_ERR_INVALID,
            "an id must have 1 to %d characters of A-Z a-z 0-9 . _ : -", DET_ID_MAX);
    r = det_resident_add(turn->runtime, turn->served, turn->hash, id, &turn->resident);
    if (r < 0)
        return r;
    det_cache_make_room(turn->runtime, turn->shard);
    r = det_turn_load(turn);
    if (r == 0) {
        det_turn_release(turn);
        return 0;
    }
    det_resident_remove(turn->runtime, turn->shard, turn->resident);
    turn->resident = NULL;
    if (r != DET_ERR_NOT_FOUND)
        return fail_unloaded(turn, id, r);
    if (turn->kind != DET_TURN_START)
        det_error_set(
            turn->error, r, "%s %s does not exist; start it first", turn->served->machine->name,
            id);
    return r;
}

/* An instance that never was in the store is removed; any other stays stale until a load
 * succeeds. */
static int load_again(struct det_turn *turn)
{
    int r;

    det_resident_claim(turn->runtime, turn->shard, turn->resident);
    r = det_turn_load(turn);
    if (r == DET_ERR_NOT_FOUND && !turn->resident->handle) {
        det_resident_remove(turn->runtime, turn->shard, turn->resident);
        return 0;
    }
    det_turn_release(turn);
    return r < 0 ? fail_unloaded(turn, turn->resident->id, r) : 0;
}

/* Waits for the writer, but not longer than a send may. */
static int wait(struct det_turn *turn, det_time *until)
{
    struct det_runtime *runtime = turn->runtime;
    const struct det_resident *resident = turn->resident;
    int r;

    if (turn->is_batched)
        return DET_ERR_BUSY;
    if (det_batch_yield(runtime, turn->shard))
        return 0;
    if (resident->owner == det_thread_self(runtime->world))
        return det_error_set(
            turn->error, DET_ERR_BUSY, "%s %s is busy: called from its own guard, hook or observer",
            turn->served->machine->name, resident->id);
    if (!*until)
        *until = det_add_time(
            det_world_now(runtime->world, DET_CLOCK_MONOTONIC), runtime->options.send_deadline);
    r = det_shard_wait(runtime, turn->shard, *until);
    if (r != DET_ERR_TIMEOUT)
        return r;
    det_error_set(turn->error, r, "the instance was busy for too long");
    if (turn->error)
        turn->error->waited = runtime->options.send_deadline;
    return r;
}

/* A reader needs the current state, whichever process has written it; the writer itself may read
 * its own copy. */
static bool needs_load(const struct det_turn *turn)
{
    return turn->is_reading && !turn->is_fresh && turn->runtime->ops->is_shared &&
           turn->resident->owner != det_thread_self(turn->runtime->world);
}

/* Inspects the resident: 1: usable, 0: inspect again, or an error. */
static int inspect_resident(
    struct det_turn *turn, const char *id, const struct det_index_slot *slot, bool is_reader,
    det_time *until)
{
    struct det_resident *resident;

    if (turn->shard->is_closing && !turn->is_internal)
        return det_error_set(turn->error, DET_ERR_CLOSED, "the runtime is closing");
    if (!slot)
        slot = det_index_find(
            det_served_index(turn->runtime, turn->served, turn->shard), turn->hash, id);
    if (!slot)
        return load_new(turn, id);
    resident = turn->resident = slot->resident;
    resident->is_used = true;
    if (resident->is_claimed && is_reader && !resident->is_loading && !resident->is_stale &&
        !needs_load(turn))
        return 1;
    if (resident->is_claimed)
        return wait(turn, until);
    if (resident->is_stale || needs_load(turn))
        return load_again(turn);
    return 1;
}

int det_turn_take(struct det_turn *turn, const char *id, const struct det_index_slot *slot)
{
    det_time until = 0;
    int r;

    /* After a wait the slot may be another one. */
    for (r = inspect_resident(turn, id, slot, false, &until); r == 0;)
        r = inspect_resident(turn, id, NULL, false, &until);
    return r < 0 ? r : 0;
}

int det_turn_peek(struct det_turn *turn, const char *id)
{
    det_time until = 0;
    int r;

    do
        r = inspect_resident(turn, id, NULL, true, &until);
    while (r == 0);
    return r < 0 ? r : 0;
}
