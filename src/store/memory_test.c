/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory_test.c - the contract of a driver, over the memory store: one commit is all or nothing,
 * and what it refuses leaves nothing. */
#include "store/store.h"

#include "lib/test.h"

#include <detent/builder.h>

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

static int done(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_DONE;
}

static struct det_machine *pad_machine(uint32_t version)
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
                                     .outcome = DET_GOTO,
                                     .to = i ? "A" : "B",
                                     .effects = DET_LIST("ring"),
                                     .arms = DET_LIST("later") });
    assert_int_equal(det_machine_builder_build(b, &machine, &diagnostics), 0);
    det_machine_builder_close(b);
    return machine;
}

/* A store with one instance in it, and the commit that is being made up. */
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

static int commit(struct pad *pad)
{
    struct det_store_commit *const one = &pad->commit;
    int r;

    r = pad->store->ops->commit(pad->store, &one, 1);
    return r < 0 ? r : pad->commit.result;
}

static void begin(struct pad *pad)
{
    pad->commit = (struct det_store_commit){
        .machine = pad->machine,
        .id = "p",
        .instance = pad->instance,
        .expected = pad->head.sequence,
        .head = &pad->head,
    };
}

static int pad_open_in(
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

static struct pad *pad_open(const struct det_store_options *options)
{
    struct pad *pad = malloc(sizeof *pad);

    assert_non_null(pad);
    assert_int_equal(pad_open_in(pad, options, pad_machine(1)), 0);
    return pad;
}

static void pad_close(struct pad *pad)
{
    det_store_close(pad->store);
    det_machine_close(pad->machine);
    free(pad);
}

/* One more event in the commit that was begun. */
static void add_event(struct pad *pad, unsigned kind)
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
        .outcome = DET_GOTO,
        .at = pad->head.last_transition_at,
        .value = &pad->value,
    };
    pad->commit.events = &pad->event;
    pad->commit.event_count = 1;
}

static int send(struct pad *pad, unsigned kind, const char *event_id)
{
    begin(pad);
    add_event(pad, kind);
    pad->event.event_id = pad->commit.event_id = event_id;
    pad->commit.answer =
        (struct det_store_answer){ DET_GOTO, pad->head.state, pad->head.sequence, pad->head.visit };
    return commit(pad);
}

/* What load gives, as flat values. */
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

static int found_timer(void *context, const struct det_store_timer *row)
{
    struct found *found = context;
    const struct pad_event *value = row->value;

    found->timer_values[found->timer_count] = value ? value->as.small : 0;
    found->timers[found->timer_count++] = *row;
    return 0;
}

static int found_effect(void *context, const struct det_store_effect *row)
{
    struct found *found = context;

    memcpy(&found->effect_data[found->effect_count], row->data, 8);
    found->effect_events[found->effect_count] = ((const struct pad_event *)row->event)->as.small;
    found->effects[found->effect_count++] = *row;
    return 0;
}

static int found_deferred(void *context, const struct det_store_deferred *row)
{
    struct found *found = context;

    found->deferred_values[found->deferred_count] =
        ((const struct pad_event *)row->event)->as.small;
    found->deferred[found->deferred_count++] = row->sequence;
    return 0;
}

static struct found *load(struct pad *pad)
{
    static struct found found;
    const struct det_store_rows rows = { &found, found_timer, found_effect, found_deferred };

    memset(&found, 0, sizeof found);
    found.loaded.data = &found.data;
    assert_int_equal(pad->store->ops->load(pad->store, pad->machine, "p", &rows, &found.loaded), 0);
    assert_ptr_equal(found.loaded.instance, pad->instance);
    return &found;
}

static void an_instance_is_found_as_it_was_committed(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found = load(pad);
    struct det_store_loaded none = { .data = &pad->data };

    (void)state;
    assert_int_equal(found->loaded.head.visit, 1);
    assert_int_equal(found->loaded.head.started_at, 100);
    assert_int_equal(found->loaded.history_count, 0);
    assert_int_equal(found->timer_count + found->effect_count + found->deferred_count, 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, SMALL);
    pad->data = 42;
    pad->commit.data = &pad->data;
    pad->commit.reason = "why";
    assert_int_equal(commit(pad), 0);
    found = load(pad);
    assert_int_equal(found->loaded.head.sequence, 2);
    assert_int_equal(found->loaded.head.state, 0);
    assert_int_equal(found->loaded.history_count, 2);
    assert_int_equal(found->loaded.history[0], 1);
    assert_int_equal(found->loaded.history[1], 0);
    assert_int_equal(found->data, 42);
    assert_string_equal(found->loaded.reason, "why");
    assert_int_equal(
        pad->store->ops->load(pad->store, pad->machine, "q", NULL, &none), DET_ERR_NOT_FOUND);
    pad_close(pad);
}

