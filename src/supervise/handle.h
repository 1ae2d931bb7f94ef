/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle.h - the component's side of its handle, and the decorator that stands between the gateway
 * and what comes from outside. */
#ifndef DET_SUPERVISE_HANDLE_H
#define DET_SUPERVISE_HANDLE_H

#include "supervise/executor.h"

/* What the control channel has for the component. */
enum det_control {
    DET_CONTROL_NONE,   /* nothing: the state's own function */
    DET_CONTROL_EVENT,  /* an event was written */
    DET_CONTROL_PARK,   /* nothing, and the state has no function: it waits */
    DET_CONTROL_CLOSED, /* nobody can send any more, and the spec does not say what that means */
};

DET_MUST_CHECK int det_handle_open(
    struct det_component *component, const struct det_supervise_options *options,
    struct det_handle **ret);
/* The component has left the executor: nothing is taken from now on. */
void det_handle_detach(struct det_handle *handle);
/* Tells those who wait, and gives the component's share of the handle up. */
void det_handle_finish(struct det_handle *handle, const struct det_component_end *end);
/* DET_CONTROL_EVENT, DET_CONTROL_CLOSED or DET_CONTROL_NONE. */
enum det_control det_handle_take(struct det_handle *handle, void *event);
/* False: surely nothing to take. */
bool det_handle_has_control(const struct det_handle *handle);
void det_handle_publish(struct det_handle *handle, unsigned state);
/* The state as last published, for the loop: it alone changes it, and so needs no lock to look. */
unsigned det_handle_published(const struct det_handle *handle);
/* Where the last failure of the component is kept. */
struct det_failure *det_handle_failure(struct det_handle *handle);

/* What to do in the component's state: its event, if there is one, is written to `event`. */
enum det_control det_control_next(struct det_component *component, void *event);
/* Makes the state known, if it has changed since. */
void det_control_publish(struct det_component *component);

#endif
