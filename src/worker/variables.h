/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* variables.h - the variables of a template: the user's at the top, and beside them `global`,
 * `internal` and `location_path`. Internal ones are made for each rendering: they are never stored,
 * written or hashed. */
#ifndef DET_WORKER_VARIABLES_H
#define DET_WORKER_VARIABLES_H

#include "yaml/datum.h"

/* The worker whose config is rendered. */
struct det_internals {
    const char *id;
    const char *parent_id; /* NULL: the root, and {{ .internal.parent_id }} is "" */
    det_time created_at;   /* wall */
};

/* Reads a map of variables, NULL for none: the text may be "" or NULL. Reserved names are refused.
 * `what` is for messages: "variables". DET_ERR_MALFORMED, DET_ERR_INVALID, DET_ERR_LIMIT,
 * DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_variables_read(
    struct det_arena *arena, const char *what, const char *yaml, struct det_datum **ret,
    struct det_error *reterr);
/* Like det_variables_read(), for globals, which have no reserved names. */
DET_MUST_CHECK int det_globals_read(
    struct det_arena *arena, const char *yaml, struct det_datum **ret, struct det_error *reterr);
/* Copies a parsed tree into the arena. */
DET_MUST_CHECK int det_globals_copy(
    struct det_arena *arena, const struct det_datum *globals, struct det_datum **ret,
    struct det_error *reterr);
/* Checks that data can be variables: a map without reserved names, null or NULL. */
DET_MUST_CHECK int det_variables_check(
    const char *what, const struct det_datum *variables, struct det_error *reterr);
/* The root of a rendering; borrows from `user` and `globals`, either of which may be NULL. NULL: no
 * memory. */
const struct det_datum *det_variables_root(
    struct det_arena *arena, const struct det_datum *user, const struct det_datum *globals,
    const char *location_path, const struct det_internals *internals);

#endif
