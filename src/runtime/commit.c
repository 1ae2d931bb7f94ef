/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - from the draft to the store, and from the draft to the resident.
 *
 *     collect the changes -> reserve what publishing needs -> commit -> publish -> answer -> tell
 *
 * Everything that can fail comes before the commit or is the commit itself. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "runtime/turn.h"

static uint16_t timer_number(size_t slot)
{
    return slot ? (uint16_t)(slot - 1) : DET_STATE_TIMER;
}

/* The timer whose firing is this very commit. */
static struct det_armed *fired(const struct det_turn *turn)
{
    return turn->retried ? NULL : turn->timer;
}

static struct det_errand *ended(const struct det_turn *turn)
{
    return turn->retried ? NULL : turn->errand;
}

static struct det_store_timer armed_row(const struct det_armed *armed)
{
    return (struct det_store_timer){
        .timer = armed->timer,
        .event = armed->event,
        .visit = armed->visit,
        .due = armed->deadline,
        .value = armed->value,
    };
}

static void collect_slot(struct det_turn *turn, size_t slot, struct det_store_commit *commit)
{
    const struct det_draft_timer *timer = &turn->draft->timers[slot];
    const struct det_armed *armed = det_resident_timer(turn->resident, timer_number(slot));
    struct det_store_timer_change *change = &turn->draft->timer_changes[commit->timer_count];

    if (!timer->is_set && (!armed || !armed->is_armed || armed == fired(turn)))
        return;
    change->kind = timer->is_set ? DET_STORE_SET : DET_STORE_CLEAR;
    change->timer = (struct det_store_timer){
        .timer = timer_number(slot),
        .event = timer->event,
        .visit = timer->visit,
        .due = timer->due,
        .value = timer->value,
    };
    commit->timer_count++;
}

static int collect_timers(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    size_t slots = (size_t)turn->served->machine->timer_count + 1;
    int r;

    if (!draft->has_timers && !fired(turn))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->timer_changes, &draft->timer_change_capacity, slots + 1,
        sizeof *draft->timer_changes);
    if (r < 0)
        return r;
    if (fired(turn))
        draft->timer_changes[commit->timer_count++] =
            (struct det_store_timer_change){ DET_STORE_TAKE, armed_row(turn->timer) };
    for (size_t i = 0; draft->has_timers && i < slots; i++) {
        if (draft->timers[i].is_touched)
            collect_slot(turn, i, commit);
    }
    commit->timers = draft->timer_changes;
    return 0;
}

static int collect_effects(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    int r;

    if (!draft->errand_count && !ended(turn))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->effect_changes, &draft->effect_change_capacity,
        draft->errand_count + 1, sizeof *draft->effect_changes);
    if (r < 0)
        return r;
    if (ended(turn))
        draft->effect_changes[commit->effect_count++] =
            (struct det_store_effect_change){ turn->errand_change, turn->errand->row };
    DET_LIST_EACH(node, &draft->errands)
    draft->effect_changes[commit->effect_count++] =
        (struct det_store_effect_change){ DET_STORE_SET,
                                          DET_CONTAINER(node, struct det_errand, node)->row };
    commit->effects = draft->effect_changes;
    return 0;
}

static void collect_list(
    struct det_draft *draft, const struct det_list *list, enum det_store_change_kind kind,
    struct det_store_commit *commit)
{
    DET_LIST_EACH(node, list)
    {
        const struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        draft->kept_changes[commit->deferred_count++] =
            (struct det_store_deferred_change){ kind, { kept->sequence, kept->event } };
    }
}

static int collect_kept(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    size_t standing = det_resident_kept(turn->resident);
    int r;

    if (!draft->kept_count && !turn->retried && (!draft->is_kept_dropped || !standing))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->kept_changes, &draft->kept_change_capacity,
        draft->kept_count + standing, sizeof *draft->kept_changes);
    if (r < 0)
        return r;
    if (draft->is_kept_dropped)
        collect_list(draft, &turn->resident->more->kept, DET_STORE_TAKE, commit);
    else if (turn->retried)
        draft->kept_changes[commit->deferred_count++] =
            (struct det_store_deferred_change){ DET_STORE_TAKE,
                                                { turn->retried->sequence, turn->retried->event } };
    /* What was deferred in the same commit that stops it never was. */
    if (!draft->is_kept_dropped)
        collect_list(draft, &draft->kept, DET_STORE_SET, commit);
    commit->deferred = draft->kept_changes;
    return 0;
}

