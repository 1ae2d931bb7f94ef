/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_list.c - shows workers: copies, made on the loop. */
#include <detent/tool/workers.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"
#include "json/writer.h"

static enum det_freshness freshness_of(const struct det_worker *worker)
{
    if (!worker->kind->collect)
        return DET_FRESHNESS_FRESH;
    if (!worker->observing.observed_at)
        return DET_FRESHNESS_NEVER;
    return worker->workers->now - worker->observing.observed_at >= worker->observing.stale_after
               ? DET_FRESHNESS_STALE
               : DET_FRESHNESS_FRESH;
}

static void describe(const struct det_worker *worker, struct det_worker_status *ret)
{
    const struct det_worker_state *state = &worker->kind->states[worker->state];
    det_time ahead = worker->workers->wall_ahead;

    memset(ret, 0, sizeof *ret);
    det_text_copy(ret->id, sizeof ret->id, worker->identity.id);
    det_text_copy(ret->path, sizeof ret->path, worker->identity.path);
    det_text_copy(ret->name, sizeof ret->name, worker->identity.name);
    det_text_copy(ret->kind, sizeof ret->kind, worker->identity.kind);
    det_text_copy(ret->state, sizeof ret->state, state->name);
    det_text_copy(ret->life, sizeof ret->life, det_life_name(worker));
    det_text_copy(ret->reason, sizeof ret->reason, worker->reason);
    det_text_copy(ret->degraded_by, sizeof ret->degraded_by, worker->desire.degraded_by);
    ret->phase = state->phase;
    ret->freshness = freshness_of(worker);
    ret->since = worker->since_wall;
    ret->observed = worker->observing.observed_at ? worker->observing.observed_at + ahead : 0;
    ret->depth = worker->place.depth;
    ret->child_count = worker->children.count;
    ret->stop_wanted = det_worker_stop_reason(worker) != NULL;
    ret->shutdown_wanted = worker->shutdown_wanted;
    ret->is_disabled = worker->rest.is_disabled || worker->rest.is_ordered_off;
    ret->is_circuit_open = worker->seen.is_circuit_open;
    ret->is_action_pending = worker->acting.running > 0;
    ret->is_dynamic = worker->place.origin == DET_REQUEST_MANUAL;
    ret->counts = worker->counts;
}

struct getting {
    struct det_workers *workers;
    const char *id;
    const struct det_record *record;
    struct det_worker_status *ret;
    void *ret_observed;
    struct det_error *reterr;
    int r;
};

static bool is_same(const struct det_record *a, const struct det_record *b)
{
    return a == b || (a && b && a->size == b->size && !strcmp(a->name, b->name));
}

static void get(void *argument)
{
    struct getting *getting = argument;
    const struct det_worker *worker = det_map_get(&getting->workers->map, getting->id);
    const struct det_record *record;

    if (!worker) {
        getting->r = det_error_set(
            getting->reterr, DET_ERR_NOT_FOUND, "there is no worker %.200s", getting->id);
        return;
    }
    record = det_record_or_empty(worker->kind->observed);
    if (getting->ret_observed && !is_same(record, getting->record)) {
        getting->r = det_error_set(
            getting->reterr, DET_ERR_INVALID,
            "%.200s is a worker of the kind %s, whose observed record is %s, not %s", getting->id,
            worker->kind->name, record->name, getting->record ? getting->record->name : "unknown");
        return;
    }
    describe(worker, getting->ret);
    if (getting->ret_observed)
        memcpy(getting->ret_observed, worker->observing.value, record->size);
}

int det_workers_get(
    struct det_workers *workers, const char *id, const struct det_record *record,
    struct det_worker_status *ret, void *ret_observed, struct det_error *reterr)
{
    struct getting getting = { workers, id, record, ret, ret_observed, reterr, 0 };
    int r;

    r = det_workers_call(workers, get, &getting);
    if (r < 0)
        return det_error_set(reterr, r, "%.200s: %s", id, det_error_text(r));
    return getting.r;
}

struct visiting {
    struct det_workers *workers;
    int (*visit)(void *user, const struct det_worker_status *status);
    void *user;
    int r;
};

static void visit_all(void *argument)
{
    struct visiting *visiting = argument;
    struct det_worker *root = visiting->workers->root;
    struct det_worker_status status;

    visiting->workers->tick.walking++;
    for (struct det_worker *worker = root; worker && !visiting->r;
         worker = det_worker_after(worker, root)) {
        describe(worker, &status);
        visiting->r = visiting->visit(visiting->user, &status);
        /* The visitor must not remove workers; the list survives it. */
        if (det_life_is_gone(worker))
            break;
    }
    visiting->workers->tick.walking--;
}

int det_workers_each(
    struct det_workers *workers, int (*visit)(void *user, const struct det_worker_status *status),
    void *user)
{
    struct visiting visiting = { workers, visit, user, 0 };
    int r;

    r = det_workers_call(workers, visit_all, &visiting);
    return r < 0 ? r : visiting.r;
}

