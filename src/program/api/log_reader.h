/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_reader.h - reads a page of the log in a lane, as text of Server-Sent Events. */
#ifndef DET_API_LOG_READER_H
#define DET_API_LOG_READER_H

#include <detent/tool/store.h>

#include "api/api.h"
#include "base/list.h"

struct api_row {
    struct det_list node;
    uint64_t position;
    size_t size, memory;
    const char *machine, *id; /* stored after `text` */
    char text[];              /* as sent */
};

struct api_page {
    struct api_lane_job job;
    struct api *api;
    struct det_store_log_query query; /* its texts must outlive the page */
    size_t bytes;                     /* limit of `size`; a first larger row is included */
    bool is_first;                    /* only finds the end of the log */
    bool is_probe;                    /* only finds out whether a row exists */
    void *events, *subscriber;        /* of the requester */
    /* Results. */
    struct det_list rows;
    size_t count, size;
    uint64_t next;
    bool is_full; /* more rows may be available */
    int result;
    bool is_shared; /* other processes may write to the store */
};

/* Reads the page and calls `done` with it. Both on the http thread. */
void api_page_read(struct api_page *page, void (*done)(void *argument));
void api_row_free(const struct api *api, struct api_row *row);
void api_rows_free(const struct api *api, struct det_list *rows);

#endif
