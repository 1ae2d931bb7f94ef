/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_parts.c - reads the small things of a test file: keys, numbers, names, events. */
#include "cli/case_parts.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Names that are tried for "did you mean". */
#define NEAR_MAX 512

int case_fail(struct case_reader *reader, const struct cli_yaml *node, const char *format, ...)
{
    struct case_problems *problems = reader->problems;
    struct cli_yaml_error *problem = &problems->items[problems->count];
    va_list arguments;

    if (problems->count == CASE_PROBLEMS_MAX) {
        problems->is_cut = true;
        return DET_ERR_MALFORMED;
    }
    problems->count++;
    problem->line = node->line;
    problem->column = node->column;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return DET_ERR_MALFORMED;
}

int case_fail_near(
    struct case_reader *reader, const struct cli_yaml *node, const char *word,
    const char *const *names, size_t count, const char *format, ...)
{
    /* Once there is no room for a problem, what it says costs nothing. */
    int nearest = reader->problems->is_cut ? -1 : det_text_nearest(word, names, count);
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (nearest < 0)
        return case_fail(reader, node, "%s", text);
    return case_fail(reader, node, "%s; did you mean '%s'?", text, names[nearest]);
}

int case_both(int first, int second)
{
    return first == 0 || second == DET_ERR_NO_MEMORY ? second : first;
}

bool case_goes_on(const struct case_reader *reader, int result)
{
    return result != DET_ERR_NO_MEMORY && !reader->problems->is_cut;
}

int case_no_memory(struct case_reader *reader, const struct cli_yaml *node)
{
    case_fail(reader, node, "there is no memory left");
    return DET_ERR_NO_MEMORY;
}

int case_want(
    struct case_reader *reader, const struct cli_yaml *node, enum cli_yaml_kind kind,
    const char *what)
{
    static const char *const kinds[] = {
        [CLI_YAML_SCALAR] = "a single value",
        [CLI_YAML_SEQUENCE] = "a sequence",
        [CLI_YAML_MAPPING] = "a mapping",
    };

    if (node->kind == kind)
        return 0;
    return case_fail(reader, node, "%s is %s, not %s", what, kinds[kind], kinds[node->kind]);
}

static int unknown_key(
    struct case_reader *reader, const struct cli_yaml *node, const char *const *keys, size_t count,
    const char *what)
{
    struct cli_yaml at = { .line = node->key_line, .column = node->key_column };

    return case_fail_near(
        reader, &at, node->key, keys, count, "%s has no key '%s'", what, node->key);
}

int case_take_keys(
    struct case_reader *reader, const struct cli_yaml *mapping, const char *const *keys,
    size_t count, const struct cli_yaml **ret, const char *what)
{
    int r;

    for (size_t i = 0; i < count; i++)
        ret[i] = NULL;
    r = case_want(reader, mapping, CLI_YAML_MAPPING, what);
    if (r < 0)
        return r;
    for (const struct cli_yaml *node = mapping->first; node && case_goes_on(reader, r);
         node = node->next) {
        size_t i = 0;

        while (i < count && strcmp(node->key, keys[i]) != 0)
            i++;
        if (i == count)
            r = unknown_key(reader, node, keys, count, what);
        else
            ret[i] = node;
    }
    return r;
}

int case_take_bool(struct case_reader *reader, const struct cli_yaml *node, bool *ret)
{
    if (node->kind == CLI_YAML_SCALAR &&
        (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)) {
        *ret = node->text[0] == 't';
        return 0;
    }
    return case_fail(reader, node, "this is true or false");
}

int case_take_number(struct case_reader *reader, const struct cli_yaml *node, uint64_t *ret)
{
    if (node->kind == CLI_YAML_SCALAR && det_parse_u64(det_view_text(node->text), ret) == 0)
        return 0;
    return case_fail(reader, node, "this is a whole number");
}

static int take_span(
    struct case_reader *reader, const struct cli_yaml *node, const char *rest, det_time *ret)
{
    if (node->kind == CLI_YAML_SCALAR && det_parse_duration(det_view_text(node->text), ret) == 0 &&
        *ret >= 0 && *ret <= DET_DELAY_MAX)
        return 0;
    return case_fail(
        reader, node, "this is a time such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years%s",
        rest);
}

