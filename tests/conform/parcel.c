/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parcel.c - values of the suite's machine, and variants of its definition. */
#include <detent/tool/machine.h>

#include "conform/parcel.h"

#include "lib/test.h"

#define FSM_SPEC "conform/parcel.fsm"
#include <detent/fsm/define.h>

static bool is_heavy(
    const struct det_move *move, const struct parcel_data *data, const struct parcel_event *event)
{
    (void)move;
    (void)data;
    return event->pack.a > 100;
}

static int print_label(
    struct det_effect_call *call, const struct parcel_data *data, const struct parcel_event *event,
    struct parcel_event *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static int tell_owner(
    struct det_effect_call *call, const struct parcel_data *data, const struct parcel_event *event,
    struct parcel_event *ret)
{
    return print_label(call, data, event, ret);
}

static struct parcel_line line_value(uint64_t number)
{
    struct parcel_line line = { .pieces = (uint32_t)number };

    snprintf(line.name, sizeof line.name, "line %u", (unsigned)(number % 100));
    return line;
}

/* The extremes of every type come with some of the numbers. */
static void fill_numbers(struct parcel_every *every, uint64_t number)
{
    static const uint64_t edges[] = { 0, UINT64_MAX, 1, (uint64_t)1 << 63, 0x0102030405060708 };
    uint64_t edge = number < 5 ? edges[number] : number * 0x9e3779b97f4a7c15;

    every->a = (uint8_t)edge;
    every->b = (uint16_t)edge;
    every->c = (uint32_t)edge;
    every->d = edge;
    every->e = (int8_t)edge;
    every->f = (int16_t)edge;
    every->g = (int32_t)edge;
    every->h = (int64_t)edge;
    every->i = number == 3 ? -1e300 : (double)number / 3;
    every->j = number % 2;
    every->k = (det_time)(number * DET_SECOND);
}

static void fill_texts(struct parcel_every *every, uint64_t number)
{
    /* Quotes, a backslash, a line end, letters of two, three and four bytes. */
    snprintf(every->l, sizeof every->l, "%s", number % 2 ? "'\"\\\n\xc3\xa9\xe2\x82\xac" : "");
    if (number % 3 == 0)
        snprintf(every->l, sizeof every->l, "\xf0\x9f\x93\xa6 %u", (unsigned)(number % 1000));
    every->m.size = (uint32_t)(number % 8);
    for (uint32_t i = 0; i < every->m.size; i++)
        every->m.data[i] = (uint8_t)(number * i);
    every->n = (enum parcel_color)(number % 3);
    every->o = line_value(number);
    snprintf(every->secret, sizeof every->secret, "secret %u", (unsigned)(number % 1000));
}

static void fill_more(struct parcel_every *every, uint64_t number)
{
    every->has_note = number % 2;
    if (every->has_note)
        snprintf(every->note, sizeof every->note, "note %u", (unsigned)(number % 1000));
    every->has_at = number % 4 == 1;
    if (every->has_at)
        every->at = -(det_time)number;
    every->lines_count = (uint32_t)(number % 4);
    for (uint32_t i = 0; i < every->lines_count; i++)
        every->lines[i] = line_value(number + i);
    every->words_count = (uint32_t)(number % 3);
    for (uint32_t i = 0; i < every->words_count; i++)
        snprintf(every->words[i], sizeof every->words[i], "w%u", i % 10);
    every->colors_count = (uint32_t)(number % 5);
    for (uint32_t i = 0; i < every->colors_count; i++)
        every->colors[i] = (enum parcel_color)((number + i) % 3);
}

struct parcel_event parcel_value(unsigned kind, uint64_t number)
{
    struct parcel_event event;

    memset(&event, 0, sizeof event);
    event.kind = kind;
    if (kind == PARCEL_PACK) {
        fill_numbers(&event.pack, number);
        fill_texts(&event.pack, number);
        fill_more(&event.pack, number);
    } else if (kind == PARCEL_COUNT) {
        event.count.number = number;
    } else if (kind == PARCEL_CHECKED) {
        event.checked.number = number;
    } else if (kind == PARCEL_LATE) {
        event.is_late.number = number;
    }
    return event;
}

struct parcel_data parcel_data_value(uint64_t number)
{
    struct parcel_data data;

    memset(&data, 0, sizeof data);
    data.total = number;
    snprintf(data.owner, sizeof data.owner, "owner %u", (unsigned)(number % 1000));
    data.has_note = number % 2;
    if (data.has_note)
        snprintf(data.note, sizeof data.note, "n%u", (unsigned)(number % 1000));
    data.tags_count = (uint32_t)(number % 4);
    for (uint32_t i = 0; i < data.tags_count; i++)
        snprintf(data.tags[i], sizeof data.tags[i], "t%u", (unsigned)((number + i) % 1000));
    return data;
}

bool parcel_value_equal(uint16_t kind, const struct parcel_event *a, const struct parcel_event *b)
{
    const struct det_machine *machine = &parcel_machine;
    struct parcel_event zero = { .kind = kind };
    size_t offset = machine->events[kind].payload_offset;

    a = a ? a : &zero;
    b = b ? b : &zero;
    return (unsigned)a->kind == kind && (unsigned)b->kind == kind &&
           det_record_equal(
               det_machine_payload(machine, kind), (const char *)a + offset,
               (const char *)b + offset);
}

bool parcel_data_equal(const struct parcel_data *a, const struct parcel_data *b)
{
    return det_record_equal(det_machine_data(&parcel_machine), a, b);
}

/* Returns the text with every `from` replaced by `to`; frees the old one. */
static char *replace(char *text, const char *from, const char *to)
{
    size_t grown = strlen(text) + 1;
    char *made, *end;
    const char *at = text;

    assert_non_null(strstr(text, from));
    for (const char *found = text; (found = strstr(found, from)); found += strlen(from))
        grown += strlen(to);
    end = made = malloc(grown);
    assert_non_null(made);
    for (const char *found; (found = strstr(at, from)); at = found + strlen(from)) {
        memcpy(end, at, (size_t)(found - at));
        end += found - at;
        memcpy(end, to, strlen(to));
        end += strlen(to);
    }
    memcpy(end, at, strlen(at) + 1);
    free(text);
    return made;
}

struct det_spec *parcel_variant(const char *const *replacements)
{
    struct det_spec *spec = NULL;
    size_t size;
    char *file = det_test_read_file(DET_SOURCE_DIR "/tests/conform/parcel.fsm", &size);
    char *text = malloc(size + 1);

    assert_non_null(text);
    memcpy(text, file, size);
    text[size] = 0;
    free(file);
    for (; replacements[0]; replacements += 2)
        text = replace(text, replacements[0], replacements[1]);
    assert_int_equal(det_spec_read("parcel.fsm", text, strlen(text), NULL, &spec), 0);
    if (!det_spec_machine(spec))
        fail_msg("the variant is broken: %s", det_spec_diagnostics(spec)->items[0].text);
    free(text);
    return spec;
}
