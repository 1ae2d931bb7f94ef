/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_http.h - one exchange with a relay, for its calls. */
#ifndef DET_KINDS_RELAY_HTTP_H
#define DET_KINDS_RELAY_HTTP_H

#include "base/buffer.h"
#include "http/client.h"
#include "kinds/relay.h"

/* Bytes of a token that a login gives; what is longer does not fit into a head. */
#define RELAY_TOKEN_MAX 8000

struct relay {
    struct det_world *world;
    const struct det_allocator *allocator;
    char *url; /* without a slash at the end */
    struct http_client *client;
    const struct relay_call *call;   /* under way */
    char token[RELAY_TOKEN_MAX + 1]; /* "": none */
    char uuid[RELAY_UUID_MAX + 1];   /* of the last login */
    struct det_buffer request, answer;
    /* Of the exchange under way. */
    char offered[RELAY_TOKEN_MAX + 1]; /* the cookie "token" of the answer */
    char retry_after[64];
    long status;
};

struct relay_request {
    const char *name; /* "login", for texts */
    const char *path;
    bool is_post;              /* with `request` of the relay as its body */
    const char *authorization; /* NULL: the cookie */
};

/* Sends it, and fills `status`, `answer`, `offered`. 0: the status is 200 to 299. */
DET_MUST_CHECK int relay_exchange(
    struct relay *relay, const struct relay_call *call, const struct relay_request *request,
    struct relay_failure *failure);
/* An answer of a good status that is of no use: returns `code`. */
DET_MUST_CHECK int relay_misunderstood(
    struct relay *relay, int code, const char *name, const char *why,
    struct relay_failure *failure);

#endif
