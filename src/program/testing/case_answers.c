/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_answers.c - answers of functions: guards, hooks, updates, fills, effects. */
#include <detent/tool/machine.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "testing/case_internal.h"
#include "testing/transition_index.h"

/* Result of a hook or an effect that just fails. */
#define PLAIN_FAILURE DET_ERR_CANCELLED

const char *case_function_name(
    const struct det_machine *machine, enum case_function function, size_t index)
{
    switch (function) {
    case CASE_GUARD: {
        const struct det_guard_def *def = det_machine_guard_at(machine, index);
        return def ? def->name : NULL;
    }
    case CASE_HOOK: {
        const struct det_hook_def *def = det_machine_hook_at(machine, index);
        return def ? def->name : NULL;
    }
    case CASE_UPDATE: {
        const struct det_update_def *def = det_machine_update_at(machine, index);
        return def ? def->name : NULL;
    }
    case CASE_FILL: {
        const struct det_fill_def *def = det_machine_fill_at(machine, index);
        return def ? def->name : NULL;
    }
    case CASE_EFFECT:
        return index < machine->effect_count ? machine->effects[index].name : NULL;
    case CASE_FUNCTION_COUNT:
        break;
    }
    return NULL;
}

int case_function_find(
    const struct det_machine *machine, enum case_function function, const char *name)
{
    const char *known;

    for (size_t i = 0; (known = case_function_name(machine, function, i)); i++) {
        if (strcmp(known, name) == 0)
            return (int)i;
    }
    return -1;
}

static int unknown_function(
    struct cli_reader *reader, const struct det_datum *node, enum case_function function)
{
    static const char *const kinds[] = { "guard", "hook", "update", "fill", "effect" };
    struct det_datum at = { .line = node->key_line, .column = node->key_column };
    const char *near[CASE_LIST_MAX];
    size_t count = 0;

    while (count < CASE_LIST_MAX &&
           (near[count] = case_function_name(reader->machine, function, count)))
        count++;
    return reader_fail_near(
        reader, &at, node->key, near, count, "%s has no %s '%s'", reader->machine->name,
        kinds[function], node->key);
}

static int take_hook(struct cli_reader *reader, const struct det_datum *node, int *ret)
{
    int r;

    r = reader_want(reader, node, DET_DATUM_TEXT, "the answer of a hook");
    if (r < 0)
        return r;
    *ret = 0;
    if (strcmp(node->text, "ok") == 0)
        return 0;
    *ret = PLAIN_FAILURE;
    return strcmp(node->text, "fail") == 0 ? 0 : case_take_error(reader, node, ret);
}

/* The event whose payload the fill completes: that of the timeouts which name it. */
static const struct det_record *filled_record(
    const struct det_machine *machine, const struct det_fill_def *fill)
{
    for (unsigned i = 0; i < machine->timer_count; i++) {
        if (machine->timers[i].timeout.fill == fill)
            return det_machine_payload(machine, machine->timers[i].timeout.event);
    }
    for (unsigned i = 0; i < machine->state_count; i++) {
        if (machine->states[i].timeout.fill == fill)
            return det_machine_payload(machine, machine->states[i].timeout.event);
    }
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        const struct det_transition_more *more = cli_transition_at(machine, i).transition->more;

        if (more && more->within && more->within->fill == fill)
            return det_machine_payload(machine, more->within->event);
    }
    return det_empty_record();
}

/* "; it produces charged, declined": what would have been right. */
static const char *products_text(
    const struct det_machine *machine, const struct det_effect_def *def, char *target,
    size_t capacity)
{
    size_t used = (size_t)snprintf(
        target, capacity, "%s",
        def->produces_count > 0 ? "; it produces" : "; it produces nothing");

    for (unsigned i = 0; i < def->produces_count && used < capacity; i++)
        used += (size_t)snprintf(
            target + used, capacity - used, "%s %s", i > 0 ? "," : "",
            machine->events[def->produces[i]].name);
    return target;
}

static int take_product(
    struct cli_reader *reader, const struct det_datum *produce, const struct det_datum *with,
    unsigned effect, struct case_answer *ret)
{
    const struct det_effect_def *def = &reader->machine->effects[effect];
    char products[DET_ERROR_TEXT_MAX];
    int r;

    ret->reply = CASE_PRODUCE;
    r = case_take_event(reader, produce, with, &ret->event);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < def->produces_count; i++) {
        if (def->produces[i] == det_event_kind(ret->event))
            return 0;
    }
    return reader_fail(
        reader, produce, "the effect %s does not produce '%s'%s", def->name, produce->text,
        products_text(reader->machine, def, products, sizeof products));
}

int case_take_reply(
    struct cli_reader *reader, const struct det_datum *const *nodes, unsigned effect,
    struct case_answer *ret)
{
    const struct det_datum *produce = nodes[0], *with = nodes[1], *fail = nodes[2],
                           *done = nodes[3];
    bool flag;
    int r = 0;

    det_assert(effect < reader->machine->effect_count);
    *ret = (struct case_answer){ .reply = CASE_DONE };
    if (!!produce + !!fail + !!done > 1)
        return reader_fail(
            reader, produce ? produce : fail, "an effect produces, fails or is done: one of these");
    if (with && !produce)
        return reader_fail(reader, with, "'payload' belongs to the produced event; add 'produce'");
    if (nodes[4])
        r = reader_span(reader, nodes[4], &ret->after);
    if (r == 0 && produce) {
        r = take_product(reader, produce, with, effect, ret);
    } else if (r == 0 && fail) {
        ret->reply = CASE_FAIL;
        ret->error = PLAIN_FAILURE;
        if (!det_datum_is_scalar(fail) || strcmp(fail->text, "true") != 0)
            r = case_take_error(reader, fail, &ret->error);
    } else if (r == 0 && done) {
        r = reader_bool(reader, done, &flag);
    }
    return r;
}

