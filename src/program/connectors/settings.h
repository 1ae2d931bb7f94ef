/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* settings.h - the settings of a stage, a text in YAML, as a record and trees of data.
 *
 *     static const char *const trees[] = { "fields", NULL };
 *     struct settings settings;
 *     r = settings_open(&settings, stage, allocator, generate_settings_record(), &value, trees,
 *                       reterr);
 *     fields = det_datum_get(settings.root, "fields");
 *     settings_close(&settings);
 *
 * Messages begin with "settings of 'read', line 1, column 9:". They contain no value of a field
 * that is SENSITIVE. */
#ifndef DET_CONNECTORS_SETTINGS_H
#define DET_CONNECTORS_SETTINGS_H

#include <detent/flow.h>

#include "base/text.h"
#include "yaml/datum_record.h"

#define SETTINGS_SIZE_MAX 65536

struct settings {
    struct det_arena arena;
    const struct det_stage *stage;
    struct det_datum *root; /* a map */
    char what[DET_NAME_MAX + 32];
};

/* Reads stage->settings (NULL: none) into `value`. Members with the names in `trees`, which ends
 * with NULL and may be NULL, are not of the record: find them in `root`. After an error nothing
 * needs to be closed. */
DET_MUST_CHECK int settings_open(
    struct settings *settings, const struct det_stage *stage, const struct det_allocator *allocator,
    const struct det_record *record, void *value, const char *const *trees,
    struct det_error *reterr);
void settings_close(struct settings *settings);

/* Sets an error about a member, or about the settings if it is NULL. Returns DET_ERR_INVALID. */
int settings_fail(
    const struct settings *settings, const struct det_datum *datum, struct det_error *reterr,
    const char *format, ...) DET_PRINTF(4, 5);
/* The same about the member with this key, which may be missing. */
int settings_fail_key(
    const struct settings *settings, const char *key, struct det_error *reterr, const char *format,
    ...) DET_PRINTF(4, 5);
/* DET_ERR_INVALID with the remedy `such_as` if the text is empty. */
DET_MUST_CHECK int settings_need(
    const struct settings *settings, const char *key, const char *value, const char *such_as,
    struct det_error *reterr);

/* Finds a field of a record by a name in the settings; the error has the nearest one. */
DET_MUST_CHECK int settings_field(
    const struct settings *settings, const struct det_datum *datum, const char *name,
    const struct det_record *record, const struct det_field **ret, struct det_error *reterr);
/* The same for a field of type str. */
DET_MUST_CHECK int settings_text_field(
    const struct settings *settings, const char *key, const char *name,
    const struct det_record *record, const struct det_field **ret, struct det_error *reterr);
/* Reads a duration such as "1m30s"; "" is `otherwise`. */
DET_MUST_CHECK int settings_duration(
    const struct settings *settings, const char *key, const char *text, det_time otherwise,
    det_time *ret, struct det_error *reterr);
/* Writes the path, relative to `folder` (NULL: the working directory) unless it is absolute, into
 * `target` of DET_PATH_MAX bytes. */
DET_MUST_CHECK int settings_path(
    const struct settings *settings, const char *key, const char *path, const char *folder,
    char *target, struct det_error *reterr);

#define SETTINGS_SECRET_MAX 4096
/* Reads a secret from a file, which only its owner may read, or from an environment variable;
 * exactly one of both is not "". The text is without the newline at its end. */
DET_MUST_CHECK int settings_secret(
    const struct settings *settings, const char *file, const char *variable, const char *folder,
    char target[SETTINGS_SECRET_MAX + 1], struct det_error *reterr);

/* Returns the record of a stage's output, or of its input; it must have one. */
const struct det_record *stage_out(const struct det_stage *stage);
const struct det_record *stage_in(const struct det_stage *stage);
/* Fails the stage with an error: for open(). */
int settings_refuse(struct det_stage_call *call, const struct det_error *error);

#endif
