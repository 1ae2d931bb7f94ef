/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_run.c - runs effects on the pool; effect_commit.c records their ends on the loop. A failed
 * effect is retried after doubling, jittered delays until it becomes a dead letter. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/meter.h"
#include "runtime/turn_batch.h"
#include "store/effect_key.h"

#define FSM_LOCAL
#define FSM_SPEC "runtime/effect_run.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "runtime/effect_run.fsm"
#include <detent/fsm/define.h>

_Static_assert((int)DET_EFFECT_RUN_WAITING == (int)EFFECT_RUN_WAITING, "the states of the spec");
_Static_assert((int)DET_EFFECT_RUN_RUNNING == (int)EFFECT_RUN_RUNNING, "the states of the spec");
_Static_assert((int)DET_EFFECT_RUN_ENDING == (int)EFFECT_RUN_ENDING, "the states of the spec");
_Static_assert((int)DET_EFFECT_RUN_DEAD == (int)EFFECT_RUN_DEAD, "the states of the spec");

#define ALIGNMENT      ((size_t)16)
#define POSTPONED_SPAN DET_SECOND
#define DOUBLING_MAX   40 /* beyond this every backoff has reached its maximum */

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

/* The parts follow the struct: data, event, product, key. */
static void lay_out(struct det_effect_run *effect_run, const struct det_served *served)
{
    size_t event_size = aligned(served->machine->event_size);
    char *data = (char *)effect_run + aligned(sizeof *effect_run);
    char *event = data + aligned(served->data_size);

    memcpy(data, effect_run->row.data, served->data_size);
    memcpy(event, effect_run->row.event, served->machine->event_size);
    effect_run->row.data = data;
    effect_run->row.event = event;
    if (effect_run->row.trace) {
        effect_run->trace = *effect_run->row.trace;
        effect_run->row.trace = &effect_run->trace;
    }
    effect_run->product = event + event_size;
    effect_run->key = event + 2 * event_size;
}

static void fill_call(struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    const struct det_resident *resident = effect_run->due.resident;
    const struct det_machine *machine = resident->served->machine;
    const struct det_store_effect *row = &effect_run->row;

    effect_run->call = (struct det_effect_call){
        .move = { .machine = machine->name,
                  .instance = resident->id,
                  .sequence = row->sequence,
                  .visit = row->visit,
                  .from = row->from,
                  .to = row->to,
                  .now = row->at,
                  .user = runtime->options.user },
        .effect = machine->effects[row->effect].name,
        .key = effect_run->key,
        .trace = row->trace,
    };
}

static bool is_running_now(const struct det_effect_run *effect_run)
{
    return effect_run->state == DET_EFFECT_RUN_RUNNING ||
           effect_run->state == DET_EFFECT_RUN_ENDING;
}

