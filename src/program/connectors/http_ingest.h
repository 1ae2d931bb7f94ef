/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_ingest.h - parts of the source http_ingest: who may send, and the rows of a body. Pure. */
#ifndef DET_CONNECTORS_HTTP_INGEST_H
#define DET_CONNECTORS_HTTP_INGEST_H

#include "connectors/settings.h"
#include "http/http.h"

#define REC_SPEC "connectors/http_ingest_source.rec"
#include <detent/rec/declare.h>

struct ingest_guard {
    enum http_ingest_auth auth;
    char secret[SETTINGS_SECRET_MAX + 1];
    det_time window;
};

/* Checks what is known before the body: all but a signature. */
bool ingest_admits(const struct ingest_guard *guard, const struct http_request *request);
/* Checks the signature of a body, by the wall clock. True for the other kinds. */
bool ingest_is_signed(
    const struct ingest_guard *guard, const struct http_request *request, det_time now);

/* The rows of a body: an object, or an array of objects. */
struct ingest_rows {
    char *rows; /* of the size of the record each */
    uint32_t count, capacity;
    uint32_t rejected;
    uint32_t row_size;
    char first_error[DET_ERROR_TEXT_MAX]; /* of a rejected row, with its index */
};

/* 0, also if some or all are rejected; DET_ERR_MALFORMED: not JSON, or neither; DET_ERR_LIMIT: more
 * than `max` rows; DET_ERR_NO_MEMORY. After an error nothing needs to be freed. */
DET_MUST_CHECK int ingest_rows_read(
    struct ingest_rows *rows, const struct det_allocator *allocator,
    const struct det_record *record, unsigned flags, struct det_view body, uint32_t max,
    struct det_error *reterr);
void ingest_rows_free(struct ingest_rows *rows, const struct det_allocator *allocator);

#endif
