/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* monitor.h - monitors: kinds of workers that only observe. A monitor is running while its poll
 * succeeds and its health function reports no problem, degraded with the reason otherwise, and
 * stopped while it is not desired. A .rec file has the record of its observation.
 *
 *     #define REC_SPEC "disk.rec"        RECORD(disk_observed) FIELD(free_percent, u8) END
 *     #include <detent/rec/declare.h>
 *     #include <detent/worker/monitor.h>
 *
 *     static int disk_poll(struct det_worker_context *context, struct disk_observed *observed);
 *     static const char *disk_health(
 *         const struct det_worker_view *view, const struct disk_observed *observed);
 *
 *     DET_MONITOR(disk, disk_observed, disk_poll, disk_health, 5 * DET_SECOND)
 *
 * defines `static const struct det_worker_kind disk_kind`, for the kinds of det_workers_open(); the
 * kind is named disk, too.
 *
 * poll() observes the world, on a thread. It fills a zeroed record and returns 0, or returns
 * det_worker_fail(...), which degrades the worker: "poll error: ...". health() is pure: NULL, or
 * the reason for being degraded; det_reason(view, ...) formats one. The health function is
 * optional, and so is the interval, whose default is that of the supervisor:
 *
 *     DET_MONITOR(disk, disk_observed, disk_poll)
 *     DET_MONITOR(disk, disk_observed, disk_poll, disk_health)
 *
 * This header needs no library, so a module (module.h) can have monitors. */
#ifndef DETENT_WORKER_MONITOR_H
#define DETENT_WORKER_MONITOR_H

#include <detent/worker.h>

DET_BEGIN

enum det_monitor_state {
    DET_MONITOR_STOPPED,
    DET_MONITOR_RUNNING,
    DET_MONITOR_DEGRADED,
};

/* Returns the problem; NULL: none. `kind->user` of a monitor is a struct det_monitor. */
struct det_monitor {
    const char *(*validate)(const struct det_worker_view *view); /* NULL: no problem */
};
static inline const char *det_monitor_fault(const struct det_worker_view *view)
{
    const struct det_monitor *monitor = (const struct det_monitor *)view->kind->user;

    if (view->collect_error)
        return det_reason(view, "poll error: %s", view->collect_error);
    return monitor->validate ? monitor->validate(view) : NULL;
}

static inline struct det_next det_monitor_in_stopped(const struct det_worker_view *view)
{
    struct det_next next = { DET_NEXT_GOTO, DET_MONITOR_RUNNING, "start requested" };

    (void)view;
    return next;
}
static inline struct det_next det_monitor_in_running(const struct det_worker_view *view)
{
    const char *fault = det_monitor_fault(view);
    struct det_next next = { fault ? DET_NEXT_GOTO : DET_NEXT_HOLD, DET_MONITOR_DEGRADED,
                             fault ? fault : "healthy" };

    return next;
}
static inline struct det_next det_monitor_in_degraded(const struct det_worker_view *view)
{
    const char *fault = det_monitor_fault(view);
    struct det_next next = { fault ? DET_NEXT_HOLD : DET_NEXT_GOTO, DET_MONITOR_RUNNING,
                             fault ? fault : "healthy again" };

    return next;
}

#define DET_MONITOR(...) \
    DET_MONITOR__PICK(__VA_ARGS__, DET_MONITOR__5, DET_MONITOR__4, DET_MONITOR__3, ~)(__VA_ARGS__)
#define DET_MONITOR__PICK(_1, _2, _3, _4, _5, n, ...) n
#define DET_MONITOR__3(name, record, poll) \
    DET_MONITOR__POLL(name, record, poll)  \
    DET_MONITOR__KIND(name, record, NULL, 0)
#define DET_MONITOR__4(name, record, poll, health) DET_MONITOR__5(name, record, poll, health, 0)
#define DET_MONITOR__5(name, record, poll, health, every)                   \
    DET_MONITOR__POLL(name, record, poll)                                   \
    static const char *name##__validate(const struct det_worker_view *view) \
    {                                                                       \
        return health(view, (const struct record *)view->observed);         \
    }                                                                       \
    DET_MONITOR__KIND(name, record, name##__validate, every)
#define DET_MONITOR__POLL(name, record, poll)                                            \
    static int name##__collect(                                                          \
        struct det_worker_context *context, void *deps, const void *desired, void *seen) \
    {                                                                                    \
        (void)deps;                                                                      \
        (void)desired;                                                                   \
        return poll(context, (struct record *)seen);                                     \
    }
#define DET_MONITOR__KIND(name_, record_, validate_, every_)                              \
    static const struct det_monitor name_##__monitor = { validate_ };                     \
    static const struct det_worker_state name_##__states[] = {                            \
        { "stopped", DET_PHASE_STOPPED, 0, det_monitor_in_stopped },                      \
        { "running", DET_PHASE_RUNNING, DET_MONITOR_STOPPED, det_monitor_in_running },    \
        { "degraded", DET_PHASE_DEGRADED, DET_MONITOR_STOPPED, det_monitor_in_degraded }, \
    };                                                                                    \
    static const struct det_worker_kind name_##_kind = {                                  \
        .name = #name_,                                                                   \
        .observed = { .get = record_##_record },                                          \
        .states = name_##__states,                                                        \
        .state_count = sizeof name_##__states / sizeof *name_##__states,                  \
        .errors_are_observed = true,                                                      \
        .observe_every = (every_),                                                        \
        .collect = name_##__collect,                                                      \
        .user = &name_##__monitor,                                                        \
    };

DET_END
#endif
