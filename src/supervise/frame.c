/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* frame.c - begins a run of a component, and ends it: parked, ready again, or ended.
 *
 * The completion function is called once, when the component is in no list, has no timer, and its
 * handle accepts no more events. After that call the context is not accessed: it may be gone. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "supervise/handle.h"

void det_frame_open(struct det_frame *frame, struct det_component *component)
{
    struct det_executor *executor = component->internal.executor;

    det_assert(
        component->internal.phase == DET_PHASE_PARKED ||
        component->internal.phase == DET_PHASE_READY);
    if (component->internal.phase == DET_PHASE_READY)
        det_link_remove(&component->internal.ready);
    component->internal.phase = DET_PHASE_RUNNING;
    frame->executor = executor;
    frame->component = component;
    frame->def = component->internal.def;
    frame->context = (char *)component - component->internal.def->offset;
    frame->below = executor->frame;
    frame->depth = frame->below ? frame->below->depth + 1 : 0;
    frame->rounds = frame->chain = 0;
    frame->over = DET_OVER_NOT;
    frame->first_error = frame->noted = 0;
    frame->produced_first = frame->produced_count = 0;
    frame->is_pending = frame->is_failing = frame->has_failure = false;
    executor->frame = frame;
}

/* Leaves the executor, so that its context may be gone when the completion function returns. */
static void detach(struct det_frame *frame)
{
    struct det_component *component = frame->component;

    if (component->internal.has_handle) {
        det_control_publish(component);
        det_handle_detach(component->internal.handle);
    }
    det_loop_timer_cancel(frame->executor->loop, &component->internal.timer);
    det_assert(
        component->internal.phase == DET_PHASE_RUNNING &&
        det_link_is_alone(&component->internal.ready));
    det_link_remove(&component->internal.all);
    component->internal.phase = DET_PHASE_ENDED;
    component->internal.def = NULL;
}

static void end(struct det_frame *frame)
{
    struct det_component *component = frame->component;
    struct det_handle *handle = component->internal.has_handle ? component->internal.handle : NULL;
    struct det_executor *executor = frame->executor;
    struct det_component_end end = { .state = component->internal.state };
    int r = 0;

    det_frame_end_failure(frame, &end.failure);
    detach(frame);
    frame->noted = 0;
    if (frame->def->completed)
        r = frame->def->completed(frame->context, &end);
    if (r != 0) {
        frame->is_failing = false;
        frame->component = NULL;
        det_frame_fail(
            frame, DET_FAILURE_COMPLETION, r > 0 ? DET_ERR_INVALID : r, "completion of %s",
            frame->def->machine->name);
        end.failure = frame->failure;
        end.failure.is_last_resort = true;
    }
    executor->counts.ended++;
    executor->counts.failed += end.failure.code != 0;
    if (handle)
        det_handle_finish(handle, &end);
}

/* Parks the component, or queues it for its next turn. */
static void park(struct det_frame *frame)
{
    struct det_component *component = frame->component;
    int r;

    if (frame->has_failure)
        det_frame_keep_failure(frame);
    if (component->internal.timer_stale) {
        /* Never a new timer: an armed one moves or is cancelled. */
        component->internal.timer_stale = false;
        r = det_executor_arm(component);
        det_assert(r == 0);
    }
    component->internal.phase = DET_PHASE_PARKED;
    if (frame->over == DET_OVER_AGAIN || component->internal.wake_wanted)
        det_executor_ready(component);
    component->internal.wake_wanted = false;
}

int det_frame_close(struct det_frame *frame)
{
    det_assert(frame->executor->frame == frame && frame->over != DET_OVER_NOT);
    if (frame->over == DET_OVER_ENDED)
        end(frame);
    else
        park(frame);
    frame->executor->frame = frame->below;
    return frame->first_error;
}
