/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_request.h - bodies of requests that send events to instances, and what the answers mean.
 * Pure. */
#ifndef DET_CONNECTORS_MACHINE_REQUEST_H
#define DET_CONNECTORS_MACHINE_REQUEST_H

#include "connectors/row_value.h"
#include "connectors/settings.h"

#define MACHINE_MEMBERS_MAX 64

/* The members of a payload, each with a value. */
struct machine_members {
    struct machine_member {
        const char *name; /* in the arena of the settings */
        struct row_value value;
    } list[MACHINE_MEMBERS_MAX];
    size_t count;
    bool is_set;
};

/* Reads the map of names to fields or expressions with this key; absent: `is_set` is false. */
DET_MUST_CHECK int machine_members_init(
    struct machine_members *members, const struct settings *settings, const char *key,
    const struct det_allocator *allocator, const struct columns *columns, struct det_error *reterr);
void machine_members_deinit(struct machine_members *members);
/* Appends a JSON object. Results as row_value_write(). */
DET_MUST_CHECK int machine_members_write(
    const struct machine_members *members, const void *row, struct det_expression_scratch *scratch,
    struct det_buffer *buffer, struct det_error *reterr);

/* What the result of one send means. */
enum machine_result {
    MACHINE_SENT,
    MACHINE_MISSING,  /* there is no such instance */
    MACHINE_LATER,    /* a later try may succeed */
    MACHINE_REFUSED,  /* the instance does not take the event */
    MACHINE_UNUSABLE, /* the request cannot succeed */
};
/* By the code of an error, "UNHANDLED"; NULL: sent. */
enum machine_result machine_result_of(const char *code);

#endif
