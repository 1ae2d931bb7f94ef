/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan.c - makes a random plan, each step from the model after the previous steps. */
#include "crash/plan.h"

#include <stdlib.h>
#include <string.h>

#include <detent/driver/store.h>

#include "lib/test.h"

struct maker {
    uint64_t seed;
    int64_t now;
    unsigned version;
    struct crash_model *model; /* after the current step */
    struct crash_step *step;
    bool is_locked[CRASH_INSTANCES], is_leased[CRASH_LEASES]; /* since the last opening */
};

static unsigned below(struct maker *maker, unsigned bound)
{
    return (unsigned)(det_test_random(&maker->seed) % bound);
}

static bool chance(struct maker *maker, unsigned percent)
{
    return below(maker, 100) < percent;
}

static int64_t tick(struct maker *maker)
{
    return maker->now += DET_SECOND;
}

static void push_history(struct crash_instance *instance, int64_t state)
{
    memmove(instance->history + 1, instance->history, sizeof instance->history - sizeof(int64_t));
    instance->history[0] = state;
}

/* Adds an event of the instance to the change and to the model. */
static struct crash_event *add_event(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance,
    enum det_outcome outcome)
{
    struct crash_event *event = &change->events[change->event_count++];
    struct crash_head *head = &instance->head;

    head->sequence++;
    event->sequence = head->sequence;
    event->from = event->to = head->state;
    event->outcome = outcome;
    event->at = tick(maker);
    event->event = below(maker, 3);
    event->value = event->event == 2 ? 0 : 1 + below(maker, 4000);
    event->choice = below(maker, 4) == 0;
    if (outcome == DET_OUTCOME_GOTO) {
        event->to = head->state = below(maker, CRASH_STATES);
        head->visit = head->sequence + 1;
        head->transitions++;
        head->moved_at = event->at;
        push_history(instance, event->from);
    }
    event->visit = head->visit;
    return event;
}

static void set_timer(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance, int timer)
{
    struct crash_timer row = { .armed = 1,
                               .event = 1,
                               .visit = instance->head.visit,
                               .due = maker->now + 10 * DET_SECOND,
                               .value = chance(maker, 50) ? 0 : 1 + below(maker, 1000) };

    change->timers[change->timer_count++] =
        (struct crash_timer_change){ DET_STORE_SET, timer, row };
    instance->timers[timer] = row;
}

static void end_timer(
    struct crash_change *change, struct crash_instance *instance, int timer, int kind)
{
    change->timers[change->timer_count++] =
        (struct crash_timer_change){ kind, timer, instance->timers[timer] };
    instance->timers[timer] = (struct crash_timer){ 0 };
}

static void ask_effect(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    const struct crash_event *event = &change->events[change->event_count - 1];
    struct crash_effect row = { .sequence = event->sequence,
                                .index = 0,
                                .effect = below(maker, 2),
                                .from = event->from,
                                .to = event->to,
                                .visit = event->visit,
                                .asked = instance->head.visit,
                                .at = event->at,
                                .next = event->at,
                                .data = instance->head.data,
                                .event = event->event,
                                .value = event->value };

    change->effects[change->effect_count++] = (struct crash_effect_change){ DET_STORE_SET, row };
    instance->effects[instance->effect_count++] = row;
}

static void end_effect(struct crash_change *change, struct crash_instance *instance, size_t at)
{
    change->effects[change->effect_count++] =
        (struct crash_effect_change){ DET_STORE_TAKE, instance->effects[at] };
    instance->effect_count--;
    memmove(
        &instance->effects[at], &instance->effects[at + 1],
        (CRASH_EFFECTS - at - 1) * sizeof instance->effects[0]);
    memset(&instance->effects[CRASH_EFFECTS - 1], 0, sizeof instance->effects[0]);
}

/* A failed attempt, a dead letter, or a retry: a commit without an event. */
static void update_effect(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    struct crash_effect *row = &instance->effects[below(maker, (unsigned)instance->effect_count)];

    row->attempts = row->dead ? 0 : row->attempts + 1;
    row->dead = !row->dead && chance(maker, 30);
    row->last_error = row->attempts ? DET_ERR_IO : 0;
    row->next = tick(maker);
    change->effects[change->effect_count++] =
        (struct crash_effect_change){ DET_STORE_UPDATE, *row };
}

