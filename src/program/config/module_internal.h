/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module_internal.h - shared by the files of module.h. */
#ifndef DET_CONFIG_MODULE_INTERNAL_H
#define DET_CONFIG_MODULE_INTERNAL_H

#include <sys/stat.h>

#include "config/module.h"

/* Fills an error from errno, about the path. */
int module_fail(struct det_error *reterr, const char *path);
/* Returns a descriptor of the file after checking its owner and mode. */
DET_MUST_CHECK int module_open_file(
    const char *path, int *ret, struct stat *ret_status, struct det_error *reterr);
/* Returns the descriptor of the copy that the kinds belong to. */
int module_copy_of(const struct modules *modules, const struct det_worker_kind *const *kinds);
void module_close_isolated(struct modules *modules);

#endif
