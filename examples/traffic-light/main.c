/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - a traffic light in somebody else's epoll loop, without a thread of detent's own. */
#include <stdio.h>
#include <sys/epoll.h>

#include <detent/detent.h>
#define FSM_SPEC "light.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "light.fsm"
#include <detent/fsm/define.h>

static void show(void *changes, const struct det_note *note)
{
    printf("%s\n", light_state_name(note->to));
    ++*(int *)changes;
}

int main(void)
{
    DET_SCOPED(loop) loop = NULL;
    DET_SCOPED(store) store = NULL;
    DET_SCOPED(runtime) runtime = NULL;
    int changes = 0, foreign = epoll_create1(EPOLL_CLOEXEC);
    struct det_runtime_options options = { .observe = show, .observer = &changes };
    struct epoll_event ready = { .events = EPOLLIN };

    if (foreign < 0 || det_loop_open(NULL, NULL, &loop) < 0)
        return 1;
    options.loop = loop;
    if (epoll_ctl(foreign, EPOLL_CTL_ADD, det_loop_descriptor(loop), &ready) < 0 ||
        det_store_open("memory:", &store, NULL) < 0 ||
        det_runtime_open(store, &options, &runtime, NULL) < 0 ||
        light_instance_start(runtime, "crossing", NULL) < 0)
        return 1;
    while (changes < 7) {
        det_time due = det_loop_deadline(loop), now = det_world_now(NULL, DET_CLOCK_MONOTONIC);
        det_time wait = due <= now ? 0 : (due - now - 1) / DET_MILLISECOND + 1;

        epoll_wait(foreign, &ready, 1, wait < 1000 ? (int)wait : 1000);
        if (det_loop_turn(loop, 0) < 0)
            return 1;
    }
    return 0;
}
