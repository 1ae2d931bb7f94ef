/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn.c - a writer's turn: acquire the instance, decide, commit, release it.
 *
 *     lock ... plain: everything ... unlock
 *     lock, claim, unlock ... user code, commit ... lock, publish, unlock ... report ...
 *         lock, release, unlock
 *
 * When a commit has an unknown outcome, the resident is loaded again before the claim ends, which
 * reports the events found to the observer. An event id shows whether the event was committed; work
 * of the loop was committed if it can no longer be done. */
#include "runtime/turn.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/unset.h"

/* 1 and the first answer if the event id is known. */
static int answer_again(struct det_turn *turn, struct det_sent *ret)
{
    struct det_store_answer first;
    int r;

    if (!turn->request.event_id)
        return 0;
    r = turn->runtime->ops->answer(
        turn->runtime->store, turn->resident->handle, turn->request.event_id, &first);
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return det_error_set(turn->error, r, "the event id cannot be looked up");
    r = det_turn_compare(turn, &first);
    if (r < 0)
        return r;
    *ret = (struct det_sent){
        .outcome = (enum det_outcome)first.outcome,
        .state = first.state,
        .sequence = first.sequence,
        .visit = first.visit,
        .is_duplicate = true,
    };
    return 1;
}

static int conflict(struct det_turn *turn, const char *what, uint64_t expected, uint64_t actual)
{
    det_error_set(
        turn->error, DET_ERR_CONFLICT, "%s %s: expected %s %llu, but the instance is at %llu",
        turn->served->machine->name, turn->resident->id, what, (unsigned long long)expected,
        (unsigned long long)actual);
    if (turn->error) {
        turn->error->expected = expected;
        turn->error->actual = actual;
    }
    return DET_ERR_CONFLICT;
}

/* Work of the loop is void if another process has done or cancelled it. */
static bool is_void(const struct det_turn *turn)
{
    const struct det_armed *timer = turn->firing.armed;

    if (timer && (!det_armed_is_ours(timer) || timer->visit != turn->firing.visit ||
                  timer->deadline != turn->firing.deadline))
        return true;
    return turn->effect_run && turn->effect_run->is_gone;
}

static int check_conditions(struct det_turn *turn)
{
    const struct det_store_head *head = &turn->resident->head;
    uint64_t expected = turn->request.expected == DET_EXPECT_NO_EVENT ? 0 : turn->request.expected;

    if (is_void(turn))
        return DET_ERR_NOT_FOUND;
    if (turn->request.expected && expected != head->sequence)
        return conflict(turn, "sequence", expected, head->sequence);
    if (turn->request.visit && turn->request.visit != head->visit)
        return conflict(turn, "visit", turn->request.visit, head->visit);
    return 0;
}

static int decide_all(struct det_turn *turn)
{
    int r = 0;

    switch (turn->kind) {
    case DET_TURN_START:
        return det_decide_start(turn);
    case DET_TURN_STOP:
        return det_decide_stop(turn);
    case DET_TURN_SEND:
        break;
    }
    for (size_t i = 0; r == 0 && i < turn->request.event_count; i++)
        r = det_decide_event(turn, turn->request.events[i]);
    return r;
}

/* True if the event of the loop will not be accepted later either. */
static bool is_rejection(const struct det_turn *turn, int r)
{
    if (!turn->is_internal)
        return false;
    /* Each attempt of a timer is recorded. */
    if (det_turn_may_pass_later(r))
        return turn->firing.armed || turn->is_last_attempt;
    /* A function that is unbound in a tool may be bound in another runtime. */
    if (r == DET_ERR_UNBOUND)
        return !turn->runtime->options.is_passive;
    return r == DET_ERR_UNHANDLED || r == DET_ERR_REFUSED || r == DET_ERR_INVALID ||
           r == DET_ERR_STOPPED || r == DET_ERR_CONFLICT;
}

