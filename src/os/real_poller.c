/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_poller.c - waits for descriptors, wakes and deadlines: epoll, an eventfd and a timerfd.
 *
 * The eventfd is watched like any descriptor but never counted among the events. Only poller_wait()
 * reads it, so a wake between two waits ends the second of them at once. The timerfd never expires:
 * the kernel makes it readable when the wall clock is set, or the machine resumes from suspend, and
 * that counts as a wake. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/real.h"

/* More events at once only fill the stack: the rest are ready at the next wait. */
#define EVENTS_MAX 64

struct det_poller {
    int epoll;
    int wake;
    int wall;
};

/* Watches a descriptor of our own; its address is its tag. */
static int watch_own(struct det_poller *poller, int descriptor, void *place)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = place };

    if (descriptor < 0 || epoll_ctl(poller->epoll, EPOLL_CTL_ADD, descriptor, &event) < 0)
        return det_real_error(errno);
    return 0;
}

static int watch_wall(struct det_poller *poller)
{
    /* The largest time of the kernel: only a clock jump can make it readable. */
    struct itimerspec never = { .it_value.tv_sec = INT64_MAX / DET_SECOND };

    poller->wall = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (poller->wall < 0 ||
        timerfd_settime(poller->wall, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL))
        return det_real_error(errno);
    return watch_own(poller, poller->wall, &poller->wall);
}

static void close_all(struct det_poller *poller)
{
    const int descriptors[] = { poller->wall, poller->wake, poller->epoll };

    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

int det_real_poller_open(struct det_world *world, struct det_poller **ret)
{
    struct det_poller *poller;
    int r;

    poller = DET_NEW(det_real_allocator(world), struct det_poller);
    if (!poller)
        return DET_ERR_NO_MEMORY;
    poller->wake = poller->wall = -1;
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    r = poller->epoll < 0 ? det_real_error(errno) : 0;
    if (r == 0) {
        poller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = watch_own(poller, poller->wake, &poller->wake);
    }
    if (r == 0)
        r = watch_wall(poller);
    if (r < 0) {
        det_real_poller_close(world, poller);
        return r;
    }
    *ret = poller;
    return 0;
}

void det_real_poller_close(struct det_world *world, struct det_poller *poller)
{
    close_all(poller);
    DET_DELETE(det_real_allocator(world), poller);
}

static int unwatch_descriptor(struct det_poller *poller, int descriptor)
{
    int r;

    r = epoll_ctl(poller->epoll, EPOLL_CTL_DEL, descriptor, NULL);
    /* Unwatching a descriptor that is closed or was never watched succeeds. */
    if (r < 0 && errno != ENOENT && errno != EBADF && errno != EPERM)
        return det_real_error(errno);
    return 0;
}

int det_real_poller_watch(
    struct det_world *world, struct det_poller *poller, int descriptor, unsigned events, void *tag)
{
    struct epoll_event event = { .data.ptr = tag };
    int r;

    (void)world;
    det_assert(tag != &poller->wake && tag != &poller->wall);
    if (!events)
        return unwatch_descriptor(poller, descriptor);
    if (events & DET_POLL_READ)
        event.events |= EPOLLIN;
    if (events & DET_POLL_WRITE)
        event.events |= EPOLLOUT;
    r = epoll_ctl(poller->epoll, EPOLL_CTL_MOD, descriptor, &event);
    if (r < 0 && errno == ENOENT)
        r = epoll_ctl(poller->epoll, EPOLL_CTL_ADD, descriptor, &event);
    return r < 0 ? det_real_error(errno) : 0;
}

/* Rounds up, so that no wait ends early; for kernels and sandboxes without epoll_pwait2(). */
static int milliseconds_of(det_time span)
{
    return span >= DET_DAY ? (int)(DET_DAY / DET_MILLISECOND)
                           : (int)((span + DET_MILLISECOND - 1) / DET_MILLISECOND);
}

/* Waits once; a deadline in the past polls without waiting. */
static int wait_once(
    struct det_world *world, struct det_poller *poller, struct epoll_event *natives, int capacity,
    det_time deadline)
{
    struct timespec span;
    det_time left;
    int found;

    if (deadline == DET_NEVER)
        return epoll_wait(poller->epoll, natives, capacity, -1);
    left = deadline <= 0 ? 0 : deadline - det_real_now(world, DET_CLOCK_MONOTONIC);
    if (left <= 0)
        return epoll_wait(poller->epoll, natives, capacity, 0);
    span = det_real_timespec(left);
    found = epoll_pwait2(poller->epoll, natives, capacity, &span, NULL);
    if (found < 0 && errno == ENOSYS)
        found = epoll_wait(poller->epoll, natives, capacity, milliseconds_of(left));
    return found;
}

static struct det_poll_event event_of(const struct epoll_event *native)
{
    struct det_poll_event event = { .tag = native->data.ptr };

    if (native->events & EPOLLIN)
        event.events |= DET_POLL_READ;
    if (native->events & EPOLLOUT)
        event.events |= DET_POLL_WRITE;
    if (native->events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
        event.events |= DET_POLL_HANGUP;
    return event;
}

static void take_wake(struct det_poller *poller)
{
    uint64_t count;
    ssize_t size;

    size = read(poller->wake, &count, sizeof count);
    det_assert(size == (ssize_t)sizeof count || errno == EAGAIN);
}

static void take_jump(struct det_poller *poller)
{
    uint64_t count;
    ssize_t size;

    size = read(poller->wall, &count, sizeof count);
    det_assert(size < 0 && (errno == EAGAIN || errno == ECANCELED));
}

int det_real_poller_wait(
    struct det_world *world, struct det_poller *poller, struct det_poll_event *events, int capacity,
    det_time deadline)
{
    struct epoll_event natives[EVENTS_MAX];
    int count = 0, found;

    det_assert(capacity > 0);
    if (capacity > EVENTS_MAX)
        capacity = EVENTS_MAX;
    do
        found = wait_once(world, poller, natives, capacity, deadline);
    while (found < 0 && errno == EINTR);
    if (found < 0)
        return det_real_error(errno);
    for (int i = 0; i < found; i++) {
        if (natives[i].data.ptr == &poller->wake)
            take_wake(poller);
        else if (natives[i].data.ptr == &poller->wall)
            take_jump(poller);
        else
            events[count++] = event_of(&natives[i]);
    }
    return count;
}

void det_real_poller_wake(struct det_world *world, struct det_poller *poller)
{
    const uint64_t one = 1;
    ssize_t size;

    (void)world;
    /* EAGAIN: the counter is full, so it is readable already. */
    do
        size = write(poller->wake, &one, sizeof one);
    while (size < 0 && errno == EINTR);
    det_assert(size == (ssize_t)sizeof one || errno == EAGAIN);
}

int det_real_poller_descriptor(struct det_world *world, struct det_poller *poller)
{
    (void)world;
    return poller->epoll;
}
