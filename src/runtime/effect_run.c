/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_run.c - effects under way, run on the pool; how they end, on the loop, is ending.c. What
 * fails is tried again, each time after twice the wait and a bit of chance, until it is given up: a
 * dead letter. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/batch.h"
#include "runtime/meter.h"
#include "store/effect_key.h"

#define FSM_LOCAL
#define FSM_SPEC "runtime/effect_run.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "runtime/effect_run.fsm"
#include <detent/fsm/define.h>

_Static_assert((int)DET_ERRAND_WAITING == (int)ERRAND_WAITING, "the states of the spec");
_Static_assert((int)DET_ERRAND_RUNNING == (int)ERRAND_RUNNING, "the states of the spec");
_Static_assert((int)DET_ERRAND_ENDING == (int)ERRAND_ENDING, "the states of the spec");
_Static_assert((int)DET_ERRAND_DEAD == (int)ERRAND_DEAD, "the states of the spec");

#define ALIGNMENT      ((size_t)16)
#define POSTPONED_SPAN DET_SECOND
#define DOUBLING_MAX   40 /* beyond that every backoff has reached its maximum */

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int format_key(
    char *target, size_t capacity, const struct det_runtime *runtime,
    const struct det_resident *resident, const struct det_store_effect *row)
{
    return det_effect_key(
        target, capacity, runtime->store, resident->served->machine->name, resident->id, row);
}

/* The parts stand behind it: data, event, product, key. */
static void lay_out(struct det_errand *errand, const struct det_served *served)
{
    size_t event_size = aligned(served->machine->event_size);
    char *data = (char *)errand + aligned(sizeof *errand);
    char *event = data + aligned(served->data_size);

    memcpy(data, errand->row.data, served->data_size);
    memcpy(event, errand->row.event, served->machine->event_size);
    errand->row.data = data;
    errand->row.event = event;
    if (errand->row.trace) {
        errand->trace = *errand->row.trace;
        errand->row.trace = &errand->trace;
    }
    errand->product = event + event_size;
    errand->key = event + 2 * event_size;
}

static void fill_call(struct det_runtime *runtime, struct det_errand *errand)
{
    const struct det_resident *resident = errand->due.resident;
    const struct det_machine *machine = resident->served->machine;
    const struct det_store_effect *row = &errand->row;

    errand->call = (struct det_effect_call){
        .move = { .machine = machine->name,
                  .instance = resident->id,
                  .sequence = row->sequence,
                  .visit = row->visit,
                  .from = row->from,
                  .to = row->to,
                  .now = row->at,
                  .user = runtime->options.user },
        .effect = machine->effects[row->effect].name,
        .key = errand->key,
        .trace = row->trace,
    };
}

static bool is_under_way(const struct det_errand *errand)
{
    return errand->state == DET_ERRAND_RUNNING || errand->state == DET_ERRAND_ENDING;
}

/* The one way from state to state: the table is that of errand.fsm. */
static void step(struct det_errand *errand, enum errand_event_kind event)
{
    const struct det_transition *transition =
        det_machine_step(&errand_machine, errand->state, event);
    enum det_errand_state state = (enum det_errand_state)transition->to;

    det_assert(transition->outcome == DET_OUTCOME_GOTO);
    det_assert(!is_under_way(errand) || errand->due.resident->pins > 0);
    if (state == DET_ERRAND_RUNNING)
        errand->due.resident->pins++;
    else if (is_under_way(errand) && state != DET_ERRAND_ENDING)
        errand->due.resident->pins--;
    errand->state = state;
}

char *det_reason_copy(const struct det_allocator *allocator, const char *text)
{
    char clean[DET_REASON_MAX + 1];
    size_t size, at;

    if (!text || !*text)
        return NULL;
    (void)det_text_copy(clean, sizeof clean, text);
    size = strlen(clean);
    while ((at = det_utf8_check(clean, size)) < size)
        clean[at] = '?';
    for (char *c = clean; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = '?';
    }
    return det_string_copy(allocator, clean);
}

void det_errand_explain(
    const struct det_runtime *runtime, struct det_errand *errand, const char *text)
{
    char *copy = det_reason_copy(runtime->allocator, text);

    det_free_string(runtime->allocator, errand->reason);
    errand->reason = copy;
    errand->row.reason = copy;
}

