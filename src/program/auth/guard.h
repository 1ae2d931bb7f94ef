/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* guard.h - authorizes requests by their headers, before the body is read.
 *
 *     Host in the list?  --no--> 421        (DNS rebinding: checked first)
 *     from a web page of another site? ---> 403   (Origin and Sec-Fetch-Site, for unsafe methods)
 *     JSON, if there is a body? --no------> 415   (a form of another site cannot send it)
 *     a token? --none--> 401, wrong --> 401 after a delay, without the scope --> 403
 *                \--token file unusable--> 503
 *     too many? --------------------------> 429
 *
 * A token is accepted only in `Authorization: Bearer`, never in a cookie or a URL. Clients of the
 * unix socket that are our own user or root need none. To be called on the loop's thread. */
#ifndef DET_AUTH_GUARD_H
#define DET_AUTH_GUARD_H

#include "auth/tokens.h"
#include "base/map.h"
#include "http/http.h"

#define GUARD_PUBLIC 0 /* instead of scopes: no token required */
#define GUARD_ABSENT \
    0x8000u /* with scopes: no such resource or method; the request will be refused whatever its
             * body */
#define GUARD_BUCKETS (TOKENS_MAX + 24)

/* Rate limit of a token: refills at `rate` per second, up to twice `rate`. */
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
    uint32_t rate; /* requests per second and token; 0: no limit */
    /* Buckets of recently used tokens, by id. Only a full bucket is evicted, which has no effect on
     * its token; if there is none, a further token is refused. */
    struct det_map by_id; /* its hash has a random key */
    struct guard_bucket *buckets;
    size_t count, capacity;
    const struct det_allocator *allocator;
};

/* The caller sets `hosts`, `tokens` and `rate`, and may change them later. `capacity` limits the
 * buckets. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int guard_init(
    struct guard *guard, const struct det_allocator *allocator, struct det_world *world,
    size_t capacity);
/* Also for a zero value. */
void guard_deinit(struct guard *guard);

/* The answer to a request that is refused. */
struct guard_verdict {
    unsigned status; /* 0: admitted */
    const char *code;
    char text[192];
    det_time wait;               /* Retry-After; 0: none */
    char id[TOKENS_ID_SIZE + 1]; /* id of the token; "unix" for the socket, "" for none */
    unsigned scopes;
};

/* `needed`: one of these scopes, or GUARD_PUBLIC; `now` is monotonic. */
void guard_check(
    struct guard *guard, const struct http_request *request, unsigned needed, det_time now,
    struct guard_verdict *ret);

#endif
