/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp_export.h - exports spans to a receiver of traces, by OTLP over HTTP in JSON, on its own
 * thread.
 *
 *     tracer's queue --take--> batch --POST--> taken: exported
 *                                |              400, ...: refused, dropped
 *                                +--backoff---- 429, 502, 503, 504, no connection: the same batch
 *                                               again; after ATTEMPTS_MAX it is dropped
 *
 * Invariants
 *   1. Only this thread waits for the receiver. While it is unreachable the queue fills; spans that
 *      do not fit are dropped and counted.
 *   2. Each span taken from the queue is counted once: exported, refused or unreachable.
 *   3. The loss and the return of the receiver are reported once each. No message has a header, a
 *      body or the path of a URL. */
#ifndef DET_DAEMON_OTLP_EXPORT_H
#define DET_DAEMON_OTLP_EXPORT_H

#include "config/config.h"
#include "observe/otlp.h"

struct otlp;

/* Zero values are the defaults. The texts and objects that it names must outlive the exporter. */
struct otlp_options {
    const struct det_allocator *allocator;
    struct det_tracer *tracer;   /* its only reader */
    struct det_metrics *metrics; /* NULL: not counted */
    const char *endpoint;        /* the complete URL, "http://127.0.0.1:4318/v1/traces" */
    const struct config_header *headers;
    size_t header_count;
    struct det_otlp_resource resource;
    uint32_t batch_max;     /* spans per request; 0: 256 */
    det_time interval;      /* until an incomplete batch is sent; 0: 1 s */
    det_time timeout;       /* of a request; 0: 10 s */
    det_time backoff_first; /* doubles with each attempt; 0: 500 ms */
    det_time backoff_max;   /* 0: 30 s */
    /* Reports a sentence for people, on the exporter's thread; may be NULL. */
    void (*report)(void *user, const char *text);
    void *user;
};

/* Call after effects_open(), or another function that initializes libcurl, and before other threads
 * use libcurl. 0, DET_ERR_NO_MEMORY or DET_ERR_IO. */
DET_MUST_CHECK int otlp_open(const struct otlp_options *options, struct otlp **ret);
/* Sends the queued spans, each batch once, until about a second after a monotonic deadline, and
 * waits for the thread. Spans that end later stay in the queue. NULL does nothing. */
void otlp_close(struct otlp *otlp, det_time deadline);

#endif
