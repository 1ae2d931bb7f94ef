/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_documents.c - writes workers as documents of the store; docs/formats/workers.md has the
 * contents. One document of a worker is under way at a time: later changes are written when it has
 * returned. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/worker_tree.h"
#include "json/writer.h"

static void open_object(struct det_json_writer *json, const struct det_worker *worker)
{
    det_json_writer_init(json, worker->workers->allocator);
    json->text.limit = DET_DOCUMENT_MAX;
    det_json_open(json, NULL, '{');
}

/* Passes it to the recorder, which copies it. `done` gets the worker. */
static int save(
    struct det_json_writer *json, struct det_worker *worker, enum det_document_role role,
    void (*done)(void *argument, const struct det_recorded *recorded))
{
    struct det_document_save document = { .kind = worker->kind->name,
                                          .id = worker->identity.id,
                                          .role = role };
    struct det_recording recording = {
        .saves = &document, .count = 1, .done = done, .argument = worker
    };
    int r;

    det_json_close(json, '}');
    document.text = json->text.data;
    document.size = json->text.size;
    r = det_buffer_status(&json->text);
    if (r == 0)
        r = det_recorder_submit(worker->workers->recorder, &recording);
    if (r == 0)
        worker->workers->outstanding.recordings++;
    det_buffer_deinit(&json->text);
    return r;
}

static void report_failure(struct det_worker *worker, int code, const struct det_error *error)
{
    struct det_worker_faults *faults = det_worker_faults(worker);
    uint32_t failures = faults ? ++faults->store_failures : 1;

    if ((failures & (failures - 1)) == 0)
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STORE_FAILED,
                                               .code = code,
                                               .reason = error ? error->text : det_error_text(code),
                                               .number = failures });
}

static void arrived(struct det_worker *worker, const struct det_recorded *recorded)
{
    struct det_workers *workers = worker->workers;

    det_workers_now(workers);
    det_assert(workers->outstanding.recordings > 0);
    workers->outstanding.recordings--;
    if (recorded->code < 0)
        report_failure(worker, recorded->code, recorded->error);
    else if (worker->faults)
        worker->faults->store_failures = 0;
}

/* A returned document may have ended and freed the worker: only one that was gone before is freed
 * here. */
static void settle(struct det_workers *workers, struct det_worker *worker, bool was_gone)
{
    if (was_gone)
        det_worker_settle(worker);
    else
        det_workers_free_gone(workers);
}

/* The key of its identity. */

static int make_key(char *target, size_t size, const char *kind, const char *id)
{
    int used = snprintf(target, size, "%s\n%s", kind, id);

    det_assert(used > 0 && (size_t)used < size);
    return used;
}

#define KEY_MAX (DET_WORKER_NAME_MAX + DET_WORKER_PATH_MAX + 2)

struct det_known *det_record_known(struct det_workers *workers, const char *kind, const char *id)
{
    char text[KEY_MAX];

    make_key(text, sizeof text, kind, id);
    return det_map_get(&workers->earlier.known, text);
}

uint64_t det_record_startups(struct det_workers *workers, const struct det_worker *worker)
{
    struct det_known *known = det_record_known(workers, worker->kind->name, worker->identity.id);

    return known ? known->startups : 0;
}

int det_record_remember(
    struct det_workers *workers, const char *kind, const char *id, uint64_t startups)
{
    struct det_known *known = det_record_known(workers, kind, id);
    char text[KEY_MAX];
    int size, r;

    if (known) {
        known->startups = startups;
        return 0;
    }
    size = make_key(text, sizeof text, kind, id);
    known = det_alloc_zero(workers->allocator, sizeof *known + (size_t)size + 1);
    if (!known)
        return DET_ERR_NO_MEMORY;
    memcpy(known->text, text, (size_t)size + 1);
    known->key = known->text;
    det_list_init(&known->node);
    known->startups = startups;
    r = det_map_put(&workers->earlier.known, known);
    if (r < 0)
        det_free(workers->allocator, known, sizeof *known + (size_t)size + 1);
    return r;
}