static void a_second_of_the_same_id_is_refused(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    begin(pad);
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    assert_int_equal(commit(pad), DET_ERR_EXISTS);
    pad_close(pad);
}

static void a_commit_from_another_sequence_is_a_conflict(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, BARE);
    pad->commit.expected = 0;
    assert_int_equal(commit(pad), DET_ERR_CONFLICT);
    assert_int_equal(pad->commit.actual, 1);
    assert_int_equal(load(pad)->loaded.head.sequence, 1);
    pad_close(pad);
}

static void an_event_id_is_remembered_with_its_answer_and_taken_once(void **state)
{
    struct pad *pad = pad_open(&(struct det_store_options){ .event_ids_kept = 6 });
    struct det_store_answer answer;
    char id[8];

    (void)state;
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "e%d", i);
        assert_int_equal(send(pad, BARE, id), 0);
    }
    assert_int_equal(send(pad, BARE, "e9"), DET_ERR_EXISTS);
    pad->head = load(pad)->loaded.head;
    assert_int_equal(pad->head.sequence, 10);
    for (int i = 0; i < 10; i++) {
        int r;

        snprintf(id, sizeof id, "e%d", i);
        r = pad->store->ops->answer(pad->store, pad->instance, id, &answer);
        assert_int_equal(r, i < 4 ? DET_ERR_NOT_FOUND : 0);
        if (r == 0) {
            assert_int_equal(answer.sequence, i + 1);
            assert_int_equal(answer.visit, i + 2);
            assert_int_equal(answer.state, i % 2 == 0);
            assert_int_equal(answer.outcome, DET_GOTO);
        }
    }
    pad_close(pad);
}

struct rows {
    size_t count;
    uint64_t first, last;
    size_t ids, causes;
    unsigned stop_at;
};

/* Every row must carry the payload that was sent with its number. */
static int check_row(void *context, const struct det_store_event *row)
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

static int walk(struct pad *pad, uint64_t after, struct rows *rows)
{
    memset(rows, 0, offsetof(struct rows, stop_at));
    return pad->store->ops->events(pad->store, pad->instance, after, check_row, rows);
}

/* Payloads of both sizes, ids and causes, in turn, so that a place in the ring holds each of them.
 */
static int send_numbered(struct pad *pad, uint64_t number)
{
    char id[32], cause[32];

    snprintf(id, sizeof id, "id-%d", (int)number);
    snprintf(cause, sizeof cause, "pad/p/%d/0", (int)number);
    begin(pad);
    memset(&pad->value, 0, sizeof pad->value);
    add_event(pad, (unsigned)(number * 7 % 3));
    if (pad->value.kind == SMALL)
        pad->value.as.small = number * 3;
    if (pad->value.kind == TEXT)
        snprintf(pad->value.as.note.text, 100, "text %d", (int)number);
    if (number % 4 == 0)
        pad->event.event_id = id;
    if (number % 5 == 0)
        pad->event.cause = cause;
    return commit(pad);
}

static void the_last_events_are_kept_with_all_they_carry(void **state)
{
    static const uint32_t kept[] = { 1, 3, 5, 64 };

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct pad *pad = pad_open(&(struct det_store_options){ .events_kept = kept[k] });
        struct rows rows = { 0 };

        for (uint64_t i = 1; i <= 100; i++) {
            size_t expected = i < kept[k] ? (size_t)i : kept[k];

            assert_int_equal(send_numbered(pad, i), 0);
            assert_int_equal(walk(pad, 0, &rows), 0);
            assert_int_equal(rows.count, expected);
            assert_int_equal(rows.last, i);
        }
        assert_int_equal(walk(pad, 99, &rows), 0);
        assert_int_equal(rows.count, 1);
        assert_int_equal(walk(pad, 100, &rows), 0);
        assert_int_equal(rows.count, 0);
        rows.stop_at = 100;
        assert_int_equal(walk(pad, 0, &rows), 99);
        pad_close(pad);
    }
}

