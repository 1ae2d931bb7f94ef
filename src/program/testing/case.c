/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case.c - reads a test file: its cases and their steps. */
#include <detent/tool/machine.h>

#include "testing/case.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "testing/case_internal.h"

/* The keys of a file, of a case and of a step; the functions come first in the first two. */
enum { FILE_MACHINE = CASE_FUNCTION_COUNT, FILE_CASES, FILE_KEYS };
enum { CASE_NAME = CASE_FUNCTION_COUNT, CASE_START, CASE_START_ERROR, CASE_STEPS, CASE_KEYS };
enum {
    STEP_SEND,
    STEP_SEND_ALL,
    STEP_ADVANCE,
    STEP_ANSWER,
    STEP_LET,
    STEP_STOP,
    STEP_ACTIONS,
    STEP_ID = STEP_ACTIONS,
    STEP_EXPECT,
    STEP_PRODUCE, /* from here on as in CASE_ANSWER_KEYS */
    STEP_WITH,
    STEP_FAIL,
    STEP_DONE,
    STEP_AFTER,
    STEP_KEYS
};

static const char *const file_words[] = { CASE_FUNCTION_KEYS, "machine", "cases" };
static const char *const case_words[] = {
    CASE_FUNCTION_KEYS, "name", "start", "start_error", "steps",
};
static const char *const step_words[] = {
    "send", "send_all", "advance", "answer", "let", "stop", "id", "expect", CASE_ANSWER_KEYS,
};

static const enum case_action actions[STEP_ACTIONS] = {
    [STEP_SEND] = CASE_SEND,     [STEP_SEND_ALL] = CASE_SEND_ALL, [STEP_ADVANCE] = CASE_ADVANCE,
    [STEP_ANSWER] = CASE_ANSWER, [STEP_LET] = CASE_LET,           [STEP_STOP] = CASE_STOP,
};

/* Which keys may accompany an action. */
static const bool goes_with[STEP_ACTIONS][STEP_KEYS] = {
    [STEP_SEND] = { [STEP_ID] = true, [STEP_WITH] = true },
    [STEP_SEND_ALL] = { [STEP_ID] = true },
    [STEP_ANSWER] = { [STEP_PRODUCE] = true,
                      [STEP_WITH] = true,
                      [STEP_FAIL] = true,
                      [STEP_DONE] = true },
};

static int find_action(struct cli_reader *reader, const struct det_datum *const *nodes, int *ret)
{
    *ret = -1;
    for (int i = 0; i < STEP_ACTIONS; i++) {
        if (nodes[i] && *ret >= 0)
            return reader_fail(
                reader, nodes[i], "a step does one thing: '%s' or '%s'", step_words[*ret],
                step_words[i]);
        if (nodes[i])
            *ret = i;
    }
    for (int i = STEP_ACTIONS; i < STEP_KEYS; i++) {
        if (!nodes[i] || i == STEP_EXPECT || (*ret >= 0 && goes_with[*ret][i]))
            continue;
        return *ret < 0 ? reader_fail(
                              reader, nodes[i], "'%s' needs an action in this step", step_words[i])
                        : reader_fail(
                              reader, nodes[i], "'%s' does not go with '%s'", step_words[i],
                              step_words[*ret]);
    }
    return 0;
}

static int take_all(struct cli_reader *reader, const struct det_datum *node, struct case_step *step)
{
    int r = reader_want(reader, node, DET_DATUM_LIST, "'send_all'");

    if (r == 0 && (node->count == 0 || node->count > CASE_LIST_MAX))
        r = reader_fail(reader, node, "'send_all' has 1 to %d events", CASE_LIST_MAX);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, case_take_event(reader, item, NULL, &step->events[step->event_count++]));
    det_assert(step->event_count <= CASE_LIST_MAX);
    return r;
}

static int take_effect(struct cli_reader *reader, const struct det_datum *node, unsigned *ret)
{
    int r = reader_want(reader, node, DET_DATUM_TEXT, "an effect");

    return r < 0 ? r : case_take_name(reader, node, CASE_EFFECT_NAME, node->text, ret);
}

