/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_json.h - a row as a JSON object, with its key as the last member if wanted. */
#ifndef DET_CONNECTORS_ROW_JSON_H
#define DET_CONNECTORS_ROW_JSON_H

#include <detent/flow.h>

#include "connectors/columns.h"

/* Appends the object of the row in hand. `key_field` is the name of the member with its key; "":
 * none. */
void row_json(
    const struct det_stage_call *call, const struct columns *columns, const char *key_field,
    const void *in, struct det_buffer *buffer);

#endif
