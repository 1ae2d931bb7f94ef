/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep.c - maintenance of an instance without an event: snapshots, pruning, and retrying dead
 * letters.
 *
 * The sequence and the time of an event alone decide whether it makes a snapshot, so no state is
 * needed, and the same history makes the same snapshots:
 *
 *     every:  the sequence passes a multiple of it
 *     span:   the first event in each span since 1970 */
#include "runtime/keep.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "runtime/walk.h"

static bool passes(uint64_t before, uint64_t after, uint64_t every)
{
    return every && before / every != after / every;
}

static bool is_at_the_end(const struct det_turn *turn)
{
    const struct det_store_head *head = &turn->draft->head;

    return head->is_stopped || turn->served->machine->states[head->state].flags & DET_STATE_FINAL;
}

/* The time of the last event; after a load only that of the last goto is known, which may cause one
 * extra snapshot. */
static det_time acted_at(const struct det_turn *turn)
{
    const struct det_resident *resident = turn->resident;

    return resident->acted_at ? resident->acted_at : resident->head.last_transition_at;
}

bool det_keep_wants_snapshot(const struct det_turn *turn)
{
    const struct det_snapshot_policy *policy = &turn->runtime->options.snapshots;
    const struct det_store_head *before = &turn->resident->head;
    const struct det_store_head *after = &turn->draft->head;

    if (turn->kind == DET_TURN_START || after->sequence == before->sequence)
        return false;
    if (passes(before->sequence, after->sequence, policy->every))
        return true;
    if (policy->on_final && is_at_the_end(turn))
        return true;
    return passes((uint64_t)acted_at(turn), (uint64_t)turn->now, (uint64_t)policy->span);
}

size_t det_keep_history(const struct det_turn *turn, uint16_t target[DET_HISTORY_MAX])
{
    const struct det_resident *resident = turn->resident;
    uint64_t count = resident->head.transition_count;
    uint32_t kept = turn->runtime->options.history_kept;
    size_t filled = 0;

    for (size_t i = turn->draft ? turn->draft->event_count : 0; i-- > 0 && filled < kept;) {
        if (turn->draft->events[i].outcome == DET_OUTCOME_GOTO)
            target[filled++] = turn->draft->events[i].from;
    }
    for (uint64_t i = 0; i < count && filled < kept; i++)
        target[filled++] = resident->history[(count - 1 - i) % kept];
    return filled;
}

/* After a failure of uncertain outcome the instance is loaded before its next turn. */
static void doubt(struct det_turn *turn)
{
    det_shard_lock(turn->runtime, turn->shard);
    if (!turn->resident->is_stale) {
        turn->resident->is_stale = true;
        turn->shard->stale++;
    }
    det_shard_unlock(turn->runtime, turn->shard);
    det_due_kick(turn->runtime, INT64_MIN);
}

int det_keep_commit(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_store_commit *const one = commit;
    struct det_runtime *runtime = turn->runtime;
    int r;

    commit->machine = turn->served->machine;
    commit->id = turn->resident->id;
    commit->instance = turn->resident->handle;
    commit->expected = turn->resident->head.sequence;
    commit->head = &turn->resident->head;
    r = runtime->ops->commit(runtime->store, &one, 1);
    if (r == 0)
        r = commit->result;
    if (r < 0 && !det_runtime_is_certain(r))
        doubt(turn);
    return r;
}

static int fail(const struct det_turn *turn, const char *what, int r, struct det_error *reterr)
{
    if (r == 0)
        return 0;
    return det_error_set(
        reterr, r, "%s %s: %s: %s", turn->served->machine->name, turn->resident->id, what,
        det_error_text(r));
}

int det_runtime_snapshot(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr)
{
    uint16_t history[DET_HISTORY_MAX];
    struct det_store_commit commit = { .is_snapshot = true, .history = history };
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    commit.history_count = det_keep_history(&turn, history);
    r = fail(&turn, "no snapshot was made", det_keep_commit(&turn, &commit), reterr);
    det_walk_end(&turn);
    return r;
}

/* With the claim. Answers older than the store's limit are deleted, too. */
static int prune(struct det_turn *turn, uint64_t sequence, uint64_t *ret)
{
    struct det_runtime *runtime = turn->runtime;
    det_time span = runtime->store->event_ids_span;

    return runtime->ops->prune(
        runtime->store, turn->resident->handle, sequence,
        span ? det_runtime_now(runtime) - span : 0, ret);
}

int det_runtime_prune(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t sequence, uint64_t *ret, struct det_error *reterr)
{
    uint64_t count = 0;
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    r = prune(&turn, sequence, &count);
    r = fail(&turn, "nothing was pruned", r, reterr);
    det_walk_end(&turn);
    if (r == 0 && ret)
        *ret = count;
    return r;
}

void det_keep_prune(struct det_turn *turn)
{
    const struct det_snapshot_policy *policy = &turn->runtime->options.snapshots;
    uint64_t sequence = turn->resident->head.sequence;
    uint64_t count;
    int r;

    if (!policy->events_kept || sequence <= policy->events_kept)
        return;
    r = prune(turn, sequence - policy->events_kept, &count);
    /* The next snapshot prunes the rest. */
    (void)r;
}

/* A key also matches by its last parts, after a slash. */
static bool is_meant(const char *key, const char *wanted)
{
    size_t length = strlen(key), tail = strlen(wanted);

    return strcmp(key, wanted) == 0 || (tail < length && key[length - tail - 1] == '/' &&
                                        strcmp(key + length - tail, wanted) == 0);
}