static int collect(struct det_turn *turn, struct det_store_commit *commit)
{
    const struct det_draft *draft = turn->draft;
    int r;

    *commit = (struct det_store_commit){
        .machine = turn->served->machine,
        .id = turn->resident->id,
        .instance = turn->resident->handle,
        .is_new = turn->kind == DET_TURN_START,
        .expected = turn->resident->head.sequence,
        .head = &draft->head,
        .reason = draft->reason,
        .data = draft->is_data_changed ? draft->data : NULL,
        .events = draft->events,
        .event_count = draft->event_count,
    };
    if (!turn->retried && (draft->event_count || commit->is_new))
        commit->event_id = turn->event_id;
    r = collect_timers(turn, commit);
    if (r == 0)
        r = collect_effects(turn, commit);
    if (r == 0)
        r = collect_kept(turn, commit);
    return r;
}

/* What publishing puts into the heap and onto the resident must have its place before. */
static size_t count_due(const struct det_turn *turn)
{
    const struct det_draft *draft = turn->draft;
    size_t count = draft->errand_count;

    for (size_t i = 0; draft->has_timers && i <= turn->served->machine->timer_count; i++) {
        const struct det_armed *armed = det_resident_timer(turn->resident, timer_number(i));

        count += draft->timers[i].is_set && (!armed || !armed->has_place);
    }
    return count;
}

static bool sets_named(const struct det_turn *turn)
{
    for (size_t i = 1; turn->draft->has_timers && i <= turn->served->machine->timer_count; i++) {
        if (turn->draft->timers[i].is_set)
            return true;
    }
    return false;
}

static int prepare(struct det_turn *turn, size_t due)
{
    const struct det_draft *draft = turn->draft;
    bool is_named = sets_named(turn);
    int r = 0;

    if (!due && !draft->kept_count && !draft->reason && !is_named)
        return 0;
    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    if (draft->errand_count || draft->kept_count || draft->reason || is_named)
        r = det_resident_need_more(turn->runtime, turn->resident, is_named);
    if (r == 0)
        r = det_due_promise(turn->shard, due);
    if (turn->is_claimed)
        det_shard_unlock(turn->runtime, turn->shard);
    return r;
}

static void unpromise(struct det_turn *turn, size_t due)
{
    if (!due)
        return;
    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    turn->shard->promised -= due;
    if (turn->is_claimed)
        det_shard_unlock(turn->runtime, turn->shard);
}

static void publish_slot(struct det_turn *turn, size_t slot)
{
    struct det_draft_timer *timer = &turn->draft->timers[slot];
    struct det_armed *armed = det_resident_timer(turn->resident, timer_number(slot));

    if (!armed)
        return;
    det_armed_disarm(turn->runtime, armed);
    if (!timer->is_set)
        return;
    armed->has_place = true;
    det_armed_arm(
        turn->shard, armed,
        &(struct det_store_timer){
            .event = timer->event, .visit = timer->visit, .due = timer->due });
    armed->value = timer->value;
    timer->value = NULL;
    if (timer->due < turn->earliest)
        turn->earliest = timer->due;
}

static void publish_timers(struct det_turn *turn)
{
    if (fired(turn))
        det_armed_disarm(turn->runtime, turn->timer);
    for (size_t i = 0; turn->draft->has_timers && i <= turn->served->machine->timer_count; i++) {
        if (turn->draft->timers[i].is_touched)
            publish_slot(turn, i);
    }
}