struct det_errand *det_errand_open(
    struct det_runtime *runtime, struct det_resident *resident, const struct det_store_effect *row)
{
    const struct det_served *served = resident->served;
    size_t key_size = (size_t)format_key(NULL, 0, runtime, resident, row) + 1;
    size_t size = aligned(sizeof(struct det_errand)) + aligned(served->data_size) +
                  2 * aligned(served->machine->event_size) + key_size;
    struct det_errand *errand = det_alloc_zero(runtime->allocator, size);

    if (!errand)
        return NULL;
    det_heap_node_init(&errand->due.node);
    errand->due.kind = DET_DUE_ERRAND;
    errand->due.resident = resident;
    det_list_init(&errand->node);
    errand->size = size;
    errand->row = *row;
    det_errand_explain(runtime, errand, row->reason);
    lay_out(errand, served);
    format_key(errand->key, key_size, runtime, resident, row);
    fill_call(runtime, errand);
    if (row->is_dead)
        step(errand, ERRAND_FIND_DEAD);
    return errand;
}

void det_errand_close(struct det_runtime *runtime, struct det_errand *errand)
{
    det_assert(!is_under_way(errand) || errand->due.resident->pins > 0);
    if (is_under_way(errand))
        errand->due.resident->pins--;
    det_list_remove(&errand->node);
    det_free_string(runtime->allocator, errand->said);
    det_free_string(runtime->allocator, errand->reason);
    det_free(runtime->allocator, errand, errand->size);
}

void det_errand_drop(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand)
{
    if (det_heap_contains(&errand->due.node))
        det_heap_remove(&shard->due, &errand->due.node);
    det_assert(shard->promised > shard->due.count);
    shard->promised--;
    det_errand_close(runtime, errand);
}

struct det_effect_policy det_errand_policy(
    const struct det_runtime *runtime, const struct det_errand *errand)
{
    const struct det_runtime_options *options = &runtime->options;
    struct det_effect_policy policy = options->effects;
    const struct det_effect_policy *own = NULL;

    if (options->effect_policy)
        own = options->effect_policy(
            options->user, errand->due.resident->served->machine, errand->row.effect);
    if (!own)
        return policy;
    policy.attempts_max = own->attempts_max ? own->attempts_max : policy.attempts_max;
    policy.backoff_first = own->backoff_first ? own->backoff_first : policy.backoff_first;
    policy.backoff_max = own->backoff_max ? own->backoff_max : policy.backoff_max;
    policy.deadline = own->deadline ? own->deadline : policy.deadline;
    policy.same_visit_only = own->same_visit_only || policy.same_visit_only;
    if (own->jitter_percent)
        policy.jitter_percent = own->jitter_percent == UINT32_MAX ? 0 : own->jitter_percent;
    return policy;
}

det_time det_errand_backoff(
    struct det_runtime *runtime, const struct det_effect_policy *policy, uint32_t attempt,
    det_time least)
{
    det_time span = policy->backoff_first;

    for (uint32_t i = 1; i < attempt && i < DOUBLING_MAX && span < policy->backoff_max; i++)
        span = det_add_time(span, span);
    if (span > policy->backoff_max)
        span = policy->backoff_max;
    if (span < least)
        span = least;
    if (policy->jitter_percent && span >= 100) {
        uint64_t most = (uint64_t)span / 100 * policy->jitter_percent;

        span = det_add_time(span, (det_time)(det_world_random_u64(runtime->world) % (most + 1)));
    }
    return span;
}

det_time det_errand_deadline(const struct det_runtime *runtime, const struct det_errand *errand)
{
    det_time span = det_errand_policy(runtime, errand).deadline;

    return span ? det_add_time(errand->row.at, span) : DET_NEVER;
}

/* What it has to say is not part of the row before its end: that is read meanwhile. */
static int run_effect(const struct det_runtime *runtime, struct det_errand *errand)
{
    const struct det_machine *machine = errand->due.resident->served->machine;
    char text[DET_REASON_MAX + 1] = "";
    int r;

    errand->call.reason = text;
    r = machine->effects[errand->row.effect].run(
        &errand->call, errand->row.data, errand->row.event, errand->product);
    errand->call.reason = NULL;
    text[DET_REASON_MAX] = '\0';
    if (r < 0 || r == DET_EFFECT_POSTPONED)
        errand->said = det_reason_copy(runtime->allocator, text);
    return r;
}

