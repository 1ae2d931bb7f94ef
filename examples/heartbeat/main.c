/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - runs one service, in real time or in virtual time, and says what happens.
 *
 *     heartbeat                       a minute of real time; end it with Ctrl-C
 *     heartbeat --virtual [seed]      ten minutes of virtual time, at once; the same for one seed
 *
 * Both are the same code: only the world differs that it was given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/detent.h>

#include "service.h"

struct tally {
    det_time began;
    unsigned checks, found[service_event_count], visits[service_state_count];
};

/* Called after each commit. The lines are what an operator would like to read. */
static void report(void *user, const struct det_note *note)
{
    struct tally *tally = user;
    double seconds = (double)(note->at - tally->began) / (double)DET_SECOND;

    if (note->event == UINT16_MAX) {
        printf(
            "%6.1fs  %s is there, and %s\n", seconds, note->instance, service_state_name(note->to));
        return;
    }
    tally->checks += note->event == SERVICE_HEARTBEAT;
    tally->found[note->event]++;
    if (note->from == note->to)
        return;
    tally->visits[note->to]++;
    printf(
        "%6.1fs  %-8s --%s%s--> %s\n", seconds, service_state_name(note->from),
        note->machine->events[note->event].name, note->is_timeout ? " (timeout)" : "",
        service_state_name(note->to));
}

static void sum_up(const struct tally *tally, const struct service_data *data)
{
    printf(
        "%u checks: %u healthy, %u unstable, %u failed; degraded %u times, reset %u times\n",
        tally->checks, tally->found[SERVICE_HEALTHY], tally->found[SERVICE_UNSTABLE],
        tally->found[SERVICE_FAILED], tally->visits[SERVICE_DEGRADED], data->resets);
}

/* Turns the loop, which sends what timers and effects bring, until the time is up. */
static int watch(
    struct det_world *world, struct det_runtime *runtime, struct det_loop *loop, det_time span,
    struct tally *tally)
{
    det_time end = det_world_now(world, DET_CLOCK_MONOTONIC) + span;
    struct service_data data = { 0 };
    struct det_instance instance;
    int r;

    r = service_instance_start(runtime, "service-1", data, NULL);
    if (r >= 0)
        r = service_send(runtime, "service-1", service_turn_on(), NULL);
    while (r >= 0 && det_world_now(world, DET_CLOCK_MONOTONIC) < end)
        r = det_loop_turn(loop, end);
    if (r >= 0)
        r = service_instance_get(runtime, "service-1", &instance, &data);
    if (r >= 0)
        sum_up(tally, &data);
    return r < 0 ? r : 0;
}

static int serve(struct det_world *world, det_time span, struct det_error *error)
{
    struct tally tally = { .began = det_world_now(world, DET_CLOCK_WALL) };
    DET_SCOPED(store) store = NULL;
    DET_SCOPED(loop) loop = NULL;
    DET_SCOPED(runtime) runtime = NULL;
    int r;

    r = det_loop_open(world, NULL, &loop);
    if (r < 0)
        return r;
    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .world = world }, &store, error);
    if (r < 0)
        return r;
    r = det_runtime_open(
        store,
        &(struct det_runtime_options){
            .world = world,
            .loop = loop,
            /* A check from an earlier visit says nothing about this one. */
            .effects.same_visit_only = true,
            .user = world,
            .observe = report,
            .observer = &tally,
        },
        &runtime, error);
    if (r < 0)
        return r;
    return watch(world, runtime, loop, span, &tally);
}

int main(int argc, char **argv)
{
    struct det_error error = { 0 };
    DET_SCOPED(sim) sim = NULL;
    int r;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "--virtual") == 0) {
        uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

        r = det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, &error);
        if (r >= 0)
            r = serve(det_sim_world(sim), 10 * DET_MINUTE, &error);
    } else {
        r = serve(det_world_real(), DET_MINUTE, &error);
    }
    if (r < 0)
        fprintf(stderr, "heartbeat: %s\n", error.code ? error.text : det_error_text(r));
    return r < 0;
}
