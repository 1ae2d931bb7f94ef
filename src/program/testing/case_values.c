/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_values.c - reads the small things of a test file: errors, names, events. */
#include "base/assert.h"
#include "testing/case_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Names that are tried for "did you mean". */
#define NEAR_MAX 512

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

int case_take_error(struct cli_reader *reader, const struct det_datum *node, int *ret)
{
    char names[CODE_COUNT][DET_NAME_MAX];
    const char *near[CODE_COUNT];
    int r;

    r = reader_want(reader, node, DET_DATUM_TEXT, "an error");
    if (r < 0)
        return r;
    for (size_t i = 0; i < CODE_COUNT; i++) {
        near[i] = case_error_name(CODES[i], names[i]);
        if (strcmp(near[i], node->text) == 0) {
            *ret = CODES[i];
            return 0;
        }
    }
    return reader_fail_near(
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
    struct cli_reader *reader, const struct det_datum *node, enum case_thing thing,
    const char *name, unsigned *ret)
{
    static const char *const things[] = { "state", "event", "effect", "timer" };
    const char *near[NEAR_MAX];
    size_t count = 0;

    det_assert(thing < sizeof things / sizeof *things);
    for (size_t i = 0; thing_name(reader->machine, thing, i); i++) {
        const char *known = thing_name(reader->machine, thing, i);

        if (strcmp(known, name) == 0) {
            *ret = (unsigned)i;
            return 0;
        }
        if (count < NEAR_MAX)
            near[count++] = known;
    }
    return reader_fail_near(
        reader, node, name, near, count, "%s has no %s '%s'", reader->machine->name, things[thing],
        name);
}

int case_take_event(
    struct cli_reader *reader, const struct det_datum *node, const struct det_datum *with,
    const void **ret)
{
    const struct case_fields *fields;
    const struct det_event_def *def;
    unsigned kind = 0;
    char *event;
    int r;

    r = reader_want(reader, node, DET_DATUM_TEXT, "an event");
    if (r == 0)
        r = case_take_name(reader, node, CASE_EVENT_NAME, node->text, &kind);
    if (r < 0)
        return r;
    def = &reader->machine->events[kind];
    event = det_arena_alloc(reader->arena, reader->machine->event_size);
    if (!event)
        return reader_no_memory(reader, node);
    memcpy(event, &kind, sizeof kind);
    det_assert(det_event_kind(event) == kind);
    *ret = event;
    if (!with)
        return 0;
    if (!det_record_of(def->payload))
        return reader_fail(reader, with, "the event %s has no payload", def->name);
    r = case_take_fields(reader, det_record_of(def->payload), with, &fields);
    if (r == 0)
        memcpy(event + def->payload_offset, fields->value, fields->record->size);
    return r;
}
