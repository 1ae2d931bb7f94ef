/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_model.c - the model beside the runtime, and the comparison of the two. */
#include <stdarg.h>
#include <string.h>

#include <detent/driver/store.h>
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "base/hash.h"
#include "testing/transition_index.h"
#include "testing/walk_internal.h"

bool walk_fail(struct walk *walk, const char *format, ...)
{
    va_list arguments;

    if (*walk->result->violation)
        return false;
    va_start(arguments, format);
    vsnprintf(walk->result->violation, WALK_TEXT_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static void arm_timer(struct walk_model *model, const struct det_timeout *timeout, det_time now)
{
    model->timeout_due = timeout && timeout->after ? now + timeout->after : DET_NEVER;
    model->is_timeout_refused = false;
}

static void clear_timers(struct walk_model *model)
{
    model->timeout_due = DET_NEVER;
    for (size_t i = 0; i < DET_TIMERS_MAX; i++)
        model->timers[i] = DET_NEVER;
}

static void begin_instance(struct walk *walk, const struct det_note *note)
{
    struct walk_model *model = &walk->model;
    const struct det_machine *machine = walk->machine;

    clear_timers(model);
    model->is_running = true;
    model->state = machine->initial;
    model->sequence = note->sequence;
    memcpy(model->data, note->data, det_machine_data(machine)->size);
    arm_timer(model, &machine->states[machine->initial].timeout, note->at);
    if (note->to != machine->initial)
        walk_fail(
            walk, "it started in %s, not in the initial state", machine->states[note->to].name);
}

/* Named timers: a transition disarms before it arms. */
static void move_timers(
    struct walk *walk, const struct det_transition *transition, const struct det_note *note)
{
    const struct det_transition_more *more = transition->more;
    struct walk_model *model = &walk->model;

    for (unsigned i = 0; more && i < more->disarm_count; i++)
        model->timers[more->disarms[i]] = DET_NEVER;
    for (unsigned i = 0; more && i < more->arm_count; i++) {
        model->is_timer_refused[more->arms[i]] = false;
        model->timers[more->arms[i]] =
            note->at + walk->machine->timers[more->arms[i]].timeout.after;
    }
    if (transition->outcome == DET_OUTCOME_GOTO)
        arm_timer(model, det_machine_timeout(walk->machine, transition), note->at);
    if (transition->outcome == DET_OUTCOME_STOP)
        clear_timers(model);
}

/* Guards have answered for all alternatives up to the one that was taken. */
static size_t fold_note(struct walk *walk, const struct det_note *note)
{
    const struct det_machine *machine = walk->machine;
    size_t edge = cli_transition_chosen(machine, note->from, note->event, walk->answers);
    const struct det_transition *transition = cli_transition_at(machine, edge).transition;
    struct walk_model *model = &walk->model;

    if (!model->is_running)
        walk_fail(walk, "an event was committed after the stop");
    if (note->sequence != model->sequence + 1)
        walk_fail(
            walk, "sequence %llu follows %llu", (unsigned long long)note->sequence,
            (unsigned long long)model->sequence);
    if (note->from != model->state)
        walk_fail(
            walk, "an event was judged from %s, but the state was %s",
            machine->states[note->from].name, machine->states[model->state].name);
    model->sequence = note->sequence;
    /* Put aside, now or for later: recorded, and nothing else. */
    if (transition->outcome == DET_OUTCOME_UNHANDLED && note->outcome > DET_OUTCOME_STOP)
        return edge;
    /* A deferred event may be refused in a state that takes it. */
    if (note->outcome == DET_OUTCOME_DEAD_LETTER && note->to == note->from &&
        machine->events[note->event].unhandled == DET_UNHANDLED_DEFER)
        return edge;
    if (note->outcome != transition->outcome || note->to != transition->to)
        walk_fail(
            walk, "%s on %s did not follow the table", machine->states[note->from].name,
            machine->events[note->event].name);
    if (det_machine_apply(machine, transition, model->data, note->event_value, NULL) < 0 ||
        !det_record_equal(det_machine_data(machine), model->data, note->data))
        walk_fail(
            walk, "%s on %s produced data that differs from the definition",
            machine->states[note->from].name, machine->events[note->event].name);
    model->state = note->to;
    model->is_running = note->outcome != DET_OUTCOME_STOP;
    move_timers(walk, transition, note);
    return edge;
}

size_t walk_model_note(struct walk *walk, const struct det_note *note)
{
    size_t edge = 0;

    if (note->event != UINT16_MAX) {
        edge = fold_note(walk, note);
    } else if (note->outcome == DET_OUTCOME_STOP) {
        clear_timers(&walk->model);
        walk->model.is_running = false;
        walk->model.sequence = note->sequence;
    } else {
        begin_instance(walk, note);
    }
    walk->decisions++;
    return edge;
}

void walk_model_incident(struct walk *walk, const struct det_incident *incident)
{
    int id = *incident->name ? det_machine_find_timer(walk->machine, incident->name) : -1;

    det_assert(id < (int)walk->machine->timer_count);
    walk->decisions++;
    if (incident->kind != DET_INCIDENT_TIMEOUT_REJECTED)
        return;
    if (id < 0)
        walk->model.is_timeout_refused = true;
    else
        walk->model.is_timer_refused[id] = true;
}

/* Context of a check of the timers. */
struct timer_check {
    struct walk *walk;
    uint64_t visit;
    det_time now;
    bool has_timeout;
    bool has_timer[DET_TIMERS_MAX];
};

static int check_timer(void *context, const struct det_timer_record *row)
{
    struct timer_check *check = context;
    struct walk *walk = check->walk;
    bool is_deferred = strcmp(row->name, DET_DEFERRED_TIMER_NAME) == 0;
    int id = *row->name ? det_machine_find_timer(walk->machine, row->name) : -1;
    det_time due = id < 0 ? walk->model.timeout_due : walk->model.timers[id];
    bool is_refused = id < 0 ? walk->model.is_timeout_refused : walk->model.is_timer_refused[id];

    if (is_deferred)
        return 0;
    if (*row->name ? id < 0 || check->has_timer[id] : check->has_timeout)
        walk_fail(walk, "timer '%s' is unknown or already armed", row->name);
    if (row->due != due)
        walk_fail(walk, "timer '%s' is due at another time than it was armed for", row->name);
    if (row->due <= check->now && !is_refused)
        walk_fail(walk, "timer '%s' is due and did not fire", row->name);
    if (id < 0 && row->visit != check->visit)
        walk_fail(
            walk, "the state's timer belongs to visit %llu, but this is %llu",
            (unsigned long long)row->visit, (unsigned long long)check->visit);
    if (id < 0)
        check->has_timeout = true;
    else
        check->has_timer[id] = true;
    return 0;
}

static void check_timers(struct walk *walk, const struct det_instance *instance)
{
    struct timer_check check = {
        .walk = walk,
        .visit = instance->visit,
        .now = det_world_now(walk->stage.world, DET_CLOCK_WALL),
    };
    int r;

    r = det_runtime_timers(
        walk->stage.runtime, walk->machine, walk->instance, check_timer, &check, NULL);
    if (r < 0)
        walk_fail(walk, "the timers cannot be read: %s", det_error_text(r));
    if (!check.has_timeout && walk->model.timeout_due != DET_NEVER &&
        walk->model.timeout_due > check.now)
        walk_fail(walk, "the state's timer is lost");
    for (unsigned i = 0; i < walk->machine->timer_count; i++) {
        if (!check.has_timer[i] && walk->model.timers[i] != DET_NEVER &&
            walk->model.timers[i] > check.now)
            walk_fail(walk, "timer '%s' is lost", walk->machine->timers[i].name);
    }
}

void walk_check(struct walk *walk)
{
    const struct walk_model *model = &walk->model;
    struct det_instance instance;
    int r;

    r = det_runtime_get(
        walk->stage.runtime, walk->machine, walk->instance, &instance, walk->after, NULL);
    if (r < 0) {
        walk_fail(walk, "the instance cannot be read: %s", det_error_text(r));
        return;
    }
    if (instance.state != model->state || instance.sequence != model->sequence)
        walk_fail(
            walk, "the instance is in %s at %llu, but its events lead to %s at %llu",
            walk->machine->states[instance.state].name, (unsigned long long)instance.sequence,
            walk->machine->states[model->state].name, (unsigned long long)model->sequence);
    if (!det_record_equal(det_machine_data(walk->machine), walk->after, model->data))
        walk_fail(walk, "the data is not what its events lead to");
    if (instance.is_stopped == model->is_running)
        walk_fail(
            walk, "the instance %s, but its events say otherwise",
            instance.is_stopped ? "has stopped" : "runs");
    check_timers(walk, &instance);
}

static int hash_timer(void *context, const struct det_timer_record *row)
{
    uint64_t *hash = context;

    *hash = det_hash_mix(*hash, det_hash64(row->name, strlen(row->name), row->visit));
    *hash = det_hash_mix(*hash, (uint64_t)row->due);
    return 0;
}

static int hash_effect(void *context, const struct det_pending_effect *row)
{
    uint64_t *hash = context;

    *hash = det_hash_mix(*hash, det_hash64(row->key, strlen(row->key), row->attempts));
    /* The state of its thread varies from moment to moment. */
    *hash = det_hash_mix(
        *hash,
        (uint64_t)(row->state == DET_EFFECT_STATE_QUEUED ? DET_EFFECT_STATE_RUNNING : row->state));
    return 0;
}

int walk_observe(struct walk *walk, struct walk_view *ret, void *ret_data)
{
    int r;

    *ret = (struct walk_view){ 0 };
    r = det_runtime_get(
        walk->stage.runtime, walk->machine, walk->instance, &ret->instance, ret_data, NULL);
    if (r == 0)
        r = det_runtime_timers(
            walk->stage.runtime, walk->machine, walk->instance, hash_timer, &ret->timers, NULL);
    if (r == 0)
        r = det_runtime_effects(
            walk->stage.runtime, walk->machine, walk->instance, hash_effect, &ret->effects, NULL);
    return r;
}

bool walk_is_same(const struct walk *walk, const struct walk_view *a, const struct walk_view *b)
{
    const struct det_instance *x = &a->instance, *y = &b->instance;

    return x->state == y->state && x->sequence == y->sequence && x->visit == y->visit &&
           x->transition_count == y->transition_count && x->is_stopped == y->is_stopped &&
           x->history_count == y->history_count && x->deferred_count == y->deferred_count &&
           x->effects_pending == y->effects_pending &&
           x->last_transition_at == y->last_transition_at && a->timers == b->timers &&
           a->effects == b->effects &&
           det_record_equal(det_machine_data(walk->machine), walk->before, walk->after);
}
