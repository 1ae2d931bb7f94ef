/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* waker.c - a thread that waits for one descriptor.
 *
 * Invariants, under the mutex:
 *   1. `descriptor` is -1 unless the stage waits for a wake.
 *   2. A wake of an armed descriptor is not lost: the eventfd ends poll() after each change. */
#include "connectors/waker.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

struct waker {
    struct det_stage_call *call;
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_thread *thread;
    int event; /* eventfd: the fields below have changed */
    int descriptor;
    short events;
    bool is_closing;
};

bool waker_is_ready(int descriptor, short events)
{
    struct pollfd poll_one = { .fd = descriptor, .events = events };

    return poll(&poll_one, 1, 0) > 0;
}

/* Returns false at the end. */
static bool read_wish(struct waker *waker, struct pollfd *ret)
{
    bool goes_on;

    det_mutex_lock(waker->world, waker->mutex);
    *ret = (struct pollfd){ .fd = waker->descriptor, .events = waker->events };
    goes_on = !waker->is_closing;
    det_mutex_unlock(waker->world, waker->mutex);
    return goes_on;
}

/* The descriptor is ready: once. */
static void report_ready(struct waker *waker, int descriptor)
{
    bool is_current;

    det_mutex_lock(waker->world, waker->mutex);
    is_current = waker->descriptor == descriptor;
    if (is_current)
        waker->descriptor = -1;
    det_mutex_unlock(waker->world, waker->mutex);
    if (is_current)
        det_stage_wake(waker->call);
}

static void wait_for_all(void *argument)
{
    struct waker *waker = argument;
    struct pollfd both[2] = { { .fd = waker->event, .events = POLLIN } };
    uint64_t count;

    while (read_wish(waker, &both[1])) {
        if (poll(both, 2, -1) < 0) {
            det_assert(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
            continue;
        }
        if (both[0].revents)
            (void)!read(waker->event, &count, sizeof count);
        if (both[1].fd >= 0 && both[1].revents)
            report_ready(waker, both[1].fd);
    }
}

static void notify(struct waker *waker)
{
    uint64_t one = 1;

    /* It fails only if the counter is full: then poll() returns anyway. */
    (void)!write(waker->event, &one, sizeof one);
}

void waker_arm(struct waker *waker, int descriptor, short events)
{
    det_mutex_lock(waker->world, waker->mutex);
    waker->descriptor = descriptor;
    waker->events = events;
    det_mutex_unlock(waker->world, waker->mutex);
    if (descriptor < 0)
        det_stage_wake(waker->call);
    notify(waker);
}

static int start(struct waker *waker)
{
    int r;

    waker->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker->event < 0)
        return det_errno_is_shortage(errno) ? DET_ERR_LIMIT : DET_ERR_IO;
    r = det_mutex_open(waker->world, &waker->mutex);
    if (r < 0)
        return r;
    return det_thread_start(waker->world, "waker", wait_for_all, waker, &waker->thread);
}

int waker_open(struct det_stage_call *call, struct waker **ret)
{
    struct waker *waker = DET_NEW(call->allocator, struct waker);
    int r;

    if (!waker)
        return DET_ERR_NO_MEMORY;
    waker->call = call;
    waker->world = det_world_or_real(call->world);
    waker->event = waker->descriptor = -1;
    r = start(waker);
    if (r < 0) {
        waker_close(waker);
        return r;
    }
    *ret = waker;
    return 0;
}

void waker_close(struct waker *waker)
{
    if (!waker)
        return;
    if (waker->thread) {
        det_mutex_lock(waker->world, waker->mutex);
        waker->is_closing = true;
        det_mutex_unlock(waker->world, waker->mutex);
        notify(waker);
        det_thread_join(waker->world, waker->thread);
    }
    det_mutex_close(waker->world, waker->mutex);
    if (waker->event >= 0)
        (void)close(waker->event);
    DET_DELETE(waker->call->allocator, waker);
}