static int take_let(
    struct cli_reader *reader, const struct det_datum *node, const struct case_setting **ret)
{
    static const char *const words[] = { CASE_FUNCTION_KEYS };
    const struct det_datum *nodes[CASE_FUNCTION_COUNT];
    int r;

    r = reader_keys(reader, node, words, CASE_FUNCTION_COUNT, nodes, "'let'");
    return reader_both(r, case_take_settings(reader, nodes, ret));
}

/* `step->action` is set. */
static int take_action(
    struct cli_reader *reader, const struct det_datum *const *nodes, struct case_step *step)
{
    int r;

    det_assert(step->action != CASE_NOTHING && step->event_count == 0);
    switch (step->action) {
    case CASE_SEND:
        step->event_count = 1;
        return case_take_event(reader, step->node, nodes[STEP_WITH], &step->events[0]);
    case CASE_SEND_ALL:
        return take_all(reader, step->node, step);
    case CASE_ADVANCE:
        return reader_span(reader, step->node, &step->span);
    case CASE_ANSWER:
        r = take_effect(reader, step->node, &step->effect);
        return r < 0 ? r
                     : case_take_reply(reader, nodes + STEP_PRODUCE, step->effect, &step->answer);
    case CASE_LET:
        return take_let(reader, step->node, &step->settings);
    case CASE_STOP:
        step->reason = step->node->text;
        return reader_want(reader, step->node, DET_DATUM_TEXT, "the reason of a stop");
    case CASE_NOTHING:
        break;
    }
    return 0;
}

static int take_step(
    struct cli_reader *reader, const struct det_datum *node, struct case_step *step)
{
    const struct det_datum *nodes[STEP_KEYS];
    int action = -1, r;

    step->node = node;
    r = reader_keys(reader, node, step_words, STEP_KEYS, nodes, "a step");
    r = reader_both(r, find_action(reader, nodes, &action));
    if (r == 0 && action >= 0) {
        step->node = nodes[action];
        step->action = actions[action];
        r = take_action(reader, nodes, step);
    }
    if (nodes[STEP_ID]) {
        r = reader_both(r, reader_want(reader, nodes[STEP_ID], DET_DATUM_TEXT, "an event id"));
        step->id = nodes[STEP_ID]->text;
    }
    if (nodes[STEP_EXPECT])
        return reader_both(r, case_take_expect(reader, nodes[STEP_EXPECT], &step->expect));
    return r == 0 && action < 0 ? reader_fail(reader, node, "the step is empty") : r;
}

static int take_steps(
    struct cli_reader *reader, const struct det_datum *node, struct case_case *one)
{
    struct case_step **tail = &one->steps;
    int r;

    r = reader_want(reader, node, DET_DATUM_LIST, "'steps'");
    if (r == 0 && node->first && one->start_error)
        r = reader_fail(reader, node->first, "a case whose start fails has no steps");
    READER_EACH (item, node, reader, r) {
        struct case_step *step = det_arena_alloc(reader->arena, sizeof *step);

        if (!step)
            return reader_no_memory(reader, item);
        r = reader_both(r, take_step(reader, item, step));
        *tail = step;
        tail = &step->next;
        one->step_count++;
    }
    return r;
}

static int take_start(
    struct cli_reader *reader, const struct det_datum *node, struct case_case *one)
{
    const struct case_fields *fields;
    int r;

    r = case_take_fields(reader, det_machine_data(reader->machine), node, &fields);
    if (r == 0)
        one->data = fields->value;
    return r;
}

static int check_name(
    struct cli_reader *reader, const struct case_file *file, const struct det_datum *name)
{
    int r = reader_want(reader, name, DET_DATUM_TEXT, "the name of a case");

    if (r == 0 && !*name->text)
        r = reader_fail(reader, name, "the name of a case is not empty");
    for (const struct case_case *other = file->cases; other && r == 0; other = other->next) {
        if (other->name && strcmp(other->name, name->text) == 0)
            r = reader_fail(reader, name, "there is a case '%s' already", name->text);
    }
    return r;
}

