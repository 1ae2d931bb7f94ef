/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life.c - a worker from the moment it is wanted to its end, by life.fsm. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/limits.h"
#include "worker/tree.h"

#define FSM_LOCAL
#define FSM_SPEC "worker/life.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "worker/life.fsm"
#include <detent/fsm/define.h>

static bool is_active(unsigned life)
{
    return life != LIFE_WAITING && life != LIFE_DOWN && life != LIFE_GONE;
}

/* What its parent is to see: that it is not there though it shall be. */
static void set_down(struct det_worker *worker, bool is_down)
{
    if (worker->seen.is_down == is_down)
        return;
    worker->seen.is_down = is_down;
    det_worker_set_ailment(worker, DET_AILMENT_DOWN, is_down);
}

/* What a worker has in each state of its life, after it has come there. */
static void assert_worker(const struct det_worker *worker)
{
    det_assert(worker->acting.running <= worker->kind->action_count);
    det_assert(worker->children.active <= worker->children.count);
    det_assert(!worker->children.first == !worker->children.count);
    switch ((enum life_state)worker->life) {
    case LIFE_WAITING:
    case LIFE_DOWN:
    case LIFE_GONE:
        det_assert(!worker->body && !worker->leaving.closing);
        det_assert(!worker->observing.collect && !worker->acting.running);
        break;
    case LIFE_LIVE:
        det_assert(worker->body && !worker->leaving.closing);
        break;
    case LIFE_CLOSING:
        det_assert(!worker->observing.collect && !worker->acting.running);
        break;
    case LIFE_OPENING:
    case LIFE_LEAVING:
        det_assert(!worker->leaving.closing);
        break;
    case life_state_count:
        break;
    }
}

static void step(struct det_worker *worker, enum life_event_kind event)
{
    const struct det_transition *transition = det_machine_step(&life_machine, worker->life, event);

    det_assert(transition->outcome == DET_GOTO);
    if (worker->parent) {
        worker->parent->children.active += is_active(transition->to);
        worker->parent->children.active -= is_active(worker->life);
    }
    worker->life = (uint8_t)transition->to;
    assert_worker(worker);
    det_assert(
        !worker->parent || worker->parent->children.active <= worker->parent->children.count);
    worker->due = 0;
    set_down(
        worker, transition->to == LIFE_DOWN ||
                    (event == LIFE_REFUSE && transition->to == LIFE_WAITING) ||
                    (worker->seen.is_down && transition->to == LIFE_OPENING));
    det_workers_hurry(worker->workers);
}

bool det_life_is_active(const struct det_worker *worker)
{
    return is_active(worker->life);
}

bool det_life_is_live(const struct det_worker *worker)
{
    return worker->life == LIFE_LIVE;
}

bool det_life_may_have_children(const struct det_worker *worker)
{
    return !worker->leaving.is_unwanted && det_life_may_stay(worker);
}

bool det_life_may_stay(const struct det_worker *worker)
{
    return worker->life != LIFE_LEAVING && worker->life != LIFE_CLOSING &&
           worker->life != LIFE_GONE;
}

bool det_life_is_gone(const struct det_worker *worker)
{
    return worker->life == LIFE_GONE;
}

const char *det_life_name(const struct det_worker *worker)
{
    return life_state_name(worker->life);
}

void det_worker_due(struct det_worker *worker, det_time at)
{
    if (at < worker->due)
        worker->due = at;
}

