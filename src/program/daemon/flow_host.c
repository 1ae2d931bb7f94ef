/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_host.c - a flow in the daemon: the functions that flow_host.fsm names.
 *
 *     loop of the daemon          loop of the flow
 *     open_pipeline --work------> open_on_loop: det_pipeline_open()
 *     on_opened     <-----done---
 *     on_ended      <----ended--- on_end, from the pipeline
 *     close_pipeline --work-----> close_on_loop: waits for holders, det_pipeline_close()
 *     on_closed     <-----done---
 *
 * Invariants
 *   1. The pipeline is open exactly in the states OPEN and STOPPING.
 *   2. What was requested is forgotten when the pipeline is opened again. */
#include <detent/driver/policy.h>

#include "daemon/flows_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "daemon/life.h"

#define FSM_LOCAL
#define FSM_SPEC "daemon/flow_host.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "daemon/flow_host.fsm"
#include <detent/fsm/define.h>

static struct up *up_of(const struct up_flow *flow)
{
    return flow->flows->up;
}

static enum flow_host_state state_of(const struct up_flow *flow)
{
    return (enum flow_host_state)det_component_state(&flow->component);
}

static bool flow_is_sound(const struct up_flow *flow)
{
    enum flow_host_state state = state_of(flow);
    bool has_pipeline = state == FLOW_HOST_OPEN || state == FLOW_HOST_STOPPING;

    if (has_pipeline && !flow->pipeline)
        return false;
    return state != FLOW_HOST_OVER || (!flow->pipeline && flow->is_leaving);
}

/* The only place where the state changes. */
static void offer_event(struct up_flow *flow, struct flow_host_event event)
{
    enum flow_host_state before = state_of(flow);
    int r;

    if (before == FLOW_HOST_OVER)
        return;
    r = flow_host_offer(flow, event);
    det_assert(r == 0);
    if (state_of(flow) != before)
        flow->since = det_world_now(up_world(up_of(flow)), DET_CLOCK_WALL);
    up_flow_changed(flow);
    if (state_of(flow) == FLOW_HOST_OVER)
        up_flows_sweep(flow->flows);
    up_options(up_of(flow))->front->notice_flow(up_of(flow));
}

/* On the loop of the flow. */

/* The journal has more rows: streams of the API read them. */
static void on_journal(void *argument)
{
    struct up_flow *flow = argument;
    struct up *up = up_of(flow);

    up_options(up)->front->notice_flow(up);
}

static void on_end(void *user, const struct det_pipeline_end *end)
{
    struct up_flow *flow = user;

    flow->end = *end;
    det_loop_post(up_loop(up_of(flow)), &flow->ended);
}

static int open_pipeline_now(struct up_flow *flow)
{
    const struct flow_definition *definition = flow->definition;
    const struct config_flow *config = &definition->config;
    const struct det_pipeline_options options = {
        .journal = flow->journal,
        .durability = (enum det_journal_durability)config->durability,
        .loop = flow->loop,
        .world = up_world(up_of(flow)),
        .allocator = up_allocator(up_of(flow)),
        .connectors = det_connectors_all(),
        .folder = definition->folder,
        .user = flow,
        .waits_for_run = config->is_manual,
        .window = config->window,
        .threads = config->threads,
        .stop_timeout = config->stop_timeout,
        .retain_size = config->retain_size,
        .retain_age = config->retain_age,
        .on_fact = up_flow_fact,
        .on_end = on_end,
    };
    int r = det_pipeline_open(definition->flow, &options, &flow->opened, &flow->error);

    if (r < 0)
        return r;
    /* Without memory for it, streams see new rows when other flows have some. */
    flow->watcher =
        (struct det_journal_watcher){ .loop = flow->loop, .run = on_journal, .argument = flow };
    (void)!det_journal_watch(det_pipeline_journal(flow->opened), &flow->watcher);
    return 0;
}

static void open_on_loop(void *argument)
{
    struct up_flow *flow = argument;

    det_assert(!flow->opened);
    flow->error = (struct det_error){ 0 };
    flow->result = open_pipeline_now(flow);
    det_loop_post(up_loop(up_of(flow)), &flow->done);
}

