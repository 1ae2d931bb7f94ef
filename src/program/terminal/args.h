/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* args.h - sorts the words after a command into options and operands, by the tables of the command.
 *
 * --name, --name=VALUE, --name VALUE, -n, -nVALUE, -n VALUE; letters without argument may be
 * joined. Options and operands may be in any order; everything after -- is an operand; so is -. A
 * duplicate option with a value is an error. */
#ifndef DET_TERMINAL_ARGS_H
#define DET_TERMINAL_ARGS_H

#include "terminal/command.h"

/* `words` ends with NULL and outlives `ret`. Returns 0, DET_ERR_INVALID with a sentence in
 * `reterr`, or DET_ERR_NO_MEMORY. --help stops the parser: nothing else is checked. */
DET_MUST_CHECK int cli_args_read(
    const struct cli_command *command, const char *const *words,
    const struct det_allocator *allocator, struct cli_args *ret, struct det_error *reterr);
void cli_args_deinit(struct cli_args *args, const struct det_allocator *allocator);
/* Returns true if `word` is one of `choices`, which are separated by spaces. */
bool cli_choice_has(const char *choices, const char *word);
/* Returns "; did you mean 'bash'?" for the nearest of `choices`, or "" if none is near. `target`,
 * which is returned, has CLI_CHOICE_TEXT bytes. */
#define CLI_CHOICE_TEXT 80
const char *cli_choice_hint(const char *choices, const char *word, char *target);
/* Parses an integer from `least` to `most`; otherwise reports an error and returns false. */
bool cli_args_number(
    struct cli *cli, const char *name, const char *text, uint64_t least, uint64_t most,
    uint64_t *ret);
/* Parses a duration from `least` to ten years; otherwise reports an error and returns false. */
bool cli_args_span(
    struct cli *cli, const char *name, const char *text, det_time least, det_time *ret);

#endif