/* The timer fires again later, or becomes a dead letter. */
static void reject_timer(struct det_turn *turn, int r)
{
    const struct det_effect_policy *policy = &turn->runtime->options.effects;
    const struct det_armed *armed = turn->firing.armed;
    uint32_t attempts = armed->attempts + 1;

    det_free_string(turn->runtime->allocator, turn->firing.reason);
    turn->firing.reason = det_reason_copy(
        turn->runtime->allocator, turn->error && turn->error->code == r ? turn->error->text : NULL);
    turn->firing.change = DET_STORE_UPDATE;
    turn->firing.row = (struct det_store_timer){
        .timer = armed->timer,
        .event = armed->event,
        .visit = armed->visit,
        .due = armed->deadline,
        .value = armed->value,
        .attempts = attempts,
        .last_error = r,
        .reason = turn->firing.reason,
        .next = det_add_time(turn->now, det_effect_run_backoff(turn->runtime, policy, attempts, 0)),
        .is_dead = !det_turn_may_pass_later(r) || attempts >= policy->attempts_max,
    };
}

/* True if the error removes the timer: the state does not accept its event. */
static bool is_over(int r)
{
    return r == DET_ERR_UNHANDLED || r == DET_ERR_STOPPED;
}

/* A rejected event of a timer or effect: it is retried, or becomes a dead letter, unless its visit
 * has ended. */
static int reject(struct det_turn *turn, int r)
{
    det_draft_discard(turn);
    turn->rejected = r;
    if (r == DET_ERR_CONFLICT) {
        det_error_set(turn->error, r, "the visit that requested it has ended");
    } else if (turn->firing.armed && !is_over(r)) {
        reject_timer(turn, r);
    } else if (turn->effect_run) {
        turn->effect_run_change = DET_STORE_UPDATE;
        turn->effect_run->row.is_dead = true;
        turn->effect_run->row.last_error = r;
        det_effect_run_explain(
            turn->runtime, turn->effect_run,
            turn->error && turn->error->code == r ? turn->error->text : NULL);
    }
    return det_draft_begin(turn, 0);
}

/* Fills the draft; nothing is committed after a refusal. A rejection has no events and thus no
 * conflicts: it is not decided again. */
static int decide(struct det_turn *turn)
{
    int r;

    det_assert(!turn->rejected);
    turn->action = NULL;
    r = turn->kind == DET_TURN_START ? 0 : check_conditions(turn);
    if (r < 0)
        return r;
    /* A manual stop is an event, too. */
    r = det_draft_begin(turn, turn->request.event_count ? turn->request.event_count : 1);
    if (r < 0)
        return r;
    r = decide_all(turn);
    if (r < 0)
        det_draft_discard(turn);
    return r;
}

/* The resident may differ from the store: load it again. The claim is held, the lock is not. */
static int refresh(struct det_turn *turn)
{
    struct det_resident *resident = turn->resident;
    int r;

    det_shard_lock(turn->runtime, turn->shard);
    if (!resident->is_stale) {
        resident->is_stale = true;
        turn->shard->stale++;
    }
    resident->is_in_doubt = resident->is_in_doubt || turn->may_have_happened;
    r = det_turn_load(turn);
    if (r == DET_ERR_NOT_FOUND && !resident->handle) {
        resident->is_stale = false;
        turn->shard->stale--;
    }
    det_shard_unlock(turn->runtime, turn->shard);
    turn->is_in_doubt = false;
    /* The commits of other processes precede this decision. */
    turn->now = det_runtime_now(turn->runtime);
    /* The loop will retry. */
    if (r < 0)
        turn->earliest = INT64_MIN;
    return r;
}

/* Deferred events left over by a failure come first. If their retry has an unknown outcome again,
 * nothing is decided on the uncertain state. */
static int retry_left(struct det_turn *turn)
{
    int r;

    if (!turn->is_claimed)
        return 0;
    det_turn_retry_deferred(turn);
    if (!turn->is_in_doubt)
        return 0;
    r = refresh(turn);
    return r < 0 ? det_error_set(turn->error, r, "the instance cannot be loaded") : 0;
}

/* True if the answer would be that nothing happens, which another process's event in a shared store
 * may have invalidated. */
