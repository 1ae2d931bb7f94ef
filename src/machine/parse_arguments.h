/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_arguments.h - reads the arguments of a row or an extra in order.
 *
 * A wrong argument is reported once and sets `failed`; later results are NULL or 0. So a row reads
 * all arguments and tests once. */
#ifndef DET_MACHINE_PARSE_ARGUMENTS_H
#define DET_MACHINE_PARSE_ARGUMENTS_H

#include "base/text.h"
#include "machine/parse.h"

/* The arguments of one call, in reading order. */
struct det_take {
    struct det_spec *spec;
    const struct det_node *call;
    const struct det_node *next; /* NULL: none is left */
    unsigned index;              /* of `next`, from 1 */
    bool failed;
};

/* Starts with the first argument; reports a number of arguments that does not fit the kind. */
struct det_take det_take_start(
    struct det_spec *spec, const struct det_node *call, const struct det_row_kind *kind);
/* Reports the node; `what` completes "argument 2 of ON is ..., not ...". */
void det_take_fail(struct det_take *take, const struct det_node *node, const char *what);
const char *det_take_name(struct det_take *take, const char *what);
/* Returns NULL, without a report, if no argument is left. */
const char *det_take_name_if_any(struct det_take *take, const char *what);
/* Returns the node of a name, for callers that resolve it. */
const struct det_node *det_take_node(struct det_take *take, const char *what);
/* Reads a name or ANY(...). */
const char *const *det_take_names(struct det_take *take, const char *what);
/* Reads all arguments that are left; NULL if there are none. */
const char *const *det_take_rest(struct det_take *take, const char *what);
const char *det_take_string(struct det_take *take, const char *what);
/* Reads a number from 1 to `most`. */
uint32_t det_take_number(struct det_take *take, uint32_t most, const char *what);
/* Returns the index of the word in `words`; -1 after a failure. */
int det_take_word(struct det_take *take, const char *const *words, size_t count, const char *what);
/* Reads a duration; after a report it is one second, so that the row can be checked further. */
det_time det_take_duration(struct det_take *take);
/* Hints at the unit for a text such as 14d; nothing if it is not a duration. */
void det_take_hint_span(struct det_spec *spec, struct det_view text);
/* Reads DURATION, EVENT[, fill]. */
struct det_timeout_row det_take_timeout(struct det_take *take);

#endif
