/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* read_back.c - reads the content of a store into a model. */
#include <stdio.h>
#include <string.h>

#include "crash/run.h"
#include "crash/value.h"

static int64_t read_event(uint16_t event)
{
    return event == UINT16_MAX ? -1 : event;
}

static int look_timer(void *context, const struct det_store_timer *row)
{
    struct crash_instance *instance = context;
    unsigned timer = row->timer == DET_STATE_TIMER ? 0 : row->timer + 1u;

    if (timer >= CRASH_TIMERS || instance->timers[timer].armed)
        return DET_ERR_CORRUPT;
    instance->timers[timer] = (struct crash_timer){ .armed = 1,
                                                    .event = row->event,
                                                    .visit = (int64_t)row->visit,
                                                    .due = row->due,
                                                    .value = crash_value_read(row->value) };
    return 0;
}

static int look_effect(void *context, const struct det_store_effect *row)
{
    struct crash_instance *instance = context;
    struct crash_effect *to = &instance->effects[instance->effect_count];

    if (instance->effect_count++ == CRASH_EFFECTS)
        return DET_ERR_CORRUPT;
    *to = (struct crash_effect){ .sequence = (int64_t)row->sequence,
                                 .index = row->index,
                                 .effect = row->effect,
                                 .from = row->from,
                                 .to = row->to,
                                 .visit = (int64_t)row->visit,
                                 .asked = (int64_t)row->asked,
                                 .at = row->at,
                                 .attempts = row->attempts,
                                 .last_error = row->last_error,
                                 .next = row->next,
                                 .dead = row->is_dead,
                                 .data = crash_data_read(row->data),
                                 .event = ((const struct crash_value *)row->event)->kind,
                                 .value = crash_value_read(row->event) };
    return 0;
}

static int look_deferred(void *context, const struct det_store_deferred *row)
{
    struct crash_instance *instance = context;

    if (instance->deferred_count == CRASH_DEFERRED)
        return DET_ERR_CORRUPT;
    instance->deferred[instance->deferred_count++] =
        (struct crash_deferred){ (int64_t)row->sequence,
                                 ((const struct crash_value *)row->event)->kind,
                                 crash_value_read(row->event) };
    return 0;
}

static int look_event(void *context, const struct det_store_event *row)
{
    struct crash_instance *instance = context;

    if (instance->event_count == CRASH_KEPT)
        return DET_ERR_CORRUPT;
    instance->events[instance->event_count++] =
        (struct crash_event){ .sequence = (int64_t)row->sequence,
                              .visit = (int64_t)row->visit,
                              .from = row->from,
                              .to = row->to,
                              .event = read_event(row->event),
                              .outcome = row->outcome,
                              .choice = row->choice,
                              .timeout = row->is_timeout,
                              .at = row->at,
                              .event_id = crash_text_read(row->event_id, 'e'),
                              .cause = crash_text_read(row->cause, 'c'),
                              .value = crash_value_read(row->value) };
    return 0;
}

static void look_head(
    struct crash_instance *instance, const struct det_store_loaded *loaded, int64_t data)
{
    instance->head = (struct crash_head){ .exists = 1,
                                          .state = loaded->head.state,
                                          .sequence = (int64_t)loaded->head.sequence,
                                          .visit = (int64_t)loaded->head.visit,
                                          .transitions = (int64_t)loaded->head.transition_count,
                                          .started_at = loaded->head.started_at,
                                          .moved_at = loaded->head.last_transition_at,
                                          .stopped = loaded->head.is_stopped,
                                          .reason = crash_text_read(loaded->reason, 'r'),
                                          .data = data };
    for (size_t i = 0; i < CRASH_HISTORY; i++)
        instance->history[i] = i < loaded->history_count ? loaded->history[i] : -1;
}

static int look_answers(
    struct det_store *store, struct det_store_instance *handle, struct crash_instance *instance)
{
    struct det_store_answer answer;
    char id[32];
    int r = 0;

