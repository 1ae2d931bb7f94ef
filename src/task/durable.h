/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.h - a queue in a store, as its files share it: durable.c opens it and has its runners,
 * durable_attempt.c does what was claimed, durable_schedule.c puts what is due by the clock. */
#ifndef DET_TASK_DURABLE_H
#define DET_TASK_DURABLE_H

#include <detent/durable.h>

#include "base/buffer.h"
#include "store/store.h"

/* A place of the queue: a thread that claims, watches the task, renews, and ends. */
struct durable_runner {
    struct det_durable *durable;
    struct det_thread *thread;
    det_task_id task; /* that runs; 0: none. Under the mutex */
    /* What was claimed. */
    struct det_buffer texts; /* task, id, body, each with a 0 behind it */
    size_t id_at, body_at;
    struct det_durable_job job;
    const char *work;
    uint64_t key;
    uint32_t lost;      /* claims of it that nobody has ended */
    det_time lease_end; /* BOOT, and rather too early: before it the claim has not lapsed */
};

struct det_durable {
    struct det_durable_options options; /* with its defaults; `queue` is the one below */
    char *queue;
    struct det_world *world;
    const struct det_allocator *allocator;
    const struct det_job_ops *ops;
    struct durable_runner *runners;
    uint32_t runner_count;
    struct det_thread *scheduler; /* NULL: there are no schedules */
    struct det_mutex *mutex;      /* for what follows */
    struct det_condition *changed;
    uint64_t news;    /* counts what may have put something into the queue */
    uint32_t running; /* threads */
    bool is_stopping;
    bool is_holding;    /* the tasks: there is something in the queue, or nobody has looked yet */
    det_time forgot_at; /* monotonic: when old ones were forgotten; 0: never */
};

/* durable.c */
bool det_durable_is_stopping(struct det_durable *durable);
/* Nothing more is claimed. */
void det_durable_stop(struct det_durable *durable);
uint64_t det_durable_news(struct det_durable *durable);
void det_durable_wake(struct det_durable *durable);
/* Until there is other news than `seen` (NULL: news do not matter), it is stopping, or that time
 * has passed. */
void det_durable_wait(struct det_durable *durable, const uint64_t *seen, det_time span);

/* durable_attempt.c: "<work>#<key>", the name of a job's task, into DET_TASK_NAME_MAX + 1 bytes. */
void det_durable_task_name(const char *work, uint64_t key, char *target);
/* From a claim to the end of it. `begun` is the BOOT time before it. */
void det_durable_attempt(struct durable_runner *runner, det_time begun);

/* durable_schedule.c */
DET_MUST_CHECK int det_durable_schedules_check(
    const struct det_durable_options *options, struct det_error *reterr);
/* Fires what is due; the span until the next look. */
det_time det_durable_schedules_run(struct det_durable *durable);

#endif
