/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* value.c - numbers as texts, payloads and data, and back. */
#include "crash/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/tool/builder.h>

#define FIELD_NUMBER                                                        \
    {                                                                       \
        .name = "number", .kind = DET_KIND_UNSIGNED, .offset = 0, .size = 8 \
    }
#define FIELD_TEXT(type)                                                             \
    {                                                                                \
        .name = "text", .kind = DET_KIND_TEXT, .offset = offsetof(type, text),       \
        .size = sizeof(((type *)0)->text), .capacity = sizeof(((type *)0)->text) - 1 \
    }

static const struct det_field note_fields[] = { FIELD_NUMBER, FIELD_TEXT(struct crash_note) };
static const struct det_field count_fields[] = { FIELD_NUMBER };
static const struct det_field data_fields[] = { FIELD_NUMBER, FIELD_TEXT(struct crash_data) };
static const struct det_record note_record = {
    .name = "note", .size = sizeof(struct crash_note), .fields = note_fields, .field_count = 2
};
static const struct det_record count_record = {
    .name = "count", .size = 8, .fields = count_fields, .field_count = 1
};
static const struct det_record data_record = {
    .name = "crash_data", .size = sizeof(struct crash_data), .fields = data_fields, .field_count = 2
};

static int do_nothing(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call, (void)data, (void)event, (void)ret;
    return DET_EFFECT_DONE;
}

/* Names that change with the third version: of a state, an event, an effect and a timer. */
struct names {
    const char *states[CRASH_STATES], *events[CRASH_STATES];
    const char *effects[3], *timers[3]; /* NULL-terminated */
};
static const struct names names[] = {
    { { "new", "open", "done" },
      { "note", "count", "bare" },
      { "ring", "mail" },
      { "soon", "late" } },
    { { "new", "open", "over" },
      { "note", "tally", "bare" },
      { "bell", "mail" },
      { "soon", "last" } },
};
static const struct det_rename renames[] = {
    { DET_NAME_STATE, "done", "over" },
    { DET_NAME_EVENT, "count", "tally" },
    { DET_NAME_EFFECT, "ring", "bell" },
    { DET_NAME_TIMER, "late", "last" },
};

const struct det_rename *crash_renames(size_t *ret_count)
{
    *ret_count = sizeof renames / sizeof renames[0];
    return renames;
}

static void add_rows(struct det_machine_builder *b, const struct names *of)
{
    static const struct det_record *const payloads[3] = { &note_record, &count_record, NULL };

    for (unsigned i = 0; i < CRASH_STATES; i++) {
        det_machine_builder_state(
            b,
            &(struct det_state_row){ .name = of->states[i], .flags = i ? 0 : DET_STATE_INITIAL });
        det_machine_builder_on(
            b, &(struct det_on_row){ .from = DET_LIST(of->states[i]),
                                     .events = DET_LIST(of->events[i]),
                                     .outcome = DET_OUTCOME_GOTO,
                                     .to = of->states[(i + 1) % CRASH_STATES],
                                     .effects = i ? NULL : of->effects,
                                     .arms = i ? NULL : of->timers });
    }
    for (unsigned i = 0; i < 3; i++)
        det_machine_builder_event(
            b, &(struct det_event_row){ .name = of->events[i], .payload = payloads[i] });
    for (unsigned i = 0; i < 2; i++) {
        det_machine_builder_effect(
            b, &(struct det_effect_row){ .name = of->effects[i], .run = do_nothing });
        det_machine_builder_timer(
            b, &(struct det_timer_row){ .name = of->timers[i],
                                        .timeout = { DET_HOUR, of->events[1], NULL } });
    }
}

struct det_machine *crash_machine_open(unsigned version)
{
    struct det_machine_builder *b;
    struct det_diagnostics diagnostics;
    struct det_machine *machine = NULL;

    if (det_machine_builder_open("crash", NULL, &b) < 0)
        abort();
    det_machine_builder_version(b, version);
    det_machine_builder_data(b, &data_record);
    add_rows(b, &names[version > 2]);
    if (version > 1) {
        det_machine_builder_state(b, &(struct det_state_row){ .name = "more" });
        det_machine_builder_on(
            b, &(struct det_on_row){ .from = DET_LIST("more"),
                                     .events = DET_LIST("bare"),
                                     .outcome = DET_OUTCOME_GOTO,
                                     .to = "more" });
    }
    if (det_machine_builder_build(b, &machine, &diagnostics) < 0) {
        fprintf(stderr, "the machine is wrong\n");
        abort();
    }
    det_machine_builder_close(b);
    return machine;
}

/* Between nothing and the maximum, so that rows have all sizes. */
static void make_text(char *target, size_t capacity, int64_t number)
{
    size_t size = number < 0 ? 0 : (size_t)number % capacity;

    memset(target, 'a' + (int)((uint64_t)number % 26), size);
    target[size] = 0;
}

static bool is_text(const char *text, size_t capacity, int64_t number)
{
    char expected[sizeof(((struct crash_note *)0)->text)];

    make_text(expected, capacity, number);
    return !strcmp(text, expected);
}

void crash_value_make(struct crash_value *target, int64_t event, int64_t value)
{
    memset(target, 0, sizeof *target);
    target->kind = (unsigned)event;
    if (event == 0) {
        target->as.note.number = (uint64_t)value;
        make_text(target->as.note.text, sizeof target->as.note.text, value);
    } else if (event == 1) {
        target->as.count = (uint64_t)value;
    }
}

int64_t crash_value_read(const void *event)
{
    const struct crash_value *value = event;
    const struct crash_note *note;

    if (!value || value->kind == 2)
        return 0;
    if (value->kind == 1)
        return (int64_t)value->as.count;
    note = &value->as.note;
    return is_text(note->text, sizeof note->text, (int64_t)note->number) ? (int64_t)note->number
                                                                         : CRASH_WRONG;
}

void crash_data_make(struct crash_data *target, int64_t number)
{
    memset(target, 0, sizeof *target);
    target->number = (uint64_t)number;
    make_text(target->text, sizeof target->text, number);
}

int64_t crash_data_read(const struct crash_data *data)
{
    return is_text(data->text, sizeof data->text, (int64_t)data->number) ? (int64_t)data->number
                                                                         : CRASH_WRONG;
}

void crash_text_make(char target[32], char letter, int64_t number)
{
    snprintf(target, 32, "%c-%lld", letter, (long long)number);
}

int64_t crash_text_read(const char *text, char letter)
{
    char expected[32];
    int64_t number;

    if (!text || !*text)
        return 0;
    number = strlen(text) > 2 ? strtoll(text + 2, NULL, 10) : 0;
    crash_text_make(expected, letter, number);
    return strcmp(text, expected) ? CRASH_WRONG : number;
}
