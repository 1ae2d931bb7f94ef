/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_pull_page.h - one answer of a server: its rows, and the cursor of the next page. */
#ifndef DET_CONNECTORS_HTTP_PULL_PAGE_H
#define DET_CONNECTORS_HTTP_PULL_PAGE_H

#include "base/buffer.h"
#include "connectors/line_row.h"
#include "json/reader.h"

#define REC_SPEC "connectors/http_pull_source.rec"
#include <detent/rec/declare.h>

#define HTTP_PULL_BODY_MAX (16u << 20)

struct http_pull_page {
    struct det_buffer body;
    struct det_arena arena; /* of the tree */
    enum http_pull_format format;
    const struct det_json_value *root; /* json */
    const struct det_json_value *row;  /* json: the next one */
    size_t at;                         /* lines, text: the next byte */
    uint64_t number;                   /* of rows that were taken */
    bool is_single;                    /* json: the row is no element of an array */
};

void http_pull_page_init(struct http_pull_page *page, const struct det_allocator *allocator);
void http_pull_page_deinit(struct http_pull_page *page);
/* Reads a complete body. `rows`: path of the array. Fails with the reason. */
DET_MUST_CHECK int http_pull_page_read(
    struct http_pull_page *page, enum http_pull_format format, const char *rows,
    struct det_error *reterr);
/* Takes the text of the next row; returns false at the end. */
bool http_pull_page_next(struct http_pull_page *page, struct det_view *ret);
/* Writes the cursor at a path into `target`; "" if it is null, false or missing. DET_ERR_LIMIT: it
 * is too long; DET_ERR_TYPE: it is a list or an object. */
DET_MUST_CHECK int http_pull_page_cursor(
    const struct http_pull_page *page, const char *path, char *target, size_t capacity);

/* Writes a URL with the cursor in it. DET_ERR_LIMIT. */
DET_MUST_CHECK int http_pull_url(
    const char *pattern, const char *cursor, char *target, size_t capacity);

#endif
