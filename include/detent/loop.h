/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop.h - an event loop: timers, posted messages, watched descriptors, on one thread at a time.
 *
 * A loop belongs to the thread that turns it. Any thread may post to it; everything else is for its
 * owner. It can own a thread (det_loop_start), be run by a thread of yours (det_loop_run), or be
 * turned by a foreign loop: watch det_loop_descriptor() for reading, wait no longer than
 * det_loop_deadline(), then call det_loop_turn(). All of it works the same in a simulated world.
 *
 *      open -> idle --start/run--> running --stop--> idle -> close
 *                  --turn------->  (one turn)  */
#ifndef DETENT_LOOP_H
#define DETENT_LOOP_H

#include <detent/world.h>

DET_BEGIN

struct det_loop;

/* Opens a loop in a world (NULL: the real one). Nothing runs until it is turned, run or started. */
DET_API int det_loop_open(
    struct det_world *world, const struct det_allocator *allocator,
    struct det_loop **ret) DET_MUST_CHECK;
/* Not while it runs, unless a callback called det_loop_break(). Runs the messages that were posted
 * and not run yet; drops the timers. */
DET_API void det_loop_close(struct det_loop *loop);
DET_SCOPED_CLOSE(loop)

/* The world it was opened in. */
DET_API struct det_world *det_loop_world(const struct det_loop *loop);

/* The monotonic time at which this turn began: one reading of the clock per turn. Between turns it
 * is the time now. Owner only. */
DET_API det_time det_loop_now(const struct det_loop *loop);
/* Runs one turn: messages in the order posted, due timers by deadline, then descriptors. What a
 * callback posts or arms runs in the next turn. Waits for the first of them until `deadline`
 * (monotonic; 0 does not wait, DET_NEVER waits for ever). Returns how many callbacks ran, or an
 * error (DET_ERR_DEADLOCK in a simulated world). Not from a callback. */
DET_API int det_loop_turn(struct det_loop *loop, det_time deadline);
/* Turns until det_loop_stop() or det_loop_break(). */
DET_API int det_loop_run(struct det_loop *loop) DET_MUST_CHECK;
/* Runs it on a thread of its own. */
DET_API int det_loop_start(struct det_loop *loop, const char *name) DET_MUST_CHECK;
/* Ends run or start after the current turn and waits for it. Not on the loop's own thread while it
 * runs. While neither runs, the next run returns at once (a start does not), so that a stop that
 * comes a moment too early is not lost. */
DET_API void det_loop_stop(struct det_loop *loop);
/* Non-blocking det_loop_stop(), from any thread, also from a callback of the loop. */
DET_API void det_loop_break(struct det_loop *loop);

/* For a foreign loop: readable when a turn has something to do; -1 in a simulated world. */
DET_API int det_loop_descriptor(const struct det_loop *loop);
/* When the next timer is due (monotonic), 0 when messages wait, DET_NEVER when nothing does. */
DET_API det_time det_loop_deadline(const struct det_loop *loop);

DET_END
#endif
