/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_key.h - the key of what a sink does with a row: unique for ever, and the same when the row is
 * delivered again. */
#ifndef DET_CONNECTORS_ROW_KEY_H
#define DET_CONNECTORS_ROW_KEY_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <detent/flow.h>

#include "base/hash.h"

/* As long as an event id may be, with the final NUL. */
#define ROW_KEY_MAX  129

#define ROW_RUN_TEXT 17
/* The identity of the run as 16 hexadecimal digits. */
static inline const char *row_run(const struct det_stage_call *call, char target[ROW_RUN_TEXT])
{
    snprintf(target, ROW_RUN_TEXT, "%016" PRIx64, call->run);
    return target;
}

/* "<flow>.<stage>.<run>.<position>"; long names are hashed. */
static inline const char *row_key(
    const struct det_stage_call *call, uint64_t position, char target[ROW_KEY_MAX])
{
    const char *flow = call->flow, *stage = call->stage->name;
    int length = snprintf(
        target, ROW_KEY_MAX, "%s.%s.%016" PRIx64 ".%" PRIu64, flow, stage, call->run, position);

    if (length >= ROW_KEY_MAX)
        snprintf(
            target, ROW_KEY_MAX, "%016" PRIx64 ".%016" PRIx64 ".%016" PRIx64 ".%" PRIu64,
            det_hash64(flow, strlen(flow), 1), det_hash64(stage, strlen(stage), 1), call->run,
            position);
    return target;
}

#endif