int case_take_span(struct case_reader *reader, const struct cli_yaml *node, det_time *ret)
{
    return take_span(reader, node, "", ret);
}

int case_take_span_or_none(struct case_reader *reader, const struct cli_yaml *node, det_time *ret)
{
    *ret = -1;
    if (node->kind == CLI_YAML_SCALAR && strcmp(node->text, "none") == 0)
        return 0;
    return take_span(reader, node, ", or none", ret);
}

static const int CODES[] = {
#define DET_ERROR(name, number, text) DET_ERR_##name,
#include <detent/errors.def>
#undef DET_ERROR
};

#define CODE_COUNT (sizeof CODES / sizeof *CODES)

const char *case_error_name(int code, char *target)
{
    const char *name = det_error_name(code);
    size_t i = 0;

    for (; name[i] && i + 1 < DET_NAME_MAX; i++)
        target[i] = (char)tolower((unsigned char)name[i]);
    target[i] = '\0';
    return target;
}

int case_take_error(struct case_reader *reader, const struct cli_yaml *node, int *ret)
{
    char names[CODE_COUNT][DET_NAME_MAX];
    const char *near[CODE_COUNT];
    int r;

    r = case_want(reader, node, CLI_YAML_SCALAR, "an error");
    if (r < 0)
        return r;
    for (size_t i = 0; i < CODE_COUNT; i++) {
        near[i] = case_error_name(CODES[i], names[i]);
        if (strcmp(near[i], node->text) == 0) {
            *ret = CODES[i];
            return 0;
        }
    }
    return case_fail_near(
        reader, node, node->text, near, CODE_COUNT, "there is no error '%s'", node->text);
}

static const char *thing_name(const struct det_machine *machine, enum case_thing thing, size_t i)
{
    switch (thing) {
    case CASE_STATE_NAME:
        return i < machine->state_count ? machine->states[i].name : NULL;
    case CASE_EVENT_NAME:
        return i < machine->event_count ? machine->events[i].name : NULL;
    case CASE_EFFECT_NAME:
        return i < machine->effect_count ? machine->effects[i].name : NULL;
    case CASE_TIMER_NAME:
        return i < machine->timer_count ? machine->timers[i].name : NULL;
    }
    return NULL;
}

int case_take_name(
    struct case_reader *reader, const struct cli_yaml *node, enum case_thing thing,
    const char *name, unsigned *ret)
{
    static const char *const things[] = { "state", "event", "effect", "timer" };
    const char *near[NEAR_MAX];
    size_t count = 0;

    for (size_t i = 0; thing_name(reader->machine, thing, i); i++) {
        const char *known = thing_name(reader->machine, thing, i);

        if (strcmp(known, name) == 0) {
            *ret = (unsigned)i;
            return 0;
        }
        if (count < NEAR_MAX)
            near[count++] = known;
    }
    return case_fail_near(
        reader, node, name, near, count, "%s has no %s '%s'", reader->machine->name, things[thing],
        name);
}

int case_take_event(
    struct case_reader *reader, const struct cli_yaml *node, const struct cli_yaml *with,
    const void **ret)
{
    const struct case_fields *fields;
    const struct det_event_def *def;
    unsigned kind = 0;
    char *event;
    int r;

    r = case_want(reader, node, CLI_YAML_SCALAR, "an event");
    if (r == 0)
        r = case_take_name(reader, node, CASE_EVENT_NAME, node->text, &kind);
    if (r < 0)
        return r;
    def = &reader->machine->events[kind];
    event = det_arena_alloc(reader->arena, reader->machine->event_size);
    if (!event)
        return case_no_memory(reader, node);
    memcpy(event, &kind, sizeof kind);
    *ret = event;
    if (!with)
        return 0;
    if (!det_record_of(def->payload))
        return case_fail(reader, with, "the event %s carries nothing", def->name);
    r = case_take_fields(reader, det_record_of(def->payload), with, &fields);
    if (r == 0)
        memcpy(event + def->payload_offset, fields->value, fields->record->size);
    return r;
}
