/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* desire.c - a worker's desired state: derived when its spec or its scope has changed; recorded;
 * and only then visible to next(). A failed derivation keeps the last good one. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "worker/worker_tree.h"

const struct det_scope_values *det_desire_scope(const struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;

    while (worker && det_user_spec_is_plain(&worker->spec))
        worker = worker->parent;
    return worker ? &worker->desire.scope : &workers->scope;
}

static const struct det_scope_values *scope_above(const struct det_worker *worker)
{
    return worker->parent ? det_desire_scope(worker->parent) : &worker->workers->scope;
}

/* Makes the scope of the children again; a new generation causes them to derive again. */
static int refresh_scope(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    struct det_scope_values scope = { 0 };
    int r;

    if (!det_user_spec_is_plain(&worker->spec)) {
        r = det_scope_values_below(&scope, workers->allocator, scope_above(worker), &worker->spec);
        if (r < 0)
            return r;
    }
    det_scope_values_deinit(&worker->desire.scope);
    worker->desire.scope = scope;
    worker->desire.scope_generation = ++workers->generations;
    worker->desire.scope_seen =
        worker->parent ? worker->parent->desire.scope_generation : workers->scope_generation;
    return 0;
}

int det_desire_refresh(struct det_worker *worker)
{
    struct det_worker *way[DET_WORKER_DEPTH_MAX + 1];
    size_t count = 0;
    int r = 0;

    for (; worker; worker = worker->parent) {
        det_assert(count < sizeof way / sizeof *way);
        way[count++] = worker;
    }
    while (count && r == 0) {
        worker = way[--count];
        if (!worker->desire.scope_generation)
            r = refresh_scope(worker);
    }
    return r;
}

static void degrade(struct det_worker *worker, const char *text)
{
    det_text_copy(worker->desire.degraded_by, sizeof worker->desire.degraded_by, text);
    worker->desire.is_degraded = true;
    if (!worker->desire.is_there)
        det_worker_set_reason(worker, text);
    worker->attention |= DET_CHECK_OBSERVED;
    det_worker_notify_parent(worker);
}

static void refused(
    struct det_worker *worker, int code, enum det_derive_step step, const struct det_error *error)
{
    degrade(worker, error->text);
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = step == DET_DERIVE_TEMPLATE
                                                       ? DET_WORKER_EVENT_TEMPLATE_FAILED
                                                       : DET_WORKER_EVENT_DERIVE_FAILED,
                                           .code = code,
                                           .reason = error->text });
}

static void accepted(struct det_worker *worker)
{
    if (worker->desire.is_degraded) {
        worker->desire.is_degraded = false;
        worker->desire.degraded_by[0] = '\0';
        worker->attention |= DET_CHECK_OBSERVED;
        det_worker_notify_parent(worker);
    }
    if (worker->desire.is_there &&
        det_record_equal(
            det_record_or_empty(worker->kind->desired), worker->desire.value, worker->desire.next))
        return;
    worker->desire.is_new = true;
    det_record_desired(worker);
}

static void derive(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    const struct det_scope_values *scope = scope_above(worker);
    uint64_t hash = det_derive_hash(&worker->spec, scope);
    struct det_derivation what = {
        .kind = worker->kind,
        .identity = &worker->identity,
        .spec = &worker->spec,
        .scope = scope,
        .parent_id = worker->parent ? worker->parent->identity.id : NULL,
        .created_at = worker->place.made_at,
    };
    enum det_derive_step step;
    struct det_error error;
    int r;

    /* Until it has returned, the document that is under way has the value of `next`. */
    det_assert(!worker->desire.is_pending && !worker->desire.is_new);
    if (worker->desire.is_derived && hash == worker->desire.hash)
        return;
    r = det_derive_desired(workers->allocator, &what, worker->desire.next, &step, &error);
    if (r == DET_ERR_NO_MEMORY) {
        worker->attention |= DET_CHECK_DERIVE;
        return;
    }
    worker->desire.hash = hash;
    worker->desire.is_derived = true;
    if (r < 0)
        refused(worker, r, step, &error);
    else
        accepted(worker);
}

bool det_desire_has_changed(struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;
    uint64_t seen = parent ? parent->desire.scope_generation : worker->workers->scope_generation;

    if (worker->desire.scope_seen == seen)
        return false;
    worker->desire.scope_seen = seen;
    return det_derive_hash(&worker->spec, scope_above(worker)) != worker->desire.hash;
}

void det_desire_visit(struct det_worker *worker)
{
    if (!(worker->attention & DET_CHECK_DERIVE) || worker->desire.is_pending)
        return;
    if (worker->workers->now < worker->desire.derive_at) {
        det_worker_due(worker, worker->desire.derive_at);
        return;
    }
    if (refresh_scope(worker) < 0)
        return;
    worker->attention &= ~(uint32_t)DET_CHECK_DERIVE;
    derive(worker);
}

/* The end of the recording of the desired document. */
void det_desire_recorded(struct det_worker *worker, int code, const struct det_error *error)
{
    struct det_workers *workers = worker->workers;
    bool had_desired = worker->desire.is_there;

    det_assert(!worker->desire.is_pending && (worker->desire.is_new || had_desired));
    if (!worker->desire.is_new) {
        /* Only its flags have changed, and they are in effect already. */
        if (code < 0 && !workers->stopping.is_wanted)
            worker->attention |= DET_CHECK_DESIRED;
        return;
    }
    worker->desire.is_new = false;
    if (code < 0) {
        worker->desire.is_derived = false;
        worker->desire.derive_at = workers->now + DET_SECOND;
        worker->attention |= DET_CHECK_DERIVE;
        degrade(worker, error ? error->text : det_error_text(code));
        return;
    }
    memcpy(
        worker->desire.value, worker->desire.next,
        det_record_or_empty(worker->kind->desired)->size);
    worker->desire.is_there = true;
    worker->desire.derive_at = 0;
    det_act_forget(worker);
    if (had_desired) {
        det_collect_again(worker);
        det_worker_hasten(worker);
    } else
        det_collect_soon(worker);
    worker->attention |= DET_CHECK_CHILDREN;
    det_worker_publish(worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_DERIVED });
    if (det_life_is_live(worker))
        det_worker_visit(worker);
}
