/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_spans.h - the spans of one event, from its request to the effects it requests.
 *
 *     traceparent of the caller
 *       `- send order.pay          receive ... answer
 *            |- commit             when it is reported
 *            `- effect charge      each attempt, also days later
 *                 `- the calls it makes, and the event it produces
 *
 *     timer order.expired          its own trace - - linked to - -> send order.pay
 *       |- commit
 *       `- effect ...
 *
 * The context of the send is stored with the event, and from there reaches its effects. The context
 * of an attempt is derived from it, the effect's key and the number of the attempt, so the attempt
 * and the report of its result have the same context without communication. */
#ifndef DET_OBSERVE_EVENT_SPANS_H
#define DET_OBSERVE_EVENT_SPANS_H

#include <detent/runtime.h>

#include "observe/span.h"

/* The operation. */
struct det_episode_what {
    const char *verb; /* "send", "start", "cancel" */
    const char *machine, *instance;
    const char *event; /* NULL: none */
};

/* Begins a write: `parent` is the context of the request, or NULL. The event is sent with the
 * span's context. */
void det_episode_receive(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent,
    const struct det_episode_what *what);
/* Ends it with the answer: `sent`, of this machine, or an error with its text. */
void det_episode_answer(
    struct det_tracer *tracer, struct det_span *span, const struct det_machine *machine,
    const struct det_sent *sent, const struct det_error *error);

/* Begins a new trace for a timer that fires, with which the event is sent. Its span comes with the
 * commit, and is linked to the event that armed the timer. */
void det_episode_fire(struct det_tracer *tracer, struct det_trace_context *ret);

/* Records a commit; `sent` is note->trace. NULL: no effect. */
void det_episode_commit(
    struct det_tracer *tracer, const struct det_trace_context *sent, const struct det_note *note);

/* Returns the context of an attempt of an effect requested by an event that was sent with
 * `sent`. */
struct det_trace_context det_episode_attempt_context(
    const struct det_trace_context *sent, const char *key, uint32_t attempt);
/* Records the end of an attempt; `sent` is figures->trace, and may be NULL. */
void det_episode_attempt(
    struct det_tracer *tracer, const struct det_trace_context *sent,
    const struct det_attempt_figures *figures);

#endif
