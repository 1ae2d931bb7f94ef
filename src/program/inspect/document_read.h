/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_read.h - documents of workers and their deltas as JSON without secrets. A manually
 * created document may have secrets in its config and variables, and no record marks them. Other
 * documents are written by records, which do. */
#ifndef DET_INSPECT_DOCUMENT_READ_H
#define DET_INSPECT_DOCUMENT_READ_H

#include <detent/tool/documents.h>

#include "base/text.h"
#include "json/reader.h"
#include "json/writer.h"

/* Replaces a hidden value. */
#define DOCUMENT_REDACTED "{redacted}"

/* Returns true if this member of a spec must be hidden. */
bool cli_document_is_secret(struct det_view name);
/* Returns true if all of it may be shown. */
bool cli_document_may_show(enum det_document_role role, bool is_revealed);
/* Returns the text of a document as an object, or NULL if it is not one. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int cli_document_parse(
    struct det_arena *arena, const char *text, size_t size, const struct det_json_value **ret);
/* Writes the object of a document, without its secrets if it is covered. NULL: {}. */
void cli_document_put(
    struct det_json_writer *json, const char *key, const struct det_json_value *object,
    bool is_covered);
/* Writes a delta likewise: {"added": {...}, "modified": {"name": {"old", "new"}}, "removed":
 * {...}} */
void cli_delta_put(
    struct det_json_writer *json, const char *key, const struct det_json_value *change,
    bool is_covered);

#endif
