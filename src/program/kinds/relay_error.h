/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_error.h - what a failed call of a relay is, and what is done about it: its class, how long
 * to wait, whether to begin anew with the transport. Pure. The lists are relay_classes.def and
 * relay_markers.def. */
#ifndef DET_KINDS_RELAY_ERROR_H
#define DET_KINDS_RELAY_ERROR_H

#include <detent/record.h>

enum relay_class {
#define DET_RELAY_CLASS(name, wire, metric, reset_every, delays) RELAY_##name,
#include "kinds/relay_classes.def"
#undef DET_RELAY_CLASS
    RELAY_CLASSES,
};
/* For one_of(relay_class) in a record. */
const struct det_enum *relay_class_enum(void);
/* "network", ...; never NULL. */
const char *relay_class_name(enum relay_class class);
/* The name of its counter; "" for NONE. */
const char *relay_class_metric(enum relay_class class);

/* The class of an answer that is no success, or of none: `status` 0. The first that holds of:
 * challenge, proxy_block, backend_rate_limit, invalid_token, instance_deleted, server_error,
 * network, unknown. The body may hold any bytes. */
enum relay_class relay_classify(long status, const char *body, size_t size);
/* Whether such an answer to one message says that this very message can never be taken. */
bool relay_status_is_poison(long status);

/* What Retry-After says, seconds or an HTTP date, from now on; at most an hour; 0: nothing, or
 * nothing that can be understood. `text` may be NULL. */
#define RELAY_RETRY_AFTER_MAX DET_HOUR
det_time relay_retry_after(const char *text, det_time wall);

/* How long to wait after the last attempt, when `count` have failed in a row, this way the last.
 * What the server asks for, `retry_after`, wins; 0: it does not ask. */
det_time relay_delay(enum relay_class class, uint32_t count, det_time retry_after);
/* Whether the transport is to be made anew now. `reset_for` is the count for which it last was; 0:
 * not yet. The same count never asks for it twice. */
bool relay_reset_is_due(enum relay_class class, uint32_t count, uint32_t reset_for);

#endif
