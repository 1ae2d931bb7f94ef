/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tls_stream.h - TLS 1.2 or newer as a stream over another stream. */
#ifndef DET_HTTP_TLS_STREAM_H
#define DET_HTTP_TLS_STREAM_H

#include "http/byte_stream.h"
#include "http/http.h"

struct http_tls_context;

/* Returns the validity of the certificate in a file, by the wall clock. DET_ERR_INVALID if there is
 * none, or it cannot be read. */
int http_tls_dates(
    const char *path, det_time *ret_from, det_time *ret_until,
    struct det_error *reterr) DET_MUST_CHECK;
/* Reads the certificate, the key and the CAs of clients. */
int http_tls_open(
    const struct det_allocator *allocator, const struct http_tls *tls,
    struct http_tls_context **ret, struct det_error *reterr) DET_MUST_CHECK;
/* Open streams continue. NULL is allowed. */
void http_tls_close(struct http_tls_context *context);
/* Returns whether http_tls_open() would succeed; without a certificate there is nothing to open. */
int http_tls_try(
    const struct det_allocator *allocator, const struct http_tls *tls,
    struct det_error *reterr) DET_MUST_CHECK;

/* The server side of TLS; reads and writes do the handshake. Takes over the stream below on
 * success. */
extern const struct http_io http_tls_io;
int http_tls_stream_open(
    struct http_tls_context *context, const struct http_io *below, void *stream_take,
    void **ret) DET_MUST_CHECK;

#endif