/* The only function that changes the state: effect_run.fsm has the table. */
static void step(struct det_effect_run *effect_run, enum effect_run_event_kind event)
{
    const struct det_transition *transition =
        det_machine_step(&effect_run_machine, effect_run->state, event);
    enum det_effect_run_state state = (enum det_effect_run_state)transition->to;

    det_assert(transition->outcome == DET_OUTCOME_GOTO);
    det_assert(!is_running_now(effect_run) || effect_run->due.resident->pins > 0);
    if (state == DET_EFFECT_RUN_RUNNING)
        effect_run->due.resident->pins++;
    else if (is_running_now(effect_run) && state != DET_EFFECT_RUN_ENDING)
        effect_run->due.resident->pins--;
    effect_run->state = state;
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

void det_effect_run_explain(
    const struct det_runtime *runtime, struct det_effect_run *effect_run, const char *text)
{
    char *copy = det_reason_copy(runtime->allocator, text);

    det_free_string(runtime->allocator, effect_run->reason);
    effect_run->reason = copy;
    effect_run->row.reason = copy;
}

struct det_effect_run *det_effect_run_open(
    struct det_runtime *runtime, struct det_resident *resident, const struct det_store_effect *row)
{
    const struct det_served *served = resident->served;
    size_t key_size = (size_t)format_key(NULL, 0, runtime, resident, row) + 1;
    size_t size = aligned(sizeof(struct det_effect_run)) + aligned(served->data_size) +
                  2 * aligned(served->machine->event_size) + key_size;
    struct det_effect_run *effect_run = det_alloc_zero(runtime->allocator, size);

    if (!effect_run)
        return NULL;
    det_heap_node_init(&effect_run->due.node);
    effect_run->due.kind = DET_DUE_EFFECT_RUN;
    effect_run->due.resident = resident;
    det_list_init(&effect_run->node);
    effect_run->size = size;
    effect_run->row = *row;
    det_effect_run_explain(runtime, effect_run, row->reason);
    lay_out(effect_run, served);
    format_key(effect_run->key, key_size, runtime, resident, row);
    fill_call(runtime, effect_run);
    if (row->is_dead)
        step(effect_run, EFFECT_RUN_FIND_DEAD);
    return effect_run;
}

void det_effect_run_close(struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    det_assert(!is_running_now(effect_run) || effect_run->due.resident->pins > 0);
    if (is_running_now(effect_run))
        effect_run->due.resident->pins--;
    det_list_remove(&effect_run->node);
    det_free_string(runtime->allocator, effect_run->failure_text);
    det_free_string(runtime->allocator, effect_run->reason);
    det_free(runtime->allocator, effect_run, effect_run->size);
}

void det_effect_run_drop(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    if (det_heap_contains(&effect_run->due.node))
        det_heap_remove(&shard->due, &effect_run->due.node);
    det_assert(shard->promised > shard->due.count);
    shard->promised--;
    det_effect_run_close(runtime, effect_run);
}

struct det_effect_policy det_effect_run_policy(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run)
{
    const struct det_runtime_options *options = &runtime->options;
    struct det_effect_policy policy = options->effects;
    const struct det_effect_policy *own = NULL;

    if (options->effect_policy)
        own = options->effect_policy(
            options->user, effect_run->due.resident->served->machine, effect_run->row.effect);
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

det_time det_effect_run_backoff(
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

det_time det_effect_run_deadline(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run)
{
    det_time span = det_effect_run_policy(runtime, effect_run).deadline;

    return span ? det_add_time(effect_run->row.at, span) : DET_NEVER;
}

/* The effect's reason is copied to the row at the end, since other threads read the row
 * meanwhile. */
static int run_effect(const struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    const struct det_machine *machine = effect_run->due.resident->served->machine;
    char text[DET_REASON_MAX + 1] = "";
    int r;

    effect_run->call.reason = text;
    r = machine->effects[effect_run->row.effect].run(
        &effect_run->call, effect_run->row.data, effect_run->row.event, effect_run->product);
    effect_run->call.reason = NULL;
    text[DET_REASON_MAX] = '\0';
    if (r < 0 || r == DET_EFFECT_POSTPONED)
        effect_run->failure_text = det_reason_copy(runtime->allocator, text);
    return r;
}

/* On the pool. */
static void run_attempt(void *argument)
{
    static const unsigned unwritten = DET_PRODUCT_UNWRITTEN;
    struct det_effect_run *effect_run = argument;
    struct det_runtime *runtime = effect_run->due.resident->served->runtime;
    const struct det_machine *machine = effect_run->due.resident->served->machine;
    const struct det_effect_def *effect = &machine->effects[effect_run->row.effect];

    atomic_uint *running = &effect_run->due.resident->served->running[effect_run->row.effect];
    det_time began = det_meter_begin(runtime);
    bool was_suspected = effect_run->is_suspected;

    effect_run->call.now = det_runtime_now(runtime);
    atomic_store(&effect_run->began, effect_run->call.now);
    atomic_fetch_add(running, 1);
    atomic_fetch_sub(&runtime->effects_queued, 1);
    effect_run->call.retry_after = 0;
    effect_run->answer = 0;
    det_free_string(runtime->allocator, effect_run->failure_text);
    effect_run->failure_text = NULL;
    memset(effect_run->product, 0, machine->event_size);
    memcpy(effect_run->product, &unwritten, sizeof unwritten);
    if (effect_run->is_spent)
        effect_run->result = DET_ERR_UNFINISHED;
    else if (effect_run->call.now > det_effect_run_deadline(runtime, effect_run))
        effect_run->result = DET_ERR_TIMEOUT;
    else if (effect_run->is_suspected && det_effect_run_record(runtime, effect_run) < 0)
        effect_run->is_put_off = true;
    else if (!effect->run)
        effect_run->result = DET_ERR_UNBOUND;
    else
        effect_run->result = effect_run->answer = run_effect(runtime, effect_run);
    if (effect_run->answer == DET_EFFECT_POSTPONED)
        effect_run->is_put_off = true;
    else if (effect_run->result > DET_EFFECT_PRODUCED)
        effect_run->result = DET_ERR_INVALID;
    if (effect_run->answer == DET_EFFECT_POSTPONED && was_suspected)
        det_effect_run_take_back(runtime, effect_run);
    if (!effect_run->is_put_off)
        det_meter_attempt(runtime, effect_run, began);
    atomic_fetch_sub(running, 1);
}

void det_effect_run_wait(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time when)
{
    det_due_insert(shard, &effect_run->due, when);
    det_due_kick(runtime, when);
}

/* Drops dead letters beyond the limit, the oldest first. Claimed and lock held, so no thread
 * iterates over them. */
static void bury(struct det_runtime *runtime, struct det_resident_more *more)
{
    if (more->dead_count <= DET_DEAD_MAX)
        return;
    DET_LIST_EACH(node, &more->effect_runs)
    {
        struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        if (effect_run->state == DET_EFFECT_RUN_DEAD) {
            det_assert(more->dead_count > 0 && !det_heap_contains(&effect_run->due.node));
            det_effect_run_close(runtime, effect_run);
            more->dead_count--;
            return;
        }
    }
}

/* The lock is held before and after; the effect is counted in `handled`. */
static void try_to_end(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    const struct det_resident *resident = effect_run->due.resident;

    det_assert(!effect_run->is_gone);
    if (resident->is_claimed) {
        det_due_hold(runtime, &effect_run->due);
        return;
    }
    if (!resident->is_stale) {
        det_effect_run_end(runtime, shard, effect_run);
        return;
    }
    det_effect_run_wait(
        runtime, shard, effect_run, det_add_time(det_runtime_now(runtime), DET_CHECK_SPAN));
    det_due_handled(runtime);
}

/* The attempt does not count. The reason stays in memory, since it does not concern the effect
 * itself. */
static void wait_put_off(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    det_time span = DET_CHECK_SPAN;

    if (effect_run->answer == DET_EFFECT_POSTPONED) {
        span = effect_run->call.retry_after > POSTPONED_SPAN ? effect_run->call.retry_after
                                                             : POSTPONED_SPAN;
        det_effect_run_explain(runtime, effect_run, effect_run->failure_text);
    }
    det_effect_run_wait(runtime, shard, effect_run, det_add_time(det_runtime_now(runtime), span));
}

/* On the loop. If ends can share a commit, they wait for the next pass, which handles all that have
 * arrived. */
static void done(void *argument)
{
    struct det_effect_run *effect_run = argument;
    struct det_runtime *runtime = effect_run->due.resident->served->runtime;
    struct det_shard *shard = det_served_shard(runtime, effect_run->due.resident->hash);
    bool has_run = !effect_run->job.is_dropped && !effect_run->is_put_off;

    if (effect_run->job.is_dropped)
        atomic_fetch_sub(&runtime->effects_queued, 1);
    det_shard_lock(runtime, shard);
    step(effect_run, has_run ? EFFECT_RUN_DONE : EFFECT_RUN_DROP);
    effect_run->row.attempts -= !has_run && !effect_run->is_spent;
    if (effect_run->is_gone) {
        det_effect_run_drop(runtime, shard, effect_run);
    } else if (effect_run->is_put_off) {
        wait_put_off(runtime, shard, effect_run);
    } else if (has_run && runtime->ops->is_quick) {
        atomic_fetch_add(&runtime->handled, 1);
        try_to_end(runtime, shard, effect_run);
    } else if (has_run) {
        det_effect_run_wait(runtime, shard, effect_run, INT64_MIN);
    }
    det_shard_unlock(runtime, shard);
    atomic_fetch_sub(&runtime->jobs, 1);
}

bool det_effect_run_begin(struct det_runtime *runtime, struct det_effect_run *effect_run)
{
    if (!atomic_load(&runtime->pool))
        return false;
    step(effect_run, EFFECT_RUN_BEGIN);
    effect_run->is_spent = det_effect_run_is_spent(runtime, effect_run);
    effect_run->is_put_off = false;
    atomic_store(&effect_run->began, 0);
    effect_run->row.attempts += !effect_run->is_spent;
    effect_run->call.attempt = effect_run->row.attempts;
    effect_run->deliveries = 0;
    effect_run->next = NULL;
    effect_run->job = (struct det_job){
        .run = run_attempt, .done = done, .argument = effect_run, .loop = runtime->loop
    };
    atomic_fetch_add(&runtime->jobs, 1);
    return true;
}

void det_effect_run_submit(struct det_runtime *runtime, struct det_effect_run *first)
{
    struct det_effect_run *next;
    bool have_threads = true;

    /* A submitted effect may end, and be freed, at any time. */
    for (; first; first = next) {
        next = first->next;
        atomic_fetch_add(&runtime->effects_queued, 1);
        have_threads &= det_pool_submit(atomic_load(&runtime->pool), &first->job);
    }
    if (!have_threads)
        det_effect_queue_watch(runtime);
}

void det_effect_run_change(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    enum det_store_change_kind change)
{
    struct det_resident_more *more = effect_run->due.resident->more;

    if (change == DET_STORE_UPDATE && !effect_run->row.is_dead) {
        step(effect_run, EFFECT_RUN_FAIL);
        det_effect_run_wait(runtime, shard, effect_run, effect_run->row.next);
        return;
    }
    more->open_count--;
    atomic_fetch_sub(&runtime->effect_runs, 1);
    if (change == DET_STORE_TAKE) {
        det_list_remove(&effect_run->node);
        effect_run->is_gone = true;
        return;
    }
    step(effect_run, EFFECT_RUN_GIVE_UP);
    more->dead_count++;
    shard->promised--;
    bury(runtime, more);
}

void det_effect_run_revive(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time next)
{
    struct det_resident_more *more = effect_run->due.resident->more;

    step(effect_run, EFFECT_RUN_REVIVE);
    effect_run->row.is_dead = false;
    effect_run->row.attempts = 0;
    effect_run->row.last_error = 0;
    det_effect_run_explain(runtime, effect_run, NULL);
    effect_run->row.next = next;
    more->dead_count--;
    more->open_count++;
    atomic_fetch_add(&runtime->effect_runs, 1);
    det_effect_run_wait(runtime, shard, effect_run, next);
}

void det_effect_run_due(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    if (effect_run->state == DET_EFFECT_RUN_ENDING) {
        try_to_end(runtime, shard, effect_run);
        return;
    }
    det_assert(effect_run->state == DET_EFFECT_RUN_WAITING);
    /* The effect may belong to another node now: load it first. */
    if (effect_run->due.resident->is_stale) {
        det_effect_run_wait(
            runtime, shard, effect_run, det_add_time(det_runtime_now(runtime), DET_CHECK_SPAN));
        det_due_handled(runtime);
        return;
    }
    if (det_effect_run_begin(runtime, effect_run)) {
        det_shard_unlock(runtime, shard);
        det_effect_run_submit(runtime, effect_run);
        det_shard_lock(runtime, shard);
    }
    det_due_handled(runtime);
}
