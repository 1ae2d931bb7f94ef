/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_get.h - one GET over a connection of its own. */
#ifndef DET_KINDS_HTTP_GET_H
#define DET_KINDS_HTTP_GET_H

#include <detent/world.h>

#define HTTP_GET_TEXT_MAX (1 << 20)  /* bytes of a body that are searched */
#define HTTP_GET_BODY_MAX (64 << 20) /* more of them are a failure */
#define HTTP_GET_HEADERS  8

struct http_get_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    const char *url;
    const char *headers[HTTP_GET_HEADERS + 1]; /* "Name: value"; NULL at the end */
    const char *text;                          /* sought in the body; "": nothing */
    const char *ca_file;                       /* "": those of the system */
    bool is_insecure;                          /* takes any certificate */
    det_time timeout;
    bool (*is_cancelled)(void *user); /* asked now and then */
    void *user;
};

struct http_get_answer {
    uint16_t status; /* 0: there was no answer, see `error` */
    uint32_t latency_ms;
    uint64_t body_size;
    bool has_text;
    bool has_tls_days;
    int32_t tls_days; /* until the certificate ends; below 0: it has ended */
    char error[121];
};

/* What went wrong is in the answer. 0, DET_ERR_CANCELLED; DET_ERR_NO_MEMORY, DET_ERR_LIMIT: our own
 * process is short of memory or descriptors, which says nothing about the server. */
DET_MUST_CHECK int http_get(const struct http_get_options *options, struct http_get_answer *ret);

#endif
