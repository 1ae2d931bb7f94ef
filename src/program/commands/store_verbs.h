/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_verbs.h - the verbs of `detent store`. All print their errors and return an exit code. */
#ifndef DET_COMMANDS_STORE_VERBS_H
#define DET_COMMANDS_STORE_VERBS_H

#include "inspect/store_url.h"

/* Reports that the store does not support the command `what` ("backup"), and the `remedy`. */
int store_unsupported(struct cli_store *store, const char *what, const char *remedy);

/* `path` is the operand; NULL: none. */
DET_MUST_CHECK int store_info(struct cli_store *store, const char *path);
DET_MUST_CHECK int store_verify(struct cli_store *store, const char *path);
/* `id` NULL: all damaged instances. For a store that is open for reading, only reports what could
 * be repaired. */
DET_MUST_CHECK int store_repair(struct cli_store *store, const char *id);
DET_MUST_CHECK int store_compact(struct cli_store *store, const char *path);
DET_MUST_CHECK int store_backup(struct cli_store *store, const char *path);

#endif