/* On the pool. */
static void run_attempt(void *argument)
{
    static const unsigned unwritten = DET_PRODUCT_UNWRITTEN;
    struct det_errand *errand = argument;
    struct det_runtime *runtime = errand->due.resident->served->runtime;
    const struct det_machine *machine = errand->due.resident->served->machine;
    const struct det_effect_def *effect = &machine->effects[errand->row.effect];

    atomic_uint *running = &errand->due.resident->served->running[errand->row.effect];
    det_time began = det_meter_begin(runtime);
    bool was_suspected = errand->is_suspected;

    errand->call.now = det_runtime_now(runtime);
    atomic_store(&errand->began, errand->call.now);
    atomic_fetch_add(running, 1);
    atomic_fetch_sub(&runtime->effects_queued, 1);
    errand->call.retry_after = 0;
    errand->answer = 0;
    det_free_string(runtime->allocator, errand->said);
    errand->said = NULL;
    memset(errand->product, 0, machine->event_size);
    memcpy(errand->product, &unwritten, sizeof unwritten);
    if (errand->is_spent)
        errand->result = DET_ERR_UNFINISHED;
    else if (errand->call.now > det_errand_deadline(runtime, errand))
        errand->result = DET_ERR_TIMEOUT;
    else if (errand->is_suspected && det_errand_record(runtime, errand) < 0)
        errand->is_put_off = true;
    else if (!effect->run)
        errand->result = DET_ERR_UNBOUND;
    else
        errand->result = errand->answer = run_effect(runtime, errand);
    if (errand->answer == DET_EFFECT_POSTPONED)
        errand->is_put_off = true;
    else if (errand->result > DET_EFFECT_PRODUCED)
        errand->result = DET_ERR_INVALID;
    if (errand->answer == DET_EFFECT_POSTPONED && was_suspected)
        det_errand_take_back(runtime, errand);
    if (!errand->is_put_off)
        det_meter_attempt(runtime, errand, began);
    atomic_fetch_sub(running, 1);
}

void det_errand_wait(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand, det_time when)
{
    det_due_insert(shard, &errand->due, when);
    det_due_kick(runtime, when);
}

/* Keeps no more dead letters than the limit; the oldest goes. With a claim and the lock: nobody
 * walks over them. */
static void bury(struct det_runtime *runtime, struct det_resident_more *more)
{
    if (more->dead_count <= DET_DEAD_MAX)
        return;
    DET_LIST_EACH(node, &more->errands)
    {
        struct det_errand *errand = DET_CONTAINER(node, struct det_errand, node);

        if (errand->state == DET_ERRAND_DEAD) {
            det_assert(more->dead_count > 0 && !det_heap_contains(&errand->due.node));
            det_errand_close(runtime, errand);
            more->dead_count--;
            return;
        }
    }
}

/* Lock held before and after; one of those that are counted as handled. */
static void try_to_end(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand)
{
    const struct det_resident *resident = errand->due.resident;

    det_assert(!errand->is_gone);
    if (resident->is_claimed) {
        det_due_hold(runtime, &errand->due);
        return;
    }
    if (!resident->is_stale) {
        det_errand_end(runtime, shard, errand);
        return;
    }
    det_errand_wait(runtime, shard, errand, det_add_time(det_runtime_now(runtime), DET_LOOK_SPAN));
    det_due_handled(runtime);
}

/* Its attempt does not count. Why is kept in memory alone: it says nothing of the effect. */
static void wait_put_off(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand)
{
    det_time span = DET_LOOK_SPAN;

    if (errand->answer == DET_EFFECT_POSTPONED) {
        span =
            errand->call.retry_after > POSTPONED_SPAN ? errand->call.retry_after : POSTPONED_SPAN;
        det_errand_explain(runtime, errand, errand->said);
    }
    det_errand_wait(runtime, shard, errand, det_add_time(det_runtime_now(runtime), span));
}

/* On the loop. Where ends can share a commit they wait for the next look, which finds all that have
 * come by then. */