bool det_record_is_off(const struct det_worker *worker)
{
    struct det_known *known =
        det_record_known(worker->workers, worker->kind->name, worker->identity.id);

    return known && known->is_ordered_off;
}

int det_record_set_off(struct det_workers *workers, const char *kind, const char *id, bool is_off)
{
    struct det_known *known = det_record_known(workers, kind, id);

    if (!known && is_off) {
        int r = det_record_remember(workers, kind, id, 0);

        if (r < 0)
            return r;
        known = det_record_known(workers, kind, id);
    }
    if (known)
        known->is_ordered_off = is_off;
    return 0;
}

static void forget(struct det_workers *workers, const char *kind, const char *id)
{
    struct det_known *known = det_record_known(workers, kind, id);

    if (!known)
        return;
    det_list_remove(&known->node);
    det_map_remove(&workers->earlier.known, known->key);
    det_free(workers->allocator, known, sizeof *known + strlen(known->text) + 1);
}

void det_record_free_known(struct det_workers *workers)
{
    size_t cursor = 0;
    struct det_known *known;

    while ((known = det_map_next(&workers->earlier.known, &cursor)))
        det_free(workers->allocator, known, sizeof *known + strlen(known->text) + 1);
    det_map_deinit(&workers->earlier.known);
}

static void identity_arrived(void *argument, const struct det_recorded *recorded)
{
    struct det_worker *worker = argument;
    struct det_workers *workers = worker->workers;
    bool was_gone = det_life_is_gone(worker);
    struct det_known *known = det_record_known(workers, worker->kind->name, worker->identity.id);

    arrived(worker, recorded);
    det_assert(worker->documents.is_identity_pending);
    worker->documents.is_identity_pending = false;
    if (known && recorded->code == 0)
        known->startups = worker->counts.startups;
    det_life_recorded(worker, recorded->code, recorded->error);
    settle(workers, worker, was_gone);
}

void det_record_identity(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    struct det_json_writer json;
    int r;

    det_assert(!worker->documents.is_identity_pending && worker->counts.startups > 0);
    open_object(&json, worker);
    det_json_text(&json, "name", worker->identity.name);
    det_json_text(&json, "kind", worker->identity.kind);
    det_json_text(&json, "path", worker->identity.path);
    det_json_number(&json, "startups", worker->counts.startups);
    det_json_time(&json, "started_at", workers->now + workers->wall_ahead);
    /* The value is in effect when it is recorded; until then only room is reserved. */
    r = det_record_remember(
        workers, worker->kind->name, worker->identity.id, worker->counts.startups - 1);
    if (r == 0)
        r = save(&json, worker, DET_DOCUMENT_IDENTITY, identity_arrived);
    else
        det_buffer_deinit(&json.text);
    if (r < 0)
        det_life_recorded(worker, r, NULL);
    else
        worker->documents.is_identity_pending = true;
}

/* The desired state. */

static void desired_arrived(void *argument, const struct det_recorded *recorded)
{
    struct det_worker *worker = argument;
    struct det_workers *workers = worker->workers;
    bool was_gone = det_life_is_gone(worker);

    arrived(worker, recorded);
    det_assert(worker->desire.is_pending);
    worker->desire.is_pending = false;
    det_desire_recorded(worker, recorded->code, recorded->error);
    settle(workers, worker, was_gone);
}

void det_record_desired(struct det_worker *worker)
{
    const void *desired = worker->desire.is_new ? worker->desire.next : worker->desire.value;
    struct det_json_writer json;
    int r;

    if (worker->desire.is_pending)
        return;
    worker->attention &= ~(uint32_t)DET_CHECK_DESIRED;
    if (!worker->desire.is_there && !worker->desire.is_new)
        return;
    open_object(&json, worker);
    det_json_record_members(&json, det_record_of(worker->kind->desired), desired, 0);
    det_json_bool(&json, "shutdown_requested", worker->shutdown_wanted);
    det_json_bool(&json, "disabled", worker->rest.is_disabled || worker->rest.is_ordered_off);
    r = save(&json, worker, DET_DOCUMENT_DESIRED, desired_arrived);
    if (r < 0)
        det_desire_recorded(worker, r, NULL);
    else
        worker->desire.is_pending = true;
}

