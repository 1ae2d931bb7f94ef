/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gen.h - what `detent gen` makes of a definition. */
#ifndef DET_CLI_GEN_H
#define DET_CLI_GEN_H

#include <detent/spec.h>
#include <jansson.h>

#include "base/buffer.h"

/* gen_c.c: NAME.h, which declares the machine, and NAME.c, with a stub for every named function. */
void gen_header(struct det_buffer *buffer, const struct det_spec *spec);
void gen_source(struct det_buffer *buffer, struct det_spec *spec);
/* The header of shared records, in the file `path`. */
void gen_records(struct det_buffer *buffer, const struct det_spec *spec, const char *path);
/* "shop" of "a/shop.rec": what comes before the suffix in the last part of the path. */
size_t gen_stem(const char *path, const char **ret);

/* gen_json.c: the definition as data; NULL when there is no memory. */
json_t *gen_json(struct det_spec *spec);

#endif
