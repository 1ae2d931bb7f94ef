/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle.c - the handle of a component for other threads: a bounded queue of control events, the
 * state as last published, its end.
 *
 *     any thread                                    the loop
 *     send: queue, post once ----------------->     the component runs, takes, steps
 *     wait_change, wait   <------- changed -----     publish, finish
 *
 * Invariants, under `mutex`
 *   1. `component` is NULL once it has left its executor; a message is posted only before that, so
 *      none is posted to a closed loop.
 *   2. `references` counts the owner, the component, and the message while `is_posted`.
 *   3. `has_control` is true while an event waits or the channel is closed. The loop reads it
 *      without the lock: a thread that sets it posts a message afterwards.
 *   4. `changes` counts the published states, from 1; `has_ended` is set once, with `end`. */
#include <detent/driver/loop.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "supervise/handle.h"

#define CAPACITY 100

struct det_handle {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop;
    const struct det_machine *machine;
    void (*on_state)(void *user, unsigned state);
    void *user;
    struct det_mutex *mutex;
    struct det_condition *changed;
    struct det_post post;
    struct det_component *component;
    unsigned references;
    bool is_posted, wake_wanted, abort_wanted, is_hung_up, has_ended;
    atomic_bool has_control;
    uint32_t capacity, first, count;
    unsigned char *events;
    unsigned state;
    uint64_t changes;
    struct det_component_end end; /* before the end: the last failure so far */
};

static void lock(const struct det_handle *handle)
{
    det_mutex_lock(handle->world, handle->mutex);
}

static void unlock(const struct det_handle *handle)
{
    det_mutex_unlock(handle->world, handle->mutex);
}

/* Under the lock. */
static void assert_handle(const struct det_handle *handle)
{
    det_assert(handle->references > 0 && handle->count <= handle->capacity);
    det_assert(handle->first < handle->capacity && handle->changes > 0);
    det_assert(!handle->component || !handle->has_ended);
}

static void destroy(struct det_handle *handle)
{
    det_assert(!handle->is_posted);
    if (handle->events)
        det_free(
            handle->allocator, handle->events,
            (size_t)handle->capacity * handle->machine->event_size);
    det_condition_close(handle->world, handle->changed);
    det_mutex_close(handle->world, handle->mutex);
    DET_DELETE(handle->allocator, handle);
}

/* Under the lock, which it releases. */
static void release_and_unlock(struct det_handle *handle)
{
    bool is_last;

    det_assert(handle->references > 0);
    is_last = --handle->references == 0;
    unlock(handle);
    if (is_last)
        destroy(handle);
}

/* The loop's side of requests. */
static void on_post(void *argument)
{
    struct det_handle *handle = argument;
    struct det_component *component;
    bool is_due;

    lock(handle);
    det_assert(handle->is_posted);
    component = handle->component;
    is_due = handle->wake_wanted || handle->abort_wanted;
    if (component && handle->abort_wanted)
        component->internal.end_wanted = true;
    handle->is_posted = handle->wake_wanted = false;
    release_and_unlock(handle);
    if (!component)
        return;
    if (!is_due)
        is_due = component->internal.def->dispatch[component->internal.state].mode !=
                     DET_DISPATCH_IGNORE &&
                 det_handle_has_control(component->internal.handle);
    if (is_due)
        (void)det_gateway_run(component, NULL);
}

/* Under the lock. */
static void post(struct det_handle *handle)
{
    if (handle->is_posted || !handle->component)
        return;
    handle->is_posted = true;
    handle->references++;
    det_loop_post(handle->loop, &handle->post);
}

static int open_parts(struct det_handle *handle)
{
    int r;

    handle->events =
        det_alloc_array(handle->allocator, handle->capacity, handle->machine->event_size);
    if (!handle->events)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(handle->world, &handle->mutex);
    if (r == 0)
        r = det_condition_open(handle->world, &handle->changed);
    return r;
}

int det_handle_open(
    struct det_component *component, const struct det_supervise_options *options,
    struct det_handle **ret)
{
    struct det_executor *executor = component->internal.executor;
    struct det_handle *handle;
    int r;

    handle = DET_NEW(executor->allocator, struct det_handle);
    if (!handle)
        return DET_ERR_NO_MEMORY;
    handle->world = det_loop_world(executor->loop);
    handle->allocator = executor->allocator;
    handle->loop = executor->loop;
    handle->machine = component->internal.def->machine;
    handle->on_state = options->on_state;
    handle->user = options->user;
    handle->post = (struct det_post){ .run = on_post, .argument = handle };
    handle->component = component;
    handle->references = 2;
    handle->capacity = options->control_capacity ? options->control_capacity : CAPACITY;
    handle->state = component->internal.state;
    handle->changes = 1;
    r = open_parts(handle);
    if (r < 0) {
        destroy(handle);
        return r;
    }
    assert_handle(handle);
    component->internal.has_handle = true;
    component->internal.handle = handle;
    *ret = handle;
    return 0;
}

