/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pad_test.h - a store in memory with one instance in it, for the suites of the driver. */
#ifndef DET_STORE_PAD_TEST_H
#define DET_STORE_PAD_TEST_H

#include "lib/test.h"

#include <detent/tool/builder.h>

#include "store/store.h"

struct note {
    uint64_t number;
    char text[100];
};

struct pad_data {
    uint64_t total;
};

static const struct det_field note_fields[] = {
    { .name = "number",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct note, number),
      .size = 8 },
    { .name = "text",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct note, text),
      .size = 100,
      .capacity = 99 },
};
static const struct det_record note_record = {
    .name = "note", .size = sizeof(struct note), .fields = note_fields, .field_count = 2
};
static const struct det_field small_fields[] = {
    { .name = "number", .kind = DET_KIND_UNSIGNED, .offset = 0, .size = 8 },
};
static const struct det_record small_record = {
    .name = "small", .size = 8, .fields = small_fields, .field_count = 1
};
static const struct det_record pad_data_record = {
    .name = "pad_data", .size = 8, .fields = small_fields, .field_count = 1
};

struct pad_event {
    unsigned kind;
    union {
        struct note note;
        uint64_t small;
    } as __attribute__((aligned(8)));
};

enum { TEXT, SMALL, BARE };

static inline int done(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static inline struct det_machine *pad_machine(uint32_t version)
{
    struct det_machine_builder *b;
    struct det_diagnostics diagnostics;
    struct det_machine *machine = NULL;

    assert_int_equal(det_machine_builder_open("pad", NULL, &b), 0);
    det_machine_builder_version(b, version);
    det_machine_builder_data(b, &pad_data_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "TEXT", .payload = &note_record });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "SMALL", .payload = &small_record });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "BARE" });
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = "ring", .run = done });
    det_machine_builder_timer(
        b, &(struct det_timer_row){ .name = "later", .timeout = { DET_HOUR, "BARE", NULL } });
    for (int i = 0; i < 2; i++)
        det_machine_builder_on(
            b, &(struct det_on_row){ .from = DET_LIST(i ? "B" : "A"),
                                     .events = DET_LIST("TEXT", "SMALL", "BARE"),
                                     .outcome = DET_OUTCOME_GOTO,
                                     .to = i ? "A" : "B",
                                     .effects = DET_LIST("ring"),
                                     .arms = DET_LIST("later") });
    assert_int_equal(det_machine_builder_build(b, &machine, &diagnostics), 0);
    det_machine_builder_close(b);
    return machine;
}

/* A store with one instance, and a commit in preparation. */
struct pad {
    struct det_machine *machine;
    struct det_store *store;
    struct det_store_instance *instance;
    struct det_store_head head;
    struct det_store_commit commit;
    struct det_store_event event;
    struct pad_event value;
    uint64_t data;
};

static inline int commit(struct pad *pad)
{
    struct det_store_commit *const one = &pad->commit;
    int r;

    r = pad->store->ops->commit(pad->store, &one, 1);
    return r < 0 ? r : pad->commit.result;
}

static inline void begin(struct pad *pad)
{
    pad->commit = (struct det_store_commit){
        .machine = pad->machine,
        .id = "p",
        .instance = pad->instance,
        .expected = pad->head.sequence,
        .head = &pad->head,
    };
}

static inline int pad_open_in(
    struct pad *pad, const struct det_store_options *options, struct det_machine *machine)
{
    int r;

    memset(pad, 0, sizeof *pad);
    pad->machine = machine;
    r = det_store_open_with("memory:", options, &pad->store, NULL);
    if (r == 0)
        r = pad->store->ops->serve(pad->store, machine, NULL);
    if (r < 0)
        return r;
    pad->head = (struct det_store_head){ .visit = 1, .started_at = 100, .last_transition_at = 100 };
    begin(pad);
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    r = commit(pad);
    pad->instance = pad->commit.instance;
    return r;
}

static inline struct pad *pad_open(const struct det_store_options *options)
{
    struct pad *pad = malloc(sizeof *pad);

    assert_non_null(pad);
    assert_int_equal(pad_open_in(pad, options, pad_machine(1)), 0);
    return pad;
}

static inline void pad_close(struct pad *pad)
{
    det_store_close(pad->store);
    det_machine_close(pad->machine);
    free(pad);
}