/* The block: the worker, what it shall be (now and next), what it is, its actions, its names. */
static struct det_worker *lay_out(
    struct det_workers *workers, const struct det_worker_kind *kind, size_t id_size,
    size_t path_size, size_t name_size)
{
    size_t desired = det_aligned(det_record_size(kind->desired));
    size_t observed = det_aligned(det_record_size(kind->observed));
    size_t actions = det_aligned(kind->action_count * sizeof(struct det_action));
    size_t counts = det_aligned(kind->state_count * sizeof(struct det_state_count));
    size_t size = det_aligned(sizeof(struct det_worker)) + 2 * desired + observed + actions +
                  counts + id_size + path_size + name_size;
    struct det_worker *worker = det_alloc_zero(workers->allocator, size);
    char *place;

    if (!worker)
        return NULL;
    place = (char *)worker + det_aligned(sizeof *worker);
    worker->size = size;
    worker->desire.value = place;
    worker->observing.value = place += desired;
    worker->acting.actions = (struct det_action *)(void *)(place += observed);
    worker->acting.state_counts = (struct det_state_count *)(void *)(place += actions);
    worker->desire.next = place += counts;
    worker->place.id_text = place += desired;
    worker->place.path_text = place += id_size;
    worker->place.name_text = place + path_size;
    return worker;
}

static void name_it(
    struct det_worker *worker, const struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, size_t id_size, size_t path_size)
{
    const char *id = parent ? parent->identity.id : "", *slash = parent ? "/" : "";

    snprintf(worker->place.id_text, id_size, "%s%s%s", id, slash, name);
    snprintf(
        worker->place.path_text, path_size, "%s%s%s(%s)", parent ? parent->identity.path : "",
        slash, name, kind->name);
    memcpy(worker->place.name_text, name, strlen(name) + 1);
    worker->place.key = worker->place.id_text;
    worker->identity = (struct det_worker_identity){ worker->place.id_text, worker->place.name_text,
                                                     kind->name, worker->place.path_text };
    worker->seen = (struct det_child_view){ .name = worker->place.name_text,
                                            .kind = kind->name,
                                            .state = kind->states[0].name,
                                            .reason = worker->reason,
                                            .path = worker->place.path_text,
                                            .action_error = worker->acting.last.text,
                                            .observe_error = worker->observing.error };
}

static void link_to(struct det_worker *parent, struct det_worker *worker)
{
    det_assert(!worker->parent && !worker->next && !worker->previous);
    worker->parent = parent;
    if (!parent)
        return;
    det_assert(!parent->children.first == !parent->children.last);
    worker->place.depth = (uint16_t)(parent->place.depth + 1);
    worker->previous = parent->children.last;
    if (parent->children.last)
        parent->children.last->next = worker;
    else
        parent->children.first = worker;
    parent->children.last = worker;
    parent->children.count++;
    parent->attention |= DET_LOOK_VIEW;
}

static void unlink_from(struct det_worker *worker)
{
    struct det_worker *parent = worker->parent;

    if (!parent)
        return;
    if (worker->previous)
        worker->previous->next = worker->next;
    else
        parent->children.first = worker->next;
    if (worker->next)
        worker->next->previous = worker->previous;
    else
        parent->children.last = worker->previous;
    if (parent->wishes.round_last == worker)
        parent->wishes.round_last = worker->previous;
    if (parent->wishes.first_new == worker)
        parent->wishes.first_new = worker->next;
    det_assert(parent->children.count > 0);
    parent->children.count--;
    parent->attention |= DET_LOOK_VIEW;
    /* It is to be made anew. */
    if (det_wishes_have(parent, worker->identity.name))
        parent->attention |= DET_LOOK_WISHES;
}

static size_t path_size_of(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind)
{
    return (parent ? strlen(parent->identity.path) + 1 : 0) + strlen(name) + 1 +
           strlen(kind->name) + 2;
}

bool det_worker_fits(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind)
{
    return path_size_of(parent, name, kind) <= DET_WORKER_PATH_MAX + 1 &&
           (!parent || parent->place.depth + 1 < DET_WORKER_DEPTH_MAX);
}

/* Its documents of earlier runs are its own. */
static void claim(struct det_worker *worker)
{
    struct det_known *known =
        det_record_known(worker->workers, worker->kind->name, worker->identity.id);

    if (known)
        det_list_remove(&known->node);
    worker->children.has_unclaimed = det_unclaimed_below(worker);
}

