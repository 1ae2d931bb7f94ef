/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_reader.h - shared by the readers of YAML files: converts a tree of nodes to data, and
 * collects its problems in a list. Other parts are read after a wrong one. */
#ifndef DET_CONFIG_FILE_READER_H
#define DET_CONFIG_FILE_READER_H

#include "base/arena.h"
#include "yaml/datum.h"

/* Limit of reported problems of a file. */
#define CLI_PROBLEMS_MAX 20

/* Problems of a file, in order of reading. */
struct cli_problems {
    struct det_yaml_error items[CLI_PROBLEMS_MAX];
    size_t count;
    bool is_cut; /* there are more */
};

struct det_machine;

/* A name of a key in other tools. */
struct reader_synonym {
    const char *word, *key;
};

/* Example of a mapping, by its name in messages. */
struct reader_example {
    const char *what, *text;
};

struct cli_reader {
    struct det_arena *arena;
    const struct det_machine *machine; /* of a test file; NULL elsewhere */
    struct cli_problems *problems;
    const struct reader_synonym *synonyms; /* ends with a NULL word; NULL: none */
    const struct reader_example *examples; /* ends with a NULL what; NULL: none */
};

/* Combines the results of two parts: DET_ERR_NO_MEMORY outranks DET_ERR_MALFORMED. */
int reader_both(int first, int second);
/* Returns true if reading can continue after this result: there is memory, and room for
 * problems. */
bool reader_can_continue(const struct cli_reader *reader, int result);
/* Visits the entries of a mapping or sequence while reading can continue; none if the result so far
 * is an error. */
#define READER_EACH(item, node, reader, result)                              \
    for (const struct det_datum *item = (result) < 0 ? NULL : (node)->first; \
         item && reader_can_continue(reader, result); item = item->next)
/* Adds a problem at the node; returns DET_ERR_MALFORMED. */
int reader_fail(struct cli_reader *reader, const struct det_datum *node, const char *format, ...)
    DET_PRINTF(3, 4);
/* Adds a problem at the key of the node. */
int reader_fail_key(
    struct cli_reader *reader, const struct det_datum *node, const char *format, ...)
    DET_PRINTF(3, 4);
/* At the node, followed by "; did you mean '...'?" if one of the names is similar. */
int reader_fail_near(
    struct cli_reader *reader, const struct det_datum *node, const char *word,
    const char *const *names, size_t count, const char *format, ...) DET_PRINTF(6, 7);
int reader_no_memory(struct cli_reader *reader, const struct det_datum *node);
/* Returns an array of the `count` items and zeroed ones for the entries of the node; NULL, with a
 * problem: no memory. */
void *reader_grow(
    struct cli_reader *reader, const struct det_datum *node, const void *items, size_t count,
    size_t size);
/* Returns an array for the entries of a mapping, called `what` in messages; NULL: `ret` is an
 * error. */
void *reader_array(
    struct cli_reader *reader, const struct det_datum *node, const char *what, size_t size,
    int *ret);

/* The values of the keys of a mapping by their index in `keys`, NULL where not given, in any case.
 * A key that is not listed is an error. `what` is for the message: "a step". */
DET_MUST_CHECK int reader_keys(
    struct cli_reader *reader, const struct det_datum *mapping, const char *const *keys,
    size_t count, const struct det_datum **ret, const char *what);
DET_MUST_CHECK int reader_want(
    struct cli_reader *reader, const struct det_datum *node, enum det_datum_kind kind,
    const char *what);
DET_MUST_CHECK int reader_bool(struct cli_reader *reader, const struct det_datum *node, bool *ret);
DET_MUST_CHECK int reader_number(
    struct cli_reader *reader, const struct det_datum *node, uint64_t *ret);
DET_MUST_CHECK int reader_span(
    struct cli_reader *reader, const struct det_datum *node, det_time *ret);
/* Accepts a word for `value`, too. */
DET_MUST_CHECK int reader_span_or(
    struct cli_reader *reader, const struct det_datum *node, const char *word, det_time value,
    det_time *ret);

#endif