static void close_on_loop(void *argument)
{
    struct up_flow *flow = argument;
    struct up_flows *flows = flow->flows;
    struct det_world *world = up_world(flows->up);

    det_mutex_lock(world, flows->lock);
    det_assert(!flow->is_open);
    while (flow->holds > 0)
        (void)det_condition_wait(world, flows->released, flows->lock, DET_NEVER);
    det_mutex_unlock(world, flows->lock);
    det_journal_unwatch(det_pipeline_journal(flow->opened), &flow->watcher);
    det_pipeline_close(flow->opened);
    flow->opened = NULL;
    det_loop_post(up_loop(flows->up), &flow->done);
}

/* On the loop of the daemon. */

/* `pipeline` NULL: it is not open. */
static void set_pipeline(struct up_flow *flow, struct det_pipeline *pipeline)
{
    det_mutex_lock(up_world(up_of(flow)), flow->flows->lock);
    det_assert(!flow->pipeline == (pipeline != NULL));
    flow->pipeline = pipeline;
    flow->is_open = pipeline != NULL;
    det_mutex_unlock(up_world(up_of(flow)), flow->flows->lock);
}

static void on_opened(void *argument)
{
    struct up_flow *flow = argument;

    if (flow->result < 0) {
        offer_event(flow, flow_host_refused());
        return;
    }
    flow->run = det_pipeline_run_number(flow->opened);
    flow->opened_at = det_loop_now(up_loop(up_of(flow)));
    set_pipeline(flow, flow->opened);
    offer_event(flow, flow_host_opened());
    up_flows_sample_begin(flow->flows);
}

static void on_ended(void *argument)
{
    offer_event(argument, flow_host_ended());
}

static void on_closed(void *argument)
{
    offer_event(argument, flow_host_closed());
}

/* Guards. */

static bool is_stop_wanted(const struct up_flow *flow, const struct flow_host_event *event)
{
    (void)event;
    return flow->stop || flow->is_start_wanted || flow->is_leaving;
}

static bool is_leaving(const struct up_flow *flow, const struct flow_host_event *event)
{
    (void)event;
    return flow->is_leaving;
}

static bool will_start(const struct up_flow *flow, const struct flow_host_event *event)
{
    (void)event;
    return flow->is_start_wanted;
}

/* An opening that fails in the same way until a user has changed something. */
static bool is_permanent(int result)
{
    return result == DET_ERR_CONFLICT || result == DET_ERR_UNSUPPORTED ||
           result == DET_ERR_VERSION || result == DET_ERR_DEFINITION;
}

/* A failure counts before this is asked: note_end(), note_refusal(). */
static bool will_retry(const struct up_flow *flow, const struct flow_host_event *event)
{
    const struct det_policy *policy = &flow->definition->config.policy;

    (void)event;
    if (flow->failures == 0 || flow->stop || policy->restart == DET_RESTART_NEVER ||
        is_permanent(flow->result))
        return false;
    return !policy->retries_max || policy->retries_max == DET_RETRIES_UNLIMITED ||
           flow->failures <= policy->retries_max;
}

/* Actions. */

/* The state when an opening begins: nothing of the earlier one is left. */
static void forget_requests(struct up_flow *flow)
{
    flow->stop = UP_FLOW_GO;
    flow->stop_timeout = 0;
    flow->is_start_wanted = false;
    flow->was_stopped = false;
}

static void take_next(struct up_flow *flow)
{
    struct flow_definition *before = flow->definition;
    struct det_world *world = up_world(up_of(flow));

    up_flow_samples_close(flow);
    det_mutex_lock(world, flow->flows->lock);
    flow->definition = flow->next;
    det_mutex_unlock(world, flow->flows->lock);
    flow->next = NULL;
    flow_definition_close(before);
}

static int open_pipeline(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    det_assert(!flow->pipeline);
    forget_requests(flow);
    if (flow->next)
        take_next(flow);
    /* Without memory for samples nothing can be shown; the flow runs all the same. */
    if (!flow->stages)
        (void)!up_flow_samples_open(flow);
    flow->end = (struct det_pipeline_end){ 0 };
    flow->work = (struct det_post){ .run = open_on_loop, .argument = flow };
    flow->done = (struct det_post){ .run = on_opened, .argument = flow };
    det_loop_post(flow->loop, &flow->work);
    return DET_EFFECT_DONE;
}

static int close_pipeline(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    /* The last figures are shown while it is down. */
    up_flow_sample(flow);
    set_pipeline(flow, NULL);
    flow->work = (struct det_post){ .run = close_on_loop, .argument = flow };
    flow->done = (struct det_post){ .run = on_closed, .argument = flow };
    det_loop_post(flow->loop, &flow->work);
    return DET_EFFECT_DONE;
}

