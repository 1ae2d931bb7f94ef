/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_requests.h - changes of workers, answered when the store has recorded them. */
#ifndef DET_DAEMON_WORKER_REQUESTS_H
#define DET_DAEMON_WORKER_REQUESTS_H

#include <detent/workers.h>

#include "daemon/loop_request.h"

/* A manually created worker; NULL: not given. */
struct up_worker_put {
    const char *id; /* "plant/press/valve": the worker valve below plant/press */
    const char *kind;
    const char *config, *variables, *location; /* YAML */
    const char *const *run_in;                 /* states of the parent */
    size_t run_in_count;
    bool is_disabled;
};
/* Creates or changes a worker. `put` is copied. */
void up_put_worker(struct up *up, struct up_request *request, const struct up_worker_put *put);
/* Deletes a manually created worker. */
void up_delete_worker(struct up *up, struct up_request *request, const char *id);
void up_order_worker(
    struct up *up, struct up_request *request, const char *id, enum det_worker_order order);
/* "restart", "disable", "enable". */
const char *up_worker_order_name(enum det_worker_order order);

#endif
