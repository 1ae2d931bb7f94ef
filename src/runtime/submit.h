/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit.h - the threads that carry out what is submitted.
 *
 *     det_runtime_submit --by the hash of the id--> a writer's queue --> its batch --> done
 *
 * Invariants
 *   1. An instance has one writer, so that what is submitted to it is carried out in that order.
 *   2. A send is in exactly one of: the queue, the inbox, the put off, the batch, the finished;
 *      `done` is called when it is in none any more.
 *   3. A writer is woken only when it sleeps, which it does when it has nothing at all.
 *   4. Once `is_closing` is set nothing comes into the queue; what is there is carried out. */
#ifndef DET_RUNTIME_SUBMIT_H
#define DET_RUNTIME_SUBMIT_H

#include "runtime/batch.h"

struct det_writers;

/* The batch that the thread `self` fills as a writer; NULL: it is none, or has none. */
struct det_batch *det_writers_batch(struct det_runtime *runtime, const void *self);
/* Nothing more is taken; what was is carried out, and the threads end. */
void det_writers_stop(struct det_runtime *runtime);
/* After they were stopped. */
void det_writers_close(struct det_runtime *runtime);

#endif
