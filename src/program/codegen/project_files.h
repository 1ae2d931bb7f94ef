/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_files.h - the files that `detent new` writes. */
#ifndef DET_CODEGEN_PROJECT_FILES_H
#define DET_CODEGEN_PROJECT_FILES_H

#include <detent/base.h>

enum cli_new_kind {
    CLI_NEW_ALWAYS,
    CLI_NEW_PLAIN, /* only without a C program */
    CLI_NEW_C,     /* only with one */
};

/* @n@ is the name, @N@ the name in capitals, @_@ as many spaces. */
struct cli_new_file {
    const char *path;
    const char *text;
    enum cli_new_kind kind;
};

/* The machines to start from, and a flow; of each the spec first, and a NULL path at the end. */
extern const struct cli_new_file cli_new_job[], cli_new_order[], cli_new_flow[];

#endif