int det_worker_make(
    struct det_workers *workers, struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, enum det_wish_origin origin, struct det_worker **ret)
{
    size_t name_size = strlen(name) + 1;
    size_t id_size = (parent ? strlen(parent->identity.id) + 1 : 0) + name_size;
    size_t path_size = path_size_of(parent, name, kind);
    struct det_worker *worker;
    int r;

    if (workers->count >= workers->limits.workers_max || !det_worker_fits(parent, name, kind))
        return DET_ERR_LIMIT;
    worker = lay_out(workers, kind, id_size, path_size, name_size);
    if (!worker)
        return DET_ERR_NO_MEMORY;
    worker->workers = workers;
    worker->kind = kind;
    worker->place.origin = origin;
    worker->leaving.stop_at = DET_NEVER;
    worker->place.made_at = worker->since_wall = workers->now + workers->wall_ahead;
    det_worker_limits_of_kind(
        &workers->limits, kind, &worker->observing.stale_after,
        &worker->observing.collector_timeout);
    worker->since = workers->now;
    worker->attention = DET_LOOK_DERIVE | DET_LOOK_CHILDREN | DET_LOOK_VIEW;
    det_list_init(&worker->wishes.all);
    det_list_init(&worker->wishes.maker);
    name_it(worker, parent, name, kind, id_size, path_size);
    det_worker_set_reason(worker, "initial");
    r = det_map_put(&workers->map, worker);
    if (r < 0) {
        det_free(workers->allocator, worker, worker->size);
        return r;
    }
    link_to(parent, worker);
    det_hand_restore(worker);
    det_order_restore(worker);
    claim(worker);
    workers->count++;
    *ret = worker;
    return 0;
}

struct det_strain *det_worker_strain(struct det_worker *worker)
{
    if (!worker->strain)
        worker->strain = DET_NEW(worker->workers->allocator, struct det_strain);
    return worker->strain;
}

static void free_strain(struct det_worker *worker)
{
    struct det_strain *strain = worker->strain;

    if (!strain)
        return;
    det_intensity_close(strain->restarts);
    det_intensity_close(strain->panics);
    det_intensity_close(strain->failures);
    DET_DELETE(worker->workers->allocator, strain);
}

static void free_worker(struct det_worker *worker)
{
    const struct det_allocator *allocator = worker->workers->allocator;

    det_assert(
        !worker->observing.collect && !worker->acting.running && !worker->body &&
        !worker->children.first);
    free_strain(worker);
    det_list_remove(&worker->wishes.maker);
    det_wishes_drop_index(worker);
    det_wishes_free(worker->workers, &worker->wishes.all);
    det_user_spec_deinit(&worker->spec);
    det_scope_values_deinit(&worker->desire.scope);
    if (worker->observing.spare)
        det_run_free(worker->observing.spare);
    for (struct det_metric *metric = worker->acting.metrics, *next; metric; metric = next) {
        next = metric->next;
        DET_DELETE(allocator, metric);
    }
    det_history_free(worker);
    DET_DELETE_ARRAY(allocator, worker->children.views, worker->children.view_room);
    det_free(allocator, worker, worker->size);
}

void det_worker_discard(struct det_worker *worker)
{
    free_worker(worker);
}

/* What is on its way to the store answers to the worker: it stays until then. */
static bool is_awaited(const struct det_worker *worker)
{
    return worker->documents.is_identity_pending || worker->desire.is_pending ||
           worker->documents.is_observed_pending;
}

void det_workers_bury(struct det_workers *workers)
{
    if (workers->tick.walking)
        return;
    while (workers->gone) {
        struct det_worker *worker = workers->gone;

        det_assert(worker->life == LIFE_GONE && !is_awaited(worker) && !worker->parent);
        workers->gone = worker->next;
        free_worker(worker);
    }
}