static void publish_errands(struct det_turn *turn)
{
    struct det_resident_more *more = turn->resident->more;
    struct det_list *node;

    while ((node = det_list_take(&turn->draft->errands))) {
        struct det_errand *errand = DET_CONTAINER(node, struct det_errand, node);

        det_list_append(&more->errands, node);
        more->open_count++;
        atomic_fetch_add(&turn->runtime->errands, 1);
        if (!det_errand_begin(turn->runtime, errand))
            continue;
        *turn->to_run_last = errand;
        turn->to_run_last = &errand->next;
    }
}

/* Deferred events that the instance will not take any more stay in the draft, to be told. */
static void publish_kept(struct det_turn *turn)
{
    struct det_resident_more *more = turn->resident->more;
    struct det_draft *draft = turn->draft;
    struct det_list *node;

    if (turn->retried) {
        det_list_remove(&turn->retried->node);
        more->kept_count--;
    }
    if (draft->is_kept_dropped) {
        while (more && (node = det_list_take(&more->kept)))
            det_list_append(&draft->kept, node);
        if (more)
            more->kept_count = 0;
        return;
    }
    while ((node = det_list_take(&draft->kept))) {
        det_list_append(&more->kept, node);
        more->kept_count++;
    }
}

static void publish_history(struct det_turn *turn)
{
    struct det_resident *resident = turn->resident;
    uint64_t count = resident->head.transition_count;

    for (size_t i = 0; i < turn->draft->event_count; i++) {
        const struct det_store_event *event = &turn->draft->events[i];

        if (event->outcome == DET_GOTO)
            resident->history[count++ % turn->runtime->options.history_kept] = event->from;
        if (event->outcome <= DET_STOP)
            turn->transitions++;
    }
}

/* The next send finds in the slot what it will need. */
static void hint(const struct det_turn *turn, const struct det_store_commit *commit)
{
    struct det_index_slot *slot = det_index_find_first(
        det_served_index(turn->runtime, turn->served, turn->shard), turn->hash);

    if (!slot || slot->resident != turn->resident)
        return;
    slot->handle = commit->instance;
    slot->next = commit->next;
}

/* Whether user code has to hear of it, or deferred events may be tried: otherwise the turn ends
 * with the publish, in one lock section. */
static bool needs_telling(const struct det_turn *turn)
{
    const struct det_draft *draft = turn->draft;

    if (turn->runtime->options.observe || turn->retried || det_resident_kept(turn->resident) ||
        !det_list_is_empty(&draft->kept))
        return true;
    for (size_t i = 0; i < draft->event_count; i++) {
        if (draft->events[i].outcome == DET_DEAD_LETTER)
            return true;
    }
    return false;
}

/* With a claim: the lock is kept when nothing is left to do but to end the turn. */
static void publish(struct det_turn *turn, const struct det_store_commit *commit)
{
    struct det_resident *resident = turn->resident;
    struct det_draft *draft = turn->draft;

    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    publish_history(turn);
    if (commit->timer_count)
        publish_timers(turn);
    if (ended(turn))
        det_errand_change(turn->runtime, turn->shard, turn->errand, turn->errand_change);
    if (draft->errand_count)
        publish_errands(turn);
    if (draft->kept_count || draft->is_kept_dropped || turn->retried)
        publish_kept(turn);
    if (draft->is_data_changed)
        memcpy(resident->data, draft->data, turn->served->data_size);
    if (draft->reason)
        memcpy(resident->more->reason, draft->reason, strlen(draft->reason) + 1);
    resident->handle = commit->instance;
    resident->head = draft->head;
    hint(turn, commit);
    if (!turn->is_claimed)
        return;
    turn->is_locked = !needs_telling(turn);
    if (!turn->is_locked)
        det_shard_unlock(turn->runtime, turn->shard);
}

static void tell_note(const struct det_turn *turn, const struct det_store_event *event)
{
    const struct det_runtime_options *options = &turn->runtime->options;

    if (options->observe)
        options->observe(
            options->observer, &(struct det_note){
                                   .machine = turn->served->machine,
                                   .instance = turn->resident->id,
                                   .sequence = event->sequence,
                                   .visit = event->visit,
                                   .from = event->from,
                                   .to = event->to,
                                   .event = event->event,
                                   .outcome = event->outcome,
                                   .is_timeout = event->is_timeout,
                                   .cause = event->cause,
                                   .at = event->at,
                                   .event_value = event->value,
                                   .data = turn->resident->data,
                               });
}

