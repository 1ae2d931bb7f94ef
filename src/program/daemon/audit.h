/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit.h - who did what to a running detent, on its way to the log.
 *
 *     http thread, pool, loop of `up` --audit_add--> ring --audit_tell, on the loop--> say()
 *                                          |
 *                                          +--> a refusal too many: counted, and told with the next
 *
 * Invariants
 *   1. No secret is in a deed: ids of tokens, names and patterns of paths; never a body or a query.
 *   2. Whoever is refused cannot fill a disk: REFUSALS_AT_ONCE refusals, and then one a second.
 *   3. Nobody waits: what does not fit is counted, and the count is told. */
#ifndef DET_DAEMON_AUDIT_H
#define DET_DAEMON_AUDIT_H

#include <detent/world.h>

#include "auth/tokens.h"

#define AUDIT_WHAT    320
#define AUDIT_PEER    64
#define AUDIT_SUBJECT 128
#define AUDIT_NOBODY  (-1) /* instead of a user */

enum audit_outcome {
    AUDIT_DONE,
    AUDIT_FAILED,
    AUDIT_REFUSED,
    AUDIT_UNKNOWN, /* who asked went away before it was known */
    AUDIT_TROUBLE, /* nobody's deed, but what everybody should know */
};

struct audit_deed {
    char what[AUDIT_WHAT];          /* "POST /v1/tasks/ticker/stop", "stop ticker" */
    char peer[AUDIT_PEER];          /* "127.0.0.1:41000", "unix", "socket", "signal" */
    char token[TOKENS_ID_SIZE + 1]; /* its id; "": without one */
    char subject[AUDIT_SUBJECT];    /* of the client's certificate; "": without one */
    int64_t user;                   /* over a unix socket, or of a signal; or AUDIT_NOBODY */
    enum audit_outcome outcome;
    unsigned status;   /* of HTTP; 0: it was something else */
    const char *code;  /* the name of the error, which stays; NULL: there is none */
    uint64_t not_told; /* refusals, and deeds, before this one */
};

struct audit;

struct audit_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    /* There is something to tell. From any thread, and at most once until audit_tell(). */
    void (*wake)(void *user);
    void (*say)(void *user, const struct audit_deed *deed);
    void *user;
};

DET_MUST_CHECK int audit_open(const struct audit_options *options, struct audit **ret);
/* Tells what waits, and takes NULL. */
void audit_close(struct audit *audit);
/* From any thread; takes NULL. */
void audit_add(struct audit *audit, const struct audit_deed *deed);
/* Says all that waits. Of one thread. */
void audit_tell(struct audit *audit);
/* "done", "failed", ... */
const char *audit_outcome_name(enum audit_outcome outcome);

#endif
