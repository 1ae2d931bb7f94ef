/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario.c - runs a scenario: one thread turns the loop until it is over. */
#include <detent/driver/loop.h>

#include "kinds/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"
#include "kinds/kinds.h"
#include "os/os.h"

#define TICK_DEFAULT (100 * DET_MILLISECOND)
/* Interval of checks for a state. */
#define CHECK_EVERY        (50 * DET_MILLISECOND)
#define NOTE_MAX           400

#define DET_SCENARIO(name) extern const struct det_scenario det_scenario_##name;
#include "kinds/scenario.def"
#undef DET_SCENARIO

enum {
#define DET_SCENARIO(name) SCENARIO_##name,
#include "kinds/scenario.def"
#undef DET_SCENARIO
    SCENARIO_COUNT,
};

const struct det_scenario *const *det_scenarios(void)
{
    static const struct det_scenario *const list[SCENARIO_COUNT + 1] = {
#define DET_SCENARIO(name) &det_scenario_##name,
#include "kinds/scenario.def"
#undef DET_SCENARIO
        NULL,
    };

    return list;
}

const struct det_scenario *det_scenario_find(const char *name)
{
    const struct det_scenario *const *list = det_scenarios();

    while (*list && strcmp((*list)->name, name) != 0)
        list++;
    return *list;
}

const char *det_scenario_nearest(const char *name)
{
    const char *names[SCENARIO_COUNT];
    int nearest;

    for (size_t i = 0; i < SCENARIO_COUNT; i++)
        names[i] = det_scenarios()[i]->name;
    nearest = det_text_nearest(name, names, SCENARIO_COUNT);
    det_assert(nearest < SCENARIO_COUNT);
    return nearest < 0 ? NULL : names[nearest];
}

enum det_scenario_level det_scenario_level_of(enum det_worker_event_kind kind)
{
    static const enum det_scenario_level levels[] = {
#define DET_WORKER_EVENT(name, wire, level, text) DET_SCENARIO_##level,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
    };

    return (size_t)kind < sizeof levels / sizeof *levels ? levels[kind] : DET_SCENARIO_ERROR;
}

/* Functions for scenarios. */

static bool is_over(struct det_scenario_run *run)
{
    return run->stop_wanted || det_world_now(run->world, DET_CLOCK_MONOTONIC) >= run->until;
}

int det_scenario_wait(struct det_scenario_run *run, det_time deadline)
{
    while (!is_over(run)) {
        int r;

        if (det_world_now(run->world, DET_CLOCK_MONOTONIC) >= deadline)
            return 0;
        r = det_loop_turn(run->loop, deadline < run->until ? deadline : run->until);
        if (r < 0)
            return r;
    }
    return DET_ERR_CANCELLED;
}

static bool is_in_state(struct det_scenario_run *run, const char *id, const char *state)
{
    struct det_worker_status status;

    if (det_workers_get(run->workers, id, NULL, &status, NULL, NULL) < 0)
        return state == NULL;
    return state && strcmp(status.state, state) == 0;
}

int det_scenario_wait_state(
    struct det_scenario_run *run, const char *id, const char *state, det_time span)
{
    det_time deadline = det_world_now(run->world, DET_CLOCK_MONOTONIC) + span;

    while (!is_in_state(run, id, state)) {
        det_time now = det_world_now(run->world, DET_CLOCK_MONOTONIC);
        int r;

        if (now >= deadline)
            return DET_ERR_TIMEOUT;
        r = det_scenario_wait(run, now + CHECK_EVERY);
        if (r < 0)
            return r;
    }
    return 0;
}

void det_scenario_print(struct det_scenario_run *run, const char *name, const char *format, ...)
{
    char text[NOTE_MAX];
    struct det_scenario_note note = { .name = name, .text = text };
    va_list arguments;

    if (!run->options->on_note)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note.wall = det_world_now(run->world, DET_CLOCK_WALL);
    run->options->on_note(run->options->user, &note);
}

int det_scenario_provide(struct det_scenario_run *run, const char *name, void *thing)
{
    det_assert(!run->workers && run->provided_count < DET_SCENARIO_PROVIDED_MAX);
    /* The last one is the end of the list. */
    if (run->provided_count + 1 >= DET_SCENARIO_PROVIDED_MAX)
        return DET_ERR_LIMIT;
    run->provided[run->provided_count++] = (struct det_provided){ name, thing };
    return 0;
}

/* The run. */

