/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_file.h - a detent.yaml from the disk, read and checked, its problems reported. */
#ifndef DET_CLI_CONFIG_FILE_H
#define DET_CLI_CONFIG_FILE_H

#include "cli/config.h"
#include "cli/input.h"

struct config_file {
    const char *path; /* borrowed */
    struct cli_text text;
    struct det_arena arena;
    struct config config;
    size_t problem_count; /* that were reported */
};

/* Whether `detent check` takes the file for a detent.yaml: by its name or ending. */
bool config_file_is_one(const char *path);
/* CLI_OK or an exit code, after it was said what is wrong. Close it in either case. */
DET_MUST_CHECK int config_file_open(struct cli *cli, const char *path, struct config_file *file);
/* The same without asking the machine: for those who run nothing of it. */
DET_MUST_CHECK int config_file_read(struct cli *cli, const char *path, struct config_file *file);
void config_file_close(struct cli *cli, struct config_file *file);

#endif
