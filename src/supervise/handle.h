/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle.h - the component's side of its handle (handle.c), and the decorator of dispatch functions
 * for control events (control.c). */
#ifndef DET_SUPERVISE_HANDLE_H
#define DET_SUPERVISE_HANDLE_H

#include "supervise/executor.h"

/* The next item of the control channel for the component. */
enum det_control {
    DET_CONTROL_NONE,   /* no event: call the state's own function */
    DET_CONTROL_EVENT,  /* an event was written */
    DET_CONTROL_PARK,   /* no event, and the state has no function: wait */
    DET_CONTROL_CLOSED, /* the channel is closed; det_control_next() returns it only for a state
                         * without a CLOSED row */
};

DET_MUST_CHECK int det_handle_open(
    struct det_component *component, const struct det_supervise_options *options,
    struct det_handle **ret);
/* The component has left the executor: later events are refused. */
void det_handle_detach(struct det_handle *handle);
/* Wakes the waiters, and releases the component's reference. */
void det_handle_finish(struct det_handle *handle, const struct det_component_end *end);
/* DET_CONTROL_EVENT, DET_CONTROL_CLOSED or DET_CONTROL_NONE. */
enum det_control det_handle_take(struct det_handle *handle, void *event);
/* False: certainly no control event. */
bool det_handle_has_control(const struct det_handle *handle);
void det_handle_publish(struct det_handle *handle, unsigned state);
/* The last published state, for the loop: only the loop changes it, so it needs no lock. */
unsigned det_handle_published(const struct det_handle *handle);
/* Where the component's last failure is stored. */
struct det_failure *det_handle_failure(struct det_handle *handle);

/* The next action in the component's state: an event, if there is one, is written to `event`. */
enum det_control det_control_next(struct det_component *component, void *event);
/* Publishes the state, if it has changed. */
void det_control_publish(struct det_component *component);

#endif
