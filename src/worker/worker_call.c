/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_call.c - calls from other threads: executed on the loop, waited for. When the loop is
 * about to end, calls that have not begun are abandoned, so that no thread waits for a stopped
 * loop. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/worker_tree.h"

enum call_state {
    CALL_QUEUED,
    CALL_RUNNING,
    CALL_DONE,
    CALL_GIVEN_UP,
};

struct det_call {
    struct det_post post;
    struct det_workers *workers;
    void (*run)(void *argument);
    void *argument;
    enum call_state state; /* under the mutex of `workers` */
};

static void set_state(struct det_call *call, enum call_state state)
{
    struct det_workers *workers = call->workers;

    det_mutex_lock(workers->world, workers->mutex);
    call->state = state;
    if (state == CALL_DONE)
        det_condition_broadcast(workers->world, workers->changed);
    det_mutex_unlock(workers->world, workers->mutex);
}

static bool begin(struct det_call *call)
{
    struct det_workers *workers = call->workers;
    bool is_wanted;

    det_mutex_lock(workers->world, workers->mutex);
    det_assert(call->state == CALL_QUEUED || call->state == CALL_GIVEN_UP);
    is_wanted = call->state == CALL_QUEUED;
    if (is_wanted)
        call->state = CALL_RUNNING;
    det_mutex_unlock(workers->world, workers->mutex);
    return is_wanted;
}

static void run_call(void *argument)
{
    struct det_call *call = argument;

    if (!begin(call)) {
        DET_DELETE(call->workers->allocator, call);
        return;
    }
    det_workers_now(call->workers);
    call->run(call->argument);
    set_state(call, CALL_DONE);
}

/* Under the mutex; true if the caller frees it. */
static bool wait_for(struct det_call *call)
{
    struct det_workers *workers = call->workers;

    while (call->state != CALL_DONE) {
        if (call->state == CALL_QUEUED && workers->stopping.is_closing) {
            call->state = CALL_GIVEN_UP;
            return false;
        }
        if (det_condition_wait(workers->world, workers->changed, workers->mutex, DET_NEVER) < 0) {
            call->state = CALL_GIVEN_UP;
            return false;
        }
    }
    return true;
}

int det_workers_call(struct det_workers *workers, void (*function)(void *argument), void *argument)
{
    struct det_call *call;
    bool is_done;

    if (det_loop_is_mine(workers->loop)) {
        det_workers_now(workers);
        function(argument);
        return 0;
    }
    call = DET_NEW(workers->allocator, struct det_call);
    if (!call)
        return DET_ERR_NO_MEMORY;
    *call = (struct det_call){
        .post = { .run = run_call, .argument = call },
        .workers = workers,
        .run = function,
        .argument = argument,
    };
    det_mutex_lock(workers->world, workers->mutex);
    if (workers->stopping.is_closing) {
        det_mutex_unlock(workers->world, workers->mutex);
        DET_DELETE(workers->allocator, call);
        return DET_ERR_CLOSED;
    }
    det_loop_post(workers->loop, &call->post);
    is_done = wait_for(call);
    det_mutex_unlock(workers->world, workers->mutex);
    if (!is_done)
        return DET_ERR_CLOSED;
    DET_DELETE(workers->allocator, call);
    return 0;
}
