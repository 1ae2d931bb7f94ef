/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_text.h - helpers for writing data. Failures stick in the buffer. */
#ifndef DET_YAML_DATUM_TEXT_H
#define DET_YAML_DATUM_TEXT_H

#include "yaml/datum.h"

/* Writes a scalar, text in quotes; lists and maps as if they were empty. */
void det_datum_put_scalar(struct det_buffer *buffer, const struct det_datum *datum, bool is_json);
/* Writes YAML in block style; `put` writes scalars and empty lists and maps. */
void det_datum_write_yaml(
    const struct det_datum *datum, struct det_buffer *buffer,
    void (*put)(struct det_buffer *buffer, const struct det_datum *scalar));

#endif
