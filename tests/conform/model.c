/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model.c - decides and applies a commit in the simplest way. */
#include "conform/model.h"

void model_init(struct model *model)
{
    memset(model, 0, sizeof *model);
    model->image.loaded.data = &model->image.data;
    model->image.snapshot.loaded.data = &model->image.snapshot_data;
}

static int id_number(const char *event_id)
{
    return event_id ? (int)strtol(event_id + 1, NULL, 10) : -1;
}

static const struct image_timer *find_timer(const struct image *image, uint16_t timer)
{
    for (size_t i = 0; i < image->timer_count; i++) {
        if (image->timers[i].row.timer == timer)
            return &image->timers[i];
    }
    return NULL;
}

static size_t find_effect(const struct image *image, const struct det_store_effect *row)
{
    size_t i = 0;

    while (i < image->effect_count && (image->effects[i].row.sequence != row->sequence ||
                                       image->effects[i].row.index != row->index))
        i++;
    return i;
}

static size_t find_deferred(const struct image *image, uint64_t sequence)
{
    size_t i = 0;

    while (i < image->deferred_count && image->deferred[i].sequence != sequence)
        i++;
    return i;
}

static unsigned timer_refusals(
    const struct image *image, const struct det_store_commit *commit, det_time now)
{
    unsigned refusals = 0;

    for (size_t i = 0; i < commit->timer_count; i++) {
        const struct det_store_timer *row = &commit->timers[i].timer;
        const struct image_timer *timer = find_timer(image, row->timer);

        if (commit->timers[i].kind != DET_STORE_TAKE)
            continue;
        if (!timer || timer->row.due != row->due || timer->row.visit != row->visit)
            refusals |= MODEL_NOT_FOUND;
        else if (row->due > now)
            refusals |= MODEL_EARLY;
    }
    return refusals;
}

static unsigned row_refusals(const struct image *image, const struct det_store_commit *commit)
{
    for (size_t i = 0; i < commit->effect_count; i++) {
        if (commit->effects[i].kind != DET_STORE_SET &&
            find_effect(image, &commit->effects[i].effect) == image->effect_count)
            return MODEL_NOT_FOUND;
    }
    for (size_t i = 0; i < commit->deferred_count; i++) {
        if (commit->deferred[i].kind == DET_STORE_TAKE &&
            find_deferred(image, commit->deferred[i].deferred.sequence) == image->deferred_count)
            return MODEL_NOT_FOUND;
    }
    return 0;
}

static unsigned lock_refusals(
    const struct image *image, const struct det_store_commit *commit, det_time now)
{
    bool is_held = image->lock.expires_at > now;

    if (commit->fence)
        return is_held && commit->fence == image->lock.token ? 0 : MODEL_LOCK_LOST;
    return is_held ? MODEL_LOCKED : 0;
}

unsigned model_refusals(
    const struct model *model, const struct det_store_commit *commit, det_time now)
{
    const struct image *image = &model->image;
    int id = id_number(commit->event_id);
    unsigned refusals = 0;

    if (commit->is_new)
        return image->is_there ? MODEL_EXISTS | lock_refusals(image, commit, now) : 0;
    if ((commit->event_count || commit->is_snapshot) &&
        commit->expected != image->loaded.head.sequence)
        refusals |= MODEL_CONFLICT;
    if (id >= 0 && model->knows[id])
        refusals |= MODEL_EXISTS;
    return refusals | lock_refusals(image, commit, now) | timer_refusals(image, commit, now) |
           row_refusals(image, commit);
}

unsigned model_refusal_of(int result)
{
    switch (result) {
    case DET_ERR_CONFLICT:
        return MODEL_CONFLICT;
    case DET_ERR_LOCKED:
        return MODEL_LOCKED;
    case DET_ERR_LOCK_LOST:
        return MODEL_LOCK_LOST;
    case DET_ERR_EARLY:
        return MODEL_EARLY;
    case DET_ERR_EXISTS:
        return MODEL_EXISTS;
    case DET_ERR_NOT_FOUND:
        return MODEL_NOT_FOUND;
    }
    return 0;
}

static void push_history(struct det_store_loaded *loaded, uint16_t state)
{
    size_t kept =
        loaded->history_count < DET_HISTORY_MAX ? loaded->history_count : DET_HISTORY_MAX - 1;

    memmove(loaded->history + 1, loaded->history, kept * sizeof loaded->history[0]);
    loaded->history[0] = state;
    loaded->history_count = kept + 1;
}

static void apply_event(struct image *image, const struct det_store_event *row)
{
    struct image_event *event = &image->events[image->event_count++];

    assert_true(image->event_count <= IMAGE_EVENTS);
    memset(event, 0, sizeof *event);
    event->row = *row;
    if (row->value)
        memcpy(&event->value, row->value, sizeof event->value);
    if (row->event_id)
        snprintf(event->event_id, sizeof event->event_id, "%s", row->event_id);
    if (row->cause)
        snprintf(event->cause, sizeof event->cause, "%s", row->cause);
    if (row->outcome == DET_OUTCOME_GOTO)
        push_history(&image->loaded, row->from);
}