struct measuring {
    struct det_workers *workers;
    int (*visit)(void *user, const struct det_worker_value *value);
    void *user;
    int r;
};

static void measure_all(void *argument)
{
    struct measuring *measuring = argument;
    struct det_worker *root = measuring->workers->root;

    for (struct det_worker *worker = root; worker && !measuring->r;
         worker = det_worker_after(worker, root))
        for (const struct det_metric *metric = worker->acting.metrics; metric && !measuring->r;
             metric = metric->next)
            measuring->r = measuring->visit(
                measuring->user, &(struct det_worker_value){ .id = worker->identity.id,
                                                             .kind = worker->identity.kind,
                                                             .name = metric->name,
                                                             .is_gauge = metric->is_gauge,
                                                             .count = metric->count,
                                                             .value = metric->value });
}

int det_workers_each_value(
    struct det_workers *workers, int (*visit)(void *user, const struct det_worker_value *value),
    void *user)
{
    struct measuring measuring = { workers, visit, user, 0 };
    int r;

    r = det_workers_call(workers, measure_all, &measuring);
    return r < 0 ? r : measuring.r;
}

/* As JSON. */

static size_t field_json(
    const struct det_field *field, const struct det_record *of, const void *value, char *target,
    size_t capacity)
{
    struct det_record one = { .name = of->name,
                              .version = of->version,
                              .size = of->size,
                              .fields = field,
                              .field_count = 1 };

    return det_record_to_json(&one, value, 0, target, capacity);
}

/* The value alone, of {"name":value}. */
static void append_value(
    struct det_buffer *buffer, const struct det_field *field, const struct det_record *of,
    const void *value)
{
    size_t size = field_json(field, of, value, NULL, 0), head = strlen(field->name) + 4;
    char *place;

    if (size < head + 1) {
        det_buffer_append_text(buffer, "null");
        return;
    }
    place = det_buffer_extend(buffer, size + 1);
    if (!place)
        return;
    field_json(field, of, value, place, size + 1);
    memmove(place, place + head, size - head - 1);
    buffer->size -= head + 2;
    buffer->data[buffer->size] = '\0';
}

static void compare_field(
    struct det_json_writer *json, const struct det_worker *worker, const struct det_field *want,
    const struct det_field *have)
{
    const struct det_record *desired = det_record_of(worker->kind->desired);
    const struct det_record *observed = det_record_of(worker->kind->observed);
    struct det_buffer a, b;

    det_buffer_init(&a, json->text.allocator);
    det_buffer_init(&b, json->text.allocator);
    append_value(&a, want, desired, worker->desire.value);
    append_value(&b, have, observed, worker->observing.value);
    /* An empty text is not a request. */
    if (strcmp(det_buffer_text(&a), "\"\"") != 0 &&
        strcmp(det_buffer_text(&a), det_buffer_text(&b)) != 0) {
        det_json_open(json, want->name, '{');
        det_json_key(json, "desired");
        det_buffer_append_text(&json->text, det_buffer_text(&a));
        det_json_key(json, "observed");
        det_buffer_append_text(&json->text, det_buffer_text(&b));
        det_json_close(json, '}');
    }
    if (a.error || b.error)
        json->text.error = a.error ? a.error : b.error;
    det_buffer_deinit(&a);
    det_buffer_deinit(&b);
}

/* Fields that both records have with different values. */
static void write_gap(struct det_json_writer *json, const struct det_worker *worker)
{
    const struct det_record *desired = det_record_of(worker->kind->desired);
    const struct det_record *observed = det_record_of(worker->kind->observed);

    det_json_open(json, "gap", '{');
    for (size_t i = 0; desired && observed && i < desired->field_count; i++) {
        const struct det_field *want = &desired->fields[i];
        const struct det_field *have = det_record_field(observed, want->name);

        if (have && !(want->flags & DET_FIELD_SENSITIVE) && want->kind == have->kind &&
            (want->flags & DET_FIELD_ARRAY) == (have->flags & DET_FIELD_ARRAY))
            compare_field(json, worker, want, have);
    }
    det_json_close(json, '}');
}

static void write_metrics(struct det_json_writer *json, const struct det_worker *worker)
{
    det_json_open(json, "metrics", '{');
    for (const struct det_metric *metric = worker->acting.metrics; metric; metric = metric->next)
        if (metric->is_gauge)
            det_json_double(json, metric->name, metric->value);
        else
            det_json_number(json, metric->name, metric->count);
    det_json_close(json, '}');
}

static void write_states(struct det_json_writer *json, const struct det_worker *worker)
{
    det_json_open(json, "states", '{');
    for (uint16_t i = 0; i < worker->kind->state_count; i++) {
        const struct det_state_count *count = &worker->acting.state_counts[i];
        det_time total = count->total;

        if (i == worker->state)
            total += worker->workers->now - worker->since;
        if (!count->entered && i != worker->state)
            continue;
        det_json_open(json, worker->kind->states[i].name, '{');
        det_json_number(json, "entered", count->entered);
        det_json_number(json, "total_ms", (uint64_t)(total / DET_MILLISECOND));
        det_json_close(json, '}');
    }
    det_json_close(json, '}');
}