static void tell_dead(const struct det_turn *turn, unsigned kind, int code)
{
    det_runtime_trouble(
        turn->runtime, turn->resident,
        &(struct det_trouble){ .kind = DET_TROUBLE_EVENT_DEAD,
                               .name = turn->served->machine->events[kind].name,
                               .code = code });
}

/* User code hears of it while the instance is still claimed, so that it hears in order. Where
 * somebody listens, or something has to be told, the turn has a claim. */
static void tell(struct det_turn *turn)
{
    struct det_draft *draft = turn->draft;
    struct det_list *node;

    if (turn->kind == DET_TURN_START)
        tell_note(
            turn, &(struct det_store_event){ .visit = draft->head.visit,
                                             .from = draft->head.state,
                                             .to = draft->head.state,
                                             .event = UINT16_MAX,
                                             .outcome = DET_GOTO,
                                             .at = turn->now });
    for (size_t i = 0; i < draft->event_count; i++) {
        tell_note(turn, &draft->events[i]);
        if (draft->events[i].outcome == DET_DEAD_LETTER)
            tell_dead(turn, draft->events[i].event, DET_ERR_UNHANDLED);
    }
    while ((node = det_list_take(&draft->kept))) {
        struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        tell_dead(turn, det_event_kind(kept->event), DET_ERR_STOPPED);
        det_kept_close(turn->runtime, turn->served->machine, kept);
    }
}

static void answer(const struct det_turn *turn, struct det_sent *ret)
{
    const struct det_draft *draft = turn->draft;
    const struct det_store_head *head = &draft->head;

    *ret = (struct det_sent){
        .outcome = (enum det_outcome)draft->outcome,
        .state = head->state,
        .sequence = head->sequence,
        .visit = head->visit,
    };
    if (turn->kind == DET_TURN_START)
        ret->outcome = DET_GOTO;
    else if (turn->kind == DET_TURN_STOP)
        ret->outcome = DET_STOP;
}

/* Only these say that nothing happened and that the resident is as the store has it. */
static bool is_certain(int r)
{
    return r == DET_ERR_NO_MEMORY || r == DET_ERR_LIMIT || r == DET_ERR_NO_SPACE;
}

static int fail(struct det_turn *turn, const struct det_store_commit *commit, int r)
{
    turn->is_in_doubt = !is_certain(r);
    det_error_set(
        turn->error, r, "%s %s: the commit failed: %s", commit->machine->name, commit->id,
        det_error_text(r));
    if (turn->error && r == DET_ERR_CONFLICT) {
        turn->error->expected = commit->expected;
        turn->error->actual = commit->actual;
    }
    return r;
}

static bool is_nothing(const struct det_store_commit *commit)
{
    return !commit->is_new && !commit->event_count && !commit->timer_count &&
           !commit->effect_count && !commit->deferred_count;
}

static int store_draft(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_store_commit *const one = commit;
    size_t due = count_due(turn);
    int r;

    r = prepare(turn, due);
    if (r < 0)
        return r;
    r = turn->runtime->ops->commit(turn->runtime->store, &one, 1);
    if (r == 0)
        r = commit->result;
    if (r == 0)
        return 0;
    unpromise(turn, due);
    return fail(turn, commit, r);
}

int det_turn_commit(struct det_turn *turn, struct det_sent *ret)
{
    struct det_store_commit commit;
    struct det_sent sent;
    int r;

    r = collect(turn, &commit);
    answer(turn, &sent);
    if (r == 0 && !is_nothing(&commit)) {
        commit.answer = (struct det_store_answer){ (uint16_t)sent.outcome, (uint16_t)sent.state,
                                                   sent.sequence, sent.visit };
        r = store_draft(turn, &commit);
        if (r == 0)
            publish(turn, &commit);
    }
    if (r < 0) {
        det_draft_discard(turn);
        return r;
    }
    if (turn->is_claimed && !turn->is_locked)
        tell(turn);
    *ret = sent;
    return 0;
}
