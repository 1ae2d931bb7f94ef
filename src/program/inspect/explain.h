/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* explain.h - explains why an instance is in its state, for the command and for the HTTP API. */
#ifndef DET_INSPECT_EXPLAIN_H
#define DET_INSPECT_EXPLAIN_H

#include "inspect/instance_summary.h"

/* Prints the sentences; reports errors, and returns an exit code. */
DET_MUST_CHECK int explain_print(struct cli *cli, const struct instance *instance);
/* Adds the accepted events, and the lock if it has one, to an open object. */
void explain_line(struct det_json_writer *json, const struct instance *instance);
/* Returns the lock of an instance: 0, also without a lock, or an error. */
DET_MUST_CHECK int explain_lock_of(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct det_store_lease *ret);
DET_MUST_CHECK int explain_lock(const struct instance *instance, struct det_store_lease *ret);
void explain_lock_line(struct det_json_writer *json, const struct det_store_lease *lease);

#endif