static void apply_timer(struct image *image, const struct det_store_timer_change *change)
{
    size_t place = 0;

    while (place < image->timer_count && image->timers[place].row.timer < change->timer.timer)
        place++;
    if (place < image->timer_count && image->timers[place].row.timer == change->timer.timer) {
        image->timer_count--;
        memmove(
            &image->timers[place], &image->timers[place + 1],
            (image->timer_count - place) * sizeof image->timers[0]);
    }
    if (change->kind != DET_STORE_SET)
        return;
    memmove(
        &image->timers[place + 1], &image->timers[place],
        (image->timer_count++ - place) * sizeof image->timers[0]);
    image->timers[place].row = change->timer;
    image->timers[place].value = (struct parcel_event){ .kind = change->timer.event };
    if (change->timer.value)
        memcpy(&image->timers[place].value, change->timer.value, sizeof image->timers[place].value);
}

static void apply_effect(struct image *image, const struct det_store_effect_change *change)
{
    const struct det_store_effect *row = &change->effect;
    size_t place = find_effect(image, row);
    struct image_effect *effect = &image->effects[place];

    switch (change->kind) {
    case DET_STORE_SET:
        assert_true(place == image->effect_count && place < IMAGE_ROWS);
        image->effect_count++;
        effect->row = *row;
        snprintf(effect->reason, sizeof effect->reason, "%s", row->reason ? row->reason : "");
        memcpy(&effect->data, row->data, sizeof effect->data);
        memcpy(&effect->value, row->event, sizeof effect->value);
        return;
    case DET_STORE_TAKE:
        image->effect_count--;
        memmove(effect, effect + 1, (image->effect_count - place) * sizeof *effect);
        return;
    case DET_STORE_UPDATE:
        effect->row.attempts = row->attempts;
        effect->row.last_error = row->last_error;
        snprintf(effect->reason, sizeof effect->reason, "%s", row->reason ? row->reason : "");
        effect->row.next = row->next;
        effect->row.is_dead = row->is_dead;
        return;
    case DET_STORE_CLEAR:
        fail_msg("effects are not cleared");
    }
}

static void apply_deferred(struct image *image, const struct det_store_deferred_change *change)
{
    size_t place = find_deferred(image, change->deferred.sequence);
    struct image_deferred *deferred = &image->deferred[place];

    if (change->kind == DET_STORE_TAKE) {
        image->deferred_count--;
        memmove(deferred, deferred + 1, (image->deferred_count - place) * sizeof *deferred);
        return;
    }
    assert_true(place == image->deferred_count && place < DET_DEFERRED_MAX);
    image->deferred_count++;
    deferred->sequence = change->deferred.sequence;
    memcpy(&deferred->value, change->deferred.event, sizeof deferred->value);
}

static void apply_snapshot(struct image *image, const struct det_store_commit *commit)
{
    struct det_store_loaded *kept = &image->snapshot.loaded;

    if (image->has_snapshot && kept->head.sequence >= image->loaded.head.sequence)
        return;
    image->has_snapshot = true;
    image->snapshot_data = image->data;
    kept->head = image->loaded.head;
    memcpy(kept->reason, image->loaded.reason, sizeof kept->reason);
    kept->history_count = commit->history_count;
    if (commit->history_count)
        memcpy(kept->history, commit->history, commit->history_count * sizeof kept->history[0]);
}

void model_apply(struct model *model, const struct det_store_commit *commit)
{
    struct image *image = &model->image;
    int id = id_number(commit->event_id);

    image->is_there = true;
    for (size_t i = 0; i < commit->event_count; i++)
        apply_event(image, &commit->events[i]);
    for (size_t i = 0; i < commit->timer_count; i++)
        apply_timer(image, &commit->timers[i]);
    for (size_t i = 0; i < commit->effect_count; i++)
        apply_effect(image, &commit->effects[i]);
    for (size_t i = 0; i < commit->deferred_count; i++)
        apply_deferred(image, &commit->deferred[i]);
    if (commit->data)
        memcpy(&image->data, commit->data, sizeof image->data);
    if (commit->reason)
        snprintf(image->loaded.reason, sizeof image->loaded.reason, "%s", commit->reason);
    if (commit->event_count || commit->is_new)
        image->loaded.head = *commit->head;
    image->lock.sequence = image->loaded.head.sequence;
    if (commit->is_snapshot)
        apply_snapshot(image, commit);
    if (id < 0)
        return;
    model->knows[id] = true;
    model->answers[id] = commit->answer;
}

uint64_t model_prune(struct model *model, uint64_t sequence)
{
    struct image *image = &model->image;
    uint64_t last = image->has_snapshot ? image->snapshot.loaded.head.sequence : 0;
    size_t gone = 0;

    if (sequence < last)
        last = sequence;
    while (gone < image->event_count && image->events[gone].row.sequence <= last)
        gone++;
    image->event_count -= gone;
    memmove(image->events, image->events + gone, image->event_count * sizeof image->events[0]);
    return gone;
}
