/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* executor.c - schedules components on one loop.
 *
 *               wake, event, timer                 gateway
 *     parked ------------------------> ready ----------------> running ---> ended
 *        ^                               ^                        |
 *        |                               +------- again ----------+
 *        +-------------------------- continue, block -------------+
 *
 * Invariants
 *   1. A component is in `ready` exactly while its phase says so; several wakes are one entry.
 *   2. While `ready` is not empty outside a pass, `post` is in the loop's queue. A pass runs the
 *      components that were ready when it began; later ones run in the next turn.
 *   3. The component's timer is set whenever timeout_at or wake_at is in the future, and not
 *      later. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "supervise/handle.h"

#define BUDGET 64

static void run_ready(void *argument);

static struct det_component *component_of_ready(struct det_component_link *link)
{
    return DET_CONTAINER(link, struct det_component, internal.ready);
}

static struct det_component *component_of_all(struct det_component_link *link)
{
    return DET_CONTAINER(link, struct det_component, internal.all);
}

int det_executor_open(
    struct det_loop *loop, const struct det_executor_options *options, struct det_executor **ret,
    struct det_error *reterr)
{
    static const struct det_executor_options zero;
    struct det_executor *executor;
    int r;

    options = options ? options : &zero;
    r = det_reserved_check(options->reserved, "an executor", reterr);
    if (r < 0)
        return r;
    executor = DET_NEW(options->allocator, struct det_executor);
    if (!executor)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for an executor");
    executor->loop = loop;
    executor->allocator = options->allocator;
    executor->options = *options;
    if (executor->options.budget == 0)
        executor->options.budget = BUDGET;
    det_link_init(&executor->all);
    det_link_init(&executor->ready);
    executor->post.run = run_ready;
    executor->post.argument = executor;
    *ret = executor;
    return 0;
}

void det_executor_close(struct det_executor *executor)
{
    if (!executor)
        return;
    det_assert(!executor->frame && !executor->is_closed);
    executor->is_closed = true;
    while (!det_link_is_alone(&executor->all))
        det_gateway_abort(component_of_all(executor->all.next));
    /* A message under way cannot be withdrawn: it does the rest. */
    if (!executor->is_posted)
        DET_DELETE(executor->allocator, executor);
}

struct det_loop *det_executor_loop(const struct det_executor *executor)
{
    return executor->loop;
}

struct det_executor_counts det_executor_counts(const struct det_executor *executor)
{
    return executor->counts;
}

static void run_ready(void *argument)
{
    struct det_executor *executor = argument;
    struct det_component_link pass;

    det_assert(executor->is_posted && !executor->frame);
    executor->is_posted = false;
    if (executor->is_closed) {
        DET_DELETE(executor->allocator, executor);
        return;
    }
    /* The pass replaces the head of the ring. */
    det_link_init(&pass);
    det_link_append(&executor->ready, &pass);
    det_link_remove(&executor->ready);
    while (!det_link_is_alone(&pass))
        (void)det_gateway_run(component_of_ready(pass.next), NULL);
}

void det_executor_ready(struct det_component *component)
{
    struct det_executor *executor = component->internal.executor;

    det_assert(component->internal.phase == DET_PHASE_PARKED);
    component->internal.phase = DET_PHASE_READY;
    det_link_append(&executor->ready, &component->internal.ready);
    if (executor->is_posted)
        return;
    executor->is_posted = true;
    det_loop_post(executor->loop, &executor->post);
}

static det_time earlier(det_time a, det_time b)
{
    return a < b ? a : b;
}

int det_executor_arm(struct det_component *component)
{
    struct det_loop *loop = component->internal.executor->loop;
    det_time due = earlier(component->internal.timeout_at, component->internal.wake_at);

    if (due != DET_NEVER)
        return det_loop_timer_set(loop, &component->internal.timer, due);
    det_loop_timer_cancel(loop, &component->internal.timer);
    return 0;
}

/* Leaves due deadlines to the run, and sets the timer again for later ones; that cannot fail, as
 * the timer has just left the loop's heap. */
static void on_timer(void *argument)
{
    struct det_component *component = argument;
    struct det_loop *loop = component->internal.executor->loop;
    det_time now = det_loop_now(loop), later = component->internal.timeout_at;
    int r;

    det_assert(component->internal.def && component->internal.phase != DET_PHASE_ENDED);
    if (component->internal.wake_at <= now)
        component->internal.wake_at = DET_NEVER;
    if (later <= now)
        later = DET_NEVER;
    later = earlier(later, component->internal.wake_at);
    if (later != DET_NEVER) {
        r = det_loop_timer_set(loop, &component->internal.timer, later);
        det_assert(r == 0);
    }
    (void)det_gateway_run(component, NULL);
}

