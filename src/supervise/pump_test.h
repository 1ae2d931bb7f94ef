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
    /* What functions answer, instead of what they would. */
    const char *broken; /* the function that fails */
    const char *broken_too;
    int error;               /* with this */
    const char *text;        /* and this text */
    int answer;              /* of run_step, once; 0: DET_CONTINUE */
    struct pump_event event; /* and this event */
    bool is_restless;
    unsigned ticks, completions, open_answers;
    struct det_component_end end;
    struct det_failure told; /* what note_failure saw */
    void (*in_step)(struct pump *pump);
    void *user;
};

#define FSM_SPEC "supervise/pump_test.fsm"
#include <detent/fsm/define.h>

static void note(struct pump *pump, const char *name)
{
    strncat(pump->trace, name, sizeof pump->trace - strlen(pump->trace) - 2);
    strncat(pump->trace, " ", 2);
}

/* Notes that a function ran; what it returns if it is one of the broken ones, else 0. */
static int ran(struct pump *pump, const char *name)
{
    bool is_broken = (pump->broken && strcmp(pump->broken, name) == 0) ||
                     (pump->broken_too && strcmp(pump->broken_too, name) == 0);

    note(pump, name);
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
    return ran(pump, "count_tick");
}

static int echo_twice(struct pump *pump, const struct pump_event *event, struct pump_event *ret)
{
    int r = ran(pump, "echo_twice");

    (void)event;
    *ret = pump_echo();
    return r != 0 ? r : DET_PRODUCED;
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
    pump->told = *det_component_failure(&pump->component);
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
        return DET_CONTINUE;
    }
    *ret = pump_opened();
    return DET_TRANSITION;
}

static int run_step(struct pump *pump, struct pump_event *ret)
{
    int r = ran(pump, "run_step"), answer = pump->answer;

    if (pump->in_step)
        pump->in_step(pump);
    if (r != 0)
        return r;
    *ret = pump->event;
    pump->answer = DET_CONTINUE;
    return answer;
}

static int drain_step(struct pump *pump, struct pump_event *ret)
{
    int r = ran(pump, "drain_step");

    *ret = pump_finish();
    return r != 0 ? r : DET_TRANSITION;
}

static int pump_completed(struct pump *pump, const struct det_component_end *end)
{
    pump->completions++;
    pump->end = *end;
    return ran(pump, "completed");
}

static bool pump_is_sound(const struct pump *pump)
{
    return pump->completions == 0;
}

#endif
