/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* deferred.c - deferred events that the state now accepts.
 *
 *     deferred --state accepts it--> due --accepted--> recorded with its outcome
 *         ^                          |  |
 *         +--- the state is left ----+  +--refused, or the last attempt failed--> dead letter
 *
 * Invariants
 *   1. The timer DET_DEFERRED_TIMER is armed exactly if a deferred event remains that the state
 *      accepts. The commit that changes this condition arms, moves or clears the timer. If a
 *      process dies between a change of state and the delivery, the delivery is still due.
 *   2. Its `visit` is the sequence at which that event was deferred, its attempts are the event's.
 *   3. Events are delivered in the order of deferral: later ones wait while one waits for its next
 *      attempt.
 *   4. An event leaves the list by a commit that records its outcome. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/turn.h"

static bool is_taken_in(const struct det_turn *turn, const struct det_kept *kept, unsigned state)
{
    return det_machine_step(turn->served->machine, state, det_event_kind(kept->event))->outcome !=
           DET_OUTCOME_UNHANDLED;
}

/* The first event of the list that the state accepts, except one. */
static struct det_kept *find_taken(
    const struct det_turn *turn, const struct det_list *list, unsigned state,
    const struct det_kept *except)
{
    DET_LIST_EACH(node, list)
    {
        struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        if (kept != except && is_taken_in(turn, kept, state))
            return kept;
    }
    return NULL;
}

/* The timer, if it is armed; NULL otherwise. */
static struct det_armed *armed_timer(const struct det_turn *turn)
{
    struct det_armed *armed = det_resident_timer(turn->resident, DET_DEFERRED_TIMER);

    return armed && det_armed_is_set(armed) ? armed : NULL;
}

/* The timer, if it belongs to this event; NULL otherwise. */
static struct det_armed *timer_of(const struct det_turn *turn, const struct det_kept *kept)
{
    struct det_armed *armed = armed_timer(turn);

    return armed && armed->visit == kept->sequence ? armed : NULL;
}

static struct det_draft_timer *touch_timer(struct det_turn *turn)
{
    struct det_draft *draft = turn->draft;
    struct det_draft_timer *timer = &draft->timers[det_timer_slots(turn->served->machine) - 1];

    *timer = (struct det_draft_timer){ .is_touched = true };
    draft->has_timers = true;
    return timer;
}

static struct det_draft_timer *set_timer(struct det_turn *turn, const struct det_kept *kept)
{
    struct det_draft_timer *timer = touch_timer(turn);

    timer->is_set = true;
    timer->event = (uint16_t)det_event_kind(kept->event);
    timer->visit = kept->sequence;
    timer->due = turn->now;
    return timer;
}

/* The event that will be due after the commit of the draft. */
static const struct det_kept *find_left(const struct det_turn *turn)
{
    const struct det_resident_more *more = turn->resident->more;
    const struct det_draft *draft = turn->draft;
    const struct det_kept *left = NULL;

    if (draft->is_kept_dropped || draft->head.is_stopped)
        return NULL;
    if (more)
        left = find_taken(turn, &more->kept, draft->head.state, turn->retry.kept);
    return left ? left : find_taken(turn, &draft->kept, draft->head.state, NULL);
}

void det_deferred_plan(struct det_turn *turn)
{
    const struct det_armed *armed = armed_timer(turn);
    const struct det_kept *left;

    if (turn->retry.is_put_off ||
        (!armed && !det_resident_kept(turn->resident) && !turn->draft->kept_count))
        return;
    left = find_left(turn);
    if (left && (!armed || armed->visit != left->sequence))
        (void)set_timer(turn, left);
    else if (!left && armed)
        (void)touch_timer(turn);
}

/* The first deferred event that the state accepts, unless it waits for its next attempt. */
static struct det_kept *find_retry(const struct det_turn *turn)
{
    const struct det_resident *resident = turn->resident;
    const struct det_armed *armed;
    struct det_kept *kept;

    if (!det_resident_kept(resident) || resident->head.is_stopped)
        return NULL;
    kept = find_taken(turn, &resident->more->kept, resident->head.state, NULL);
    armed = kept ? timer_of(turn, kept) : NULL;
    /* An event that another node has postponed belongs to that node. */
    if (armed && armed->attempts && (armed->is_foreign || armed->next > turn->now))
        return NULL;
    return kept;
}