static void a_commit_of_more_events_than_are_kept_keeps_the_last(void **state)
{
    struct pad *pad = pad_open(&(struct det_store_options){ .events_kept = 3 });
    struct det_store_event events[8];
    struct pad_event values[8];
    struct rows rows = { 0 };

    (void)state;
    assert_int_equal(send_numbered(pad, 1), 0);
    begin(pad);
    for (int i = 0; i < 8; i++) {
        memset(&pad->value, 0, sizeof pad->value);
        add_event(pad, i % 2 ? TEXT : SMALL);
        if (i % 2)
            snprintf(pad->value.as.note.text, 100, "text %d", i + 2);
        else
            pad->value.as.small = (uint64_t)(i + 2) * 3;
        values[i] = pad->value;
        events[i] = pad->event;
        events[i].value = &values[i];
    }
    pad->commit.events = events;
    pad->commit.event_count = 8;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.first, 7);
    assert_int_equal(rows.last, 9);
    pad_close(pad);
}

static struct det_store_timer_change timer(
    enum det_store_change_kind kind, uint16_t number, det_time due, const void *value)
{
    return (struct det_store_timer_change){
        kind, { .timer = number, .event = SMALL, .visit = 1, .due = due, .value = value }
    };
}

static int change_timer(struct pad *pad, struct det_store_timer_change change)
{
    begin(pad);
    pad->commit.timers = &change;
    pad->commit.timer_count = 1;
    return commit(pad);
}

static void timers_are_set_cleared_and_taken_only_as_they_are(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    struct found *found;

    (void)state;
    assert_int_equal(
        change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 7, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_TAKE, 0, 7, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, 0, 9, &value)), 0);
    found = load(pad);
    assert_int_equal(found->timer_count, 2);
    assert_int_equal(found->timers[0].timer, DET_STATE_TIMER);
    assert_int_equal(found->timers[0].due, 7);
    assert_null(found->timers[0].value);
    assert_int_equal(found->timers[1].timer, 0);
    assert_int_equal(found->timer_values[1], 5);
    assert_int_equal(
        change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 8, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 0, NULL)), 0);
    assert_int_equal(load(pad)->timer_count, 0);
    pad_close(pad);
}

static int change_effect(
    struct pad *pad, enum det_store_change_kind kind, uint64_t sequence, bool is_dead)
{
    struct pad_event value = { .kind = SMALL, .as.small = sequence };
    uint64_t data = sequence * 2;
    struct det_store_effect_change change = { kind,
                                              { .sequence = sequence,
                                                .attempts = 3,
                                                .next = 11,
                                                .last_error = -4,
                                                .is_dead = is_dead,
                                                .data = &data,
                                                .event = &value } };

    begin(pad);
    pad->commit.effects = &change;
    pad->commit.effect_count = 1;
    return commit(pad);
}

static void effects_are_kept_until_they_are_taken(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found;

    (void)state;
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 1, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 2, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 2, true), 0);
    found = load(pad);
    assert_int_equal(found->effect_count, 2);
    assert_int_equal(found->effects[0].sequence, 1);
    assert_int_equal(found->effect_data[0], 2);
    assert_int_equal(found->effect_events[1], 2);
    assert_true(found->effects[1].is_dead);
    assert_int_equal(found->effects[1].attempts, 3);
    assert_int_equal(found->effects[1].next, 11);
    assert_int_equal(found->effects[1].last_error, -4);
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(load(pad)->effect_count, 1);
    pad_close(pad);
}

static int change_deferred(struct pad *pad, enum det_store_change_kind kind, uint64_t sequence)
{
    struct pad_event value = { .kind = SMALL, .as.small = sequence };
    struct det_store_deferred_change change = { kind, { sequence, &value } };

    begin(pad);
    pad->commit.deferred = &change;
    pad->commit.deferred_count = 1;
    return commit(pad);
}

static void deferred_events_are_kept_in_order_until_they_are_taken(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found;

    (void)state;
    assert_int_equal(change_deferred(pad, DET_STORE_TAKE, 1), DET_ERR_NOT_FOUND);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(change_deferred(pad, DET_STORE_SET, i), 0);
    assert_int_equal(change_deferred(pad, DET_STORE_TAKE, 2), 0);
    found = load(pad);
    assert_int_equal(found->deferred_count, 2);
    assert_int_equal(found->deferred[0], 1);
    assert_int_equal(found->deferred[1], 3);
    assert_int_equal(found->deferred_values[1], 3);
    pad_close(pad);
}

static int count_pending(void *context, const char *id)
{
    assert_string_equal(id, "p");
    ++*(unsigned *)context;
    return 0;
}

