/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/loop.h - messages, timers and watched descriptors of a loop. */
#ifndef DETENT_DRIVER_LOOP_H
#define DETENT_DRIVER_LOOP_H

#include <detent/loop.h>

DET_BEGIN

typedef void det_loop_fn(void *argument);

/* A message, in the poster's memory until `run` is called: post it, forget it, find yourself again
 * in `run`. */
struct det_post {
    det_loop_fn *run;
    void *argument;
    struct det_post *next; /* the loop's */
};

/* A timer, in its owner's memory. Zero it, set `run` and `argument`, then det_loop_timer_set(). */
struct det_timer {
    det_loop_fn *run;
    void *argument;
    struct {
        int64_t key;
        uint64_t tie;
        size_t position;
        bool is_set, is_wall;
    } node; /* the loop's */
};

/* A watched descriptor, in its owner's memory: zero it, set `run`, `argument` and `descriptor`. */
struct det_watch {
    void (*run)(void *argument, unsigned events); /* enum det_poll_events */
    void *argument;
    int descriptor;
    unsigned events; /* the loop's */
};

/* From any thread, at any time before close. Never fails and never allocates. */
DET_API void det_loop_post(struct det_loop *loop, struct det_post *post);

/* Arms or moves the timer; `deadline` is monotonic. Fails only for memory. Owner only. */
DET_API int det_loop_timer_set(struct det_loop *loop, struct det_timer *timer, det_time deadline)
    DET_MUST_CHECK;
/* The same with a deadline in wall time. The timer runs when the wall clock has reached it, also
 * when that is because the clock was set or the machine slept, and not before. */
DET_API int det_loop_timer_set_wall(
    struct det_loop *loop, struct det_timer *timer, det_time deadline) DET_MUST_CHECK;
/* Harmless when it is not set. A timer that was cancelled does not run. Owner only. */
DET_API void det_loop_timer_cancel(struct det_loop *loop, struct det_timer *timer);

/* Watches the descriptor, or changes what is watched; `events` is not 0. DET_ERR_UNSUPPORTED in a
 * simulated world, which has no descriptors but those of its processes. Owner only. */
DET_API int det_loop_watch(struct det_loop *loop, struct det_watch *watch, unsigned events)
    DET_MUST_CHECK;
/* Harmless when it is not watched. Do it before the descriptor is closed. Owner only. */
DET_API void det_loop_unwatch(struct det_loop *loop, struct det_watch *watch);

/* Whether the calling thread may use it as its owner: it runs the loop, or was the last to turn it,
 * or nobody has done either, and then whoever will is taken to ask. */
DET_API bool det_loop_is_mine(const struct det_loop *loop);
/* The calling thread is taken for the one that will turn it, until another one does: for whoever
 * starts threads that use the loop before it is turned. Nothing while it has an owner. */
DET_API void det_loop_claim(struct det_loop *loop);

DET_END
#endif
