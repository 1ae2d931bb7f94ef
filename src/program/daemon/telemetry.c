/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* telemetry.c - metrics and traces of `detent up`. */
#include <detent/driver/loop.h>

#include "daemon/telemetry.h"

#include "base/memory.h"
#include "base/text.h"
#include "daemon/machines.h"

#define FLUSH_SPAN (2 * DET_SECOND)

/* Reports of the runtime, on its threads. */

static struct up_observe *observe_of(void *observer)
{
    const struct up_machines *machines = observer;

    return up_observe(machines->up);
}

static void on_commit(void *observer, const struct det_commit_figures *figures)
{
    det_monitor_commit(observe_of(observer)->monitor, figures);
}

static void on_attempt(void *observer, const struct det_attempt_figures *figures)
{
    struct up_observe *observe = observe_of(observer);

    det_monitor_attempt(observe->monitor, figures);
    if (observe->tracer)
        det_episode_attempt(observe->tracer, figures->trace, figures);
}

static void on_timeout(void *observer, const struct det_machine *machine, det_time late)
{
    det_monitor_timeout(observe_of(observer)->monitor, machine, late);
}

static void on_unhandled(
    void *observer, const struct det_machine *machine, unsigned state, unsigned event)
{
    det_monitor_unhandled(observe_of(observer)->monitor, machine, state, event);
}

static bool on_fire(void *observer, struct det_trace_context *ret)
{
    struct det_tracer *tracer = observe_of(observer)->tracer;

    if (tracer)
        det_episode_fire(tracer, ret);
    return tracer != NULL;
}

const struct det_meter up_meter = { on_commit, on_attempt, on_timeout, on_unhandled, on_fire };

void up_observe_note(struct up_observe *observe, const struct det_note *note)
{
    det_monitor_note(observe->monitor, note);
    if (observe->tracer)
        det_episode_commit(observe->tracer, note->trace, note);
}

void up_observe_incident(struct up_observe *observe, const struct det_incident *incident)
{
    det_monitor_incident(observe->monitor, incident);
}

/* Opening and closing. */

/* A message from the exporter's thread to the loop. */
struct note {
    struct det_post post;
    struct up *up;
    char text[DET_ERROR_TEXT_MAX];
};

static void print_note(void *argument)
{
    struct note *note = argument;

    up_note_failure(note->up, UP_NAME, "%s", note->text);
    DET_DELETE(up_allocator(note->up), note);
}

static void report_text(void *user, const char *text)
{
    struct up_observe *observe = user;
    struct note *note = DET_NEW(up_allocator(observe->up), struct note);

    if (!note)
        return;
    note->post = (struct det_post){ .run = print_note, .argument = note };
    note->up = observe->up;
    (void)det_text_copy(note->text, sizeof note->text, text);
    det_loop_post(up_loop(observe->up), &note->post);
}

static int open_traces(struct up_observe *observe)
{
    const struct config_traces *config = &up_config(observe->up)->traces;
    const struct det_allocator *allocator = up_allocator(observe->up);
    const struct det_tracer_options tracer = {
        .allocator = allocator,
        .metrics = observe->metrics,
        .kept_per_million = config->sample ? config->sample : UINT32_MAX,
    };
    const struct otlp_options otlp = {
        .allocator = allocator,
        .metrics = observe->metrics,
        .endpoint = config->endpoint,
        .headers = config->headers.items,
        .header_count = config->headers.count,
        .resource = { .service_name = "detent", .service_version = det_version() },
        .report = report_text,
        .user = observe,
    };
    struct otlp_options options = otlp;
    int r;

    if (!config->endpoint)
        return 0;
    r = det_tracer_open(&tracer, &observe->tracer);
    options.tracer = observe->tracer;
    return r < 0 ? r : otlp_open(&options, &observe->otlp);
}

int up_observe_open(struct up *up, struct det_error *reterr)
{
    const struct det_allocator *allocator = up_allocator(up);
    struct up_observe *observe = DET_NEW(allocator, struct up_observe);
    int r = DET_ERR_NO_MEMORY;

    if (observe) {
        observe->up = up;
        up_set_observe(up, observe);
        r = det_metrics_open(
            &(struct det_metrics_options){ .allocator = allocator }, &observe->metrics);
    }
    if (r == 0)
        r = det_monitor_open(observe->metrics, NULL, allocator, &observe->monitor);
    if (r == 0)
        r = open_traces(observe);
    return r < 0 ? det_error_set(reterr, r, "metrics and traces: %s", det_error_text(r)) : 0;
}

void up_observe_close(struct up *up)
{
    struct up_observe *observe = up_observe(up);

    if (!observe)
        return;
    otlp_close(observe->otlp, det_world_now(up_world(up), DET_CLOCK_MONOTONIC) + FLUSH_SPAN);
    if (up_loop(up))
        (void)det_loop_turn(up_loop(up), 0); /* Its last messages. */
    det_tracer_close(observe->tracer);
    det_monitor_close(observe->monitor);
    det_metrics_close(observe->metrics);
    DET_DELETE(up_allocator(up), observe);
    up_set_observe(up, NULL);
}
