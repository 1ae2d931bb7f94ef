/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit.h - the threads that execute submitted sends.
 *
 *     det_runtime_submit --by the hash of the id--> a writer's queue --> its batch --> done
 *
 * Invariants
 *   1. An instance has one writer, so its submissions are executed in order.
 *   2. A send is in exactly one of: the queue, the inbox, the postponed, the batch, the finished;
 *      `done` is called when it has left all of them.
 *   3. A writer is woken only when it sleeps, that is, when it has no sends.
 *   4. Once `is_closing` is set no send enters the queue; the queued ones are executed. */
#ifndef DET_RUNTIME_SUBMIT_H
#define DET_RUNTIME_SUBMIT_H

#include "runtime/turn_batch.h"

struct det_writers;

/* The batch that the thread `self` fills as a writer; NULL: none. */
struct det_batch *det_writers_batch(struct det_runtime *runtime, const void *self);
/* Refuses new sends, executes the submitted ones, and ends the threads. */
void det_writers_stop(struct det_runtime *runtime);
/* Call this after det_writers_stop(). */
void det_writers_close(struct det_runtime *runtime);

#endif
