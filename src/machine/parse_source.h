/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_source.h - the files of a spec: finding, reading and bounding them. */
#ifndef DET_MACHINE_PARSE_SOURCE_H
#define DET_MACHINE_PARSE_SOURCE_H

#include "machine/parse.h"

/* Files that one spec may read, those that are read twice counted twice. */
#define DET_PARSE_SOURCES_MAX 1024
#define DET_PARSE_PATH_MAX    4096

/* `name` as seen from the folder of `from`; NULL when it is too long or memory failed. */
const char *det_source_join(struct det_spec *spec, const struct det_source *from, const char *name);
/* The text itself is given; NULL, with a complaint at `place`, when it cannot be read as a spec. */
struct det_source *det_source_add(
    struct det_spec *spec, const char *path, const char *text, size_t size,
    const struct det_place *place);
/* The text comes from the callback. */
struct det_source *det_source_read(
    struct det_spec *spec, const char *path, const struct det_place *place);
/* The one that USES has read from this path, or NULL. */
struct det_source *det_source_of_records(const struct det_spec *spec, const char *path);
/* From now on every line is a string; the text is no longer lexed. */
void det_source_finish(struct det_source *source);
/* Where a token stands. */
struct det_place det_source_place(const struct det_source *source, const struct det_token *token);

#endif
