/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_queries.h - reads workers: a page, one worker, its history. Answered at once. */
#ifndef DET_DAEMON_WORKER_QUERIES_H
#define DET_DAEMON_WORKER_QUERIES_H

#include <detent/workers.h>

#include "daemon/loop_request.h"

struct up_worker_page {
    const char *below, *kind; /* NULL: any */
    const char *after;        /* the id of the last worker of the page before; NULL: none */
    uint64_t skip;            /* if that worker is gone: skips this number of matching ones */
    size_t limit, size_max;   /* workers; bytes of the answer after which none is added */
    enum det_phase phase;
    bool has_phase;
    bool has_unwell, is_unwell;
    /* Results. */
    uint64_t passed; /* matching workers up to the end of this page */
    bool has_more;
    char last[DET_WORKER_PATH_MAX + 1]; /* id of the last worker; "": the page is empty */
};
/* Writes a page as the elements of an array. Its texts outlive the request. */
void up_list_workers(struct up *up, struct up_request *request, struct up_worker_page *page);
/* One worker with its desired and observed state. */
void up_show_worker(struct up *up, struct up_request *request, const char *id);

struct up_worker_history {
    const char *id;
    bool has_after;
    uint64_t after; /* only rows after this sequence, oldest first; else all, newest first */
};
void up_show_worker_history(
    struct up *up, struct up_request *request, const struct up_worker_history *wanted);

#endif
