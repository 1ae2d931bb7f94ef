/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* isolated_worker.h - worker kinds of a module in separate processes: `isolate: process`.
 *
 *     detent up                                      detent kind-host, one for each worker
 *     the kind as the supervisor sees it:            the module, opened
 *       states, next, derive, children: called here
 *       open, collect, close  -- lane 0 ---------->  called on its first thread
 *       actions               -- lane 1 ---------->  called on its second thread
 *
 * A lane is a socket with one call at a time: a request with the desired state, an answer with the
 * observed state. Both sides are the same program, so values keep their memory layout. During a
 * call a request of KIND_CANCEL asks it to end; it is not answered. Closing lane 0 asks the process
 * to close the worker and to exit.
 *
 * Invariants
 *   1. A process serves one worker. When it has exited for any reason, calls fail until the next
 *      one
 *      is started, after a delay that grows with consecutive exits.
 *   2. A call that exceeds its deadline, or finds the previous one still running, ends the process:
 *      nothing hangs for longer than a function may.
 *   3. The process loads the copy of the module that detent has loaded and checked. */
#ifndef DET_CONFIG_ISOLATED_WORKER_H
#define DET_CONFIG_ISOLATED_WORKER_H

#include <detent/worker.h>

#define KIND_LANES       2
#define KIND_METRICS_MAX 64 /* of one call; further ones are not counted */
#define KIND_METRIC_NAME 64

enum kind_call {
    KIND_OPEN, /* followed by the texts of the identity: id, name, kind, path, each
                * NUL-terminated */
    KIND_COLLECT,
    KIND_ACT,
    KIND_CANCEL,
};

struct kind_request {
    uint32_t call;   /* enum kind_call */
    uint32_t action; /* of KIND_ACT */
    det_time span;   /* until it counts as hung; DET_NEVER */
    uint32_t size;   /* size of the following texts, or of the desired state */
};

struct kind_answer {
    int32_t result;
    uint32_t is_panic;
    uint32_t metric_count; /* of struct kind_metric, which follow */
    uint32_t size;         /* of the observed state, which follows those */
    char text[DET_WORKER_REASON_MAX + 1];
};

struct kind_metric {
    char name[KIND_METRIC_NAME];
    uint64_t more;
    double value;
    bool is_gauge;
};

/* Transfers everything, or returns DET_ERR_IO: the peer is gone. */
DET_MUST_CHECK int kind_send(int lane, const void *data, size_t size);
DET_MUST_CHECK int kind_receive(int lane, void *target, size_t size);

/* Size of a desired or an observed state in memory. */
uint32_t kind_record_size(struct det_record_ref ref);

/* A kind whose I/O functions run in separate processes. */
struct kind_proxy;
/* `library` is the descriptor of the loaded copy of the module; `real` is its kind, borrowed, as is
 * `folder`, that of the project. */
DET_MUST_CHECK int kind_proxy_open(
    const struct det_allocator *allocator, const struct det_worker_kind *real, int library,
    const char *folder, struct kind_proxy **ret);
void kind_proxy_close(struct kind_proxy *proxy);
const struct det_worker_kind *kind_proxy_kind(const struct kind_proxy *proxy);

#endif