void det_worker_settle(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (worker->life == LIFE_GONE && !is_awaited(worker)) {
        worker->next = workers->gone;
        workers->gone = worker;
    }
    det_workers_bury(workers);
}

/* Out of the tree; its memory goes when nobody walks. */
static void end(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    det_hand_keep(worker);
    step(worker, LIFE_FINISH);
    worker->attention = 0;
    for (enum det_ailment i = 0; i < DET_AILMENT_COUNT; i++)
        det_worker_set_ailment(worker, i, false);
    det_tick_leave(worker);
    unlink_from(worker);
    det_map_remove(&workers->map, worker->place.key);
    det_assert(workers->count > 0 && !worker->children.first);
    workers->count--;
    det_circuit_forget(worker);
    det_tell(worker, (struct det_worker_event){ .kind = DET_WORKER_REMOVED });
    if (worker->leaving.is_forgotten) {
        det_unclaimed_drop(worker);
        det_record_drop(worker);
    }
    if (worker == workers->root) {
        workers->root = NULL;
        det_stop_gone(workers);
    }
    worker->parent = NULL;
    det_list_remove(&worker->wishes.maker);
    det_worker_settle(worker);
}

/* How long after a failure it is tried again. */
static det_time delay_of(struct det_worker *worker, uint32_t failures)
{
    struct det_strain *strain = det_worker_strain(worker);
    uint64_t chance;

    if (!strain)
        return worker->workers->limits.restart_backoff.max;
    worker->workers->world->ops->random(worker->workers->world, &chance, sizeof chance);
    strain->delay = det_backoff_delay(
        &worker->workers->limits.restart_backoff, failures ? failures - 1 : 0, strain->delay,
        chance);
    return strain->delay;
}

static void refuse(struct det_worker *worker, int code, const char *text)
{
    struct det_strain *strain = det_worker_strain(worker);
    uint32_t failures = strain ? ++strain->open_failures : 1;

    if (worker->body) {
        det_body_drop(worker->body);
        worker->body = NULL;
    }
    step(worker, LIFE_REFUSE);
    if (!worker->leaving.is_unwanted)
        worker->shutdown_wanted = false;
    worker->leaving.open_at = worker->workers->now + delay_of(worker, failures);
    det_worker_set_reason(worker, text);
    det_tell(
        worker,
        (struct det_worker_event){
            .kind = DET_WORKER_ADD_FAILED, .code = code, .reason = text, .number = failures });
    det_circuit_failure(worker, text);
}

/* As new, whatever there was before. */
static void begin(struct det_worker *worker)
{
    step(worker, LIFE_BEGIN);
    det_worker_set_state(worker, 0);
    worker->observing.observed_at = 0;
    worker->observing.sequence = 0;
    worker->observing.gate = 0;
    worker->observing.is_stale = false;
    det_worker_set_ailment(worker, DET_AILMENT_STALE, false);
    worker->observing.failures = 0;
    worker->observing.is_short = false;
    worker->observing.error[0] = '\0';
    worker->counts.collector_restarts = 0;
    worker->counts.failures = 0;
    worker->leaving.stop_at = DET_NEVER;
    worker->leaving.was_forced = false;
    worker->acting.last = (struct det_action_end){ 0 };
    memset(worker->observing.value, 0, det_record_size(worker->kind->observed));
    det_act_forget(worker);
    worker->counts.startups = det_record_startups(worker->workers, worker) + 1;
    det_record_identity(worker);
}

void det_life_recorded(struct det_worker *worker, int code, const struct det_error *error)
{
    int r;

    if (worker->life != LIFE_OPENING)
        return;
    if (code < 0) {
        refuse(worker, code, error ? error->text : det_error_text(code));
        return;
    }
    r = det_body_new(worker, &worker->body);
    if (r < 0) {
        refuse(worker, r, det_error_text(r));
        return;
    }
    if (worker->kind->open) {
        struct det_run *run;

        r = det_run_new(worker, DET_RUN_OPEN, 0, &run);
        if (r < 0)
            refuse(worker, r, det_error_text(r));
        else {
            worker->observing.collect = run;
            det_run_start(run, worker->workers->limits.action_timeout);
        }
        return;
    }
    det_life_opened(worker, 0, "");
}

