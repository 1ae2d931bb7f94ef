/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.h - files that commands read and write, and specs made of them. */
#ifndef DET_TERMINAL_INPUT_H
#define DET_TERMINAL_INPUT_H

#include <detent/tool/spec.h>

#include "terminal/terminal.h"

/* How "-" is called in messages. */
#define CLI_STDIN_NAME "<stdin>"
/* How files of a kind end. */
#define CLI_SPEC_SUFFIX    ".fsm"
#define CLI_CASES_SUFFIX   ".test.yaml"
#define CLI_RECORDS_SUFFIX ".rec"
#define CLI_WORKER_SUFFIX  ".worker"

/* A text in memory of the run's allocator; the byte behind it is 0. */
struct cli_text {
    char *data;
    size_t size;
};

/* A whole regular file or ("-") standard input, at most `limit` bytes; other files, such as named
 * pipes, might keep us waiting for ever and are refused. 0, or a negative error with a
 * sentence in `reterr` that names the file. */
DET_MUST_CHECK int cli_text_load(
    struct cli *cli, const char *path, size_t limit, struct cli_text *ret,
    struct det_error *reterr);
void cli_text_free(struct cli *cli, struct cli_text *text);
/* The exit code for an error of loading or writing. */
int cli_exit_of(int error);
/* Exit code of an error that a request to a running detent has returned. */
int cli_exit_of_request(int error);
/* Writes a whole file: keeps its mode, follows a link. Complains on failure; 0 or an exit code. */
DET_MUST_CHECK int cli_file_write(struct cli *cli, const char *path, const char *data, size_t size);
/* To `path`, or to the output when it is NULL or "-". */
DET_MUST_CHECK int cli_write_to(struct cli *cli, const char *path, const char *data, size_t size);

/* The text of a spec. What cannot be read, and test cases, are complained about. 0 or an exit code.
 */
DET_MUST_CHECK int cli_spec_text_load(struct cli *cli, const char *path, struct cli_text *ret);

/* How specs read the files they include. */
struct det_spec_files cli_spec_files(struct cli *cli);

/* A spec with its text. `spec` is NULL when the file could not be read, which was complained about.
 * Returns 0 or an exit code; a broken definition is 0: ask det_spec_machine(). */
struct cli_spec {
    struct det_spec *spec;
    bool is_unhandled_wanted; /* set before: report pairs that are not handled */
};
DET_MUST_CHECK int cli_spec_load(struct cli *cli, const char *path, struct cli_spec *spec);
/* Loads a spec and complains in full when the definition is broken. 0, or an exit code and NULL. */
DET_MUST_CHECK int cli_machine_load(struct cli *cli, const char *path, struct det_spec **ret);

bool cli_is_folder(const char *path);
bool cli_is_there(const char *path);
bool cli_has_suffix(const char *path, const char *suffix);
/* Whether both paths lead to one file that is there. */
bool cli_is_same_file(const char *a, const char *b);

#endif
