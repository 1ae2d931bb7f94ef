/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_parts.h - what the readers of the parts of a test file share. */
#ifndef DET_CLI_CASE_PARTS_H
#define DET_CLI_CASE_PARTS_H

#include "cli/case.h"

struct case_reader {
    struct det_arena *arena;
    const struct det_machine *machine;
    struct case_problems *problems;
};

/* A part that is wrong does not keep its neighbours from being read: the results of both make one.
 */
int case_both(int first, int second);
/* Whether the reading goes on after this result: there is memory, and room for problems. */
bool case_goes_on(const struct case_reader *reader, int result);
/* Says what is wrong at the node; returns DET_ERR_MALFORMED. */
int case_fail(struct case_reader *reader, const struct cli_yaml *node, const char *format, ...)
    DET_PRINTF(3, 4);
/* The same with "; did you mean '...'?" behind it when one of the names is near the word. */
int case_fail_near(
    struct case_reader *reader, const struct cli_yaml *node, const char *word,
    const char *const *names, size_t count, const char *format, ...) DET_PRINTF(6, 7);
int case_no_memory(struct case_reader *reader, const struct cli_yaml *node);

/* The values of the keys of a mapping by their index in `keys`, NULL where not given, in any case.
 * A key that is not listed is an error. `what` is for the message: "a step". */
DET_MUST_CHECK int case_take_keys(
    struct case_reader *reader, const struct cli_yaml *mapping, const char *const *keys,
    size_t count, const struct cli_yaml **ret, const char *what);
DET_MUST_CHECK int case_want(
    struct case_reader *reader, const struct cli_yaml *node, enum cli_yaml_kind kind,
    const char *what);
DET_MUST_CHECK int case_take_bool(
    struct case_reader *reader, const struct cli_yaml *node, bool *ret);
DET_MUST_CHECK int case_take_number(
    struct case_reader *reader, const struct cli_yaml *node, uint64_t *ret);
DET_MUST_CHECK int case_take_span(
    struct case_reader *reader, const struct cli_yaml *node, det_time *ret);
/* The same, or "none": -1. */
DET_MUST_CHECK int case_take_span_or_none(
    struct case_reader *reader, const struct cli_yaml *node, det_time *ret);
/* The code of an error by its name in small letters. */
DET_MUST_CHECK int case_take_error(
    struct case_reader *reader, const struct cli_yaml *node, int *ret);
/* The id of a thing of the machine, with the nearest name in the message. */
enum case_thing {
    CASE_STATE_NAME,
    CASE_EVENT_NAME,
    CASE_EFFECT_NAME,
    CASE_TIMER_NAME,
};
DET_MUST_CHECK int case_take_name(
    struct case_reader *reader, const struct cli_yaml *node, enum case_thing thing,
    const char *name, unsigned *ret);
/* An event with its payload; `with` may be NULL. */
DET_MUST_CHECK int case_take_event(
    struct case_reader *reader, const struct cli_yaml *node, const struct cli_yaml *with,
    const void **ret);

/* case_fields.c: the fields of a record from a mapping. */
DET_MUST_CHECK int case_take_fields(
    struct case_reader *reader, const struct det_record *record, const struct cli_yaml *mapping,
    const struct case_fields **ret);

/* case_limits.c: what the field takes that an error of the reader of records is about, as in
 * "; 0 to 255"; "" when there is nothing to tell. `text` is that of the error; `target`, which is
 * returned, has CASE_LIMIT_TEXT bytes. */
#define CASE_LIMIT_TEXT 200
const char *case_field_limit(const struct det_record *record, const char *text, char *target);

/* case_answers.c: the functions of one mapping (of a file, a case or a let) are put in front of
 * *settings; `nodes` has the values of guards, hooks, updates, fills and effects. */
#define CASE_FUNCTION_KEYS "guards", "hooks", "updates", "fills", "effects"
DET_MUST_CHECK int case_take_settings(
    struct case_reader *reader, const struct cli_yaml *const *nodes,
    const struct case_setting **settings);
/* The keys produce, with, fail, done and after of an answer, by this order. */
#define CASE_ANSWER_KEYS "produce", "with", "fail", "done", "after"
DET_MUST_CHECK int case_take_reply(
    struct case_reader *reader, const struct cli_yaml *const *nodes, unsigned effect,
    struct case_answer *ret);

/* case_expect.c */
DET_MUST_CHECK int case_take_expect(
    struct case_reader *reader, const struct cli_yaml *node, const struct case_expect **ret);

#endif
