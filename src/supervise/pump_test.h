/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pump_test.h - the pump of pump_test.fsm: it writes down which of its functions ran, in order, and
 * a test says what they answer. One suite per program includes it. */
#ifndef DET_SUPERVISE_PUMP_TEST_H
#define DET_SUPERVISE_PUMP_TEST_H

#include <detent/sim.h>

#define FSM_SPEC "supervise/pump_test.fsm"
#include <detent/fsm/declare.h>

#include "lib/test.h"

struct pump {
    struct det_component component;
    char trace[1024]; /* "open_step run_step " */
    /* Results of functions that replace the usual ones. */
    const char *broken; /* the function that fails */
    const char *broken_too;
    int error;               /* with this */
    const char *text;        /* and this text */
    int answer;              /* of run_step, once; 0: DET_DIRECTIVE_CONTINUE */
    struct pump_event event; /* and this event */
    bool is_restless, is_unsound, is_silent, echo_wrong;
    unsigned ticks, rounds, completions, open_answers, drain_answers;
    struct det_component_end end;
    struct det_failure reported; /* what note_failure saw */
    void (*in_step)(struct pump *pump);
    int (*in_tick)(struct pump *pump);                /* its answer is the action's */
    int (*fate)(struct pump *pump, const char *name); /* what each function answers */
    void *user;
};

#define FSM_SPEC "supervise/pump_test.fsm"
#include <detent/fsm/define.h>

static void note(struct pump *pump, const char *name)
{
    size_t length = strlen(pump->trace);

    snprintf(pump->trace + length, sizeof pump->trace - length, "%s ", name);
}

/* Notes that a function ran; what it returns if it is one of the broken ones, else 0. */
static int ran(struct pump *pump, const char *name)
{
    bool is_broken = (pump->broken && strcmp(pump->broken, name) == 0) ||
                     (pump->broken_too && strcmp(pump->broken_too, name) == 0);

    note(pump, name);
    if (pump->fate)
        return pump->fate(pump, name);
    if (!is_broken)
        return 0;
    if (pump->text && pump->error < 0)
        return det_component_fail(&pump->component, pump->error, "%s", pump->text);
    return pump->error;
}

static bool has_port(const struct pump *pump, const struct pump_event *event)
{
    (void)pump;
    return event->start.number != 0;
}

static bool is_calm(const struct pump *pump, const struct pump_event *event)
{
    (void)event;
    return !pump->is_restless;
}

static int enter_running(struct pump *pump, const struct pump_event *event)
{
    (void)event;
    return ran(pump, "enter_running");
}

static int leave_running(struct pump *pump, const struct pump_event *event)
{
    (void)event;
    return ran(pump, "leave_running");
}

static int check_drain(struct pump *pump, const struct pump_event *event)
{
    (void)event;
    return ran(pump, "check_drain");
}

static int open_port(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    (void)ret;
    return ran(pump, "open_port");
}

static int count_tick(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    (void)ret;
    pump->ticks++;
    if (pump->in_tick) {
        int r = pump->in_tick(pump);

        if (r < 0)
            return r;
    }
    return ran(pump, "count_tick");
}

static int make_echo(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    int r = ran(pump, "make_echo");

    (void)event;
    if (!pump->is_silent)
        *ret = pump->echo_wrong ? pump_tick() : pump_echo();
    return r != 0 ? r : DET_EFFECT_PRODUCED;
}

static int make_round(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    pump->rounds++;
    *ret = pump_round();
    return DET_EFFECT_PRODUCED;
}

static int make_flood(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    *ret = pump_wave();
    pump->rounds++;
    return DET_EFFECT_PRODUCED;
}

static int close_port(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    (void)ret;
    return ran(pump, "close_port");
}

static int note_failure(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    (void)event;
    (void)ret;
    pump->reported = *det_component_failure(&pump->component);
    return ran(pump, "note_failure");
}

/* Is open after as many steps as the test says. */
static int open_step(struct pump *pump, struct pump_event *ret)
{
    int r = ran(pump, "open_step");

    if (r != 0)
        return r;
    if (pump->open_answers > 0) {
        pump->open_answers--;
        return DET_DIRECTIVE_CONTINUE;
    }
    *ret = pump_opened();
    return DET_DIRECTIVE_TRANSITION;
}

static int run_step(struct pump *pump, struct pump_event *ret)
{
    int r = ran(pump, "run_step"), answer;

    if (pump->in_step)
        pump->in_step(pump);
    if (r != 0)
        return r;
    answer = pump->answer;
    *ret = pump->event;
    pump->answer = DET_DIRECTIVE_CONTINUE;
    return answer;
}

static int drain_step(struct pump *pump, struct pump_event *ret)
{
    int r = ran(pump, "drain_step");

    if (r != 0)
        return r;
    if (pump->drain_answers > 0) {
        pump->drain_answers--;
        return DET_DIRECTIVE_CONTINUE;
    }
    *ret = pump_finish();
    return DET_DIRECTIVE_TRANSITION;
}

static int pump_completed(struct pump *pump, const struct det_component_end *end)
{
    pump->completions++;
    pump->end = *end;
    return ran(pump, "completed");
}

static bool pump_is_sound(const struct pump *pump)
{
    return !pump->is_unsound && pump->completions == 0;
}

/* A pump under supervision in a simulated world, whose loop the test turns. */
struct fixture {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_executor *executor;
    struct det_handle *handle;
    struct pump pump;
};

static inline int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    assert_int_equal(det_sim_open(NULL, &fixture->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(fixture->sim), NULL, &fixture->loop), 0);
    assert_int_equal(det_executor_open(fixture->loop, NULL, &fixture->executor, NULL), 0);
    assert_int_equal(
        pump_supervise(fixture->executor, &fixture->pump, NULL, &fixture->handle, NULL), 0);
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;

    det_handle_close(fixture->handle);
    det_executor_close(fixture->executor);
    det_loop_close(fixture->loop);
    det_sim_close(fixture->sim);
    free(fixture);
    return 0;
}

/* All that is due now. */
static inline void turn(struct fixture *fixture)
{
    while (det_loop_turn(fixture->loop, 0) > 0)
        continue;
}

static inline det_time now(struct fixture *fixture)
{
    return det_world_now(det_sim_world(fixture->sim), DET_CLOCK_MONOTONIC);
}

/* All that is due until `span` from now. */
static inline void pass(struct fixture *fixture, det_time span)
{
    det_time end = now(fixture) + span;

    while (now(fixture) < end)
        assert_true(det_loop_turn(fixture->loop, end) >= 0);
    turn(fixture);
}

static inline struct pump_event start_event(void)
{
    return pump_start((struct pump_port){ .number = 3 });
}

/* An offer, and the turns of the dispatch function after it. */
static inline int offered(struct fixture *fixture, struct pump *pump, struct pump_event event)
{
    int r;

    r = pump_offer(pump, event);
    turn(fixture);
    return r;
}

/* Running, with nothing in its trace. */
static inline void run_it(struct fixture *fixture)
{
    turn(fixture);
    assert_int_equal(offered(fixture, &fixture->pump, start_event()), 0);
    assert_int_equal(det_component_state(&fixture->pump.component), PUMP_RUNNING);
    fixture->pump.trace[0] = '\0';
}

#define PUMP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