static void defer(struct crash_change *change, struct crash_instance *instance)
{
    const struct crash_event *event = &change->events[change->event_count - 1];
    struct crash_deferred row = { event->sequence, event->event, event->value };

    change->deferred[change->deferred_count++] =
        (struct crash_deferred_change){ DET_STORE_SET, row };
    instance->deferred[instance->deferred_count++] = row;
}

static void take_deferred(struct crash_change *change, struct crash_instance *instance)
{
    change->deferred[change->deferred_count++] =
        (struct crash_deferred_change){ DET_STORE_TAKE, instance->deferred[0] };
    instance->deferred_count--;
    memmove(
        &instance->deferred[0], &instance->deferred[1],
        (CRASH_DEFERRED - 1) * sizeof instance->deferred[0]);
    memset(&instance->deferred[CRASH_DEFERRED - 1], 0, sizeof instance->deferred[0]);
}

static void make_start(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    change->is_new = change->has_data = true;
    for (size_t i = 0; i < CRASH_HISTORY; i++)
        instance->history[i] = -1;
    instance->head.exists = 1;
    instance->head.visit = 1;
    instance->head.started_at = instance->head.moved_at = tick(maker);
    instance->head.data = 1 + below(maker, 1000);
    if (chance(maker, 50))
        set_timer(maker, change, instance, 0);
}

/* The first event of a commit has its source: a sender, a timer, an effect, or a deferred event. */
static void make_first_event(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    int timer = (int)below(maker, CRASH_TIMERS);
    struct crash_event *event;

    if (chance(maker, 12) && instance->deferred_count < CRASH_DEFERRED) {
        (void)add_event(maker, change, instance, DET_OUTCOME_DEFERRED);
        defer(change, instance);
        return;
    }
    event =
        add_event(maker, change, instance, chance(maker, 65) ? DET_OUTCOME_GOTO : DET_OUTCOME_STAY);
    if (instance->timers[timer].armed && chance(maker, 60)) {
        event->timeout = 1;
        end_timer(change, instance, timer, DET_STORE_TAKE);
    } else if (instance->effect_count && !instance->effects[0].dead && chance(maker, 50)) {
        event->cause = instance->effects[0].sequence;
        end_effect(change, instance, 0);
    } else if (instance->deferred_count && chance(maker, 60)) {
        take_deferred(change, instance);
    }
}

/* A timer that this commit has not changed yet. */
static int other_timer(struct maker *maker, const struct crash_change *change)
{
    int timer = (int)below(maker, CRASH_TIMERS);

    if (change->timer_count && change->timers[0].timer == timer)
        timer = (timer + 1) % CRASH_TIMERS;
    return timer;
}

static void make_events(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    int timer;

    make_first_event(maker, change, instance);
    while (change->event_count < 3 && chance(maker, 15))
        (void)add_event(
            maker, change, instance,
            chance(maker, 80) ? DET_OUTCOME_GOTO : DET_OUTCOME_DEAD_LETTER);
    timer = other_timer(maker, change);
    if (chance(maker, 25))
        set_timer(maker, change, instance, timer);
    else if (chance(maker, 25))
        end_timer(change, instance, timer, DET_STORE_CLEAR);
    change->has_data = chance(maker, 50);
    if (change->has_data)
        instance->head.data = 1 + below(maker, 1000);
    if (chance(maker, 35) && instance->effect_count < CRASH_EFFECTS)
        ask_effect(maker, change, instance);
}

static void make_answer(struct crash_change *change, struct crash_instance *instance)
{
    struct crash_event *last = &change->events[change->event_count - 1];
    struct crash_answer *answer;

    for (int64_t id = 1; id <= CRASH_IDS; id++) {
        answer = &instance->answers[id - 1];
        if (answer->known)
            continue;
        *answer = (struct crash_answer){ 1, last->outcome, instance->head.state,
                                         instance->head.sequence, instance->head.visit };
        change->event_id = last->event_id = id;
        change->answer = *answer;
        return;
    }
}

static void make_snapshot(
    struct crash_change *change, const struct crash_head *head, struct crash_instance *instance)
{
    int64_t count = 0;