/* The observed state. */

/* The observed state is not recorded yet: the newest one is written later, so that not every tick
 * calls the store. */
static void put_off(struct det_worker *worker)
{
    worker->attention |= DET_CHECK_OBSERVED;
    worker->documents.record_at = worker->workers->now + DET_SECOND;
}

static void observed_arrived(void *argument, const struct det_recorded *recorded)
{
    struct det_worker *worker = argument;
    struct det_workers *workers = worker->workers;
    bool was_gone = det_life_is_gone(worker);

    arrived(worker, recorded);
    det_assert(worker->documents.is_observed_pending);
    worker->documents.is_observed_pending = false;
    if (recorded->code < 0 && !workers->stopping.is_wanted)
        put_off(worker);
    settle(workers, worker, was_gone);
}

void det_record_observed(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    struct det_json_writer json;

    int r;

    if (worker->documents.is_observed_pending || workers->now < worker->documents.record_at)
        return;
    worker->attention &= ~(uint32_t)DET_CHECK_OBSERVED;
    open_object(&json, worker);
    det_json_text(&json, "state", worker->kind->states[worker->state].name);
    det_json_text(&json, "phase", det_phase_name(worker->kind->states[worker->state].phase));
    det_json_text(&json, "reason", worker->reason);
    det_json_time(&json, "since", worker->since_wall);
    if (worker->desire.is_degraded)
        det_json_text(&json, "degraded_by", worker->desire.degraded_by);
    if (worker->observing.observed_at)
        det_json_record_members(
            &json, det_record_of(worker->kind->observed), worker->observing.value, 0);
    r = save(&json, worker, DET_DOCUMENT_OBSERVED, observed_arrived);
    worker->documents.is_observed_pending = r == 0;
    if (r < 0) {
        report_failure(worker, r, NULL);
        put_off(worker);
    }
}

static void drop_arrived(void *argument, const struct det_recorded *recorded)
{
    struct det_workers *workers = argument;

    det_workers_now(workers);
    det_assert(workers->outstanding.recordings > 0);
    workers->outstanding.recordings--;
    if (recorded->code < 0 && workers->root)
        report_failure(workers->root, recorded->code, recorded->error);
}

static void drop(struct det_workers *workers, const char *kind, const char *id, bool has_order)
{
    static const enum det_document_role roles[] = { DET_DOCUMENT_IDENTITY, DET_DOCUMENT_DESIRED,
                                                    DET_DOCUMENT_OBSERVED, DET_DOCUMENT_SPEC };
    struct det_document_save saves[sizeof roles / sizeof roles[0]];
    struct det_recording recording = { saves, sizeof roles / sizeof roles[0] - !has_order,
                                       drop_arrived, workers };

    for (size_t i = 0; i < recording.count; i++)
        saves[i] =
            (struct det_document_save){ .kind = kind, .id = id, .role = roles[i], .is_drop = true };
    if (det_recorder_submit(workers->recorder, &recording) == 0)
        workers->outstanding.recordings++;
}

void det_record_drop(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    /* The role "spec" is dropped only for an order to disable; a manual spec is removed
     * manually. */
    drop(
        workers, worker->kind->name, worker->identity.id,
        worker->rest.is_ordered_off && !det_manual_has(worker));
    forget(workers, worker->kind->name, worker->identity.id);
}

void det_record_drop_known(struct det_workers *workers, struct det_known *known)
{
    char kind[DET_WORKER_NAME_MAX + 1];
    const char *id = strchr(known->key, '\n') + 1;
    size_t size = (size_t)(id - known->key) - 1;

    size = size < sizeof kind ? size : sizeof kind - 1;
    memcpy(kind, known->key, size);
    kind[size] = '\0';
    drop(workers, kind, id, known->is_ordered_off && !det_manual_waits(workers, id));
    det_list_remove(&known->node);
    det_map_remove(&workers->earlier.known, known->key);
    det_free(workers->allocator, known, sizeof *known + strlen(known->text) + 1);
}
