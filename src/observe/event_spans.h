/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_spans.h - the spans of one event, from the request that brings it to the effects it asks
 * for.
 *
 *     traceparent of the caller
 *       `- send order.pay          receive ... answer
 *            |- commit             when it is told
 *            `- effect charge      each attempt, also days later
 *                 `- what it calls, and the event it produces
 *
 *     timer order.expired          a trace of its own - - linked to - -> send order.pay
 *       |- commit
 *       `- effect ...
 *
 * The context of the send goes with the event into the store, and from there to its effects. That
 * of an attempt follows from it, the effect's key and the number of the attempt, so that whoever
 * makes the call and whoever tells how it went have the same one without asking each other. */
#ifndef DET_OBSERVE_EVENT_SPANS_H
#define DET_OBSERVE_EVENT_SPANS_H

#include <detent/runtime.h>

#include "observe/span.h"

/* What is asked for. */
struct det_episode_what {
    const char *verb; /* "send", "start", "cancel" */
    const char *machine, *instance;
    const char *event; /* NULL: none */
};

/* A write begins: `parent` came with the request, NULL: nothing did. The span's context is what the
 * event is sent with. */
void det_episode_receive(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent,
    const struct det_episode_what *what);
/* It was answered: `sent`, of this machine, or an error with its text. */
void det_episode_answer(
    struct det_tracer *tracer, struct det_span *span, const struct det_machine *machine,
    const struct det_sent *sent, const struct det_error *error);

/* A timer fires, and nobody waits for it: a trace of its own begins, which the event is sent with.
 * Its span comes with the commit, and is linked to what armed the timer. */
void det_episode_fire(struct det_tracer *tracer, struct det_trace_context *ret);

/* A commit that was told; `sent` is note->trace, and may be NULL: then there is nothing to say. */
void det_episode_commit(
    struct det_tracer *tracer, const struct det_trace_context *sent, const struct det_note *note);

/* The context of an attempt of an effect that was asked for by an event sent with `sent`. */
struct det_trace_context det_episode_attempt_context(
    const struct det_trace_context *sent, const char *key, uint32_t attempt);
/* An attempt has ended; `sent` is figures->trace, and may be NULL. */
void det_episode_attempt(
    struct det_tracer *tracer, const struct det_trace_context *sent,
    const struct det_attempt_figures *figures);

#endif