void det_scenario_stop(struct det_scenario_run *run)
{
    if (run->stop_begun)
        det_workers_cancel(run->workers);
    run->force_wanted |= run->stop_wanted;
    run->stop_wanted = true;
}

static int check_events(
    const struct det_scenario *scenario, const struct det_scenario_options *options,
    struct det_error *reterr)
{
    if (!scenario->config == !scenario->run)
        return det_error_set(
            reterr, DET_ERR_INVALID, "scenario %s has %s: give it one of the two", scenario->name,
            scenario->config ? "a config and a function" : "neither a config nor a function");
    if (options->duration < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "scenario %s: a duration must not be negative; 0 means no limit", scenario->name);
    if (options->tick < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "scenario %s: a tick must be greater than 0", scenario->name);
    return 0;
}

static int open_workers(struct det_scenario_run *run, struct det_error *reterr)
{
    const struct det_scenario_options *options = run->options;
    char name[DET_WORKER_NAME_MAX + 1];
    struct det_workers_options workers = {
        .world = run->world,
        .allocator = run->allocator,
        .loop = run->loop,
        .store = run->store,
        .name = name,
        .kinds = det_kinds_all(),
        .provided = run->provided,
        .limits = { .tick = options->tick ? options->tick : TICK_DEFAULT },
        .on_event = options->on_event,
        .user = options->user,
    };

    (void)snprintf(name, sizeof name, "scenario-%s", run->scenario->name);
    return det_workers_open(&workers, &run->workers, reterr);
}

/* Runs the scenario up to its end or its failure. */
static int drive_run(struct det_scenario_run *run, struct det_error *reterr)
{
    int r = 0;

    if (run->options->on_begin)
        r = run->options->on_begin(run->options->user, run, reterr);
    if (r == 0 && run->scenario->config)
        r = det_workers_apply(run->workers, run->scenario->config, reterr);
    if (r == 0 && run->scenario->run)
        r = run->scenario->run(run, reterr);
    if (r == 0 && run->scenario->config)
        r = det_scenario_wait(run, run->until);
    /* Its regular end is cancellation. */
    return r == DET_ERR_CANCELLED ? 0 : r;
}

static int run_workers(struct det_scenario_run *run, struct det_error *reterr)
{
    struct det_error unclean = { 0 };
    int r, stopped;

    r = open_workers(run, reterr);
    if (r < 0)
        return r;
    r = drive_run(run, reterr);
    det_assert(!run->stop_begun && (!run->force_wanted || run->stop_wanted));
    run->stop_begun = true;
    /* Two requests that came before we got here. */
    if (run->force_wanted) {
        det_workers_cancel(run->workers);
        det_workers_cancel(run->workers);
    }
    stopped = det_workers_stop(run->workers, &unclean);
    if (r == 0 && stopped < 0) {
        *reterr = unclean;
        r = stopped;
    }
    if (run->options->on_end)
        run->options->on_end(run->options->user, run);
    det_workers_close(run->workers);
    return r;
}

static int run_prepared(struct det_scenario_run *run, struct det_error *reterr)
{
    const struct det_scenario *scenario = run->scenario;
    int r;

    r = det_scenario_provide(run, "documents", run->store);
    if (r == 0 && scenario->begin)
        r = scenario->begin(run, reterr);
    if (r < 0)
        return r;
    r = run_workers(run, reterr);
    if (scenario->end)
        scenario->end(run);
    return r;
}

int det_scenario_run(
    const struct det_scenario *scenario, const struct det_scenario_options *options,
    struct det_error *reterr)
{
    struct det_scenario_run run = {
        .scenario = scenario,
        .options = options,
        .world = options->world ? options->world : det_world_real(),
        .allocator = options->allocator,
    };
    struct det_store_options store = { .world = run.world, .allocator = run.allocator };
    det_time now = det_world_now(run.world, DET_CLOCK_MONOTONIC);
    int r;

    r = check_events(scenario, options, reterr);
    if (r < 0)
        return r;
    run.until = options->duration > 0 ? det_add_time(now, options->duration) : DET_NEVER;
    r = det_store_open_with("memory:", &store, &run.store, reterr);
    if (r < 0)
        return r;
    r = det_loop_open(run.world, run.allocator, &run.loop);
    if (r == 0) {
        det_loop_claim(run.loop);
        r = run_prepared(&run, reterr);
        det_loop_close(run.loop);
    }
    det_store_close(run.store);
    return r;
}