    while (count < CRASH_HISTORY && instance->history[count] >= 0)
        count++;
    change->is_snapshot = true;
    instance->snapshot = (struct crash_snapshot){
        1,          head->state, head->sequence, head->visit, head->transitions, head->stopped,
        head->data, count,
    };
}

/* A manual stop: the last event, after which no timer is left. */
static void make_stop(
    struct maker *maker, struct crash_change *change, struct crash_instance *instance)
{
    struct crash_event *event = add_event(maker, change, instance, DET_OUTCOME_STOP);

    event->event = -1;
    event->value = 0;
    event->choice = 0;
    change->has_reason = true;
    instance->head.stopped = 1;
    instance->head.reason = event->sequence;
    for (int i = 0; i < CRASH_TIMERS; i++)
        if (instance->timers[i].armed)
            end_timer(change, instance, i, DET_STORE_CLEAR);
}

static void keep_events(const struct crash_change *change, struct crash_instance *instance)
{
    for (size_t i = 0; i < change->event_count; i++)
        instance->events[instance->event_count++] = change->events[i];
}

/* One commit on an instance that has none in this step yet. */
static void make_change(struct maker *maker, unsigned number)
{
    struct crash_change *change = &maker->step->changes[maker->step->change_count++];
    struct crash_instance *instance = &maker->model->instances[number];

    change->instance = number;
    change->expected = instance->head.sequence;
    change->fence = maker->is_locked[number] ? instance->lock.token : 0;
    if (!instance->head.exists) {
        make_start(maker, change, instance);
    } else if (instance->effect_count && (instance->head.stopped || chance(maker, 12))) {
        update_effect(maker, change, instance);
    } else if (!instance->head.stopped && number == 0 && chance(maker, 3)) {
        make_stop(maker, change, instance);
    } else if (!instance->head.stopped) {
        make_events(maker, change, instance);
        if (chance(maker, 35))
            make_answer(change, instance);
    }
    keep_events(change, instance);
    change->head = instance->head;
    if (change->event_count && chance(maker, instance->event_count > CRASH_KEPT / 2 ? 60 : 12))
        make_snapshot(change, &instance->head, instance);
    memcpy(change->history, instance->history, sizeof change->history);
}

/* The same commit with one fault that makes it impossible: the model stays unchanged. */
static void spoil(struct maker *maker, const struct crash_model *before)
{
    struct crash_change *change = &maker->step->changes[0];
    const struct crash_instance *instance = &before->instances[change->instance];

    if (!change->event_count || change->is_new)
        return;
    switch (below(maker, 4)) {
    case 0:
        change->expected++;
        change->result = DET_ERR_CONFLICT;
        break;
    case 1:
        if (!instance->answers[0].known)
            return;
        change->event_id = change->events[change->event_count - 1].event_id = 1;
        change->result = DET_ERR_EXISTS;
        break;
    case 2:
        if (change->effect_count == 2)
            return;
        change->effects[change->effect_count++] =
            (struct crash_effect_change){ DET_STORE_TAKE,
                                          { .sequence = instance->head.sequence + 100 } };
        change->result = DET_ERR_NOT_FOUND;
        break;
    default:
        change->fence = instance->lock.token + 1;
        change->result = DET_ERR_LOCK_LOST;
        break;
    }
    *maker->model = *before;
}

static void make_commit(struct maker *maker, const struct crash_model *before)
{
    unsigned first = below(maker, CRASH_INSTANCES);
    unsigned count = chance(maker, 20) ? 2 + below(maker, 2) : 1;

    maker->step->kind = CRASH_STEP_COMMIT;
    for (unsigned i = 0; i < count; i++)
        make_change(maker, (first + i) % CRASH_INSTANCES);
    if (count == 1 && chance(maker, 10))
        spoil(maker, before);
}

/* Deletes the events that the snapshot covers, except a few. */
static void make_prune(struct maker *maker, struct crash_instance *instance)
{
    int64_t up_to = instance->snapshot.sequence - below(maker, 3);
    int64_t gone = 0;

    maker->step->kind = CRASH_STEP_PRUNE;
    maker->step->sequence = up_to;
    maker->step->with_answers = chance(maker, 30);
    while (gone < instance->event_count && instance->events[gone].sequence <= up_to)
        gone++;
    instance->event_count -= gone;
    memmove(
        instance->events, instance->events + gone,
        (size_t)instance->event_count * sizeof instance->events[0]);
    memset(
        instance->events + instance->event_count, 0,
        (size_t)(CRASH_KEPT - instance->event_count) * sizeof instance->events[0]);
    if (maker->step->with_answers)
        memset(instance->answers, 0, sizeof instance->answers);
}

