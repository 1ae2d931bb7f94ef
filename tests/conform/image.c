/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* image.c - reads everything that a store returns about an instance, and compares two
 * such images. */
#include "conform/conform.h"

char image_context[80];

uint64_t value_number(const struct parcel_event *value)
{
    switch ((unsigned)value->kind) {
    case PARCEL_COUNT:
        return value->count.number;
    case PARCEL_CHECKED:
        return value->checked.number;
    case PARCEL_LATE:
        return value->is_late.number;
    }
    fail_msg("an event without a number");
    return 0;
}

static int add_timer(void *context, const struct det_store_timer *row)
{
    struct image *image = context;
    size_t place = image->timer_count++;

    assert_true(place < 4);
    for (; place && image->timers[place - 1].row.timer > row->timer; place--)
        image->timers[place] = image->timers[place - 1];
    image->timers[place].row = *row;
    image->timers[place].row.reason = NULL;
    snprintf(
        image->timers[place].reason, sizeof image->timers[place].reason, "%s",
        row->reason ? row->reason : "");
    image->timers[place].value = (struct parcel_event){ .kind = row->event };
    if (row->value)
        memcpy(&image->timers[place].value, row->value, sizeof(struct parcel_event));
    return 0;
}

static int add_effect(void *context, const struct det_store_effect *row)
{
    struct image *image = context;
    struct image_effect *effect = &image->effects[image->effect_count++];

    assert_true(image->effect_count <= IMAGE_ROWS);
    assert_non_null(row->data);
    assert_non_null(row->event);
    effect->row = *row;
    effect->row.trace = NULL; /* see trace_cases.c */
    effect->row.reason = NULL;
    snprintf(effect->reason, sizeof effect->reason, "%s", row->reason ? row->reason : "");
    memcpy(&effect->data, row->data, sizeof effect->data);
    memcpy(&effect->value, row->event, sizeof effect->value);
    return 0;
}

static int add_deferred(void *context, const struct det_store_deferred *row)
{
    struct image *image = context;
    struct image_deferred *deferred = &image->deferred[image->deferred_count++];

    assert_true(image->deferred_count <= DET_DEFERRED_MAX);
    deferred->sequence = row->sequence;
    memcpy(&deferred->value, row->event, sizeof deferred->value);
    return 0;
}

static int add_event(void *context, const struct det_store_event *row)
{
    struct image *image = context;
    struct image_event *event = &image->events[image->event_count++];

    assert_true(image->event_count <= IMAGE_EVENTS);
    event->row = *row;
    event->row.trace = NULL;
    assert_true((row->event == UINT16_MAX) == !row->value);
    if (row->value)
        memcpy(&event->value, row->value, sizeof event->value);
    if (row->event_id)
        snprintf(event->event_id, sizeof event->event_id, "%s", row->event_id);
    if (row->cause)
        snprintf(event->cause, sizeof event->cause, "%s", row->cause);
    return 0;
}

static void read_rest(struct box *box, struct image *image, const char *id)
{
    struct det_store *store = box->store;
    struct det_store_instance *instance = image->loaded.instance;
    int r;

    assert_int_equal(store->ops->events(store, instance, 0, add_event, image), 0);
    image->snapshot.loaded.data = &image->snapshot_data;
    r = store->ops->snapshot(store, instance, &image->snapshot);
    image->has_snapshot = r == 0;
    assert_true(r == 0 || r == DET_ERR_NOT_FOUND);
    assert_int_equal(
        store->ops->lock(
            store, box->machine,
            &(struct det_store_lease_change){ .verb = DET_LEASE_READ, .name = id }, &image->lock),
        0);
}

struct image *image_read(struct box *box, const char *id)
{
    struct image *image = calloc(1, sizeof *image);
    const struct det_store_rows rows = { image, add_timer, add_effect, add_deferred };
    int r;

    assert_non_null(image);
    image->loaded.data = &image->data;
    r = box->store->ops->load(box->store, box->machine, id, &rows, &image->loaded);
    if (r == DET_ERR_NOT_FOUND)
        return image;
    assert_int_equal(r, 0);
    image->is_there = true;
    read_rest(box, image, id);
    box->store->ops->release(box->store, image->loaded.instance);
    image->loaded.instance = NULL;
    return image;
}

void subject_load(struct subject *subject)
{
    static const struct det_store_rows none = { 0 };
    struct det_store_loaded loaded = { .data = &subject->data };
    struct det_store *store = subject->store;

    if (subject->instance)
        store->ops->release(store, subject->instance);
    subject->instance = NULL;
    assert_int_equal(
        store->ops->load(store, subject->box->machine, subject->id, &none, &loaded), 0);
    subject->instance = loaded.instance;
    subject->head = loaded.head;
    subject->history_count = loaded.history_count;
    memcpy(subject->history, loaded.history, sizeof subject->history);
    memcpy(subject->reason, loaded.reason, sizeof subject->reason);
}

