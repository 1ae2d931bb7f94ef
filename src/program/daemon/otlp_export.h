/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp.h - sends spans to a receiver of traces, by OTLP over HTTP in JSON, on a thread of its own.
 *
 *     tracer's queue --take--> batch --POST--> taken: exported
 *                                |              400, ...: refused, dropped
 *                                +--backoff---- 429, 502, 503, 504, nobody there: the same batch
 *                                               again; after ATTEMPTS_MAX it is dropped
 *
 * Invariants
 *   1. Nobody waits for the receiver but this thread: while it is away the queue fills, and what
 *      does not fit is dropped and counted.
 *   2. Each span that was taken from the queue is counted once: exported, refused or unreachable.
 *   3. That the receiver is away is told once, and once that it is back. No text has a header, a
 *      body or the path of a URL in it. */
#ifndef DET_DAEMON_OTLP_EXPORT_H
#define DET_DAEMON_OTLP_EXPORT_H

#include "config/config.h"
#include "observe/otlp.h"

struct otlp;

/* Zero values are the defaults. What is pointed at must stay until it is closed. */
struct otlp_options {
    const struct det_allocator *allocator;
    struct det_tracer *tracer;   /* it takes from it alone */
    struct det_metrics *metrics; /* NULL: nobody counts */
    const char *endpoint;        /* the whole URL, "http://127.0.0.1:4318/v1/traces" */
    const struct config_header *headers;
    size_t header_count;
    struct det_otlp_resource resource;
    uint32_t batch_max;     /* spans in a request; 0: 256 */
    det_time interval;      /* a smaller batch goes after it; 0: 1 s */
    det_time timeout;       /* of a request; 0: 10 s */
    det_time backoff_first; /* doubles with each attempt; 0: 500 ms */
    det_time backoff_max;   /* 0: 30 s */
    /* A sentence for people, on its thread; NULL: nobody reads it. */
    void (*tell)(void *user, const char *text);
    void *user;
};

/* After effects_open(), or whoever else sets up libcurl first, and before other threads use it. 0,
 * DET_ERR_NO_MEMORY or DET_ERR_IO. */
DET_MUST_CHECK int otlp_open(const struct otlp_options *options, struct otlp **ret);
/* Sends what the queue has, each batch once, until a (monotonic) time, which is kept to about a
 * second, and waits for the end of it. Spans that end afterwards stay in the queue. NULL: does
 * nothing. */
void otlp_close(struct otlp *otlp, det_time deadline);

#endif
