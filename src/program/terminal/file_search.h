/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_search.h - the files that a command works on: named files, and those in named folders. */
#ifndef DET_TERMINAL_FILE_SEARCH_H
#define DET_TERMINAL_FILE_SEARCH_H

#include "terminal/terminal.h"

/* Paths, allocated by the run's allocator. */
struct cli_names {
    char **items;
    size_t count, capacity;
};

/* Lists the files of the operands, which end with NULL: a file counts as itself, whatever its
 * name, a folder as all files in it and below that end in one of the suffixes, in order of their
 * paths. Skipped below a folder: names that begin with a dot, folders called build or node_modules,
 * and links to folders. Reports what cannot be listed and folders without such a file, and lists
 * the rest. Returns CLI_OK or the first exit code. Free the names even after an error. */
DET_MUST_CHECK int cli_files_list(
    struct cli *cli, const char *const *operands, const char *const *suffixes,
    struct cli_names *ret);
void cli_names_free(struct cli *cli, struct cli_names *names);

/* Returns the name, without the folder, of the file next to `path` with the suffix and the most
 * similar name. `target` has DET_PATH_MAX bytes. False if none is near. */
bool cli_nearest_file(struct cli *cli, const char *path, const char *suffix, char *target);

#endif
