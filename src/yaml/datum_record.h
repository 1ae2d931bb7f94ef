/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_record.h - converts data into a record, strictly. */
#ifndef DET_YAML_DATUM_RECORD_H
#define DET_YAML_DATUM_RECORD_H

#include <detent/record.h>

#include "yaml/datum.h"

/* Reads a map into a struct of the record. A missing or null field is zero, like unused memory.
 * Unknown fields (DET_ERR_UNKNOWN_FIELD, with the nearest name), wrong types (DET_ERR_TYPE) and
 * values that do not fit (DET_ERR_RANGE, DET_ERR_MALFORMED) are errors with the path and the place,
 * the expected and the found value; `value` is then all zero. Null is an empty map. `what` is for
 * messages: "config". */
DET_MUST_CHECK int det_datum_to_record(
    const struct det_datum *datum, const char *what, const struct det_record *record, void *value,
    struct det_error *reterr);

#endif