static int stop_pipeline(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    /* Full: it has so many requests that it stops already. */
    if (flow->stop == UP_FLOW_STOP_CANCEL)
        (void)det_pipeline_cancel(flow->pipeline);
    else
        (void)det_pipeline_drain(flow->pipeline, flow->stop_timeout);
    return DET_EFFECT_DONE;
}

static int run_pipeline(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    (void)det_pipeline_run(flow->pipeline);
    return DET_EFFECT_DONE;
}

static int want_start(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    flow->is_start_wanted = true;
    return DET_EFFECT_DONE;
}

/* up_flow_stop() has set the kind of stop. A start that was requested before is not. */
static int want_stop(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    det_assert(flow->stop);
    flow->is_start_wanted = false;
    flow->was_stopped = true;
    return DET_EFFECT_DONE;
}

static int want_leave(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    flow->is_leaving = true;
    flow->is_start_wanted = false;
    return DET_EFFECT_DONE;
}

static void count_failure(struct up_flow *flow)
{
    det_time stable = flow->definition->config.policy.backoff.stable_after;
    det_time ran = det_loop_now(up_loop(up_of(flow))) - flow->opened_at;

    if (flow->opened_at && stable != DET_NEVER && ran >= stable) {
        flow->failures = 0;
        flow->delay = 0;
    }
    flow->failures += flow->failures < UINT32_MAX;
}

static int note_end(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    det_assert(flow->end.outcome != DET_PIPELINE_RUNS);
    atomic_store(&flow->is_run_ordered, false);
    if (flow->end.outcome == DET_PIPELINE_HAS_FAILED)
        count_failure(flow);
    else
        flow->failures = 0;
    return DET_EFFECT_DONE;
}

static int note_refusal(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    (void)event;
    (void)ret;
    det_assert(flow->result < 0 && !flow->pipeline);
    flow->opened_at = 0;
    count_failure(flow);
    up_flow_note_refusal(flow);
    return DET_EFFECT_DONE;
}

static int plan_retry(
    struct up_flow *flow, const struct flow_host_event *event, struct flow_host_event *ret)
{
    const struct det_backoff *backoff = &flow->definition->config.policy.backoff;
    uint64_t chance = det_world_random_u64(up_world(up_of(flow)));

    (void)event;
    (void)ret;
    flow->delay = det_backoff_delay(backoff, flow->failures - 1, flow->delay, chance);
    flow->due_at = det_add_time(det_loop_now(up_loop(up_of(flow))), flow->delay);
    flow->restarts++;
    up_flow_note_retry(flow, flow->delay);
    return DET_EFFECT_DONE;
}

/* Without memory for the timer, the next event of this flow continues. */
static int watch_delay(struct up_flow *flow, struct flow_host_event *ret)
{
    if (flow->due_at <= det_loop_now(up_loop(up_of(flow)))) {
        *ret = flow_host_due();
        return DET_DIRECTIVE_TRANSITION;
    }
    (void)!det_component_wake_at(&flow->component, flow->due_at);
    return DET_DIRECTIVE_CONTINUE;
}

/* Opening and closing. */

static int set_journal(struct up_flow *flow)
{
    const struct det_allocator *allocator = up_allocator(up_of(flow));
    struct det_buffer text;

    if (flow->definition->config.durability == CONFIG_DURABILITY_MEMORY)
        return 0;
    det_buffer_init(&text, allocator);
    det_buffer_format(&text, "file:%s/" UP_FLOWS_FOLDER "/%s", up_folder(up_of(flow)), flow->name);
    if (det_buffer_status(&text) == 0)
        flow->journal = det_string_copy(allocator, det_buffer_text(&text));
    det_buffer_deinit(&text);
    return flow->journal ? 0 : DET_ERR_NO_MEMORY;
}

int up_flow_open(
    struct up_flows *flows, const char *name, struct flow_definition *definition_take,
    struct up_flow **ret, struct det_error *reterr)
{
    const struct det_allocator *allocator = up_allocator(flows->up);
    struct up_flow *flow = DET_NEW(allocator, struct up_flow);
    int r = DET_ERR_NO_MEMORY;