static bool may_be_outdated(const struct det_turn *turn, int r)
{
    if (!turn->runtime->ops->is_shared || turn->is_fresh || turn->kind == DET_TURN_START)
        return false;
    if (r == 0)
        return turn->kind == DET_TURN_SEND && turn->request.event_count &&
               !turn->draft->event_count;
    return r != DET_ERR_NO_MEMORY;
}

/* True if the decision depends on an unchanged sequence. Effects may have ended, and timers and
 * effects may have moved to other nodes, without a new sequence. */
static bool depends_on_sequence(int r)
{
    return r != DET_ERR_LIMIT && r != DET_ERR_NOT_FOUND;
}

/* Ensures that a refusal, ignored event or void work is not based on an outdated copy. If the copy
 * is current, the decision stays valid, and no guard or hook runs again. */
static int decide_up_to_date(struct det_turn *turn)
{
    uint64_t sequence = turn->resident->head.sequence;
    int r, decided;

    decided = decide(turn);
    if (!may_be_outdated(turn, decided))
        return decided;
    det_shard_lock(turn->runtime, turn->shard);
    r = det_turn_load(turn);
    det_shard_unlock(turn->runtime, turn->shard);
    if (r < 0)
        return det_error_set(turn->error, r, "the instance cannot be loaded");
    if (turn->resident->head.sequence == sequence && depends_on_sequence(decided))
        return decided;
    turn->now = det_runtime_now(turn->runtime);
    return decide(turn);
}

/* Everything up to the commit. 1: ready. 0: no commit, and `ret` is the answer. */
static int make_ready(struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret)
{
    int r;

    if (turn->kind != DET_TURN_START) {
        r = answer_again(turn, ret);
        if (r != 0) {
            turn->counts.duplicates += r > 0;
            return r < 0 ? r : 0;
        }
        r = retry_left(turn);
        if (r < 0)
            return r;
    }
    r = decide_up_to_date(turn);
    if (is_rejection(turn, r))
        r = reject(turn, r);
    if (r < 0)
        return r;
    /* The answer to several events is the last recorded one. */
    if (turn->request.event_id && turn->draft->event_count)
        turn->draft->events[turn->draft->event_count - 1].event_id = turn->request.event_id;
    r = det_turn_collect(turn, commit, ret);
    if (r == 0 && turn->is_claimed)
        det_turn_retry_deferred(turn);
    return r;
}

static int conclude(struct det_turn *turn, const struct det_store_commit *commit, int r)
{
    r = det_turn_stored(turn, commit, r);
    if (r == 0 && turn->is_claimed && !turn->is_locked)
        det_turn_retry_deferred(turn);
    return r;
}

static int carry_out_again(struct det_turn *turn, struct det_sent *ret)
{
    struct det_store_commit commit;
    int r;

    r = make_ready(turn, &commit, ret);
    return r > 0 ? conclude(turn, &commit, det_turn_store(turn, &commit)) : r;
}

static void claim(struct det_turn *turn)
{
    det_resident_claim(turn->runtime, turn->shard, turn->resident);
    turn->is_claimed = true;
    det_shard_unlock(turn->runtime, turn->shard);
}

/* Only this commit can have ended the loop's work, since the claim is held throughout. */
static bool is_found_done(const struct det_turn *turn, int failure)
{
    return turn->is_internal && failure < 0 && !det_runtime_is_other_holder(failure) &&
           is_void(turn);
}

/* One attempt to determine the outcome, which may be in doubt again afterwards. */
static int resolve_once(struct det_turn *turn, int failure, struct det_sent *ret)
{
    int answered;

    if (turn->kind != DET_TURN_START && (failure == DET_ERR_CONFLICT || failure == DET_ERR_EXISTS))
        return carry_out_again(turn, ret);
    answered = answer_again(turn, ret);
    if (answered > 0) {
        ret->is_duplicate = failure == DET_ERR_EXISTS;
        return 0;
    }
    if (answered == DET_ERR_CONFLICT)
        return answered;
    if (is_found_done(turn, failure)) {
        turn->is_found_done = true;
        return 0;
    }
    return failure;
}