    for (int64_t i = 0; i < CRASH_IDS && (r == 0 || r == DET_ERR_NOT_FOUND); i++) {
        crash_text_make(id, 'e', i + 1);
        r = store->ops->answer(store, handle, id, &answer);
        if (r == 0)
            instance->answers[i] =
                (struct crash_answer){ 1, answer.outcome, answer.state, (int64_t)answer.sequence,
                                       (int64_t)answer.visit };
    }
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static int look_snapshot(
    struct det_store *store, struct det_store_instance *handle, struct crash_instance *instance)
{
    struct crash_data data;
    struct det_store_snapshot found = { .loaded.data = &data };
    const struct det_store_head *head = &found.loaded.head;
    int64_t count;
    int r;

    r = store->ops->snapshot(store, handle, &found);
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;
    count = (int64_t)found.loaded.history_count;
    instance->snapshot = (struct crash_snapshot){ 1,
                                                  head->state,
                                                  (int64_t)head->sequence,
                                                  (int64_t)head->visit,
                                                  (int64_t)head->transition_count,
                                                  head->is_stopped,
                                                  crash_data_read(&data),
                                                  count };
    return 0;
}

static int look_lock(struct crash_run *run, const char *name, bool is_lease, struct crash_lock *ret)
{
    struct det_store_lease_change change = { .verb = DET_LEASE_READ, .name = name, .owner = "" };
    struct det_store_lease lease = { 0 };
    int r;

    r = is_lease
            ? run->store->ops->lease(run->store, &change, &lease)
            : run->store->ops->lock(run->store, run->machines[run->version - 1], &change, &lease);
    ret->token = (int64_t)lease.token;
    return r;
}

static int look_instance(struct crash_run *run, unsigned number, struct crash_instance *instance)
{
    struct det_store *store = run->store;
    struct crash_data data;
    struct det_store_loaded loaded = { .data = &data };
    struct det_store_rows rows = { instance, look_timer, look_effect, look_deferred };
    char id[32];
    int r;

    crash_text_make(id, 'i', number);
    r = store->ops->load(store, run->machines[run->version - 1], id, &rows, &loaded);
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;
    look_head(instance, &loaded, crash_data_read(&data));
    r = store->ops->events(store, loaded.instance, 0, look_event, instance);
    if (r == 0)
        r = look_answers(store, loaded.instance, instance);
    if (r == 0)
        r = look_snapshot(store, loaded.instance, instance);
    store->ops->release(store, loaded.instance);
    return r < 0 ? r : look_lock(run, id, false, &instance->lock);
}

int crash_run_read(struct crash_run *run, struct crash_model *ret)
{
    char name[32];
    int r = 0;

    memset(ret, 0, sizeof *ret);
    for (unsigned i = 0; i < CRASH_INSTANCES && r == 0; i++) {
        r = look_instance(run, i, &ret->instances[i]);
        if (r < 0)
            snprintf(run->text, sizeof run->text, "instance %u cannot be read: %d", i, r);
    }
    for (unsigned i = 0; i < CRASH_LEASES && r == 0; i++) {
        crash_text_make(name, 'l', i);
        r = look_lock(run, name, true, &ret->leases[i]);
    }
    return r;
}

struct findings {
    struct crash_run *run;
    unsigned count;
};

static int look_finding(void *context, const struct det_store_finding *row)
{
    struct findings *findings = context;

    if (findings->count++ == 0)
        snprintf(
            findings->run->text, sizeof findings->run->text, "%s, event %llu: %s",
            row->id ? row->id : "the store", (unsigned long long)row->sequence, row->text);
    return 0;
}

int crash_run_check(struct crash_run *run, unsigned *ret)
{
    struct findings findings = { run, 0 };
    int r;

    if (!run->store->ops->check)
        return DET_ERR_UNSUPPORTED;
    r = run->store->ops->check(run->store, look_finding, NULL, &findings);
    *ret = findings.count;
    return r;
}
