/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - one hour of a room whose window is opened for a while: in real time, or at once.
 *
 *     thermostat              real time
 *     thermostat --virtual 7  virtual time; the same for the same seed */
#include <detent/driver/world.h>
#include <detent/sim.h>
#include <detent/workers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"
#include "thermostat.h"

static const char config[] = "children:\n"
                             "  - name: living-room\n"
                             "    kind: thermostat\n"
                             "    config: { warmth: cosy }\n";

struct house {
    struct det_loop *loop;
    struct det_workers *workers;
    struct room room;
    det_time began;
};

/* Transitions and failures, each with its reason. */
static void on_event(void *user, const struct det_worker_event *event)
{
    const struct house *house = user;
    int minute = (int)((event->at - house->began) / DET_MINUTE);

    if (strcmp(event->identity->kind, "thermostat") != 0)
        return;
    if (event->kind == DET_WORKER_EVENT_TRANSITION)
        printf(
            "%3d min  %-12s %s -> %s: %s\n", minute, event->identity->name, event->from, event->to,
            event->reason);
    else if (event->code < 0)
        printf(
            "%3d min  %-12s %s: %s\n", minute, event->identity->name,
            det_worker_event_name(event->kind),
            event->reason ? event->reason : det_error_text(event->code));
}

/* Lets the time pass. */
static int pass(struct house *house, det_time until)
{
    while (det_loop_now(house->loop) < house->began + until)
        if (det_loop_turn(house->loop, house->began + until) < 0)
            return -1;
    return 0;
}

static void open_window(struct house *house, bool is_open)
{
    room_set_window(&house->room, det_loop_now(house->loop), is_open);
    printf("         the window is %s\n", is_open ? "open" : "closed");
}

static int live(struct house *house, struct det_error *error)
{
    int r;

    r = det_workers_apply(house->workers, config, error);
    if (r < 0)
        return r;
    if (pass(house, 20 * DET_MINUTE) < 0)
        return -1;
    open_window(house, true);
    if (pass(house, 25 * DET_MINUTE) < 0)
        return -1;
    open_window(house, false);
    if (pass(house, 60 * DET_MINUTE) < 0)
        return -1;
    return det_workers_stop(house->workers, error);
}

static int run(struct det_world *world)
{
    static const struct det_worker_kind *const kinds[] = { &thermostat_kind, NULL };
    struct house house;
    const struct det_provided provided[] = { { "room", &house.room }, { NULL, NULL } };
    struct det_workers_options options = {
        .name = "house", .kinds = kinds, .provided = provided, .on_event = on_event, .user = &house
    };
    struct det_error error = { 0 };
    int r;

    r = det_loop_open(world, NULL, &house.loop);
    if (r < 0)
        return r;
    house.began = det_loop_now(house.loop);
    room_init(&house.room, house.began, 16);
    options.loop = house.loop;
    r = det_workers_open(&options, &house.workers, &error);
    if (r == 0) {
        r = live(&house, &error);
        det_workers_close(house.workers);
    }
    det_loop_close(house.loop);
    if (r < 0)
        fprintf(stderr, "thermostat: %s\n", *error.text ? error.text : det_error_text(r));
    return r;
}

int main(int argc, char **argv)
{
    struct det_sim_options options = { 0 };
    struct det_sim *sim;
    int r;

    if (argc == 1)
        return run(det_world_real()) < 0;
    if (argc != 3 || strcmp(argv[1], "--virtual") != 0) {
        fprintf(stderr, "usage: thermostat [--virtual SEED]\n");
        return 2;
    }
    options.seed = strtoull(argv[2], NULL, 10);
    if (det_sim_open(&options, &sim, NULL) < 0)
        return 1;
    r = run(det_sim_world(sim));
    det_sim_close(sim);
    return r < 0;
}
