/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_internal.h - shared by the readers of a test file. */
#ifndef DET_TESTING_CASE_INTERNAL_H
#define DET_TESTING_CASE_INTERNAL_H

#include "config/file_reader.h"
#include "testing/case.h"

/* The code of an error by its name in small letters. */
DET_MUST_CHECK int case_take_error(
    struct cli_reader *reader, const struct det_datum *node, int *ret);
/* The id of a thing of the machine, with the nearest name in the message. */
enum case_thing {
    CASE_STATE_NAME,
    CASE_EVENT_NAME,
    CASE_EFFECT_NAME,
    CASE_TIMER_NAME,
};
DET_MUST_CHECK int case_take_name(
    struct cli_reader *reader, const struct det_datum *node, enum case_thing thing,
    const char *name, unsigned *ret);
/* An event with its payload; `with` may be NULL. */
DET_MUST_CHECK int case_take_event(
    struct cli_reader *reader, const struct det_datum *node, const struct det_datum *with,
    const void **ret);

/* case_fields.c: the fields of a record from a mapping. */
DET_MUST_CHECK int case_take_fields(
    struct cli_reader *reader, const struct det_record *record, const struct det_datum *mapping,
    const struct case_fields **ret);

/* case_limits.c: the limits of the field that an error of the record reader names, such as "; 0 to
 * 255"; "" if there are none. `text` is that of the error; `target`, which is returned, has
 * CASE_LIMIT_TEXT bytes. */
#define CASE_LIMIT_TEXT 200
const char *case_field_limit(const struct det_record *record, const char *text, char *target);

/* case_answers.c: the functions of one mapping (of a file, a case or a let) are put in front of
 * *settings; `nodes` has the values of guards, hooks, updates, fills and effects. */
#define CASE_FUNCTION_KEYS "guards", "hooks", "updates", "fills", "effects"
DET_MUST_CHECK int case_take_settings(
    struct cli_reader *reader, const struct det_datum *const *nodes,
    const struct case_setting **settings);
/* The keys produce, with, fail, done and after of an answer, by this order. */
#define CASE_ANSWER_KEYS "produce", "payload", "fail", "done", "after"
DET_MUST_CHECK int case_take_reply(
    struct cli_reader *reader, const struct det_datum *const *nodes, unsigned effect,
    struct case_answer *ret);

/* case_expect.c */
DET_MUST_CHECK int case_take_expect(
    struct cli_reader *reader, const struct det_datum *node, const struct case_expect **ret);

#endif
