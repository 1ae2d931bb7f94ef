/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_arguments.h - reads the arguments of a row or an extra in order.
 *
 * A wrong argument is reported once and sets `failed`; later results are NULL or 0. So a row reads
 * all arguments and tests once. */
#ifndef DET_MACHINE_PARSE_ARGUMENTS_H
#define DET_MACHINE_PARSE_ARGUMENTS_H

#include "machine/parse.h"

struct det_take {
    struct det_spec *spec;
    const struct det_node *call;
    const struct det_node *next; /* NULL: none is left */
    unsigned index;              /* of `next`, from 1 */
    bool failed;
};

/* Complains when the number of arguments does not suit the kind. */
struct det_take det_take_start(
    struct det_spec *spec, const struct det_node *call, const struct det_row_kind *kind);
/* `what` completes "argument 2 of ON is ...". */
void det_take_fail(struct det_take *take, const struct det_node *node, const char *what);
const char *det_take_name(struct det_take *take, const char *what);
/* NULL without a complaint when no argument is left. */
const char *det_take_name_if_any(struct det_take *take, const char *what);
/* The node of a name, for those who look it up. */
const struct det_node *det_take_node(struct det_take *take, const char *what);
/* A name or ANY(...). */
const char *const *det_take_names(struct det_take *take, const char *what);
/* All that is left; NULL when nothing is. */
const char *const *det_take_rest(struct det_take *take, const char *what);
const char *det_take_string(struct det_take *take, const char *what);
/* From 1 to `most`. */
uint32_t det_take_number(struct det_take *take, uint32_t most, const char *what);
/* The index of the word, which is one of `count`; -1 after a failure. */
int det_take_word(struct det_take *take, const char *const *words, size_t count, const char *what);
/* A wrong one is complained about, and is a second. */
det_time det_take_duration(struct det_take *take);
/* DURATION, EVENT[, fill]. */
struct det_timeout_row det_take_timeout(struct det_take *take);

#endif
