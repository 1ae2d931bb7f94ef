/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_verbs.h - what `detent store` can do with a store, a verb each. All of them complain, and
 * return an exit code. */
#ifndef DET_COMMANDS_STORE_VERBS_H
#define DET_COMMANDS_STORE_VERBS_H

#include "inspect/store_url.h"

/* Complains that the store cannot `what` ("be copied") by itself, and what can. */
int store_unsupported(struct cli_store *store, const char *what, const char *remedy);

/* `path` is the operand; NULL: none. */
DET_MUST_CHECK int store_info(struct cli_store *store, const char *path);
DET_MUST_CHECK int store_verify(struct cli_store *store, const char *path);
/* `id` NULL: all that are damaged. A store that is open for reading only is told what could be. */
DET_MUST_CHECK int store_repair(struct cli_store *store, const char *id);
DET_MUST_CHECK int store_compact(struct cli_store *store, const char *path);
DET_MUST_CHECK int store_backup(struct cli_store *store, const char *path);

#endif
