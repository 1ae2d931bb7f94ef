/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_file.h - loads a detent.yaml, checks it, and reports its problems. */
#ifndef DET_CONFIG_PROJECT_FILE_H
#define DET_CONFIG_PROJECT_FILE_H

#include "config/config.h"
#include "terminal/input.h"

struct config_file {
    const char *path; /* borrowed */
    struct cli_text text;
    struct det_arena arena;
    const struct det_datum *root; /* all of it as it is written; NULL: it is not there */
    struct config config;
    size_t problem_count; /* number of reported problems */
};

/* Returns true if `detent check` treats the file as a detent.yaml: by its name or ending. */
bool config_file_is_one(const char *path);
/* Returns CLI_OK, or an exit code after reporting the problems. Close it even after an error.
 * Without 'machines', the specs of its folder are its machines. */
DET_MUST_CHECK int config_file_open(struct cli *cli, const char *path, struct config_file *file);
/* Opens it with or without checks of this machine; a missing file in a folder with specs counts as
 * one that lists nothing. */
DET_MUST_CHECK int config_project_open(
    struct cli *cli, const char *path, bool is_checked, struct config_file *file);
void config_file_close(struct cli *cli, struct config_file *file);

/* default_machines.c */

/* Returns true if a file of this folder ends in .fsm. */
bool config_folder_has_specs(const char *folder);
/* Adds all of them to a configuration without machines. CLI_OK, or an exit code after a report.
 * Broken specs are skipped unless it is checked; a spec that cannot be served is skipped with a
 * message if there is something else to run. */
DET_MUST_CHECK int config_folder_add(
    struct cli *cli, const char *folder, bool is_checked, struct config_file *file);

#endif