static void write_worker(const struct det_worker *worker, struct det_buffer *ret)
{
    struct det_json_writer json;

    det_json_writer_init(&json, ret->allocator);
    det_json_open(&json, NULL, '{');
    det_json_open(&json, "desired", '{');
    if (worker->desire.is_there)
        det_json_record_members(
            &json, det_record_of(worker->kind->desired), worker->desire.value, 0);
    det_json_close(&json, '}');
    det_json_open(&json, "observed", '{');
    if (worker->observing.observed_at)
        det_json_record_members(
            &json, det_record_of(worker->kind->observed), worker->observing.value, 0);
    det_json_close(&json, '}');
    write_gap(&json, worker);
    write_metrics(&json, worker);
    write_states(&json, worker);
    det_json_close(&json, '}');
    *ret = json.text;
}

struct showing {
    struct det_workers *workers;
    const char *id;
    void (*write)(const struct det_worker *worker, struct det_buffer *buffer);
    struct det_buffer buffer;
    uint64_t after, lost; /* position and loss of a history reader */
    int r;
};

static void show(void *argument)
{
    struct showing *showing = argument;
    const struct det_worker *worker = det_map_get(&showing->workers->map, showing->id);

    det_buffer_init(&showing->buffer, showing->workers->allocator);
    if (!worker)
        showing->r = DET_ERR_NOT_FOUND;
    else if (showing->write)
        showing->write(worker, &showing->buffer);
    else
        det_history_write_after(worker, showing->after, &showing->buffer, &showing->lost);
}

/* As a block of its size + 1. */
static int hand_over(struct showing *showing, char **ret, size_t *ret_size)
{
    const struct det_allocator *allocator = showing->workers->allocator;
    int r = showing->r ? showing->r : det_buffer_status(&showing->buffer);
    char *text = NULL;

    if (r == 0) {
        text =
            det_string_copy_n(allocator, det_buffer_text(&showing->buffer), showing->buffer.size);
        r = text ? 0 : DET_ERR_NO_MEMORY;
    }
    if (r == 0) {
        *ret = text;
        *ret_size = showing->buffer.size;
    }
    det_buffer_deinit(&showing->buffer);
    return r;
}

int det_workers_show(struct det_workers *workers, const char *id, char **ret, size_t *ret_size)
{
    struct showing showing = { .workers = workers, .id = id, .write = write_worker };
    int r;

    r = det_workers_call(workers, show, &showing);
    return r < 0 ? r : hand_over(&showing, ret, ret_size);
}

int det_workers_history(struct det_workers *workers, const char *id, char **ret, size_t *ret_size)
{
    struct showing showing = { .workers = workers, .id = id, .write = det_history_write };
    int r;

    r = det_workers_call(workers, show, &showing);
    return r < 0 ? r : hand_over(&showing, ret, ret_size);
}

int det_workers_history_after(
    struct det_workers *workers, const char *id, uint64_t after, char **ret, size_t *ret_size,
    uint64_t *ret_lost)
{
    struct showing showing = { .workers = workers, .id = id, .after = after };
    int r;

    r = det_workers_call(workers, show, &showing);
    if (r == 0)
        r = hand_over(&showing, ret, ret_size);
    if (r == 0 && ret_lost)
        *ret_lost = showing.lost;
    return r;
}

struct summing {
    struct det_workers *workers;
    struct det_workers_summary *ret;
};

static void sum(void *argument)
{
    struct summing *summing = argument;
    struct det_workers *workers = summing->workers;

    *summing->ret = (struct det_workers_summary){
        .ticks = workers->tick.count,
        .workers = workers->count,
        .stale = workers->tick.counted.stale,
        .degraded = workers->tick.counted.degraded,
        .circuits_open = workers->circuits_open,
        .down = workers->tick.counted.down,
        .actions_running = det_worker_threads_running(workers->actors),
        .actions_queued = det_worker_threads_queued(workers->actors),
        .hung =
            det_worker_threads_hung(workers->actors) + det_worker_threads_hung(workers->collectors),
        .observations = workers->observations.all,
        .observations_failed = workers->observations.failed,
        .tick_took = workers->tick.last_took,
        .tick_took_max = workers->tick.longest_took,
        .threads = det_worker_threads_count(workers->actors) +
                   det_worker_threads_count(workers->collectors),
    };
    memcpy(
        summing->ret->by_phase, workers->tick.counted.by_phase,
        sizeof workers->tick.counted.by_phase);
}

void det_workers_summary(struct det_workers *workers, struct det_workers_summary *ret)
{
    struct summing summing = { workers, ret };

    if (det_workers_call(workers, sum, &summing) < 0)
        memset(ret, 0, sizeof *ret);
}
