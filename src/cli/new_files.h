/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* new_files.h - the files that `detent new` writes. */
#ifndef DET_CLI_NEW_FILES_H
#define DET_CLI_NEW_FILES_H

#include <detent/base.h>

/* @n@ stands for the name, @N@ for the name in capitals. */
struct cli_new_file {
    const char *path;
    const char *text;
    bool is_c; /* only for a C program */
};

/* The spec first; a NULL path at the end. */
const struct cli_new_file *cli_new_files(void);

#endif
