/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_log.h - opens the journals of a flow's runs for reading (docs/formats/flow-log.md). */
#ifndef DET_INSPECT_FLOW_LOG_H
#define DET_INSPECT_FLOW_LOG_H

#include <detent/flow.h>

/* The folder of a flow's state, relative to the folder of the project. */
#define FLOW_STATE_FOLDER ".detent/flows"

/* The number of the last run in the folder of a flow. DET_ERR_NOT_FOUND: it has not run;
 * DET_ERR_CORRUPT. */
DET_MUST_CHECK int flow_log_last(const char *folder, uint64_t *ret, struct det_error *reterr);
/* Opens the journal of a run for reading; another process may write it. */
DET_MUST_CHECK int flow_log_open(
    const char *folder, uint64_t run, const struct det_allocator *allocator,
    struct det_journal **ret, struct det_error *reterr);
/* True if the last fact of the last run is its failure: it was not interrupted. False also when
 * that cannot be read. */
bool flow_log_has_failed(const char *folder, const struct det_allocator *allocator);

#endif
