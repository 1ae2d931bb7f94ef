/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/loop.h - messages, timers and watched descriptors of a loop. */
#ifndef DETENT_DRIVER_LOOP_H
#define DETENT_DRIVER_LOOP_H

#include <detent/loop.h>

DET_BEGIN

typedef void det_loop_fn(void *argument);

/* A message, in the memory of its sender until `run` is called. The sender embeds it and finds its
 * own object in `run`. */
struct det_post {
    det_loop_fn *run;
    void *argument;
    struct {
        struct det_post *next;
    } internal; /* owned by the loop, as below: do not use */
};

/* A timer, in the memory of its owner. Zero it, set `run` and `argument`, then call
 * det_loop_timer_set(). */
struct det_timer {
    det_loop_fn *run;
    void *argument;
    struct {
        int64_t key;
        uint64_t tie;
        size_t position;
        bool is_set, is_wall;
    } internal;
};

/* A watched descriptor, in the memory of its owner. Zero it, set `run`, `argument` and
 * `descriptor`. */
struct det_watch {
    void (*run)(void *argument, unsigned events); /* enum det_poll_events */
    void *argument;
    int descriptor;
    struct {
        unsigned events;
    } internal;
};

/* Posts a message. Any thread, any time before close. Never fails and never allocates. */
DET_API void det_loop_post(struct det_loop *loop, struct det_post *post);

/* Arms or moves the timer; `deadline` is monotonic. Fails only with DET_ERR_NO_MEMORY. Owner
 * only. */
DET_API int det_loop_timer_set(struct det_loop *loop, struct det_timer *timer, det_time deadline)
    DET_MUST_CHECK;
/* Like det_loop_timer_set() with a deadline in wall time. The timer runs when the wall clock has
 * reached the deadline, even if the clock was set or the machine slept, and not before. */
DET_API int det_loop_timer_set_wall(
    struct det_loop *loop, struct det_timer *timer, det_time deadline) DET_MUST_CHECK;
/* Cancels a timer; harmless if it is not set. A cancelled timer does not run. Owner only. */
DET_API void det_loop_timer_cancel(struct det_loop *loop, struct det_timer *timer);

/* Watches the descriptor, or changes the watched events; `events` is not 0. DET_ERR_UNSUPPORTED in
 * a simulated world, whose only descriptors are those of its processes. Owner only. */
DET_API int det_loop_watch(struct det_loop *loop, struct det_watch *watch, unsigned events)
    DET_MUST_CHECK;
/* Ends watching; harmless if the descriptor is not watched. Call this before closing the
 * descriptor. Owner only. */
DET_API void det_loop_unwatch(struct det_loop *loop, struct det_watch *watch);
/* True if the descriptor is watched. Owner only. */
static inline bool det_watch_is_set(const struct det_watch *watch)
{
    return watch->internal.events != 0;
}

/* True if the calling thread may use the loop as its owner: the thread runs the loop, or ran the
 * last turn, or no thread has run a turn yet. */
DET_API bool det_loop_is_mine(const struct det_loop *loop);
/* Makes the calling thread the owner until another thread runs a turn. Call this before starting
 * threads that use the loop. No effect while the loop has an owner. */
DET_API void det_loop_claim(struct det_loop *loop);

DET_END
#endif
