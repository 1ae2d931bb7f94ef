/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_internal.h - shared by the files of store_url.h. */
#ifndef DET_INSPECT_STORE_INTERNAL_H
#define DET_INSPECT_STORE_INTERNAL_H

#include "inspect/store_url.h"

/* Returns a path of detent.yaml relative to the current folder; NULL: no memory. */
const char *store_in_project(struct cli_store *store, const char *path);
/* Returns the URL without its password; NULL: no memory. */
const char *store_url_shown(struct det_arena *arena, const char *url);
/* Returns the URL of detent.yaml: a file is relative to its folder. NULL: no memory. */
const char *store_url_in(struct det_arena *arena, const char *folder, const char *url);
/* Collects the machines of the project, and reads the given file. Complains, and returns an exit
 * code. */
DET_MUST_CHECK int store_list_files(struct cli_store *store);
/* Collects the machines of the store in the same way. */
DET_MUST_CHECK int store_list_machines(struct cli_store *store);

#endif