static unsigned pending(struct pad *pad, det_time before)
{
    unsigned count = 0;

    assert_int_equal(
        pad->store->ops->pending(pad->store, pad->machine, before, count_pending, &count), 0);
    return count;
}

static void pending_are_those_with_a_timer_due_or_an_effect_that_lives(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    assert_int_equal(pending(pad, DET_NEVER), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(pending(pad, 7), 0);
    assert_int_equal(pending(pad, 8), 1);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, DET_STATE_TIMER, 0, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, 0, 7, NULL)), 0);
    assert_int_equal(pending(pad, 8), 1);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 0, NULL)), 0);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 1, false), 0);
    assert_int_equal(pending(pad, 0), 1);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 1, true), 0);
    assert_int_equal(pending(pad, DET_NEVER), 0);
    pad_close(pad);
}

static void another_shape_of_the_same_name_is_refused(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct det_machine *other = pad_machine(2), *same = pad_machine(1);
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(pad->store->ops->serve(pad->store, other, &error), DET_ERR_VERSION);
    assert_int_equal(error.code, DET_ERR_VERSION);
    assert_int_equal(pad->store->ops->serve(pad->store, same, &error), 0);
    assert_int_equal(load(pad)->loaded.head.visit, 1);
    det_machine_close(other);
    pad_close(pad);
    det_machine_close(same);
}

/* Everything that a commit can hold, in one. */
static int fill(struct pad *pad)
{
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    uint64_t data = 9;
    struct det_store_timer_change timers[] = { timer(DET_STORE_SET, DET_STATE_TIMER, 7, &value),
                                               timer(DET_STORE_SET, 0, 9, &value) };
    struct det_store_effect_change effect = { DET_STORE_SET,
                                              { .sequence = 1, .data = &data, .event = &value } };
    struct det_store_deferred_change deferred = { DET_STORE_SET, { 1, &value } };

    begin(pad);
    add_event(pad, TEXT);
    pad->event.event_id = pad->commit.event_id = "id-1";
    pad->commit.data = &data;
    pad->commit.reason = "why";
    pad->commit.timers = timers;
    pad->commit.timer_count = 2;
    pad->commit.effects = &effect;
    pad->commit.effect_count = 1;
    pad->commit.deferred = &deferred;
    pad->commit.deferred_count = 1;
    return commit(pad);
}

static int all_or_nothing(struct det_test_memory *memory, void *argument)
{
    struct pad pad;
    struct found *found;
    struct rows rows = { 0 };
    uint64_t fail_at;
    int r;

    r = pad_open_in(&pad, &(struct det_store_options){ .allocator = &memory->allocator }, argument);
    if (r == 0) {
        r = fill(&pad);
        fail_at = memory->fail_at;
        memory->fail_at = 0;
        found = load(&pad);
        assert_int_equal(walk(&pad, 1, &rows), 0);
        memory->fail_at = fail_at;
        assert_int_equal(found->loaded.head.sequence, r == 0);
        assert_int_equal(found->timer_count, r == 0 ? 2 : 0);
        assert_int_equal(found->effect_count, r == 0);
        assert_int_equal(found->deferred_count, r == 0);
        assert_int_equal(found->data, r == 0 ? 9 : 0);
        assert_string_equal(found->loaded.reason, r == 0 ? "why" : "");
    }
    det_store_close(pad.store);
    return r;
}

static void a_commit_without_memory_leaves_nothing(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(all_or_nothing, machine);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_is_found_as_it_was_committed),
        cmocka_unit_test(a_second_of_the_same_id_is_refused),
        cmocka_unit_test(a_commit_from_another_sequence_is_a_conflict),
        cmocka_unit_test(an_event_id_is_remembered_with_its_answer_and_taken_once),
        cmocka_unit_test(the_last_events_are_kept_with_all_they_carry),
        cmocka_unit_test(a_commit_of_more_events_than_are_kept_keeps_the_last),
        cmocka_unit_test(timers_are_set_cleared_and_taken_only_as_they_are),
        cmocka_unit_test(effects_are_kept_until_they_are_taken),
        cmocka_unit_test(deferred_events_are_kept_in_order_until_they_are_taken),
        cmocka_unit_test(pending_are_those_with_a_timer_due_or_an_effect_that_lives),
        cmocka_unit_test(another_shape_of_the_same_name_is_refused),
        cmocka_unit_test(a_commit_without_memory_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
