/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* failure.c - formats the failure of a run, and keeps it until the component ends.
 *
 * A text is "place: note: reason": the place comes from the gateway, the note from
 * det_component_fail(), the reason is the general sentence of the code. If the machine could not
 * handle the failure, the text contains both the last failure and the original one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "supervise/handle.h"

#define LONG_TEXT ((size_t)4 * DET_ERROR_TEXT_MAX)

/* The run of the component; not the innermost one while it offers to another component. */
static struct det_frame *frame_of(const struct det_component *component)
{
    struct det_frame *frame =
        component->internal.executor ? component->internal.executor->frame : NULL;

    while (frame && frame->component != component)
        frame = frame->below;
    return frame;
}

int det_component_fail(struct det_component *component, int code, const char *format, ...)
{
    struct det_frame *frame = frame_of(component);
    char text[DET_ERROR_TEXT_MAX + 1];
    va_list arguments;
    int length;

    det_assert(code < 0 && frame);
    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    frame->noted = length < 0 ? 0 : code;
    det_text_copy(frame->note, sizeof frame->note, length < 0 ? "" : text);
    return code;
}

const struct det_failure *det_component_failure(const struct det_component *component)
{
    static const struct det_failure none;
    const struct det_frame *frame = frame_of(component);

    return frame && frame->has_failure ? &frame->failure : &none;
}

static void describe(struct det_frame *frame, int code, const char *place, const char *before)
{
    bool has_note = frame->noted == code && frame->note[0] != '\0';
    char text[LONG_TEXT];

    snprintf(
        text, sizeof text, "%s: %s%s%s%s%s", place, has_note ? frame->note : "",
        has_note ? ": " : "", det_error_text(code), *before ? "; while handling this: " : "",
        before);
    det_text_copy(frame->failure.text, sizeof frame->failure.text, text);
    frame->noted = 0;
}

void det_frame_fail(
    struct det_frame *frame, enum det_failure_source source, int code, const char *place, ...)
{
    char where[DET_ERROR_TEXT_MAX], before[DET_ERROR_TEXT_MAX] = "";
    va_list arguments;

    det_assert(code < 0);
    va_start(arguments, place);
    vsnprintf(where, sizeof where, place, arguments);
    va_end(arguments);
    if (frame->is_failing)
        det_text_copy(before, sizeof before, frame->failure.text);
    describe(frame, code, where, before);
    frame->failure.source = source;
    frame->failure.code = code;
    frame->failure.is_last_resort = frame->is_failing;
    frame->has_failure = true;
    if (!frame->first_error)
        frame->first_error = code;
    if (frame->is_failing)
        frame->over = DET_OVER_ENDED;
    else
        frame->is_pending = true;
}

void det_frame_last_resort(struct det_frame *frame, int code)
{
    const struct det_machine *machine = frame->def->machine;
    char text[LONG_TEXT];

    det_assert(frame->has_failure);
    snprintf(
        text, sizeof text, "%s; event %s in state %s: %s", frame->failure.text,
        machine->events[frame->def->failure].name,
        machine->states[frame->component->internal.state].name, det_error_text(code));
    det_text_copy(frame->failure.text, sizeof frame->failure.text, text);
    frame->failure.is_last_resort = true;
    frame->over = DET_OVER_ENDED;
}

static void copy(struct det_failure *target, const struct det_failure *source)
{
    target->source = source->source;
    target->code = source->code;
    target->is_last_resort = source->is_last_resort;
    memcpy(target->text, source->text, strlen(source->text) + 1);
}

void det_frame_keep_failure(struct det_frame *frame)
{
    struct det_component *component = frame->component;

    if (component->internal.has_handle) {
        copy(det_handle_failure(component->internal.handle), &frame->failure);
        return;
    }
    if (!component->internal.failure)
        component->internal.failure = DET_NEW(frame->executor->allocator, struct det_failure);
    component->internal.failure_lost = !component->internal.failure;
    if (component->internal.failure)
        copy(component->internal.failure, &frame->failure);
}

void det_frame_end_failure(struct det_frame *frame, struct det_failure *ret)
{
    struct det_component *component = frame->component;
    const struct det_failure *kept = component->internal.has_handle
                                         ? det_handle_failure(component->internal.handle)
                                         : component->internal.failure;

    if (frame->has_failure)
        copy(ret, &frame->failure);
    else if (component->internal.failure_lost)
        *ret = (struct det_failure){ .source = DET_FAILURE_ACTION,
                                     .code = DET_ERR_NO_MEMORY,
                                     .text = "out of memory: cannot keep the failure" };
    else if (kept)
        copy(ret, kept);
    if (!component->internal.has_handle && component->internal.failure) {
        DET_DELETE(frame->executor->allocator, component->internal.failure);
        component->internal.failure = NULL;
    }
}
