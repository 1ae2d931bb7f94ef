/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit.h - records changes of a running detent, and the clients that made them, for the log.
 *
 *     http thread, pool, loop of `up` --audit_add--> ring --audit_report, on the loop--> report()
 *                                          |
 *                                          +--> dropped: counted, reported with the next record
 *
 * Invariants
 *   1. A record has no secrets: ids of tokens, names and patterns of paths; no body and no query.
 *   2. Refused clients cannot fill the disk: a burst of REFUSALS_AT_ONCE, then one per second.
 *   3. audit_add() does not block: a record that does not fit is counted, and the count
 *      reported. */
#ifndef DET_DAEMON_AUDIT_H
#define DET_DAEMON_AUDIT_H

#include <detent/world.h>

#include "auth/tokens.h"

#define AUDIT_WHAT    320
#define AUDIT_PEER    64
#define AUDIT_SUBJECT 128
#define AUDIT_NOBODY  (-1) /* no user id */

enum audit_outcome {
    AUDIT_DONE,
    AUDIT_FAILED,
    AUDIT_REFUSED,
    AUDIT_UNKNOWN,  /* the client disconnected before the outcome was known */
    AUDIT_INCIDENT, /* an incident without an actor, such as an invalid file of tokens */
};

struct audit_action {
    char what[AUDIT_WHAT];          /* "POST /v1/tasks/ticker/stop", "stop ticker" */
    char peer[AUDIT_PEER];          /* "127.0.0.1:41000", "unix", "socket", "signal" */
    char token[TOKENS_ID_SIZE + 1]; /* id of the token; "": none */
    char subject[AUDIT_SUBJECT];    /* subject of the client certificate; "": none */
    int64_t user;                   /* uid of a unix socket or signal; else AUDIT_NOBODY */
    enum audit_outcome outcome;
    unsigned status;       /* of HTTP; 0: not an HTTP request */
    const char *code;      /* static name of the error; NULL: none */
    uint64_t not_reported; /* records dropped before this one */
};

struct audit;

struct audit_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    /* Records are waiting. Any thread; called at most once until audit_report(). */
    void (*wake)(void *user);
    void (*report)(void *user, const struct audit_action *action);
    void *user;
};

DET_MUST_CHECK int audit_open(const struct audit_options *options, struct audit **ret);
/* Reports pending records; NULL does nothing. */
void audit_close(struct audit *audit);
/* Any thread; NULL does nothing. */
void audit_add(struct audit *audit, const struct audit_action *action);
/* Passes all pending records to report() of the options. Only one thread may call it. */
void audit_report(struct audit *audit);
/* "done", "failed", ... */
const char *audit_outcome_name(enum audit_outcome outcome);

#endif
