/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client.h - the HTTP client of the program, over libcurl: one request at a time, which blocks.
 *
 *     http_client_open() --> http_client_call(), ... ------------------> http_client_close()
 *                        \-> http_client_begin(), _wait(), ... ----/
 *
 * A client keeps its connection for the next call; open one for a call that needs a connection of
 * its own. One caller at a time, on any thread. Redirects are not followed, only http and https are
 * spoken, and certificates are checked. A proxy comes from the environment (http_proxy,
 * https_proxy, no_proxy), but not for this machine itself.
 *
 * Invariants
 *   1. A call ends by its deadline, and within HTTP_CLIENT_LOOK of the time when it is cancelled.
 *   2. At most `body_max` bytes of an answer are kept.
 *   3. No text of a result has a header, a body, or the path of a URL. */
#ifndef DET_HTTP_CLIENT_H
#define DET_HTTP_CLIENT_H

#include <detent/world.h>

#include "base/buffer.h"

struct http_client;
struct curl_slist;

/* The longest time between two calls of is_cancelled() during a wait. */
#define HTTP_CLIENT_LOOK (50 * DET_MILLISECOND)
/* Size of `text` in a result. */
#define HTTP_CLIENT_TEXT 256
#define HTTP_CLIENT_SHORTAGE_TEXT                                                               \
    "there is no descriptor or memory for a connection; raise the limit of open files (ulimit " \
    "-n)"

/* Loads libcurl; calls are counted. A client does so itself: call this to load it before starting
 * threads, or to keep it loaded between two clients. */
DET_MUST_CHECK int http_client_load(void);
void http_client_unload(void);

struct http_client_options {
    const struct det_allocator *allocator;
    struct det_world *world; /* for its clocks; NULL: the real world */
    /* Path of a unix socket, copied; the host of a URL is then only a name. NULL: none. */
    const char *socket_path;
    /* Checks the connected socket before a request is sent over it. An error ends the call, which
     * returns it; its text is that of the result. NULL: no check. */
    int (*check)(void *user, int descriptor, struct det_error *reterr);
    /* Called at least every HTTP_CLIENT_LOOK, on the thread of the caller. NULL: never. */
    bool (*is_cancelled)(void *user);
    /* The signal whose handler makes is_cancelled() true: it ends a wait at once. Other signals do
     * not. 0: none. */
    int signal;
    void *user;
    det_time connect_timeout; /* 0: the deadline of the call */
    bool is_http_1_1;         /* never HTTP/2 */
};
/* Opens no connection. DET_ERR_NO_MEMORY, DET_ERR_IO. */
DET_MUST_CHECK int http_client_open(
    const struct http_client_options *options, struct http_client **ret);
void http_client_close(struct http_client *client);

/* Lines of a request's head. The zero value has none. */
struct http_lines {
    struct curl_slist *list;
};
/* Adds a header; with an empty value, libcurl does not send this header. False: no memory. */
DET_MUST_CHECK bool http_lines_add(struct http_lines *lines, const char *name, const char *value);
/* Adds a complete line: "Name: value". */
DET_MUST_CHECK bool http_lines_add_line(struct http_lines *lines, const char *line);
/* Wipes and frees them. */
void http_lines_deinit(struct http_lines *lines);

/* Zero values are the defaults. All is borrowed until the call returns. */
struct http_call {
    const char *method; /* NULL: POST with a body, GET without one */
    const char *url;
    const struct http_lines *lines;
    const void *send; /* the body of the request; NULL: none */
    size_t send_size;
    det_time timeout; /* DET_NEVER: none */
    /* The body of the answer goes to `body`, or in parts to `on_body`; if both are NULL, it is
     * discarded. */
    struct det_buffer *body;
    /* A value other than 0 ends the call, which returns it. */
    int (*on_body)(void *user, const char *data, size_t size);
    /* Gets each line of the answer's head, and of interim answers before it. NULL: ignored. */
    void (*on_line)(void *user, const char *line, size_t size);
    void *user;
    uint64_t body_max;   /* bytes; 0: no limit */
    const char *ca_file; /* NULL or "": the certificates of the system */
    bool is_insecure;    /* takes any certificate */
    bool wants_certificate;
};

struct http_result {
    unsigned status;             /* 0: there was no answer */
    det_time retry_after;        /* of a status 429 or 503, at most an hour; 0: none */
    det_time took;               /* all of it */
    uint64_t body_size;          /* of the answer */
    det_time certificate_end;    /* wall clock; 0: unknown. Of the host, if requested */
    bool is_shortage;            /* nothing was sent: out of memory or descriptors */
    const char *reason;          /* why the call failed, in few words; "" */
    char text[HTTP_CLIENT_TEXT]; /* the same in more words, with the host; "" */
};

/* 0: there is an answer, of any status. Or DET_ERR_TIMEOUT; DET_ERR_CANCELLED; DET_ERR_LIMIT: the
 * answer is larger than `body_max`, whose first bytes are in the body; DET_ERR_NO_MEMORY, or a
 * shortage of descriptors, see `is_shortage`; DET_ERR_IO: what `text` says; what on_body() or
 * check() returned. `ret` is written in any case. */
DET_MUST_CHECK int http_client_call(
    struct http_client *client, const struct http_call *call, struct http_result *ret);
/* http_client_call() in steps, for a caller that works while it waits; `call` and `ret` must stay
 * until the end. http_client_wait() returns 1 when more of the body has arrived, or at `until`
 * (monotonic); otherwise the call has ended, with the results of http_client_call().
 * http_client_end() abandons it. */
void http_client_begin(
    struct http_client *client, const struct http_call *call, struct http_result *ret);
DET_MUST_CHECK int http_client_wait(struct http_client *client, det_time until);
void http_client_end(struct http_client *client);

/* Returns true for an http or https URL with a host and without a user. */
bool http_client_takes(const char *url);
/* Converts a date of HTTP to seconds since 1970; -1: malformed. */
int64_t http_client_date(const char *text);

#endif
