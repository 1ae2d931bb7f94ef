/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_bus.c - an event to four subscribers on the loop, published and delivered. */
#include "gate.h"
#include "task/bus.h"

#define SUBSCRIBERS 4
#define TURN        50 /* events between two turns of the loop */

struct stage {
    struct det_loop *loop;
    struct det_bus *bus;
};

static int take(void *user, const struct det_task_event *event)
{
    uint64_t *sum = user;

    *sum += event->id;
    return 0;
}

static int work(void *argument, unsigned operations)
{
    struct stage *stage = argument;
    struct det_task_event event = {
        .kind = DET_TASK_EVENT_ATTEMPT_STARTING,
        .attempt = 3,
        .name = "worker-17",
    };

    for (unsigned i = 1; i <= operations; i++) {
        event.id = i;
        det_bus_publish(stage->bus, &event);
        if (i % TURN == 0 && det_loop_turn(stage->loop, 0) < 0)
            return DET_ERR_INVALID;
    }
    return 0;
}

static int open_stage(struct stage *stage, uint64_t *sum)
{
    struct det_subscriber subscriber = {
        .delivery = DET_DELIVER_LOOP,
        .on_event = take,
        .user = sum,
    };
    int r;

    r = det_loop_open(NULL, NULL, &stage->loop);
    if (r == 0)
        r = det_bus_open(stage->loop, NULL, 0, &stage->bus);
    for (int i = 0; i < SUBSCRIBERS && r == 0; i++)
        r = det_bus_subscribe(stage->bus, &subscriber, NULL, NULL);
    return r;
}

int gate_publish(unsigned operations)
{
    struct stage stage = { NULL, NULL };
    uint64_t sum = 0, expected = (uint64_t)operations * (operations + 1) / 2 * SUBSCRIBERS;
    int r;

    r = open_stage(&stage, &sum);
    if (r == 0)
        r = gate_measured(work, &stage, operations);
    det_bus_close(stage.bus);
    det_loop_close(stage.loop);
    if (r == 0 && sum != expected)
        r = DET_ERR_INVALID;
    gate_use(sum);
    return r;
}