/* The dead effects that match a key. */
struct found_dead {
    struct det_effect_run *effect_run; /* the last match; a match of the full key wins */
    size_t count;
    char keys[DET_ERROR_TEXT_MAX]; /* as many as fit */
};

static void note_dead(struct found_dead *found, struct det_effect_run *effect_run)
{
    size_t used = strlen(found->keys);

    found->effect_run = effect_run;
    found->count++;
    (void)snprintf(
        found->keys + used, sizeof found->keys - used, "%s%s", used ? ", " : "", effect_run->key);
}

static void find_dead(const struct det_resident *resident, const char *key, struct found_dead *ret)
{
    struct det_resident_more *more = resident->more;

    *ret = (struct found_dead){ 0 };
    if (!more)
        return;
    DET_LIST_EACH(node, &more->effect_runs)
    {
        struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        if (effect_run->state != DET_EFFECT_RUN_DEAD || !is_meant(effect_run->key, key))
            continue;
        if (strcmp(effect_run->key, key) == 0) {
            *ret = (struct found_dead){ .effect_run = effect_run, .count = 1 };
            return;
        }
        note_dead(ret, effect_run);
    }
}

static int promise(struct det_turn *turn)
{
    int r;

    det_shard_lock(turn->runtime, turn->shard);
    r = det_due_promise(turn->shard, 1);
    det_shard_unlock(turn->runtime, turn->shard);
    return r;
}

/* Reserves the place in the heap before the commit, so that nothing can fail after it. */
static int revive(struct det_turn *turn, struct det_effect_run *effect_run)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_store_effect_change change = { DET_STORE_UPDATE, effect_run->row };
    struct det_store_commit commit = { .effects = &change, .effect_count = 1 };
    int r;

    r = promise(turn);
    if (r < 0)
        return r;
    change.effect.is_dead = false;
    change.effect.attempts = 0;
    change.effect.last_error = 0;
    change.effect.reason = NULL;
    change.effect.next = runtime->ops->now(runtime->store);
    r = det_keep_commit(turn, &commit);
    det_shard_lock(runtime, turn->shard);
    if (r == 0)
        det_effect_run_revive(runtime, turn->shard, effect_run, change.effect.next);
    else
        turn->shard->promised--;
    det_shard_unlock(runtime, turn->shard);
    return r;
}

/* The part after "timer/" at the end of a key; empty for the state's own timer. NULL: not a
 * timer. */
static const char *timer_name_in(const char *key)
{
    static const char mark[] = "timer/";
    const char *slash = strrchr(key, '/');
    size_t before = slash ? (size_t)(slash + 1 - key) : 0, size = sizeof mark - 1;

    if (before < size || memcmp(slash + 1 - size, mark, size) != 0)
        return NULL;
    return before == size || slash[-(ptrdiff_t)size] == '/' ? slash + 1 : NULL;
}

static struct det_armed *find_dead_timer(struct det_turn *turn, const char *key)
{
    const struct det_machine *machine = turn->served->machine;
    const char *name = timer_name_in(key);

    if (!name)
        return NULL;
    for (size_t i = 0; i <= machine->timer_count; i++) {
        struct det_armed *armed = det_resident_timer(turn->resident, det_timer_number(machine, i));

        if (armed && det_armed_is_set(armed) && armed->is_dead &&
            strcmp(i ? machine->timers[i - 1].name : "", name) == 0)
            return armed;
    }
    return NULL;
}

/* Its place in the heap is reserved for the life of the resident. */
static int rearm(struct det_turn *turn, struct det_armed *armed)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_store_timer_change change = { DET_STORE_UPDATE,
                                             { .timer = armed->timer,
                                               .event = armed->event,
                                               .visit = armed->visit,
                                               .due = armed->deadline,
                                               .value = armed->value,
                                               .next = runtime->ops->now(runtime->store) } };
    struct det_store_commit commit = { .timers = &change, .timer_count = 1 };
    int r;

    r = det_keep_commit(turn, &commit);
    if (r < 0)
        return r;
    det_shard_lock(runtime, turn->shard);
    det_armed_fail(runtime, armed, &change.timer, NULL);
    armed->is_foreign = false;
    if (det_heap_contains(&armed->due.node))
        det_heap_rekey(&turn->shard->due, &armed->due.node, armed->when);
    else if (!armed->due.is_held)
        det_due_insert(turn->shard, &armed->due, armed->when);
    det_shard_unlock(runtime, turn->shard);
    det_due_kick(runtime, change.timer.next);
    return 0;
}

int det_runtime_retry(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *key, struct det_error *reterr)
{
    struct found_dead found;
    struct det_armed *armed;
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    find_dead(turn.resident, key, &found);
    armed = found.count ? NULL : find_dead_timer(&turn, key);
    if (armed)
        r = fail(&turn, "the dead letter is not retried", rearm(&turn, armed), reterr);
    else if (found.count > 1)
        r = det_error_set(
            reterr, DET_ERR_INVALID, "%s matches %zu dead letters of %s %s; use the key of one: %s",
            key, found.count, machine->name, instance, found.keys);
    else if (!found.count)
        r = det_error_set(
            reterr, DET_ERR_NOT_FOUND, "%s %s has no dead letter %s", machine->name, instance, key);
    else
        r = fail(&turn, "the dead letter is not retried", revive(&turn, found.effect_run), reterr);
    det_walk_end(&turn);
    return r;
}