static void init(
    struct det_component *component, struct det_executor *executor,
    const struct det_component_def *def)
{
    const struct det_machine *machine = def->machine;
    const struct det_timeout *timeout = &machine->states[machine->initial].timeout;

    *component = (struct det_component){
        .internal = { .def = def,
                      .state = machine->initial,
                      .executor = executor,
                      .timeout_at = DET_NEVER,
                      .request = UINT16_MAX,
                      .wake_at = DET_NEVER,
                      .phase = DET_PHASE_PARKED },
    };
    component->internal.timer.run = on_timer;
    component->internal.timer.argument = component;
    if (timeout->after > 0) {
        component->internal.timeout_at = det_add_time(det_loop_now(executor->loop), timeout->after);
        component->internal.timeout_event = timeout->event;
    }
    det_link_init(&component->internal.all);
    det_link_init(&component->internal.ready);
}

static int check(
    const struct det_executor *executor, const struct det_component_def *def,
    const struct det_component *component, const struct det_supervise_options *options,
    struct det_error *reterr)
{
    const char *name = def->machine->name;

    det_assert(def->machine->event_size <= DET_COMPONENT_EVENT_MAX);
    if (executor->is_closed)
        return det_error_set(
            reterr, DET_ERR_CLOSED, "%s is not supervised: the executor is closed", name);
    if (component->internal.def)
        return det_error_set(reterr, DET_ERR_EXISTS, "this %s is supervised already", name);
    if (options->without_handle && options->on_state)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "on_state of %s needs a handle; remove on_state or without_handle", name);
    return det_reserved_check(options->reserved, "a component", reterr);
}

int det_supervise(
    struct det_executor *executor, const struct det_component_def *def, void *context,
    const struct det_supervise_options *options, struct det_handle **ret, struct det_error *reterr)
{
    static const struct det_supervise_options zero;
    struct det_component *component = (void *)((char *)context + def->offset);
    int r;

    options = options ? options : &zero;
    r = check(executor, def, component, options, reterr);
    if (r < 0)
        return r;
    init(component, executor, def);
    r = det_executor_arm(component);
    if (r == 0 && !options->without_handle)
        r = det_handle_open(component, options, ret);
    if (r < 0) {
        det_loop_timer_cancel(executor->loop, &component->internal.timer);
        *component = (struct det_component){ 0 };
        return det_error_set(reterr, r, "out of memory: cannot supervise a %s", def->machine->name);
    }
    executor->counts.supervised++;
    det_link_append(&executor->all, &component->internal.all);
    det_executor_ready(component);
    return 0;
}

void det_component_forget(struct det_component *component)
{
    det_assert(
        component->internal.def && component->internal.phase != DET_PHASE_RUNNING &&
        !component->internal.has_handle);
    component->internal.executor->counts.supervised--;
    det_loop_timer_cancel(component->internal.executor->loop, &component->internal.timer);
    det_link_remove(&component->internal.ready);
    det_link_remove(&component->internal.all);
    *component = (struct det_component){ 0 };
}

void det_component_wake(struct det_component *component)
{
    if (!component->internal.def)
        return;
    if (component->internal.phase == DET_PHASE_PARKED)
        det_executor_ready(component);
    else if (component->internal.phase == DET_PHASE_RUNNING)
        component->internal.wake_wanted = true;
}

int det_component_wake_at(struct det_component *component, det_time at)
{
    det_time before = component->internal.wake_at;
    int r;

    if (!component->internal.def)
        return 0;
    component->internal.wake_at = at == DET_NEVER ? DET_NEVER : earlier(at, before);
    r = det_executor_arm(component);
    if (r < 0)
        component->internal.wake_at = before;
    return r;
}

int det_component_offer(struct det_component *component, const void *event)
{
    const struct det_machine *machine;
    const struct det_frame *frame;

    if (!component->internal.def)
        return DET_ERR_CLOSED;
    machine = component->internal.def->machine;
    frame = component->internal.executor->frame;
    if (det_event_kind(event) >= machine->event_count ||
        machine->events[det_event_kind(event)].is_internal)
        return DET_ERR_INVALID;
    if (component->internal.phase == DET_PHASE_RUNNING)
        return DET_ERR_BUSY;
    if (frame && frame->depth + 1 >= DET_COMPONENT_DEPTH_MAX)
        return DET_ERR_LIMIT;
    return det_gateway_run(component, event);
}

int det_component_deliver(struct det_component *component, const void *event)
{
    if (!component->internal.def || component->internal.executor->frame)
        return det_component_offer(component, event);
    return det_gateway_deliver(component, event);
}
