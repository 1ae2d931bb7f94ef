/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_spans.c - names and attributes of the spans of an event. */
#include "observe/event_spans.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "store/row.h"

static bool is_kept(const struct det_tracer *tracer, const struct det_trace_context *context)
{
    return tracer && context && (context->flags & DET_TRACE_SAMPLED);
}

void det_episode_receive(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent,
    const struct det_episode_what *what)
{
    char name[DET_SPAN_NAME_MAX + 1];

    snprintf(
        name, sizeof name, "%.6s %.28s%s%.28s", what->verb, what->machine, what->event ? "." : "",
        what->event ? what->event : "");
    det_span_begin(tracer, span, parent, DET_SPAN_SERVER, name);
    det_span_text(span, "detent.machine", what->machine);
    det_span_text(span, "detent.instance", what->instance);
    if (what->event)
        det_span_text(span, "detent.event", what->event);
}

void det_episode_answer(
    struct det_tracer *tracer, struct det_span *span, const struct det_machine *machine,
    const struct det_sent *sent, const struct det_error *error)
{
    if (error) {
        det_span_text(span, "detent.error", det_error_name(error->code));
        det_span_fail(span, error->text);
    } else {
        det_span_text(span, "detent.outcome", det_outcome_name(sent->outcome));
        det_span_text(span, "detent.state.to", machine->states[sent->state].name);
        det_span_number(span, "detent.sequence", (int64_t)sent->sequence);
    }
    det_span_end(tracer, span);
}

void det_episode_fire(struct det_tracer *tracer, struct det_trace_context *ret)
{
    struct det_span span;

    det_span_begin(tracer, &span, NULL, DET_SPAN_CONSUMER, "timer");
    *ret = span.context;
}

/* The context is already known: the event was sent with it. */
static void begin_timer_trace(
    struct det_tracer *tracer, const struct det_trace_context *sent, const struct det_note *note)
{
    const char *machine = note->machine->name;
    const char *event = note->machine->events[note->event].name;
    char name[DET_SPAN_NAME_MAX + 1];
    struct det_span span;

    snprintf(name, sizeof name, "timer %.28s.%.28s", machine, event);
    det_span_begin(tracer, &span, NULL, DET_SPAN_CONSUMER, name);
    span.context = *sent;
    if (note->armed_by)
        span.cause = *note->armed_by;
    det_span_text(&span, "detent.machine", machine);
    det_span_text(&span, "detent.instance", note->instance);
    det_span_text(&span, "detent.event", event);
    det_span_end_at(tracer, &span, span.start, note->commit_took);
}

void det_episode_commit(
    struct det_tracer *tracer, const struct det_trace_context *sent, const struct det_note *note)
{
    const struct det_machine *machine = note->machine;
    struct det_span span;

    if (!is_kept(tracer, sent))
        return;
    det_assert(note->from < machine->state_count && note->to < machine->state_count);
    det_assert(
        note->event < machine->event_count || (note->event == UINT16_MAX && !note->is_timeout));
    if (note->is_timeout)
        begin_timer_trace(tracer, sent, note);
    det_span_begin(tracer, &span, sent, DET_SPAN_INTERNAL, "commit");
    det_span_text(&span, "detent.machine", machine->name);
    det_span_text(&span, "detent.instance", note->instance);
    if (note->event != UINT16_MAX)
        det_span_text(&span, "detent.event", machine->events[note->event].name);
    det_span_text(&span, "detent.state.from", machine->states[note->from].name);
    det_span_text(&span, "detent.state.to", machine->states[note->to].name);
    det_span_text(&span, "detent.outcome", det_outcome_name(note->outcome));
    det_span_number(&span, "detent.sequence", (int64_t)note->sequence);
    /* The note arrives right after the end of the commit. */
    det_span_end_at(tracer, &span, span.start, note->commit_took);
}

struct det_trace_context det_episode_attempt_context(
    const struct det_trace_context *sent, const char *key, uint32_t attempt)
{
    struct det_trace_context context = *sent;
    uint64_t seed, hash;

    memcpy(&seed, sent->span_id, sizeof seed);
    hash = det_hash_mix(det_hash64(key, strlen(key), seed), attempt);
    /* Zero is not a valid id. */
    hash += hash == 0;
    memcpy(context.span_id, &hash, sizeof context.span_id);
    return context;
}

void det_episode_attempt(
    struct det_tracer *tracer, const struct det_trace_context *sent,
    const struct det_attempt_figures *figures)
{
    char name[DET_SPAN_NAME_MAX + 1];
    struct det_span span;

    if (!is_kept(tracer, sent))
        return;
    snprintf(name, sizeof name, "effect %.56s", figures->name);
    det_span_begin(tracer, &span, sent, DET_SPAN_CLIENT, name);
    span.context = det_episode_attempt_context(sent, figures->key, figures->attempt);
    det_span_text(&span, "detent.machine", figures->machine->name);
    det_span_text(&span, "detent.instance", figures->instance);
    det_span_text(&span, "detent.effect", figures->name);
    det_span_text(&span, "detent.key", figures->key);
    det_span_number(&span, "detent.attempt", figures->attempt);
    if (figures->result < 0)
        det_span_fail(&span, det_error_text(figures->result));
    det_span_end_at(tracer, &span, figures->began + figures->took, figures->took);
}
