/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_arguments.c - reads the arguments of a row or an extra in order. */
#include "machine/parse_arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/text.h"

struct unit {
    const char *name;
    det_time length;
    const char *short_name; /* common alternative spelling; a trailing S is ignored */
};

static const struct unit units[] = {
    { "MILLISECONDS", DET_MILLISECOND, "MS" },
    { "SECONDS", DET_SECOND, "SEC" },
    { "MINUTES", DET_MINUTE, "MIN" },
    { "HOURS", DET_HOUR, "HR" },
    { "DAYS", DET_DAY, "D" },
};

#define UNIT_COUNT (sizeof units / sizeof *units)

/* "2", "2 or 3", "2 to 11", "2 or more". */
static void describe_count(const struct det_row_kind *kind, char *target, size_t capacity)
{
    if (kind->most == DET_ROW_MANY)
        (void)snprintf(target, capacity, "%u or more", kind->least);
    else if (kind->most == kind->least)
        (void)snprintf(target, capacity, "%u", kind->least);
    else
        (void)snprintf(
            target, capacity, "%u %s %u", kind->least, kind->most == kind->least + 1 ? "or" : "to",
            kind->most);
}

struct det_take det_take_start(
    struct det_spec *spec, const struct det_node *call, const struct det_row_kind *kind)
{
    struct det_take take = { .spec = spec, .call = call, .next = call->arguments, .index = 1 };
    struct det_place place = det_parse_place(call);
    char count[32];

    det_assert(kind->least <= kind->most);
    /* The mistake in the row was already reported. */
    if (call->is_broken) {
        take.failed = true;
        take.next = NULL;
        return take;
    }
    if (call->argument_count >= kind->least && call->argument_count <= kind->most)
        return take;
    describe_count(kind, count, sizeof count);
    det_parse_report(
        spec, DET_RULE_ROW_ARGUMENTS, &place,
        "%s has %u argument%s instead of %s; it is written %s", call->text, call->argument_count,
        det_plural(call->argument_count), count, kind->form);
    take.failed = true;
    take.next = NULL;
    return take;
}

/* Describes the node for a message. */
static void describe_node(const struct det_node *node, char *target, size_t capacity)
{
    if (node->kind == DET_NODE_STRING)
        det_text_copy(target, capacity, "a string");
    else
        (void)snprintf(
            target, capacity, "%.64s%s", node->text, node->kind == DET_NODE_CALL ? "(...)" : "");
}

void det_take_fail(struct det_take *take, const struct det_node *node, const char *what)
{
    struct det_place place = det_parse_place(node);
    char found[80];

    if (!take->failed) {
        describe_node(node, found, sizeof found);
        det_parse_report(
            take->spec, DET_RULE_ROW_ARGUMENTS, &place, "argument %u of %s is %s, not %s",
            take->index, take->call->text, what, found);
    }
    take->failed = true;
}

static void fail_name(struct det_take *take, const struct det_node *node, const char *problem)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(
        take->spec, DET_RULE_BAD_NAME, &place, "%.*s %s", DET_NAME_MAX, node->text, problem);
    take->failed = true;
}

/* Returns the next argument, or NULL if there is none or an error occurred. */
static const struct det_node *take_next(struct det_take *take)
{
    const struct det_node *node = take->failed ? NULL : take->next;

    if (node != NULL)
        take->next = node->next;
    return node;
}

static bool is_single_name(struct det_take *take, const struct det_node *node, const char *what)
{
    struct det_place place = det_parse_place(node);

    if (node->kind != DET_NODE_NAME) {
        det_take_fail(take, node, what);
        if (node->kind == DET_NODE_STRING)
            det_parse_hint(
                take->spec, "names are written without quotes: %.*s", DET_NAME_MAX, node->text);
    } else if (det_map_get(&take->spec->macro_map, node->text) != NULL) {
        det_parse_report(
            take->spec, DET_RULE_ROW_ARGUMENTS, &place,
            "%.64s is a list; lists are allowed in ANY(...), and in rows that end with a list",
            node->text);
        take->failed = true;
    } else if (node->width > DET_NAME_MAX) {
        fail_name(take, node, "... is longer than 128 bytes");
    } else if (strcmp(node->text, "END") == 0) {
        fail_name(take, node, "is a row, and cannot be a name");
    }
    return !take->failed;
}

const struct det_node *det_take_node(struct det_take *take, const char *what)
{
    const struct det_node *node = take_next(take);

    if (node == NULL || !is_single_name(take, node, what))
        return NULL;
    take->index++;
    return node;
}

const char *det_take_name(struct det_take *take, const char *what)
{
    return det_parse_text(det_take_node(take, what));
}

const char *det_take_name_if_any(struct det_take *take, const char *what)
{
    return take->next != NULL ? det_take_name(take, what) : NULL;
}

static const char *const *take_list(
    struct det_take *take, const struct det_node *call, const struct det_node *first,
    const char *what)
{
    const char *const *names = det_parse_list(take->spec, call, first, what);

    if (names == NULL)
        take->failed = true;
    take->index++;
    return names;
}

static const char *const *take_one(
    struct det_take *take, const struct det_node *node, const char *what)
{
    const char **names;

    if (!is_single_name(take, node, what))
        return NULL;
    names = det_parse_alloc(take->spec, 2 * sizeof *names);
    if (names != NULL)
        names[0] = node->text;
    take->failed = names == NULL;
    take->index++;
    return names;
}

