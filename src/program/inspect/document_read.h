/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_read.h - documents of workers and their deltas as JSON that may be shown: what somebody
 * put by hand may have secrets in its config and its variables, and no record says which of it. All
 * other documents are written by records, which know. */
#ifndef DET_INSPECT_DOCUMENT_READ_H
#define DET_INSPECT_DOCUMENT_READ_H

#include <jansson.h>

#include <detent/tool/documents.h>

#include "base/text.h"

/* What stands in place of what is not shown. */
#define DOCUMENT_REDACTED "{redacted}"

/* Whether this member of a spec is not to be shown. */
bool cli_document_is_secret(struct det_view name);
/* The object, without secrets unless `is_revealed`. NULL: it is no JSON that can be shown by
 * members, a number may be too large for that; then `*ret_may_show` says whether its text may be
 * shown as it is. */
json_t *cli_document_read(
    const struct det_document *document, bool is_revealed, bool *ret_may_show);
json_t *cli_delta_read(const struct det_delta *delta, bool is_revealed, bool *ret_may_show);

#endif
