/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* guard.h - who may ask for what: decided by the headers of a request, before its body is read.
 *
 *     Host in the list?  --no--> 421        (DNS rebinding: before anything else is looked at)
 *     from a web page of another site? ---> 403   (Origin and Sec-Fetch-Site, for unsafe methods)
 *     JSON, where there is a body? --no---> 415   (a form of another site cannot say so)
 *     a token? --none--> 401, not right --> 401 after a delay, not for this --> 403
 *                \--their file is not right--> 503
 *     too many? --------------------------> 429
 *
 * A token comes in `Authorization: Bearer` alone: there are no cookies, and never one in a URL. Who
 * comes over the unix socket as our own user or root needs none. For the thread of the server's
 * loop. */
#ifndef DET_AUTH_GUARD_H
#define DET_AUTH_GUARD_H

#include "auth/tokens.h"
#include "base/map.h"
#include "http/http.h"

#define GUARD_PUBLIC 0 /* instead of scopes: no token is needed */
#define GUARD_ABSENT \
    0x8000u /* beside scopes: nothing is there, or not by this method; it will be
                                refused, whatever its body is */
#define GUARD_BUCKETS (TOKENS_MAX + 24)

/* How much of its rate a token has used: it fills by `rate` a second, up to twice of it. */
struct guard_bucket {
    const char *key; /* `id` */
    char id[TOKENS_ID_SIZE + 1];
    double left;
    det_time at;
};

struct guard {
    const char *const *hosts; /* allowed besides 127.0.0.1, [::1] and localhost; NULL-terminated,
                                 NULL: none; "*": any */
    struct tokens *tokens;
    uint32_t rate; /* requests a second of one token; 0: no limit */
    /* One for each token that was used lately, by its id. Only a bucket that is full loses its
     * place, which changes nothing for its token; while there is none, a further token is refused.
     */
    struct det_map by_id; /* its hash is keyed by chance */
    struct guard_bucket *buckets;
    size_t count, capacity;
    const struct det_allocator *allocator;
};

/* `hosts`, `tokens` and `rate` are set by the caller, and may be changed later. `capacity` is how
 * many buckets there are at most. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int guard_init(
    struct guard *guard, const struct det_allocator *allocator, struct det_world *world,
    size_t capacity);
/* Also of one that is all zero. */
void guard_deinit(struct guard *guard);

/* The answer to a request that is not let through. */
struct guard_verdict {
    unsigned status; /* 0: it may go on */
    const char *code;
    char text[192];
    det_time wait;               /* Retry-After; 0: none */
    char id[TOKENS_ID_SIZE + 1]; /* of the token; "unix" for the socket, "" for nobody */
    unsigned scopes;
};

/* `needed`: one of these scopes, or GUARD_PUBLIC; `now` is monotonic. */
void guard_check(
    struct guard *guard, const struct http_request *request, unsigned needed, det_time now,
    struct guard_verdict *ret);

#endif
