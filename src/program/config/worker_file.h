/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_file.h - a .worker file with the C sources beside it, for commands that read both. */
#ifndef DET_CONFIG_WORKER_FILE_H
#define DET_CONFIG_WORKER_FILE_H

#include "terminal/input.h"
#include "worker/arch.h"

#define CLI_SOURCE_SUFFIX ".c"

struct cli_worker {
    struct cli_text text;
    struct det_worker_spec *spec;
    struct cli_text *texts; /* of the sources */
    struct det_arch_text *sources;
    size_t source_count, source_capacity;
    struct det_arch *arch; /* NULL: the spec is not valid */
};

/* Reads the worker and its sources: the `paths`, up to a NULL, that end in .c, and the file next to
 * it with the same name, if any. Reports unreadable files. Returns 0 or an exit code; a broken
 * worker is 0. Close it even after an error. */
DET_MUST_CHECK int cli_worker_open(
    struct cli *cli, const char *path, const char *const *paths, struct cli_worker *ret);
void cli_worker_close(struct cli *cli, struct cli_worker *worker);

/* Prints the findings in its rows and its sources. Counts them, and returns true if one makes the
 * command fail. */
struct cli_worker_count {
    size_t errors, warnings;
};
bool cli_worker_report(
    struct cli *cli, const char *path, const struct cli_worker *worker, bool is_strict,
    struct cli_worker_count *count);

#endif