void det_life_opened(struct det_worker *worker, int code, const char *text)
{
    struct det_workers *workers = worker->workers;

    det_assert(worker->body && !worker->observing.collect);
    if (worker->life == LIFE_LEAVING) {
        worker->body->is_open = code >= 0;
        det_worker_visit(worker);
        return;
    }
    if (code < 0) {
        refuse(worker, code, *text ? text : det_error_text(code));
        return;
    }
    step(worker, LIFE_OPENED);
    worker->body->is_open = true;
    if (worker->strain)
        worker->strain->open_failures = 0;
    worker->since = workers->now;
    worker->since_wall = workers->now + workers->wall_ahead;
    worker->observing.live_since = workers->now;
    worker->observing.collect_at = workers->now;
    worker->attention |= DET_LOOK_CHILDREN | DET_LOOK_DERIVE | DET_LOOK_OBSERVED;
    if (worker->leaving.is_restart_wanted) {
        worker->leaving.is_restart_wanted = false;
        det_tell(
            worker, (struct det_worker_event){ .kind = DET_WORKER_RESTART_DONE,
                                               .number = worker->counts.restarts });
    }
    det_worker_set_reason(worker, "initial");
    det_tell(
        worker,
        (struct det_worker_event){ .kind = DET_WORKER_ADDED, .number = worker->counts.startups });
    det_worker_visit(worker);
}

/* How long what runs has to come back: no longer than the grace that is left, which is that of its
 * parent then, but for a moment. */
static det_time leave_at(const struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;
    det_time now = det_stop_now(workers);
    det_time last = now + workers->limits.stop_grace;
    det_time moment = now + workers->limits.stop_grace / 10;
    det_time stop_at = worker->leaving.was_forced ? 0 : worker->leaving.stop_at;

    if (workers->stopping.is_forcing)
        return now;
    if (stop_at >= last)
        return last;
    return stop_at > moment ? stop_at : moment;
}

void det_life_leave(struct det_worker *worker)
{
    step(worker, LIFE_LEAVE);
    worker->leaving.leave_at = leave_at(worker);
    if (worker->observing.collect)
        det_run_cancel(worker->observing.collect);
    det_act_cancel(worker);
    det_life_visit(worker);
}

