/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* protocol_tables.h - tables of the HTTP server: limits, refusals, status phrases. */
#ifndef DET_HTTP_PROTOCOL_TABLES_H
#define DET_HTTP_PROTOCOL_TABLES_H

#include "http/http.h"

enum http_refusal {
    HTTP_ACCEPTED,
#define HTTP_REFUSAL(name, status, error, text) HTTP_REFUSED_##name,
#include "http/refusals.def"
#undef HTTP_REFUSAL
    HTTP_REFUSALS,
};

struct http_refusal_facts {
    const char *name;
    unsigned status;
    int code;
    const char *text;
};

/* Not for HTTP_ACCEPTED. */
const struct http_refusal_facts *http_refusal_facts(enum http_refusal refusal);
/* Returns "" for a status without a phrase. */
const char *http_status_phrase(unsigned status);
/* Fills in the defaults, and caps values at the hard maximum. */
void http_limits_settle(struct http_limits *limits);

#endif