static void make_lock(struct maker *maker, struct crash_lock *lock, bool *is_held, bool is_lease)
{
    if (!*is_held) {
        maker->step->kind = is_lease ? CRASH_STEP_LEASE : CRASH_STEP_LOCK;
        lock->token++;
        *is_held = true;
    } else if (is_lease || chance(maker, 60)) {
        maker->step->kind = is_lease ? CRASH_STEP_LEASE_END : CRASH_STEP_UNLOCK;
        *is_held = false;
    } else {
        maker->step->kind = CRASH_STEP_RENEW;
    }
}

/* A step other than a commit; false: none is possible. */
static bool make_other(struct maker *maker)
{
    unsigned number = below(maker, CRASH_INSTANCES);
    struct crash_instance *instance = &maker->model->instances[number];

    maker->step->subject = number;
    if (!instance->head.exists)
        return false;
    if (instance->snapshot.sequence > 3 && chance(maker, 40)) {
        make_prune(maker, instance);
        return true;
    }
    if (chance(maker, 30)) {
        maker->step->subject = number % CRASH_LEASES;
        make_lock(
            maker, &maker->model->leases[maker->step->subject],
            &maker->is_leased[maker->step->subject], true);
    } else {
        make_lock(maker, &instance->lock, &maker->is_locked[number], false);
    }
    return true;
}

/* Prunes first: an instance has as many events as the model can keep. */
static bool make_room(struct maker *maker)
{
    for (unsigned i = 0; i < CRASH_INSTANCES; i++) {
        struct crash_instance *instance = &maker->model->instances[i];

        if (instance->head.stopped || instance->event_count <= CRASH_KEPT - 8)
            continue;
        maker->step->subject = i;
        if (instance->snapshot.sequence > instance->events[CRASH_KEPT / 2].sequence) {
            make_prune(maker, instance);
            return true;
        }
        maker->step->kind = CRASH_STEP_COMMIT;
        make_change(maker, i);
        if (maker->step->changes[0].event_count)
            make_snapshot(&maker->step->changes[0], &instance->head, instance);
        return true;
    }
    return false;
}

static void make_step(
    struct maker *maker, const struct crash_plan_options *options, size_t number,
    const struct crash_model *before)
{
    bool reopens = options->reopen_every && number % options->reopen_every == 0;
    size_t times = reopens ? number / options->reopen_every : 0;

    if (times == 2 || times == 3)
        maker->version = (unsigned)times;
    maker->step->version = maker->version;
    if (reopens) {
        memset(maker->is_locked, 0, sizeof maker->is_locked);
        memset(maker->is_leased, 0, sizeof maker->is_leased);
        maker->step->kind = times == 3 ? CRASH_STEP_MIGRATE : CRASH_STEP_REOPEN;
    } else if (options->compacts && number == options->steps * 2 / 3) {
        maker->step->kind = CRASH_STEP_COMPACT;
    } else if (!make_room(maker) && !(chance(maker, 14) && make_other(maker))) {
        make_commit(maker, before);
    }
}

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

struct crash_plan *crash_plan_open(const struct crash_plan_options *options)
{
    struct crash_plan *plan = must(calloc(1, sizeof *plan));
    struct maker maker = { .seed = options->seed, .now = CRASH_TIME_START, .version = 1 };

    plan->step_count = options->steps;
    plan->steps = must(calloc(options->steps + 1, sizeof *plan->steps));
    plan->models = must(calloc(options->steps + 1, sizeof *plan->models));
    for (size_t i = 1; i <= options->steps; i++) {
        plan->models[i] = plan->models[i - 1];
        maker.model = &plan->models[i];
        maker.step = &plan->steps[i - 1];
        make_step(&maker, options, i, &plan->models[i - 1]);
    }
    return plan;
}

void crash_plan_close(struct crash_plan *plan)
{
    if (!plan)
        return;
    free(plan->steps);
    free(plan->models);
    free(plan);
}
