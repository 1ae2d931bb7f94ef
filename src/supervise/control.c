/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* control.c - the decorator around dispatch functions: publishes the state, and puts events from
 * outside before a state's own work. It never steps the machine; it only says what comes next.
 *
 * A closed channel is told once: to the first state that looks, as its CLOSED or as a failure. A
 * state that waits for events from outside and nothing else is told again when it is entered, since
 * nothing would come. */
#include <string.h>

#include "supervise/handle.h"

static enum det_control nothing(const struct det_dispatch *row)
{
    return row->mode == DET_DISPATCH_BLOCK ? DET_CONTROL_PARK : DET_CONTROL_NONE;
}

/* The CLOSED of the state as an event without a payload. */
static enum det_control closed(
    struct det_component *component, const struct det_dispatch *row, void *event)
{
    unsigned kind = row->closed;

    component->closed_told = true;
    if (row->closed == DET_CLOSED_FAILS)
        return DET_CONTROL_CLOSED;
    memset(event, 0, component->def->machine->event_size);
    memcpy(event, &kind, sizeof kind);
    return DET_CONTROL_EVENT;
}

enum det_control det_control_next(struct det_component *component, void *event)
{
    const struct det_dispatch *row = &component->def->dispatch[component->state];
    enum det_control control;

    if (!component->has_handle || row->mode == DET_DISPATCH_IGNORE ||
        !det_handle_has_control(component->handle))
        return nothing(row);
    control = det_handle_take(component->handle, event);
    if (control == DET_CONTROL_EVENT)
        return control;
    if (control == DET_CONTROL_CLOSED && !component->closed_told)
        return closed(component, row, event);
    return nothing(row);
}

void det_control_publish(struct det_component *component)
{
    if (!component->has_handle || det_handle_published(component->handle) == component->state)
        return;
    if (component->def->dispatch[component->state].mode == DET_DISPATCH_BLOCK)
        component->closed_told = false;
    det_handle_publish(component->handle, component->state);
}
