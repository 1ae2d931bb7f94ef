/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_reader.h - a page of the log, read on the pool, as text for readers of events. */
#ifndef DET_API_LOG_READER_H
#define DET_API_LOG_READER_H

#include <detent/tool/store.h>

#include "api/api.h"
#include "base/list.h"

struct api_row {
    struct det_list node;
    uint64_t position;
    size_t size, memory;
    const char *machine, *id; /* behind the text */
    char text[];              /* as it is sent */
};

struct api_page {
    struct api_lane_job job;
    struct api *api;
    struct det_store_log_query query; /* its texts stay */
    size_t bytes;                     /* it ends before a row that would make it longer */
    bool is_first;                    /* only looks where the log ends */
    bool is_probe;                    /* of a reader: only whether there is a row */
    void *events, *subscriber;        /* of who asks */
    /* Written before it is done. */
    struct det_list rows;
    size_t count, size;
    uint64_t next;
    bool is_full; /* there may be more at once */
    int result;
    bool is_shared; /* others write to the store, too */
};

/* On the http thread; `done` runs there too, with the page. */
void api_page_read(struct api_page *page, void (*done)(void *argument));
void api_row_free(const struct api *api, struct api_row *row);
void api_rows_free(const struct api *api, struct det_list *rows);

#endif
