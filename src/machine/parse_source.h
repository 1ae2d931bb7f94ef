/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_source.h - the files of a spec: finding, reading and bounding them. */
#ifndef DET_MACHINE_PARSE_SOURCE_H
#define DET_MACHINE_PARSE_SOURCE_H

#include "machine/parse.h"

/* Maximum number of reads of files in one spec; a file that is read twice counts twice. */
#define DET_PARSE_SOURCES_MAX 1024
#define DET_PARSE_PATH_MAX    4096

/* Joins the folder of `from` with `name`; NULL if the path is too long or memory failed. */
const char *det_source_join(struct det_spec *spec, const struct det_source *from, const char *name);
/* Adds a file with the given text; NULL, with a report at `place`, if it cannot be read as
 * a spec. */
struct det_source *det_source_add(
    struct det_spec *spec, const char *path, const char *text, size_t size,
    const struct det_place *place);
/* Adds a file with the text from the callback of the options. */
struct det_source *det_source_read(
    struct det_spec *spec, const char *path, const struct det_place *place);
/* Returns the file that a USES row has read from this path, or NULL. */
struct det_source *det_source_of_records(const struct det_spec *spec, const char *path);
/* Makes every line a string, for the places that point to it. The text can no longer be lexed. */
void det_source_finish(struct det_source *source);
/* Returns the place of a token. */
struct det_place det_source_place(const struct det_source *source, const struct det_token *token);

#endif
