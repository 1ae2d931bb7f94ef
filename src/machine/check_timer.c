/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_timer.c - finds the states where named timers may fire, and checks that they accept them.
 *
 * armed[state] is the set of timers that may be armed in a state, one bit each. Every transition
 * carries the set on:
 *
 *      armed[to]  |=  (armed[from] - fired by the event - DISARM) + ARM
 *
 * until nothing changes. Sets only grow and have at most DET_TIMERS_MAX members, so this ends. */
#include "base/assert.h"
#include "machine/builder_build.h"

_Static_assert(DET_TIMERS_MAX <= 64, "a set of timers fits one number");

struct walk {
    uint64_t *armed;    /* by state */
    uint64_t *fired_by; /* by event: the timers that send it */
    uint32_t *queue;    /* a ring of states whose set has grown */
    bool *is_queued;
    size_t capacity, head, count;
};

static bool init_walk(struct det_build *build, struct walk *walk)
{
    size_t states = det_build_count(build, DET_BUILD_STATE);

    *walk = (struct walk){
        .armed = det_build_scratch(build, states, sizeof *walk->armed),
        .fired_by = det_build_scratch(
            build, det_build_count(build, DET_BUILD_EVENT), sizeof *walk->fired_by),
        .queue = det_build_scratch(build, states, sizeof *walk->queue),
        .is_queued = det_build_scratch(build, states, sizeof *walk->is_queued),
        .capacity = states,
    };
    return walk->armed != NULL && walk->fired_by != NULL && walk->queue != NULL &&
           walk->is_queued != NULL;
}

static void enqueue_state(struct walk *walk, size_t state)
{
    if (walk->is_queued[state])
        return;
    det_assert(walk->count < walk->capacity);
    walk->is_queued[state] = true;
    walk->queue[(walk->head + walk->count++) % walk->capacity] = (uint32_t)state;
}

static size_t dequeue_state(struct walk *walk)
{
    size_t state = walk->queue[walk->head];

    det_assert(walk->count > 0 && walk->is_queued[state]);
    walk->head = (walk->head + 1) % walk->capacity;
    walk->count--;
    walk->is_queued[state] = false;
    return state;
}

/* A state is queued once when it is first reached, and then whenever its set grows. */
static void carry_timers(
    struct walk *walk, const struct det_build_row *row, size_t state, size_t event,
    bool *is_reached)
{
    size_t to = row->on.outcome == DET_OUTCOME_GOTO ? (size_t)row->on.to.id : state;
    uint64_t set = walk->armed[state] & ~walk->fired_by[event] & ~row->on.disarm_mask;

    set |= row->on.arm_mask;
    if (row->on.outcome == DET_OUTCOME_STOP || (is_reached[to] && (set & ~walk->armed[to]) == 0))
        return;
    is_reached[to] = true;
    walk->armed[to] |= set;
    enqueue_state(walk, to);
}

static void run_walk(struct det_build *build, struct walk *walk)
{
    size_t events = det_build_count(build, DET_BUILD_EVENT);
    bool *is_reached = det_build_scratch(build, walk->capacity, sizeof *is_reached);

    if (is_reached == NULL)
        return;
    is_reached[build->initial] = true;
    enqueue_state(walk, (size_t)build->initial);
    while (walk->count > 0) {
        size_t state = dequeue_state(walk);

        for (size_t event = 0; event < events; event++) {
            struct det_build_row_cursor cursor = { 0 };
            const struct det_build_row *row;

            while ((row = det_build_next_row(build, state, event, &cursor)) != NULL)
                carry_timers(walk, row, state, event, is_reached);
        }
    }
}

static void report_unanswered(
    struct det_build *build, const struct det_build_row *timer, const struct det_build_row *state,
    size_t count)
{
    const char *event = timer->timer.event.text;
    struct det_diagnostic *finding;

    if (count == 1)
        finding = det_build_report(
            &build->findings, DET_RULE_TIMER_UNANSWERED, timer, &timer->name,
            "%s may fire in %s of %s, which does not accept %s", timer->name.text, state->name.text,
            build->name, event);
    else
        finding = det_build_report(
            &build->findings, DET_RULE_TIMER_UNANSWERED, timer, &timer->name,
            "%s may fire in %s of %s, which does not accept %s, and in %zu more", timer->name.text,
            state->name.text, build->name, event, count - 1);
    det_build_other(&build->findings, finding, state, &state->name);
    det_build_hint(
        &build->findings, finding,
        "DISARM(%s) on the way there, write ON(%s, %s, ...), or UNHANDLED(%s, ...)",
        timer->name.text, state->name.text, event, event);
}

static void check_timer(
    struct det_build *build, const struct walk *walk, const struct det_build_row *timer)
{
    const struct det_build_row *event =
        det_build_named(build, DET_BUILD_EVENT, &timer->timer.event);
    const struct det_build_row *first = NULL;
    size_t count = 0;

    if (det_build_policy(build, event) != DET_UNHANDLED_ERROR)
        return;
    for (size_t state = 0; state < walk->capacity; state++) {
        if ((walk->armed[state] >> timer->id & 1) == 0 ||
            det_build_cell(build, state, event->id) != NULL)
            continue;
        if (count++ == 0)
            first = det_build_thing(build, DET_BUILD_STATE, state);
    }
    if (first != NULL)
        report_unanswered(build, timer, first, count);
}

void det_check_timers(struct det_build *build)
{
    size_t timers = det_build_count(build, DET_BUILD_TIMER);
    struct walk walk;

    if (timers == 0 || !init_walk(build, &walk))
        return;
    for (size_t i = 0; i < timers; i++) {
        const struct det_build_row *timer = det_build_thing(build, DET_BUILD_TIMER, i);

        walk.fired_by[timer->timer.event.id] |= UINT64_C(1) << i;
    }
    run_walk(build, &walk);
    for (size_t i = 0; i < timers; i++)
        check_timer(build, &walk, det_build_thing(build, DET_BUILD_TIMER, i));
}
