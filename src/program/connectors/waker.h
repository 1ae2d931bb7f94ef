/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* waker.h - wakes a stage when a descriptor is ready: a thread of its own waits for it, so that the
 * loop of the pipeline never blocks and nothing is polled. */
#ifndef DET_CONNECTORS_WAKER_H
#define DET_CONNECTORS_WAKER_H

#include <detent/flow.h>

struct waker;

/* Starts the thread, in open() of a stage. DET_ERR_NO_MEMORY, DET_ERR_LIMIT or DET_ERR_IO. */
DET_MUST_CHECK int waker_open(struct det_stage_call *call, struct waker **ret);
/* Ends the thread; NULL is allowed. */
void waker_close(struct waker *waker);
/* Wakes the stage once when the descriptor is ready for `events` of poll(2), closed or broken, or
 * at once if it is not a descriptor. Replaces the last one. */
void waker_arm(struct waker *waker, int descriptor, short events);
/* Returns true if the descriptor is ready now. */
bool waker_is_ready(int descriptor, short events);

#endif