/* Words that are not events. */
static const struct {
    const char *word;
    enum case_reply reply;
} WORDS[] = { { "wait", CASE_WAIT }, { "done", CASE_DONE }, { "fail", CASE_FAIL } };

#define WORD_COUNT (sizeof WORDS / sizeof *WORDS)

/* Reads a single word: one of ours, or a produced event. */
static int take_answer_word(
    struct cli_reader *reader, const struct det_datum *node, unsigned effect,
    struct case_answer *ret)
{
    const struct det_datum *nodes[5] = { node };
    const char *near[WORD_COUNT];
    bool is_event = false;

    for (size_t i = 0; i < WORD_COUNT; i++) {
        near[i] = WORDS[i].word;
        if (strcmp(node->text, near[i]) != 0)
            continue;
        *ret = (struct case_answer){ .reply = WORDS[i].reply, .error = PLAIN_FAILURE };
        return 0;
    }
    for (unsigned i = 0; i < reader->machine->event_count; i++)
        is_event = is_event || strcmp(reader->machine->events[i].name, node->text) == 0;
    if (!is_event && det_text_nearest(node->text, near, WORD_COUNT) >= 0)
        return reader_fail_near(
            reader, node, node->text, near, WORD_COUNT, "%s has no event '%s'",
            reader->machine->name, node->text);
    return case_take_reply(reader, nodes, effect, ret);
}

static int take_answer(
    struct cli_reader *reader, const struct det_datum *node, unsigned effect,
    struct case_answer *ret)
{
    static const char *const keys[] = { CASE_ANSWER_KEYS };
    const struct det_datum *nodes[5];
    int r;

    if (det_datum_is_scalar(node))
        return take_answer_word(reader, node, effect, ret);
    r = reader_keys(reader, node, keys, 5, nodes, "an answer of an effect");
    return r < 0 ? r : case_take_reply(reader, nodes, effect, ret);
}

static int take_answers(
    struct cli_reader *reader, const struct det_datum *node, unsigned effect,
    const struct case_answer **ret)
{
    const bool is_list = node->kind == DET_DATUM_LIST;
    const size_t count = is_list ? node->count : 1;
    struct case_answer *answers = det_arena_array(reader->arena, count, sizeof *answers);
    const struct det_datum *item = is_list ? node->first : node;
    int r = 0;

    if (!answers)
        return reader_no_memory(reader, node);
    if (!item)
        return reader_fail(reader, node, "the sequence of answers is empty");
    for (size_t i = 0; i < count && reader_can_continue(reader, r); i++, item = item->next) {
        r = reader_both(r, take_answer(reader, item, effect, &answers[i]));
        answers[i].next = i + 1 < count ? &answers[i + 1] : NULL;
    }
    *ret = answers;
    return r;
}

static int take_guard(struct cli_reader *reader, const struct det_datum *node, bool *ret)
{
    if (node->kind == DET_DATUM_LIST)
        return reader_fail(
            reader, node,
            "expected true or false; to change it on the way, add a step {let: {guards: {%s: "
            "true}}}",
            node->key);
    return reader_bool(reader, node, ret);
}

static int take_setting(
    struct cli_reader *reader, const struct det_datum *node, struct case_setting *setting)
{
    const struct det_machine *machine = reader->machine;

    switch (setting->function) {
    case CASE_GUARD:
        return take_guard(reader, node, &setting->is_yes);
    case CASE_HOOK:
        return take_hook(reader, node, &setting->result);
    case CASE_UPDATE:
        return case_take_fields(reader, det_machine_data(machine), node, &setting->fields);
    case CASE_FILL:
        return case_take_fields(
            reader, filled_record(machine, det_machine_fill_at(machine, setting->index)), node,
            &setting->fields);
    case CASE_EFFECT:
        return take_answers(reader, node, setting->index, &setting->answers);
    case CASE_FUNCTION_COUNT:
        break;
    }
    return 0;
}

static int take_functions(
    struct cli_reader *reader, const struct det_datum *mapping, enum case_function function,
    const struct case_setting **settings)
{
    int r;

    r = reader_want(reader, mapping, DET_DATUM_MAP, "this list of functions");
    READER_EACH (node, mapping, reader, r) {
        struct case_setting *setting = det_arena_alloc(reader->arena, sizeof *setting);
        int index = case_function_find(reader->machine, function, node->key);

        if (!setting)
            return reader_no_memory(reader, node);
        if (index < 0) {
            r = unknown_function(reader, node, function);
            continue;
        }
        det_assert(case_function_name(reader->machine, function, (size_t)index));
        *setting = (struct case_setting){
            .next = *settings,
            .function = function,
            .index = (unsigned)index,
        };
        r = reader_both(r, take_setting(reader, node, setting));
        *settings = setting;
    }
    return r;
}

int case_take_settings(
    struct cli_reader *reader, const struct det_datum *const *nodes,
    const struct case_setting **settings)
{
    int r = 0;

    for (unsigned i = 0; i < CASE_FUNCTION_COUNT && reader_can_continue(reader, r); i++) {
        if (nodes[i])
            r = reader_both(r, take_functions(reader, nodes[i], (enum case_function)i, settings));
    }
    return r;
}