/* A commit has an unknown outcome, or another writer was first. Returns the sender's result. */
static int resolve(struct det_turn *turn, int failure, struct det_sent *ret)
{
    struct det_contention contention = { .turn = turn };
    int r = failure, loaded = 0;

    if (!turn->is_claimed)
        claim(turn);
    while (loaded == 0 && turn->is_in_doubt && det_contention_next(&contention)) {
        loaded = refresh(turn);
        if (loaded == 0)
            r = resolve_once(turn, r, ret);
    }
    r = det_contention_end(&contention, r);
    if (loaded == 0 && turn->is_in_doubt)
        (void)refresh(turn);
    return r;
}

static bool needs_claim(const struct det_turn *turn)
{
    const struct det_runtime *runtime = turn->runtime;

    if (!runtime->is_quick || turn->effect_run || turn->request.event_count > 1 ||
        det_resident_kept(turn->resident))
        return true;
    return turn->request.event_count == 1 && !det_decide_is_plain(turn, turn->request.events[0]);
}

static void count_up(struct det_turn *turn)
{
    struct det_runtime_counts *counts = &turn->shard->counts;

    counts->transitions += turn->counts.transitions;
    counts->unhandled += turn->counts.unhandled;
    counts->refused += turn->counts.refused;
    counts->duplicates += turn->counts.duplicates;
    counts->conflicts += turn->counts.conflicts;
}

/* The lock is held before and not after. The loop and the pool are notified without the lock; the
 * call counts as under way, so that the runtime is not closed. */
static void leave(struct det_turn *turn)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_shard *shard = turn->shard;
    bool is_kick_wanted = turn->earliest < atomic_load(&runtime->next_pass);

    if (!turn->to_run && !is_kick_wanted) {
        det_shard_unlock(runtime, shard);
        return;
    }
    shard->calls++;
    det_shard_unlock(runtime, shard);
    det_effect_run_submit(runtime, turn->to_run);
    det_due_kick(runtime, turn->earliest);
    det_shard_lock(runtime, shard);
    shard->calls--;
    if (shard->is_closing)
        det_condition_broadcast(runtime->world, shard->changed);
    det_shard_unlock(runtime, shard);
}

/* With the lock held: ends the claim, if any. An instance that was not started is removed. */
static void end_claim(struct det_turn *turn)
{
    if (!turn->is_claimed)
        return;
    if (!turn->resident->handle && !turn->resident->is_stale)
        det_resident_remove(turn->runtime, turn->shard, turn->resident);
    else
        det_turn_release(turn);
}

int det_turn_begin(struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret)
{
    struct det_runtime *runtime = turn->runtime;

    turn->now = det_runtime_now(runtime);
    turn->draft = det_draft_take(runtime, turn->shard);
    if (!turn->draft) {
        if (turn->is_claimed)
            det_shard_unlock(runtime, turn->shard);
        return DET_ERR_NO_MEMORY;
    }
    if (turn->is_claimed)
        det_shard_unlock(runtime, turn->shard);
    else if (needs_claim(turn))
        claim(turn);
    return make_ready(turn, commit, ret);
}

int det_turn_end(
    struct det_turn *turn, const struct det_store_commit *commit, int r, struct det_sent *ret)
{
    if (commit)
        r = conclude(turn, commit, r);
    if (turn->is_in_doubt)
        r = resolve(turn, r, ret);
    if (turn->is_claimed && !turn->is_locked)
        det_shard_lock(turn->runtime, turn->shard);
    end_claim(turn);
    count_up(turn);
    det_free_string(turn->runtime->allocator, turn->firing.reason);
    turn->firing.reason = NULL;
    if (turn->draft)
        det_draft_release(turn->shard, turn->draft);
    leave(turn);
    return r;
}

int det_turn_run(
    struct det_turn *turn, const void *const *events, size_t count, struct det_sent *ret)
{
    DET_UNSET struct det_store_commit commit;
    int r;

    turn->request.events = events;
    turn->request.event_count = count;
    r = det_turn_begin(turn, &commit, ret);
    if (r <= 0)
        return det_turn_end(turn, NULL, r, ret);
    return det_turn_end(turn, &commit, det_turn_store(turn, &commit), ret);
}