void det_handle_detach(struct det_handle *handle)
{
    lock(handle);
    det_assert(handle->component && handle->component->internal.handle == handle);
    handle->component = NULL;
    unlock(handle);
}

void det_handle_finish(struct det_handle *handle, const struct det_component_end *end)
{
    lock(handle);
    det_assert(!handle->component && !handle->has_ended);
    handle->end = *end;
    handle->has_ended = true;
    det_condition_broadcast(handle->world, handle->changed);
    release_and_unlock(handle);
}

static void *place_of(const struct det_handle *handle, uint32_t number)
{
    uint32_t place = (uint32_t)(((uint64_t)handle->first + number) % handle->capacity);

    return handle->events + (size_t)place * handle->machine->event_size;
}

enum det_control det_handle_take(struct det_handle *handle, void *event)
{
    enum det_control control = DET_CONTROL_NONE;

    lock(handle);
    if (handle->count > 0) {
        memcpy(event, place_of(handle, 0), handle->machine->event_size);
        handle->first = (handle->first + 1) % handle->capacity;
        handle->count--;
        control = DET_CONTROL_EVENT;
    } else if (handle->is_hung_up) {
        control = DET_CONTROL_CLOSED;
    }
    atomic_store(&handle->has_control, handle->count > 0 || handle->is_hung_up);
    unlock(handle);
    return control;
}

bool det_handle_has_control(const struct det_handle *handle)
{
    return atomic_load(&handle->has_control);
}

void det_handle_publish(struct det_handle *handle, unsigned state)
{
    lock(handle);
    det_assert(state < handle->machine->state_count);
    handle->state = state;
    handle->changes++;
    det_condition_broadcast(handle->world, handle->changed);
    unlock(handle);
    if (handle->on_state)
        handle->on_state(handle->user, state);
}

unsigned det_handle_published(const struct det_handle *handle)
{
    return handle->state;
}

struct det_failure *det_handle_failure(struct det_handle *handle)
{
    return &handle->end.failure;
}

int det_handle_send(struct det_handle *handle, const void *event)
{
    unsigned kind = det_event_kind(event);
    int r = 0;

    if (kind >= handle->machine->event_count || handle->machine->events[kind].is_internal)
        return DET_ERR_INVALID;
    lock(handle);
    if (!handle->component || handle->is_hung_up)
        r = DET_ERR_CLOSED;
    else if (handle->count == handle->capacity)
        r = DET_ERR_LIMIT;
    if (r == 0) {
        memcpy(place_of(handle, handle->count), event, handle->machine->event_size);
        handle->count++;
        assert_handle(handle);
        atomic_store(&handle->has_control, true);
        post(handle);
    }
    unlock(handle);
    return r;
}

/* Under the lock. */
static void hang_up(struct det_handle *handle)
{
    handle->is_hung_up = true;
    atomic_store(&handle->has_control, true);
    post(handle);
}

void det_handle_hang_up(struct det_handle *handle)
{
    lock(handle);
    hang_up(handle);
    unlock(handle);
}

void det_handle_wake(struct det_handle *handle)
{
    lock(handle);
    handle->wake_wanted = true;
    post(handle);
    unlock(handle);
}

void det_handle_abort(struct det_handle *handle)
{
    lock(handle);
    handle->abort_wanted = true;
    post(handle);
    unlock(handle);
}

unsigned det_handle_state(const struct det_handle *handle)
{
    unsigned state;

    lock(handle);
    state = handle->state;
    unlock(handle);
    return state;
}

uint64_t det_handle_changes(const struct det_handle *handle)
{
    uint64_t changes;

    lock(handle);
    changes = handle->changes;
    unlock(handle);
    return changes;
}

int det_handle_wait_change(struct det_handle *handle, uint64_t seen, det_time deadline)
{
    int r = 0;

    lock(handle);
    while (r == 0 && handle->changes <= seen && !handle->has_ended)
        r = det_condition_wait(handle->world, handle->changed, handle->mutex, deadline);
    if (handle->changes > seen || handle->has_ended)
        r = 0;
    unlock(handle);
    return r;
}

bool det_handle_has_ended(const struct det_handle *handle)
{
    bool has_ended;

    lock(handle);
    has_ended = handle->has_ended;
    unlock(handle);
    return has_ended;
}

int det_handle_wait(struct det_handle *handle, det_time deadline, struct det_component_end *ret)
{
    int r = 0;

    lock(handle);
    while (r == 0 && !handle->has_ended)
        r = det_condition_wait(handle->world, handle->changed, handle->mutex, deadline);
    if (handle->has_ended)
        r = 0;
    if (r == 0 && ret)
        *ret = handle->end;
    unlock(handle);
    return r;
}

void det_handle_close(struct det_handle *handle)
{
    if (!handle)
        return;
    lock(handle);
    hang_up(handle);
    release_and_unlock(handle);
}
