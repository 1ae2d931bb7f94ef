/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop.h - an event loop: timers, posted messages and watched descriptors, on one thread at a time.
 *
 * A loop belongs to the thread that turns it. Any thread may post to it; all other calls are for
 * its owner. A loop can own a thread (det_loop_start), be run by a thread of yours (det_loop_run),
 * or be turned by another loop: watch det_loop_descriptor() for reading, wait no longer than
 * det_loop_deadline(), then call det_loop_turn(). A simulated world behaves in the same way.
 *
 *      open -> idle --start/run--> running --stop--> idle -> close
 *                  --turn------->  (one turn) */
#ifndef DETENT_LOOP_H
#define DETENT_LOOP_H

#include <detent/world.h>

DET_BEGIN

struct det_loop;

/* Opens a loop in a world (NULL: the real one). No callback runs until the loop is turned, run or
 * started. */
DET_API int det_loop_open(
    struct det_world *world, const struct det_allocator *allocator,
    struct det_loop **ret) DET_MUST_CHECK;
/* Closes the loop. Not while it runs, unless a callback called det_loop_break(). Runs the posted
 * messages; drops the timers. */
DET_API void det_loop_close(struct det_loop *loop);
DET_SCOPED_CLOSE(loop)

/* The world of the loop. */
DET_API struct det_world *det_loop_world(const struct det_loop *loop);

/* The monotonic time at which this turn began: the clock is read once per turn. Between turns: the
 * current time. Owner only. */
DET_API det_time det_loop_now(const struct det_loop *loop);
/* Runs one turn: messages in the order posted, due timers by deadline, then descriptors. Messages
 * and timers that a callback adds run in the next turn. Waits for the first one until `deadline`
 * (monotonic; 0 does not wait, DET_NEVER waits for ever). Returns the number of callbacks, or an
 * error (DET_ERR_DEADLOCK in a simulated world). Not from a callback. */
DET_API int det_loop_turn(struct det_loop *loop, det_time deadline);
/* Turns until det_loop_stop() or det_loop_break(). */
DET_API int det_loop_run(struct det_loop *loop) DET_MUST_CHECK;
/* Runs the loop on its own thread. */
DET_API int det_loop_start(struct det_loop *loop, const char *name) DET_MUST_CHECK;
/* Ends run or start after the current turn and waits for that. Not on the loop's own thread while
 * it runs. If neither runs, the next run returns at once (a start does not), so a stop that comes
 * early is not lost. */
DET_API void det_loop_stop(struct det_loop *loop);
/* Non-blocking variant of det_loop_stop(), for any thread and for callbacks of the loop. */
DET_API void det_loop_break(struct det_loop *loop);

/* For embedding in another loop: readable when a turn has work; -1 in a simulated world. */
DET_API int det_loop_descriptor(const struct det_loop *loop);
/* The deadline of the next timer (monotonic); 0 if messages wait; DET_NEVER if there is no work. */
DET_API det_time det_loop_deadline(const struct det_loop *loop);

DET_END
#endif
