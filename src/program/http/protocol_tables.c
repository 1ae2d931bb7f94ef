/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* protocol_tables.c - tables and defaults, generated from the lists. */
#include "http/protocol_tables.h"

#include "base/assert.h"

static const struct http_refusal_facts refusals[] = {
    { 0 },
#define HTTP_REFUSAL(name, status, error, text) { #name, status, DET_ERR_##error, text },
#include "http/refusals.def"
#undef HTTP_REFUSAL
};

const struct http_refusal_facts *http_refusal_facts(enum http_refusal refusal)
{
    det_assert(refusal > HTTP_ACCEPTED && refusal < HTTP_REFUSALS);
    return &refusals[refusal];
}

const char *http_status_phrase(unsigned status)
{
    switch (status) {
#define HTTP_STATUS(number, phrase) \
    case number:                    \
        return phrase;
#include "http/status.def"
#undef HTTP_STATUS
    default:
        return "";
    }
}

void http_limits_settle(struct http_limits *limits)
{
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) \
    if (limits->name <= 0)                                   \
        limits->name = (type)(otherwise);                    \
    else if (limits->name > (type)(most))                    \
        limits->name = (type)(most);
#include "http/limits.def"
#undef HTTP_LIMIT
}
