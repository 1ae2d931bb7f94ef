/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_error.h - classifies failed calls of a relay: class, delay, and whether to reset the
 * transport. Pure. The lists are relay_classes.def and relay_markers.def. */
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
/* Returns the name of its counter; "" for NONE. */
const char *relay_class_metric(enum relay_class class);

/* Returns the class of a failed or missing answer (`status` 0). The first match of: challenge,
 * proxy_block, backend_rate_limit, invalid_token, instance_deleted, server_error, network, unknown.
 * The body may contain any bytes. */
enum relay_class relay_classify(long status, const char *body, size_t size);
/* Returns true if such an answer means that this message can never be accepted. */
bool relay_status_is_poison(long status);

/* Parses Retry-After, seconds or an HTTP date, relative to now; at most an hour; 0: absent or
 * malformed. `text` may be NULL. */
#define RELAY_RETRY_AFTER_MAX DET_HOUR
det_time relay_retry_after(const char *text, det_time wall);

/* Returns the delay after the last attempt, when `count` consecutive ones have failed, the last in
 * this class. The server's `retry_after` takes precedence; 0: none. */
det_time relay_delay(enum relay_class class, uint32_t count, det_time retry_after);
/* Returns true if the transport must be reset now. `reset_for` is the count of the last reset; 0:
 * none yet. The same count never triggers it twice. */
bool relay_reset_is_due(enum relay_class class, uint32_t count, uint32_t reset_for);

#endif