/* A second request, or too long: what runs is left behind. */
static void give_up(struct det_worker *worker)
{
    if (det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    if (worker->observing.collect && det_run_give_up(worker->observing.collect))
        det_collect_lost(worker);
    for (uint16_t i = 0; i < worker->kind->action_count; i++)
        if (worker->acting.actions[i].run && det_run_give_up(worker->acting.actions[i].run))
            det_act_lost(worker, i, 0);
}

static void close_body(struct det_worker *worker)
{
    struct det_body *body = worker->body;

    /* It was taken down before it was on record. */
    if (!body) {
        step(worker, LIFE_QUIET);
        det_life_closed(worker);
        return;
    }
    if (worker->observing.spare)
        det_run_free(worker->observing.spare);
    worker->observing.spare = NULL;
    step(worker, LIFE_QUIET);
    worker->body = NULL;
    /* A run that was given up has it for longer than anybody can wait. */
    if (body->holders > 1 || !body->is_open || !body->kind->close) {
        det_body_drop(body);
        det_life_closed(worker);
        return;
    }
    body->closing = worker;
    worker->leaving.closing = body;
    worker->leaving.leave_at = leave_at(worker);
    det_body_drop(body);
}

/* While all stops nobody waits for ever for a close() that hangs; it is still waited for when the
 * supervisor is closed. A worker that is to begin anew waits: two lives would be in each other's
 * way. */
static void leave_behind(struct det_worker *worker)
{
    if (!worker->leaving.closing || !worker->workers->stopping.is_wanted ||
        det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    worker->leaving.closing->closing = NULL;
    det_stop_left_behind(worker);
    det_life_closed(worker);
}

/* Those that are long ago make no delay longer. */
static uint32_t restarts_of_late(const struct det_worker *worker)
{
    return worker->strain && worker->strain->restarts
               ? det_intensity_count(worker->strain->restarts, worker->workers->now)
               : 1;
}

void det_life_closed(struct det_worker *worker)
{
    worker->leaving.closing = NULL;
    if (worker->leaving.is_unwanted || worker->workers->stopping.is_wanted) {
        /* Children that rested while it was to begin anew go first. */
        if (worker->children.first)
            step(worker, LIFE_AGAIN);
        else
            end(worker);
        return;
    }
    worker->shutdown_wanted = false;
    if (worker->leaving.has_to_rest) {
        step(worker, LIFE_REST);
        det_worker_set_state(worker, 0);
        if (worker->strain && worker->strain->rest_reason[0])
            det_worker_set_reason(worker, worker->strain->rest_reason);
        return;
    }
    step(worker, LIFE_AGAIN);
    worker->attention |= DET_LOOK_DESIRED;
    worker->leaving.open_at = worker->workers->now;
    if (worker->leaving.is_restart_wanted)
        worker->leaving.open_at += delay_of(worker, restarts_of_late(worker));
}

void det_life_wake(struct det_worker *worker)
{
    worker->leaving.has_to_rest = false;
    if (worker->strain && worker->strain->restarts)
        det_intensity_clear(worker->strain->restarts);
    if (worker->life == LIFE_DOWN) {
        step(worker, LIFE_WAKE);
        worker->leaving.open_at = worker->workers->now;
    } else if (worker->life == LIFE_WAITING) {
        worker->leaving.open_at = worker->workers->now;
        worker->due = 0;
    }
}

static bool is_wanted(const struct det_worker *worker)
{
    return !worker->leaving.is_unwanted && !worker->workers->stopping.is_wanted;
}

/* Whether its children are out of its way: gone, or at rest until it is back. */
static bool is_clear(const struct det_worker *worker)
{
    return is_wanted(worker) ? !worker->children.active : !worker->children.first;
}

/* Its parent lives, and is to go on living. */
static bool may_begin(const struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;

    return worker->workers->now >= worker->leaving.open_at &&
           (!parent || (parent->life == LIFE_LIVE && !parent->shutdown_wanted));
}

static void visit_opening(struct det_worker *worker)
{
    if (det_stop_now(worker->workers) >= worker->leaving.stop_at) {
        det_stop_force(worker);
        return;
    }
    if (!worker->observing.collect || !det_run_watch(worker->observing.collect))
        return;
    worker->observing.collect = NULL;
    refuse(worker, DET_ERR_TIMEOUT, "its open() did not come back and was given up");
}

void det_life_visit(struct det_worker *worker)
{
    switch ((enum life_state)worker->life) {
    case LIFE_WAITING:
        if (!is_wanted(worker) && !worker->children.first)
            end(worker);
        else if (is_wanted(worker) && may_begin(worker))
            begin(worker);
        break;
    case LIFE_LEAVING:
        give_up(worker);
        if (!worker->observing.collect && !worker->acting.running && is_clear(worker))
            close_body(worker);
        break;
    case LIFE_DOWN:
        if (!is_wanted(worker) && !worker->children.first)
            end(worker);
        else if (is_wanted(worker) && det_desire_is_another(worker))
            det_life_wake(worker);
        break;
    case LIFE_OPENING:
        visit_opening(worker);
        break;
    case LIFE_CLOSING:
        leave_behind(worker);
        break;
    case LIFE_LIVE:
    case LIFE_GONE:
    case life_state_count:
        break;
    }
}