static void report(
    struct det_turn *turn, const struct det_kept *kept, struct det_incident incident,
    const struct det_error *error)
{
    incident.name = turn->served->machine->events[det_event_kind(kept->event)].name;
    det_runtime_report_incident(turn->runtime, turn->resident, &incident, error);
}

/* True if the event was refused, so that the attempt counts. A function that is unbound in a tool
 * may be bound in another runtime. */
static bool is_refusal(const struct det_turn *turn, int r)
{
    if (r == DET_ERR_UNBOUND)
        return !turn->runtime->options.is_passive;
    return det_turn_may_pass_later(r) || r == DET_ERR_REFUSED || r == DET_ERR_INVALID;
}

/* Turns the draft into: the event stays deferred and is retried later. */
static void put_off(
    struct det_turn *turn, const struct det_kept *kept, struct det_incident *incident,
    const struct det_error *error)
{
    const struct det_armed *armed = timer_of(turn, kept);
    struct det_draft_timer *timer = set_timer(turn, kept);

    /* The stored row moves only if it is still the known one. */
    timer->is_moved = armed != NULL;
    if (armed)
        timer->due = armed->deadline;
    timer->attempts = incident->attempt;
    timer->last_error = incident->code;
    timer->reason = det_reason_copy(
        turn->runtime->allocator, error->code == incident->code ? error->text : NULL);
    timer->next = det_add_time(
        turn->now, det_effect_run_backoff(
                       turn->runtime, &turn->runtime->options.effects, incident->attempt, 0));
    incident->kind = DET_INCIDENT_EVENT_FAILED;
    turn->retry.is_put_off = true;
}

/* Turns the draft into the consequence of the refusal. */
static int refuse(
    struct det_turn *turn, struct det_kept *kept, int refused, const struct det_error *error,
    struct det_incident *ret)
{
    const struct det_armed *armed = timer_of(turn, kept);
    uint32_t attempts = (armed ? armed->attempts : 0) + 1;
    int r;

    /* Its own node delivers it. */
    if (armed && armed->is_foreign && det_turn_may_pass_later(refused))
        return refused;
    det_draft_discard(turn);
    r = det_draft_begin(turn, 1);
    if (r < 0)
        return r;
    *ret = (struct det_incident){ .kind = DET_INCIDENT_EVENT_DEAD,
                                  .code = refused,
                                  .attempt = attempts };
    if (det_turn_may_pass_later(refused) && attempts < turn->runtime->options.effects.attempts_max)
        put_off(turn, kept, ret, error);
    else
        det_decide_dead_letter(turn, kept->event);
    return 0;
}

/* Commits the removal of the event, or the new time of the timer. */
static int commit_one(struct det_turn *turn)
{
    struct det_store_commit commit;
    struct det_sent sent;
    int r;

    r = det_turn_collect(turn, &commit, &sent);
    if (r < 0)
        return r;
    det_assert(r > 0);
    return det_turn_stored(turn, &commit, det_turn_store(turn, &commit));
}

/* One attempt, and the commit of its result. 1: postponed. */
static int deliver(struct det_turn *turn, struct det_kept *kept, struct det_error *error)
{
    struct det_incident incident = { .code = 0 };
    int r;

    r = det_draft_begin(turn, 1);
    if (r == 0)
        r = det_decide_event(turn, kept->event);
    if (is_refusal(turn, r))
        r = refuse(turn, kept, r, error, &incident);
    if (r < 0)
        det_draft_discard(turn);
    else
        r = commit_one(turn);
    if (r == 0 && incident.code)
        report(turn, kept, incident, error);
    return r < 0 ? r : turn->retry.is_put_off;
}

static int retry_one(struct det_turn *turn, struct det_kept *kept)
{
    struct det_error error = { 0 };
    int r;

    turn->retry.kept = kept;
    turn->action = NULL; /* each event has its own deadline of hooks */
    turn->error = &error;
    r = deliver(turn, kept, &error);
    turn->retry.kept = NULL;
    turn->retry.is_put_off = false;
    turn->error = NULL;
    if (r == 0)
        det_kept_close(turn->runtime, turn->served->machine, kept);
    return r;
}

void det_turn_retry_deferred(struct det_turn *turn)
{
    struct det_error *error = turn->error;
    struct det_kept *kept;
    int r = 0;

    if (!det_resident_kept(turn->resident))
        return;
    turn->error = NULL;
    while (r == 0 && (kept = find_retry(turn)))
        r = retry_one(turn, kept);
    turn->retry.undelivered = r < 0 ? r : 0;
    turn->error = error;
}
