/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_http.h - one HTTP exchange with a relay, for its calls. */
#ifndef DET_KINDS_RELAY_HTTP_H
#define DET_KINDS_RELAY_HTTP_H

#include "base/buffer.h"
#include "http/client.h"
#include "kinds/relay.h"

/* Maximum bytes of a token from a login; longer ones do not fit into a header. */
#define RELAY_TOKEN_MAX 8000

struct relay {
    struct det_world *world;
    const struct det_allocator *allocator;
    char *url; /* without a slash at the end */
    struct http_client *client;
    const struct relay_call *call;   /* in progress */
    char token[RELAY_TOKEN_MAX + 1]; /* "": none */
    char uuid[RELAY_UUID_MAX + 1];   /* of the last login */
    struct det_buffer request, answer;
    /* State of the exchange in progress. */
    char offered[RELAY_TOKEN_MAX + 1]; /* the cookie "token" of the answer */
    char retry_after[64];
    long status;
};

struct relay_request {
    const char *name; /* "login", for messages */
    const char *path;
    bool is_post;              /* with `request` of the relay as its body */
    const char *authorization; /* NULL: the cookie */
};

/* Sends it, and fills `status`, `answer`, `offered`. Returns 0 for the status 200 to 299. */
DET_MUST_CHECK int relay_exchange(
    struct relay *relay, const struct relay_call *call, const struct relay_request *request,
    struct relay_failure *failure);
/* Reports a successful answer with unusable content: returns `code`. */
DET_MUST_CHECK int relay_misunderstood(
    struct relay *relay, int code, const char *name, const char *why,
    struct relay_failure *failure);

#endif