struct subject *subject_find(struct box *box, struct det_store *store, const char *id)
{
    struct subject *subject = subject_new(box, id);

    subject->store = store;
    subject_load(subject);
    return subject;
}

#define SAME(what) \
    if (!(what))   \
    fail_msg("images differ: %s %s", #what, image_context)

static void head_assert_equal(const struct det_store_head *a, const struct det_store_head *b)
{
    SAME(a->sequence == b->sequence);
    SAME(a->visit == b->visit);
    SAME(a->transition_count == b->transition_count);
    SAME(a->started_at == b->started_at);
    SAME(a->last_transition_at == b->last_transition_at);
    SAME(a->state == b->state);
    SAME(a->is_stopped == b->is_stopped);
}

static void loaded_assert_equal(const struct det_store_loaded *a, const struct det_store_loaded *b)
{
    head_assert_equal(&a->head, &b->head);
    SAME(strcmp(a->reason, b->reason) == 0);
    SAME(parcel_data_equal(a->data, b->data));
    SAME(a->history_count == b->history_count);
    SAME(memcmp(a->history, b->history, a->history_count * sizeof a->history[0]) == 0);
}

static void event_assert_equal(const struct image_event *a, const struct image_event *b)
{
    SAME(a->row.sequence == b->row.sequence);
    SAME(a->row.visit == b->row.visit);
    SAME(a->row.from == b->row.from && a->row.to == b->row.to);
    SAME(a->row.event == b->row.event);
    SAME(a->row.outcome == b->row.outcome);
    SAME(a->row.choice == b->row.choice);
    SAME(a->row.is_timeout == b->row.is_timeout);
    SAME(a->row.at == b->row.at);
    SAME(!a->row.event_id == !b->row.event_id && strcmp(a->event_id, b->event_id) == 0);
    SAME(!a->row.cause == !b->row.cause && strcmp(a->cause, b->cause) == 0);
    if (a->row.event != UINT16_MAX)
        SAME(parcel_value_equal(a->row.event, &a->value, &b->value));
}

static void timer_assert_equal(const struct image_timer *a, const struct image_timer *b)
{
    SAME(a->row.timer == b->row.timer);
    SAME(a->row.event == b->row.event);
    SAME(a->row.visit == b->row.visit);
    SAME(a->row.due == b->row.due);
    SAME(parcel_value_equal(a->row.event, &a->value, &b->value));
}

static void effect_assert_equal(const struct image_effect *a, const struct image_effect *b)
{
    SAME(a->row.sequence == b->row.sequence && a->row.index == b->row.index);
    SAME(a->row.effect == b->row.effect);
    SAME(a->row.from == b->row.from && a->row.to == b->row.to);
    SAME(a->row.visit == b->row.visit);
    SAME(a->row.asked == b->row.asked);
    SAME(a->row.at == b->row.at);
    SAME(a->row.attempts == b->row.attempts);
    SAME(a->row.last_error == b->row.last_error);
    SAME(strcmp(a->reason, b->reason) == 0);
    SAME(a->row.next == b->row.next);
    SAME(a->row.is_dead == b->row.is_dead);
    SAME(parcel_data_equal(&a->data, &b->data));
    SAME(parcel_value_equal((uint16_t)a->value.kind, &a->value, &b->value));
}

static void rows_assert_equal(const struct image *a, const struct image *b)
{
    SAME(a->event_count == b->event_count);
    for (size_t i = 0; i < a->event_count; i++)
        event_assert_equal(&a->events[i], &b->events[i]);
    SAME(a->timer_count == b->timer_count);
    for (size_t i = 0; i < a->timer_count; i++)
        timer_assert_equal(&a->timers[i], &b->timers[i]);
    SAME(a->effect_count == b->effect_count);
    for (size_t i = 0; i < a->effect_count; i++)
        effect_assert_equal(&a->effects[i], &b->effects[i]);
    SAME(a->deferred_count == b->deferred_count);
    for (size_t i = 0; i < a->deferred_count; i++) {
        SAME(a->deferred[i].sequence == b->deferred[i].sequence);
        SAME(parcel_value_equal(
            (uint16_t)a->deferred[i].value.kind, &a->deferred[i].value, &b->deferred[i].value));
    }
}

void image_assert_equal(const struct image *a, const struct image *b)
{
    SAME(a->is_there == b->is_there);
    if (!a->is_there)
        return;
    loaded_assert_equal(&a->loaded, &b->loaded);
    rows_assert_equal(a, b);
    SAME(a->has_snapshot == b->has_snapshot);
    if (a->has_snapshot)
        loaded_assert_equal(&a->snapshot.loaded, &b->snapshot.loaded);
    SAME(a->lock.token == b->lock.token);
    SAME(strcmp(a->lock.owner, b->lock.owner) == 0);
    SAME(a->lock.sequence == b->lock.sequence);
}
