/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_internal.h - what the files of store_url.h share. */
#ifndef DET_INSPECT_STORE_INTERNAL_H
#define DET_INSPECT_STORE_INTERNAL_H

#include "inspect/store_url.h"

/* A path of the detent.yaml, seen from here; NULL: no memory. */
const char *store_in_project(struct cli_store *store, const char *path);
/* The URL for eyes, without a password; NULL: no memory. */
const char *store_url_shown(struct det_arena *arena, const char *url);
/* The URL of a detent.yaml: a file is seen from its folder. NULL: no memory. */
const char *store_url_in(struct det_arena *arena, const char *folder, const char *url);
/* Collects what the project knows, and reads the file that was given. Complains, and returns an
 * exit code. */
DET_MUST_CHECK int store_list_files(struct cli_store *store);
/* The same for what the store knows. */
DET_MUST_CHECK int store_list_machines(struct cli_store *store);

#endif