/* Adds an event to the commit in preparation. */
static inline void add_event(struct pad *pad, unsigned kind)
{
    uint16_t from = pad->head.state;

    pad->value.kind = kind;
    pad->head.sequence++;
    pad->head.visit = pad->head.sequence + 1;
    pad->head.transition_count++;
    pad->head.state = !from;
    pad->head.last_transition_at++;
    pad->event = (struct det_store_event){
        .sequence = pad->head.sequence,
        .visit = pad->head.visit,
        .from = from,
        .to = pad->head.state,
        .event = (uint16_t)kind,
        .outcome = DET_OUTCOME_GOTO,
        .at = pad->head.last_transition_at,
        .value = &pad->value,
    };
    pad->commit.events = &pad->event;
    pad->commit.event_count = 1;
}

static inline int send(struct pad *pad, unsigned kind, const char *event_id)
{
    begin(pad);
    add_event(pad, kind);
    pad->event.event_id = pad->commit.event_id = event_id;
    pad->commit.answer = (struct det_store_answer){ .outcome = DET_OUTCOME_GOTO,
                                                    .state = pad->head.state,
                                                    .sequence = pad->head.sequence,
                                                    .visit = pad->head.visit };
    return commit(pad);
}

/* The results of a load, as flat values. */
struct found {
    struct det_store_loaded loaded;
    uint64_t data;
    struct det_store_timer timers[4];
    uint64_t timer_values[4];
    size_t timer_count;
    struct det_store_effect effects[4];
    uint64_t effect_data[4], effect_events[4];
    size_t effect_count;
    uint64_t deferred[4], deferred_values[4];
    size_t deferred_count;
};

static inline int found_timer(void *context, const struct det_store_timer *row)
{
    struct found *found = context;
    const struct pad_event *value = row->value;

    found->timer_values[found->timer_count] = value ? value->as.small : 0;
    found->timers[found->timer_count++] = *row;
    return 0;
}

static inline int found_effect(void *context, const struct det_store_effect *row)
{
    struct found *found = context;

    memcpy(&found->effect_data[found->effect_count], row->data, 8);
    found->effect_events[found->effect_count] = ((const struct pad_event *)row->event)->as.small;
    found->effects[found->effect_count++] = *row;
    return 0;
}

static inline int found_deferred(void *context, const struct det_store_deferred *row)
{
    struct found *found = context;

    found->deferred_values[found->deferred_count] =
        ((const struct pad_event *)row->event)->as.small;
    found->deferred[found->deferred_count++] = row->sequence;
    return 0;
}

static inline struct found *load(struct pad *pad)
{
    static struct found found;
    const struct det_store_rows rows = { &found, found_timer, found_effect, found_deferred };

    memset(&found, 0, sizeof found);
    found.loaded.data = &found.data;
    assert_int_equal(pad->store->ops->load(pad->store, pad->machine, "p", &rows, &found.loaded), 0);
    assert_ptr_equal(found.loaded.instance, pad->instance);
    return &found;
}

struct rows {
    size_t count;
    uint64_t first, last;
    size_t ids, causes;
    unsigned stop_at;
};

/* Every row must carry the payload that was sent with its number. */
static inline int check_row(void *context, const struct det_store_event *row)
{
    struct rows *rows = context;
    const struct pad_event *value = row->value;
    char expected[100];

    if (!rows->count++)
        rows->first = row->sequence;
    else
        assert_int_equal(row->sequence, rows->last + 1);
    rows->last = row->sequence;
    assert_int_equal(value->kind, row->event);
    if (row->event == SMALL)
        assert_int_equal(value->as.small, row->sequence * 3);
    if (row->event == TEXT) {
        snprintf(expected, sizeof expected, "text %d", (int)row->sequence);
        assert_string_equal(value->as.note.text, expected);
    }
    if (row->event_id) {
        snprintf(expected, sizeof expected, "id-%d", (int)row->sequence);
        assert_string_equal(row->event_id, expected);
        rows->ids++;
    }
    if (row->cause) {
        snprintf(expected, sizeof expected, "pad/p/%d/0", (int)row->sequence);
        assert_string_equal(row->cause, expected);
        rows->causes++;
    }
    return rows->stop_at && row->sequence == rows->stop_at ? 99 : 0;
}

static inline int walk(struct pad *pad, uint64_t after, struct rows *rows)
{
    memset(rows, 0, offsetof(struct rows, stop_at));
    return pad->store->ops->events(pad->store, pad->instance, after, check_row, rows);
}

#endif