static void done(void *argument)
{
    struct det_errand *errand = argument;
    struct det_runtime *runtime = errand->due.resident->served->runtime;
    struct det_shard *shard = det_served_shard(runtime, errand->due.resident->hash);
    bool has_run = !errand->job.is_dropped && !errand->is_put_off;

    if (errand->job.is_dropped)
        atomic_fetch_sub(&runtime->effects_queued, 1);
    det_shard_lock(runtime, shard);
    step(errand, has_run ? ERRAND_DONE : ERRAND_DROP);
    errand->row.attempts -= !has_run && !errand->is_spent;
    if (errand->is_gone) {
        det_errand_drop(runtime, shard, errand);
    } else if (errand->is_put_off) {
        wait_put_off(runtime, shard, errand);
    } else if (has_run && runtime->ops->is_quick) {
        atomic_fetch_add(&runtime->handled, 1);
        try_to_end(runtime, shard, errand);
    } else if (has_run) {
        det_errand_wait(runtime, shard, errand, INT64_MIN);
    }
    det_shard_unlock(runtime, shard);
    atomic_fetch_sub(&runtime->jobs, 1);
}

bool det_errand_begin(struct det_runtime *runtime, struct det_errand *errand)
{
    if (!atomic_load(&runtime->pool))
        return false;
    step(errand, ERRAND_BEGIN);
    errand->is_spent = det_errand_is_spent(runtime, errand);
    errand->is_put_off = false;
    atomic_store(&errand->began, 0);
    errand->row.attempts += !errand->is_spent;
    errand->call.attempt = errand->row.attempts;
    errand->deliveries = 0;
    errand->next = NULL;
    errand->job = (struct det_job){
        .run = run_attempt, .done = done, .argument = errand, .loop = runtime->loop
    };
    atomic_fetch_add(&runtime->jobs, 1);
    return true;
}

void det_errand_submit(struct det_runtime *runtime, struct det_errand *first)
{
    struct det_errand *next;
    bool have_threads = true;

    /* Once it is submitted it may end, and be gone, at any time. */
    for (; first; first = next) {
        next = first->next;
        atomic_fetch_add(&runtime->effects_queued, 1);
        have_threads &= det_pool_submit(atomic_load(&runtime->pool), &first->job);
    }
    if (!have_threads)
        det_effect_queue_watch(runtime);
}

void det_errand_change(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand,
    enum det_store_change_kind change)
{
    struct det_resident_more *more = errand->due.resident->more;

    if (change == DET_STORE_UPDATE && !errand->row.is_dead) {
        step(errand, ERRAND_FAIL);
        det_errand_wait(runtime, shard, errand, errand->row.next);
        return;
    }
    more->open_count--;
    atomic_fetch_sub(&runtime->errands, 1);
    if (change == DET_STORE_TAKE) {
        det_list_remove(&errand->node);
        errand->is_gone = true;
        return;
    }
    step(errand, ERRAND_GIVE_UP);
    more->dead_count++;
    shard->promised--;
    bury(runtime, more);
}

void det_errand_revive(
    struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand, det_time next)
{
    struct det_resident_more *more = errand->due.resident->more;

    step(errand, ERRAND_REVIVE);
    errand->row.is_dead = false;
    errand->row.attempts = 0;
    errand->row.last_error = 0;
    det_errand_explain(runtime, errand, NULL);
    errand->row.next = next;
    more->dead_count--;
    more->open_count++;
    atomic_fetch_add(&runtime->errands, 1);
    det_errand_wait(runtime, shard, errand, next);
}

void det_errand_due(struct det_runtime *runtime, struct det_shard *shard, struct det_errand *errand)
{
    if (errand->state == DET_ERRAND_ENDING) {
        try_to_end(runtime, shard, errand);
        return;
    }
    det_assert(errand->state == DET_ERRAND_WAITING);
    /* It may be another node's by now: it is loaded first. */
    if (errand->due.resident->is_stale) {
        det_errand_wait(
            runtime, shard, errand, det_add_time(det_runtime_now(runtime), DET_LOOK_SPAN));
        det_due_handled(runtime);
        return;
    }
    if (det_errand_begin(runtime, errand)) {
        det_shard_unlock(runtime, shard);
        det_errand_submit(runtime, errand);
        det_shard_lock(runtime, shard);
    }
    det_due_handled(runtime);
}
