/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* control.c - the decorator around dispatch functions: publishes the state, and handles external
 * events before a state's own work. It never steps the machine; it only returns the next action.
 *
 * A closed channel is reported once: to the first state that checks, as its CLOSED event or as a
 * failure. A state that only waits for external events gets the report again on entry, since no
 * event would come. */
#include <string.h>

#include "supervise/handle.h"

static enum det_control nothing(const struct det_dispatch *row)
{
    return row->mode == DET_DISPATCH_BLOCK ? DET_CONTROL_PARK : DET_CONTROL_NONE;
}

/* The CLOSED event of the state, without a payload. */
static enum det_control closed(
    struct det_component *component, const struct det_dispatch *row, void *event)
{
    unsigned kind = row->closed;

    component->internal.closed_reported = true;
    if (row->closed == DET_CLOSED_FAILS)
        return DET_CONTROL_CLOSED;
    memset(event, 0, component->internal.def->machine->event_size);
    memcpy(event, &kind, sizeof kind);
    return DET_CONTROL_EVENT;
}

enum det_control det_control_next(struct det_component *component, void *event)
{
    const struct det_dispatch *row = &component->internal.def->dispatch[component->internal.state];
    enum det_control control;

    if (!component->internal.has_handle || row->mode == DET_DISPATCH_IGNORE ||
        !det_handle_has_control(component->internal.handle))
        return nothing(row);
    control = det_handle_take(component->internal.handle, event);
    if (control == DET_CONTROL_EVENT)
        return control;
    if (control == DET_CONTROL_CLOSED && !component->internal.closed_reported)
        return closed(component, row, event);
    return nothing(row);
}

void det_control_publish(struct det_component *component)
{
    if (!component->internal.has_handle ||
        det_handle_published(component->internal.handle) == component->internal.state)
        return;
    if (component->internal.def->dispatch[component->internal.state].mode == DET_DISPATCH_BLOCK)
        component->internal.closed_reported = false;
    det_handle_publish(component->internal.handle, component->internal.state);
}
