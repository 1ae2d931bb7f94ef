/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_scalar.h - the value of a plain scalar in the core schema of YAML 1.2. */
#ifndef DET_YAML_DATUM_SCALAR_H
#define DET_YAML_DATUM_SCALAR_H

#include "yaml/datum.h"

/* Sets kind and value of null, a truth value or a number. DET_ERR_TYPE: it is text, nothing is set;
 * DET_ERR_RANGE: a number beyond 64 bits, or beyond the largest float. */
DET_MUST_CHECK int det_datum_set_plain(struct det_datum *datum, const char *text);

#endif
