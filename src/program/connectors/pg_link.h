/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pg_link.h - a connection to PostgreSQL for a sink: it blocks its thread, but never longer than a
 * cancel of the stage. */
#ifndef DET_CONNECTORS_PG_LINK_H
#define DET_CONNECTORS_PG_LINK_H

#include <detent/flow.h>

#include "base/buffer.h"
#include "base/text.h"
#include "store/postgres/postgres.h"

/* What an exchange has come to. */
enum pg_outcome {
    PG_DONE,
    PG_CANCELLED, /* the stage is to end; the outcome is unknown */
    PG_LOST,      /* the connection is gone; the outcome is unknown */
    PG_RETRY,     /* nothing was done; the server may do it later */
    PG_DATA,      /* nothing was done: a row does not fit its table */
    PG_FATAL,     /* nothing was done: a remedy is needed */
};

struct pg_link {
    struct det_stage_call *call; /* of the function that runs now */
    struct postgres_url url;
    char *url_text;               /* without scheme; owned */
    char *secret;                 /* the password from a file or a variable; owned, NULL: none */
    PGconn *pq;                   /* NULL: not connected */
    char text[POSTGRES_TEXT_MAX]; /* of the last failure, without the password */
};

/* Reads the URL, "postgres://user@host/database". `secret`: "" or the password, copied. */
DET_MUST_CHECK int pg_link_init(
    struct pg_link *link, struct det_stage_call *call, const char *url, const char *secret,
    struct det_error *reterr);
void pg_link_deinit(struct pg_link *link, const struct det_allocator *allocator);
/* Checks a URL alone; a password in it is refused. */
DET_MUST_CHECK int pg_link_check_url(const char *url, struct det_error *reterr);

enum pg_outcome pg_link_connect(struct pg_link *link);
void pg_link_disconnect(struct pg_link *link);
/* Runs statements as one transaction. `copied` is what the one COPY among them reads; NULL: there
 * is none. `ret`: NULL, or gets the last result with rows, if there is one; PQclear() it. */
enum pg_outcome pg_link_run(
    struct pg_link *link, const char *statements, const struct det_view *copied, PGresult **ret);

#endif
