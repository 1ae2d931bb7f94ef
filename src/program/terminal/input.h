/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.h - reads and writes the files of commands, and reads specs. */
#ifndef DET_TERMINAL_INPUT_H
#define DET_TERMINAL_INPUT_H

#include <detent/tool/spec.h>

#include "terminal/terminal.h"

/* Name of "-" in messages. */
#define CLI_STDIN_NAME "<stdin>"
/* File suffixes. */
#define CLI_SPEC_SUFFIX    ".fsm"
#define CLI_CASES_SUFFIX   ".test.yaml"
#define CLI_RECORDS_SUFFIX ".rec"
#define CLI_WORKER_SUFFIX  ".worker"
#define CLI_FLOW_SUFFIX    ".flow"

/* A text allocated by the run's allocator, followed by a NUL. */
struct cli_text {
    char *data;
    size_t size;
};

/* Loads a whole regular file or standard input ("-"), at most `limit` bytes; refuses other files
 * such as named pipes, which might block for ever. Returns 0, or a negative error with a sentence
 * in `reterr` that names the file. */
DET_MUST_CHECK int cli_text_load(
    struct cli *cli, const char *path, size_t limit, struct cli_text *ret,
    struct det_error *reterr);
/* Like cli_text_load(), but reports the error and returns an exit code. */
DET_MUST_CHECK int cli_text_read(
    struct cli *cli, const char *path, size_t limit, struct cli_text *ret);
void cli_text_free(struct cli *cli, struct cli_text *text);
/* Writes a whole file: keeps its mode, follows a link. Complains on failure; returns 0 or an exit
 * code. */
DET_MUST_CHECK int cli_file_write(struct cli *cli, const char *path, const char *data, size_t size);
/* Writes to `path`, or to the output if it is NULL or "-". */
DET_MUST_CHECK int cli_write_to(struct cli *cli, const char *path, const char *data, size_t size);

/* Loads the text of a spec. Complains about unreadable files and about test files. Returns 0 or an
 * exit code. */
DET_MUST_CHECK int cli_spec_text_load(struct cli *cli, const char *path, struct cli_text *ret);

/* File access of specs for their includes. */
struct det_spec_files cli_spec_files(struct cli *cli);

/* A spec with its text. `spec` is NULL if the file could not be read, which was reported. Returns 0
 * or an exit code; a broken definition is 0: call det_spec_machine(). */
struct cli_spec {
    struct det_spec *spec;
    bool is_unhandled_wanted; /* set before: report pairs that are not handled */
};
DET_MUST_CHECK int cli_spec_load(struct cli *cli, const char *path, struct cli_spec *spec);
/* Loads a spec and reports all problems of a broken definition. Returns 0, or an exit code and
 * NULL. */
DET_MUST_CHECK int cli_machine_load(struct cli *cli, const char *path, struct det_spec **ret);

bool cli_is_folder(const char *path);
bool cli_is_there(const char *path);
bool cli_has_suffix(const char *path, const char *suffix);
/* Returns true if both paths lead to the same existing file. */
bool cli_is_same_file(const char *a, const char *b);

#endif
