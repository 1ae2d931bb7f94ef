/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_text.h - the parts that data are written with. Failures stick in the buffer. */
#ifndef DET_YAML_DATUM_TEXT_H
#define DET_YAML_DATUM_TEXT_H

#include "yaml/datum.h"

/* Text in quotes; lists and maps as if they were empty. */
void det_datum_put_scalar(struct det_buffer *buffer, const struct det_datum *datum, bool is_json);
/* YAML in block style, where scalars and empty lists and maps are written by `put`. */
void det_datum_write_yaml(
    const struct det_datum *datum, struct det_buffer *buffer,
    void (*put)(struct det_buffer *buffer, const struct det_datum *scalar, void *user), void *user);

#endif
