/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* span.h - spans of traces: what took how long, for whom, and because of what.
 *
 *     det_span_begin(tracer, &span, parent, DET_SPAN_SERVER, "send");   any thread, own memory
 *     det_span_text(&span, "detent.machine", "order");
 *     det_span_end(tracer, &span);          -> queue -> det_tracer_take() by the one that exports
 *
 * Invariants
 *   1. A span owns nothing: it is copied by assignment, and what does not fit into it is left out
 *      and counted.
 *   2. The queue is bounded, and nobody who ends a span waits for room: what does not fit is
 *      dropped and counted.
 *   3. Whether a trace is kept is decided once, at its first span, and goes with the context.
 *
 * Each of the functions on spans may be given a tracer of NULL, and does nothing then; one of a
 * trace that is not kept has ids all the same, for whom it is passed on to. */
#ifndef DET_OBSERVE_SPAN_H
#define DET_OBSERVE_SPAN_H

#include <detent/trace.h>
#include <detent/world.h>

#include "observe/metrics.h"

/* The numbers are those of OTLP. */
enum det_span_kind {
    DET_SPAN_INTERNAL = 1,
    DET_SPAN_SERVER = 2,   /* answers a waiting client */
    DET_SPAN_CLIENT = 3,   /* calls and waits */
    DET_SPAN_CONSUMER = 5, /* processes a queued message */
};

#define DET_SPAN_NAME_MAX       64
#define DET_SPAN_STATUS_MAX     160
#define DET_SPAN_ATTRIBUTES_MAX 12
#define DET_SPAN_TEXT_MAX       512

struct det_span_attribute {
    const char *key; /* not copied: it is written in the code */
    bool is_number;
    uint16_t offset; /* of its text, in that of the span */
    int64_t number;
};

struct det_span {
    det_time start, end; /* wall */
    det_time begun;      /* monotonic: how long it took is not up to whoever sets the clock */
    enum det_span_kind kind;
    uint32_t left_out; /* attributes that did not fit */
    uint16_t text_used;
    uint8_t attribute_count;
    bool is_failed;
    struct det_trace_context context; /* its own */
    unsigned char parent[8];          /* of the same trace; all zero: none */
    struct det_trace_context cause;   /* linked; a trace id of zero: none */
    char name[DET_SPAN_NAME_MAX + 1];
    char status[DET_SPAN_STATUS_MAX + 1]; /* why it failed */
    struct det_span_attribute attributes[DET_SPAN_ATTRIBUTES_MAX];
    char text[DET_SPAN_TEXT_MAX];
};

struct det_tracer;

struct det_tracer_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    struct det_metrics *metrics; /* counts dropped spans; NULL: not counted */
    uint32_t queue_max;          /* spans that wait; 0: 2,048 */
    uint32_t kept_per_million;   /* of the traces that begin here; 0: all; UINT32_MAX: none. Those
                                    that come from outside say themselves whether they are kept */
};

DET_MUST_CHECK int det_tracer_open(
    const struct det_tracer_options *options, struct det_tracer **ret);
/* Queued spans are lost. */
void det_tracer_close(struct det_tracer *tracer);

/* A span that begins now: below `parent`, or the first of a new trace where that is NULL. */
void det_span_begin(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent,
    enum det_span_kind kind, const char *name);
void det_span_text(struct det_span *span, const char *key, const char *value);
void det_span_number(struct det_span *span, const char *key, int64_t value);
/* It failed; why, for people, or NULL. */
void det_span_fail(struct det_span *span, const char *status);
/* Ends now, and goes into the queue if its trace is kept. */
void det_span_end(struct det_tracer *tracer, struct det_span *span);
/* It was known only afterwards: it ended at `end` (wall) and had taken so long. */
void det_span_end_at(struct det_tracer *tracer, struct det_span *span, det_time end, det_time took);
static inline bool det_span_is_kept(const struct det_span *span)
{
    return span->context.flags & DET_TRACE_SAMPLED;
}

/* Moves up to `most` of the oldest spans to `target`; waits until there are as many, or until the
 * deadline (monotonic), or until det_tracer_wake(), and takes what there is. One thread. */
size_t det_tracer_take(
    struct det_tracer *tracer, struct det_span *target, size_t most, det_time deadline);
/* Ends all waits, now and later. */
void det_tracer_wake(struct det_tracer *tracer);

#endif
