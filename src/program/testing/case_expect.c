/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_expect.c - reads the expectations of a step. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "store/row.h"
#include "testing/case_internal.h"
#include "testing/trace_file.h"

static const char *const keys[] = {
#define X(name, key) [CASE_EXPECT_##name] = #key,
    CASE_EXPECTATIONS(X)
#undef X
};

const char *case_expectation_key(enum case_expectation expectation)
{
    det_assert(expectation < CASE_EXPECT_COUNT);
    return keys[expectation];
}

static int take_text(struct cli_reader *reader, const struct det_datum *node, const char **ret)
{
    int r = reader_want(reader, node, DET_DATUM_TEXT, "this text");

    *ret = node->text;
    return r;
}

static int take_state(struct cli_reader *reader, const struct det_datum *node, unsigned *ret)
{
    int r = reader_want(reader, node, DET_DATUM_TEXT, "a state");

    return r < 0 ? r : case_take_name(reader, node, CASE_STATE_NAME, node->text, ret);
}

static int take_outcome(struct cli_reader *reader, const struct det_datum *node, int *ret)
{
    int r = reader_want(reader, node, DET_DATUM_TEXT, "an outcome");

    if (r < 0)
        return r;
    *ret = det_outcome_find(node->text);
    if (*ret > DET_OUTCOME_UNHANDLED)
        return 0;
    return reader_fail(
        reader, node, "an outcome is goto, stay, stop, ignored, deferred or dead_letter");
}

/* The action is a guard or a hook: a name that is neither could never be met. */
static int take_action(struct cli_reader *reader, const struct det_datum *node, const char **ret)
{
    static const enum case_function kinds[] = { CASE_GUARD, CASE_HOOK };
    int r = take_text(reader, node, ret);
    const char *names[2 * CASE_LIST_MAX];
    size_t count = 0;

    for (size_t i = 0; i < 2 && r == 0; i++) {
        const char *name;

        if (case_function_find(reader->machine, kinds[i], *ret) >= 0)
            return 0;
        for (size_t k = 0;
             k < CASE_LIST_MAX && (name = case_function_name(reader->machine, kinds[i], k)); k++)
            names[count++] = name;
    }
    return r < 0 ? r
                 : reader_fail_near(
                       reader, node, *ret, names, count, "%s has no guard or hook '%s'",
                       reader->machine->name, *ret);
}

/* A sequence of names, or for timers a mapping of names to times. */
static int take_ids(
    struct cli_reader *reader, const struct det_datum *node, enum case_thing thing,
    struct case_ids *ret)
{
    const bool is_mapping = thing == CASE_TIMER_NAME && node->kind == DET_DATUM_MAP;
    int r = is_mapping ? 0 : reader_want(reader, node, DET_DATUM_LIST, "this list of names");

    if (r == 0 && node->count > CASE_LIST_MAX)
        r = reader_fail(reader, node, "a list has at most %d names", CASE_LIST_MAX);
    READER_EACH (item, node, reader, r) {
        int one = is_mapping ? 0 : reader_want(reader, item, DET_DATUM_TEXT, "a name");
        struct det_datum at = *item;
        unsigned id = 0;

        if (is_mapping) {
            at.line = item->key_line;
            at.column = item->key_column;
        }
        if (one == 0)
            one = case_take_name(reader, &at, thing, is_mapping ? item->key : item->text, &id);
        det_assert(ret->count < CASE_LIST_MAX);
        ret->items[ret->count] = (uint16_t)id;
        ret->spans[ret->count] = -1;
        if (is_mapping)
            one = reader_both(one, reader_span(reader, item, &ret->spans[ret->count]));
        ret->count++;
        r = reader_both(r, one);
    }
    return r;
}

static int take_one(
    struct cli_reader *reader, enum case_expectation key, const struct det_datum *node,
    struct case_expect *expect)
{
    switch (key) {
    case CASE_EXPECT_ERROR:
        return case_take_error(reader, node, &expect->error);
    case CASE_EXPECT_ACTION:
        return take_action(reader, node, &expect->action);
    case CASE_EXPECT_OUTCOME:
        return take_outcome(reader, node, &expect->outcome);
    case CASE_EXPECT_DUPLICATE:
        return reader_bool(reader, node, &expect->is_duplicate);
    case CASE_EXPECT_STATE:
        return take_state(reader, node, &expect->state);
    case CASE_EXPECT_STOPPED:
        return reader_bool(reader, node, &expect->is_stopped);
    case CASE_EXPECT_REASON:
        return take_text(reader, node, &expect->reason);
    case CASE_EXPECT_SEQUENCE:
        return reader_number(reader, node, &expect->sequence);
    case CASE_EXPECT_HISTORY:
        return take_ids(reader, node, CASE_STATE_NAME, &expect->history);
    case CASE_EXPECT_DATA:
        return case_take_fields(reader, det_machine_data(reader->machine), node, &expect->data);
    case CASE_EXPECT_TIMEOUT:
        return reader_span_or(reader, node, "none", -1, &expect->timeout);
    case CASE_EXPECT_TIMERS:
        return take_ids(reader, node, CASE_TIMER_NAME, &expect->timers);
    case CASE_EXPECT_EFFECTS:
        return take_ids(reader, node, CASE_EFFECT_NAME, &expect->effects);
    case CASE_EXPECT_DEAD:
        return take_ids(reader, node, CASE_EFFECT_NAME, &expect->dead);
    case CASE_EXPECT_DEFERRED:
        return reader_number(reader, node, &expect->deferred);
    case CASE_EXPECT_COUNT:
        break;
    }
    return 0;
}

int case_take_expect(
    struct cli_reader *reader, const struct det_datum *node, const struct case_expect **ret)
{
    struct case_expect *expect = det_arena_alloc(reader->arena, sizeof *expect);
    int r;

    if (!expect)
        return reader_no_memory(reader, node);
    expect->node = node;
    r = reader_keys(reader, node, keys, CASE_EXPECT_COUNT, expect->nodes, "an expectation");
    for (unsigned i = 0; i < CASE_EXPECT_COUNT && reader_can_continue(reader, r); i++) {
        if (expect->nodes[i])
            r = reader_both(
                r, take_one(reader, (enum case_expectation)i, expect->nodes[i], expect));
    }
    *ret = expect;
    return r;
}
