/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* args.h - the words behind a command, sorted into options and operands by its tables.
 *
 * --name, --name=VALUE, --name VALUE, -n, -nVALUE, -n VALUE; letters without argument may be
 * joined. Options and operands may stand in any order; everything behind -- is an operand; so is -.
 * An option that takes a value and is given twice is an error, since one of the two was not meant.
 */
#ifndef DET_TERMINAL_ARGS_H
#define DET_TERMINAL_ARGS_H

#include "terminal/command.h"

/* `words` ends with NULL and outlives `ret`. 0, or DET_ERR_INVALID with a sentence in `reterr`, or
 * DET_ERR_NO_MEMORY. --help stops the reading: nothing else is judged then. */
DET_MUST_CHECK int cli_args_read(
    const struct cli_command *command, const char *const *words,
    const struct det_allocator *allocator, struct cli_args *ret, struct det_error *reterr);
void cli_args_deinit(struct cli_args *args, const struct det_allocator *allocator);
/* Whether `word` is one of the words in `choices`, which are separated by spaces. */
bool cli_choice_has(const char *choices, const char *word);
/* The word of `choices` that was probably meant: "; did you mean 'bash'?", or "" when none is near.
 * `target`, which is returned, has CLI_CHOICE_TEXT bytes. */
#define CLI_CHOICE_TEXT 80
const char *cli_choice_hint(const char *choices, const char *word, char *target);
/* A whole number from `least` to `most`; complains and returns false otherwise. */
bool cli_args_number(
    struct cli *cli, const char *name, const char *text, uint64_t least, uint64_t most,
    uint64_t *ret);
/* A time from `least` to ten years; complains and returns false otherwise. */
bool cli_args_span(
    struct cli *cli, const char *name, const char *text, det_time least, det_time *ret);

#endif