const char *const *det_take_names(struct det_take *take, const char *what)
{
    const struct det_node *node = take_next(take);

    if (node == NULL)
        return NULL;
    if (node->kind != DET_NODE_CALL || strcmp(node->text, "ANY") != 0)
        return take_one(take, node, what);
    if (node->argument_count == 0) {
        det_take_fail(take, node, what);
        return NULL;
    }
    return take_list(take, node, node->arguments, what);
}

const char *const *det_take_rest(struct det_take *take, const char *what)
{
    const struct det_node *first = take_next(take);

    if (first == NULL)
        return NULL;
    take->next = NULL;
    return take_list(take, take->call, first, what);
}

const char *det_take_string(struct det_take *take, const char *what)
{
    const struct det_node *node = take_next(take);

    if (node == NULL)
        return NULL;
    if (node->kind != DET_NODE_STRING) {
        det_take_fail(take, node, what);
        return NULL;
    }
    take->index++;
    return node->text;
}

/* Returns true if the node is a number from 1 to `most`. */
static bool is_number(const struct det_node *node, uint64_t most, uint64_t *ret)
{
    return node->kind == DET_NODE_NUMBER && det_parse_u64(det_view_text(node->text), ret) == 0 &&
           *ret > 0 && *ret <= most;
}

uint32_t det_take_number(struct det_take *take, uint32_t most, const char *what)
{
    const struct det_node *node = take_next(take);
    uint64_t number;

    if (node == NULL)
        return 0;
    if (!is_number(node, most, &number)) {
        det_take_fail(take, node, what);
        return 0;
    }
    take->index++;
    return (uint32_t)number;
}

int det_take_word(struct det_take *take, const char *const *words, size_t count, const char *what)
{
    const struct det_node *node = take_next(take);

    if (node == NULL)
        return -1;
    for (size_t i = 0; i < count && node->kind == DET_NODE_NAME; i++) {
        if (strcmp(node->text, words[i]) == 0) {
            take->index++;
            return (int)i;
        }
    }
    det_take_fail(take, node, what);
    det_parse_hint_nearest(take->spec, node->text, words, count);
    return -1;
}

static const char *unit_meant(const char *word)
{
    const char *names[UNIT_COUNT];
    size_t length = strlen(word);
    int nearest;

    for (size_t i = 0; i < UNIT_COUNT; i++) {
        const char *other = units[i].short_name;
        size_t size = strlen(other);

        if (strncasecmp(word, other, size) == 0 &&
            (length == size || (length == size + 1 && (word[size] | 0x20) == 's')))
            return units[i].name;
        names[i] = units[i].name;
    }
    nearest = det_text_nearest(word, names, UNIT_COUNT);
    return nearest >= 0 ? names[nearest] : NULL;
}

void det_take_hint_span(struct det_spec *spec, struct det_view text)
{
    det_time span;

    if (det_parse_duration(text, &span) < 0 || span <= 0)
        return;
    for (size_t i = UNIT_COUNT; i-- > 0;) {
        if (span % units[i].length == 0) {
            det_parse_hint(
                spec, "did you mean %s(%" PRId64 ")?", units[i].name, span / units[i].length);
            return;
        }
    }
}

static void hint_duration(struct det_take *take, const struct det_node *node)
{
    const char *unit = node->kind == DET_NODE_NUMBER ? "SECONDS" : unit_meant(node->text);
    const struct det_node *number = node->kind == DET_NODE_CALL ? node->arguments : node;

    if (node->kind == DET_NODE_STRING)
        det_take_hint_span(take->spec, det_view_text(node->text));
    if (unit == NULL || node->kind == DET_NODE_STRING ||
        (node->kind == DET_NODE_CALL && strcmp(unit, node->text) == 0))
        return;
    if (number != NULL && number->kind == DET_NODE_NUMBER)
        det_parse_hint(take->spec, "did you mean %s(%s)?", unit, number->text);
    else
        det_parse_hint(take->spec, "did you mean %s(...)?", unit);
}

/* Returns 0 if the node is not a duration. */
static det_time duration_of(const struct det_node *node)
{
    uint64_t number;

    if (node->kind != DET_NODE_CALL || node->argument_count != 1)
        return 0;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        uint64_t most = (uint64_t)(DET_DELAY_MAX / units[i].length);

        if (strcmp(node->text, units[i].name) == 0 && is_number(node->arguments, most, &number))
            return (det_time)number * units[i].length;
    }
    return 0;
}

det_time det_take_duration(struct det_take *take)
{
    const struct det_node *node = take_next(take);
    struct det_place place;
    det_time duration;

    if (node == NULL)
        return 0;
    duration = duration_of(node);
    if (duration == 0) {
        place = det_parse_place(node);
        det_parse_report(
            take->spec, DET_RULE_BAD_DURATION, &place,
            "argument %u of %s is a duration such as SECONDS(3), more than 0 and at most ten years",
            take->index, take->call->text);
        hint_duration(take, node);
        /* The build fails; the rest of the row is still checked, as if it had a duration. */
        duration = DET_SECOND;
    }
    take->index++;
    return duration;
}

struct det_timeout_row det_take_timeout(struct det_take *take)
{
    struct det_timeout_row row;

    row.after = det_take_duration(take);
    row.event = det_take_name(take, "an event");
    row.fill = det_take_name_if_any(take, "a fill");
    return row;
}