static int take_case(
    struct cli_reader *reader, const struct det_datum *node, const struct case_file *file,
    struct case_case *one)
{
    const struct det_datum *nodes[CASE_KEYS];
    int r;

    one->node = node;
    r = reader_keys(reader, node, case_words, CASE_KEYS, nodes, "a case");
    if (r == 0 && (!nodes[CASE_NAME] || !nodes[CASE_STEPS]))
        r = reader_fail(reader, node, "a case needs '%s'", nodes[CASE_NAME] ? "steps" : "name");
    if (nodes[CASE_NAME]) {
        int named = check_name(reader, file, nodes[CASE_NAME]);

        one->name = named == 0 ? nodes[CASE_NAME]->text : NULL;
        r = reader_both(r, named);
    }
    if (nodes[CASE_START])
        r = reader_both(r, take_start(reader, nodes[CASE_START], one));
    if (nodes[CASE_START_ERROR])
        r = reader_both(r, case_take_error(reader, nodes[CASE_START_ERROR], &one->start_error));
    r = reader_both(r, case_take_settings(reader, nodes, &one->settings));
    if (nodes[CASE_STEPS])
        r = reader_both(r, take_steps(reader, nodes[CASE_STEPS], one));
    one->start_node = nodes[CASE_START_ERROR] ? nodes[CASE_START_ERROR] : nodes[CASE_NAME];
    return r;
}

static int take_cases(
    struct cli_reader *reader, const struct det_datum *node, struct case_file *file)
{
    struct case_case **tail = &file->cases;
    int r;

    r = reader_want(reader, node, DET_DATUM_LIST, "'cases'");
    if (r == 0 && !node->first)
        r = reader_fail(reader, node, "there are no cases");
    READER_EACH (item, node, reader, r) {
        struct case_case *one = det_arena_alloc(reader->arena, sizeof *one);

        if (!one)
            return reader_no_memory(reader, item);
        r = reader_both(r, take_case(reader, item, file, one));
        *tail = one;
        tail = &one->next;
        file->case_count++;
    }
    return r;
}

int case_machine_path(const struct det_datum *root, const char **ret, struct cli_problems *reterr)
{
    struct cli_reader reader = { .problems = reterr };
    const struct det_datum *nodes[FILE_KEYS];
    int r;

    *reterr = (struct cli_problems){ 0 };
    r = reader_keys(&reader, root, file_words, FILE_KEYS, nodes, "a test file");
    if (!nodes[FILE_MACHINE])
        return r < 0 ? r : reader_fail(&reader, root, "a test file needs 'machine'");
    /* Later, with the machine, case_file_read() reports the problems of the other keys. */
    *reterr = (struct cli_problems){ 0 };
    r = reader_want(&reader, nodes[FILE_MACHINE], DET_DATUM_TEXT, "'machine'");
    if (r == 0)
        *ret = nodes[FILE_MACHINE]->text;
    return r;
}

int case_file_read(
    struct det_arena *arena, const struct det_datum *root, const struct det_machine *machine,
    struct case_file *ret, struct cli_problems *reterr)
{
    /* The former name of the payload. */
    static const struct reader_synonym synonyms[] = { { "with", "payload" }, { NULL, NULL } };
    struct cli_reader reader = {
        .arena = arena, .machine = machine, .problems = reterr, .synonyms = synonyms
    };
    const struct det_datum *nodes[FILE_KEYS];
    struct case_file file = { 0 };
    int r;

    *reterr = (struct cli_problems){ 0 };
    r = reader_keys(&reader, root, file_words, FILE_KEYS, nodes, "a test file");
    if (r == 0 && !nodes[FILE_CASES])
        r = reader_fail(&reader, root, "a test file needs 'cases'");
    r = reader_both(r, case_take_settings(&reader, nodes, &file.settings));
    if (nodes[FILE_CASES])
        r = reader_both(r, take_cases(&reader, nodes[FILE_CASES], &file));
    det_assert((r == 0) == (reterr->count == 0) && (r < 0 || file.case_count > 0));
    if (r == 0)
        *ret = file;
    return r;
}
