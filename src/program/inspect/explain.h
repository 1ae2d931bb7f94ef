/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* explain.h - explains why an instance is in its state, for the command and for the HTTP API. */
#ifndef DET_INSPECT_EXPLAIN_H
#define DET_INSPECT_EXPLAIN_H

#include "inspect/instance_summary.h"

/* The sentences; complains, and returns an exit code. */
DET_MUST_CHECK int explain_print(struct cli *cli, const struct instance *instance);
/* What it takes, and its lock if it has one, as members of an object that is open. */
void explain_line(struct det_json_writer *json, const struct instance *instance);
/* The lock of an instance: 0, also when there is none, or an error. */
DET_MUST_CHECK int explain_lock_of(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct det_store_lease *ret);
DET_MUST_CHECK int explain_lock(const struct instance *instance, struct det_store_lease *ret);
void explain_lock_line(struct det_json_writer *json, const struct det_store_lease *lease);

#endif