    if (!flow) {
        flow_definition_close(definition_take);
        return det_error_set(reterr, r, "out of memory");
    }
    flow->flows = flows;
    flow->definition = definition_take;
    flow->loop = flows->loops[flows->next_loop++ % flows->loop_count];
    flow->since = det_world_now(up_world(flows->up), DET_CLOCK_WALL);
    flow->ended = (struct det_post){ .run = on_ended, .argument = flow };
    flow->name = det_string_copy(allocator, name);
    if (flow->name)
        r = set_journal(flow);
    if (r == 0)
        r = flow_host_supervise(
            up_executor(flows->up), flow, &(struct det_supervise_options){ .without_handle = true },
            NULL, NULL);
    if (r < 0) {
        up_flow_close(flow);
        return det_error_set(reterr, r, "flow %s: %s", name, det_error_text(r));
    }
    *ret = flow;
    return 0;
}

void up_flow_close(struct up_flow *flow)
{
    const struct det_allocator *allocator = up_allocator(up_of(flow));

    det_assert(!flow->pipeline && flow->holds == 0);
    up_flow_samples_close(flow);
    flow_definition_close(flow->definition);
    flow_definition_close(flow->next);
    det_free_string(allocator, flow->journal);
    det_free_string(allocator, flow->name);
    DET_DELETE(allocator, flow);
}

/* Requests. */

void up_flow_begin(struct up_flow *flow)
{
    det_assert(state_of(flow) == FLOW_HOST_DOWN);
    offer_event(flow, flow_host_start());
}

void up_flow_start(struct up_flow *flow)
{
    atomic_store(&flow->is_run_ordered, true);
    flow->failures = 0;
    flow->delay = 0;
    offer_event(flow, flow_host_start());
}

/* A cancel is stronger than a drain. */
static void ask_stop(struct up_flow *flow, enum up_flow_stop stop, det_time timeout)
{
    det_assert(stop != UP_FLOW_GO);
    if (flow->stop < stop)
        flow->stop = stop;
    if (timeout)
        flow->stop_timeout = timeout;
}

void up_flow_stop(struct up_flow *flow, enum up_flow_stop stop, det_time timeout)
{
    ask_stop(flow, stop, timeout);
    flow->was_stopped = true;
    offer_event(flow, flow_host_stop());
}

void up_flow_leave(struct up_flow *flow, enum up_flow_stop stop, det_time timeout)
{
    ask_stop(flow, stop, timeout);
    offer_event(flow, flow_host_leave());
}

void up_flow_replace(struct up_flow *flow, struct flow_definition *definition_take)
{
    det_assert(state_of(flow) != FLOW_HOST_OVER);
    flow_definition_close(flow->next);
    flow->next = definition_take;
    /* It was removed, and is named again. */
    flow->is_start_wanted = flow->is_leaving;
    flow->is_leaving = false;
    /* A flow that is down begins again, unless it waits for an order. */
    if (state_of(flow) == FLOW_HOST_DOWN)
        flow->is_start_wanted = !flow->was_stopped && !definition_take->config.is_manual;
    flow->failures = 0;
    flow->delay = 0;
    offer_event(flow, flow_host_replace());
}

/* The state. */

bool up_flow_is_over(const struct up_flow *flow)
{
    return state_of(flow) == FLOW_HOST_OVER;
}

bool up_flow_is_down(const struct up_flow *flow)
{
    return state_of(flow) == FLOW_HOST_DOWN || state_of(flow) == FLOW_HOST_OVER;
}

static const char *down_state(const struct up_flow *flow)
{
    if (flow->result < 0)
        return "failed";
    switch (flow->end.outcome) {
    case DET_PIPELINE_RUNS:
        break;
    case DET_PIPELINE_COMPLETED:
        return "completed";
    case DET_PIPELINE_STOPPED:
        return "stopped";
    case DET_PIPELINE_HAS_FAILED:
        return "failed";
    }
    return "idle";
}

const char *up_flow_state(const struct up_flow *flow)
{
    enum flow_host_state state = state_of(flow);

    if (up_flow_is_down(flow))
        return down_state(flow);
    if (state == FLOW_HOST_OPEN || state == FLOW_HOST_STOPPING)
        return det_pipeline_state_name(det_pipeline_state(flow->pipeline));
    return flow_host_machine.states[state].name;
}

const char *up_flow_reason(const struct up_flow *flow)
{
    enum flow_host_state state = state_of(flow);

    if (state == FLOW_HOST_OPEN || state == FLOW_HOST_STOPPING || state == FLOW_HOST_OPENING)
        return "";
    return flow->result < 0 ? flow->error.text : flow->end.reason;
}
