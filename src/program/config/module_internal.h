/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module_internal.h - what the files of module.h share. */
#ifndef DET_CONFIG_MODULE_INTERNAL_H
#define DET_CONFIG_MODULE_INTERNAL_H

#include <sys/stat.h>

#include "config/module.h"

/* What errno says, about the path. */
int module_fail(struct det_error *reterr, const char *path);
/* A descriptor of the file, once its rights are right. */
DET_MUST_CHECK int module_open_file(
    const char *path, int *ret, struct stat *ret_status, struct det_error *reterr);
/* The descriptor of the copy that the kinds are from. */
int module_copy_of(const struct modules *modules, const struct det_worker_kind *const *kinds);
void module_close_isolated(struct modules *modules);

#endif
