/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_get.h - one GET on a separate connection. */
#ifndef DET_KINDS_HTTP_GET_H
#define DET_KINDS_HTTP_GET_H

#include <detent/world.h>

#define HTTP_GET_TEXT_MAX (1 << 20)  /* bytes of a body that are searched */
#define HTTP_GET_BODY_MAX (64 << 20) /* a larger body is a failure */
#define HTTP_GET_HEADERS  8

struct http_get_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    const char *url;
    const char *headers[HTTP_GET_HEADERS + 1]; /* "Name: value"; NULL at the end */
    const char *text;                          /* required in the body; "": none */
    const char *ca_file;                       /* "": the certificates of the system */
    bool is_insecure;                          /* accepts any certificate */
    det_time timeout;
    bool (*is_cancelled)(void *user); /* called periodically */
    void *user;
};

struct http_get_answer {
    uint16_t status; /* 0: no answer, see `error` */
    uint32_t latency_ms;
    uint64_t body_size;
    bool has_text;
    bool has_tls_days;
    int32_t tls_days; /* days until the certificate expires; below 0: expired */
    char error[121];
};

/* Problems are in the answer. Returns 0, DET_ERR_CANCELLED; DET_ERR_NO_MEMORY, DET_ERR_LIMIT: our
 * own process is short of memory or descriptors, which says nothing about the server. */
DET_MUST_CHECK int http_get(const struct http_get_options *options, struct http_get_answer *ret);

#endif
