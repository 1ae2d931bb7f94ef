/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.h - a queue in a store, shared by its files.
 *
 *     durable.c           opens and closes it, submits, wakes its threads
 *     durable_store.c     the thread that talks to the store: claims, renews and ends in batches
 *     durable_start.c     makes tasks of claimed jobs, and the thread that watches the leases
 *     durable_attempt.c   a claimed job, from the claim to its end
 *     durable_schedule.c  submits by the clock
 *
 * A claim:
 *
 *     CLAIMED --taken by the starter--> STARTING --added--> RUNNING --its task has ended--> ENDED
 *        |                                  +-- refused, or never added ----------------------^ |
 *        +-- stopping, or about to lapse -----------------------------------------------------+ |
 *                                        the store has recorded the end, or never will: freed */
#ifndef DET_TASK_DURABLE_H
#define DET_TASK_DURABLE_H

#include <detent/durable.h>

#include "base/buffer.h"
#include "base/list.h"
#include "os/os.h"
#include "store/store.h"
#include "task/registry.h"

enum durable_stage {
    DURABLE_CLAIMED,
    DURABLE_STARTING,
    DURABLE_RUNNING,
    DURABLE_ENDED,
    DURABLE_STAGES,
};

/* A claim of one job. Its stage and the fields after it are under the mutex of the queue. */
struct durable_attempt {
    struct det_durable *durable;
    struct det_list node;                /* in the list of its stage */
    const struct det_durable_work *work; /* NULL: unknown in this process */
    struct det_durable_job job;
    uint64_t key;
    uint32_t lost;             /* number of its claims that lapsed */
    size_t size;               /* size of this block: the texts and the body follow the struct */
    struct det_waiter *waiter; /* used by the loop until the end is reported */
    enum durable_stage stage;
    det_task_id task;   /* 0: none */
    det_time lease_end; /* BOOT, a little early: before it the claim has not lapsed */
    det_time renew_at;  /* BOOT */
    bool is_lost;       /* the claim has lapsed, or might lapse before its task has stopped */
    bool is_removed;    /* its task was asked to stop */
    struct det_job_end end;
    char reason[DET_REASON_MAX + 1]; /* reason of the end */
};

static inline struct durable_attempt *durable_attempt_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct durable_attempt, node);
}

struct det_durable {
    struct det_durable_options options; /* with defaults filled in; `queue` is the one below */
    char *queue;
    struct det_world *world;
    const struct det_allocator *allocator;
    const struct det_job_ops *ops;
    struct det_job_listener listener;
    bool is_listening;
    struct det_thread *keeper, *starter; /* NULL: the queue only submits */
    struct det_thread *clock;            /* schedules, and deletion of old jobs; NULL: neither */
    struct durable_batch *batch;         /* used by the keeper */
    struct durable_start *starts;        /* used by the starter */
    struct durable_start *own_starts;    /* used by the keeper; NULL: only the starter starts
                                          * jobs */

    struct det_mutex *mutex; /* protects the following fields */
    struct det_condition *changed, *for_keeper, *for_starter;
    struct det_list attempts[DURABLE_STAGES];
    uint32_t counts[DURABLE_STAGES];
    uint64_t news;     /* number of events that may have put a job into the queue */
    uint64_t seen;     /* `news` before the last claim that found fewer jobs than there was room
                        * for */
    det_time claim_at; /* monotonic: when to claim without news */
    det_time due_at;   /* monotonic: when a claim includes due jobs again */
    uint32_t full;     /* consecutive claims that got everything they requested */
    det_time ends_at;  /* monotonic: when to retry sending ends to the store */
    bool ends_alone;   /* the next batch has only ends, after one with a claim was refused */
    det_time check_at; /* monotonic: when the starter checks the leases next */
    bool has_started;  /* the keeper has started a job since the starter's last check */
    uint32_t running;  /* number of running threads */
    bool has_kept;     /* the keeper has ended: the starter gets no more work */
    bool is_stopping;  /* no more claims */
    bool is_closing;   /* running jobs are cancelled */
    bool is_holding;   /* the tasks are held: the queue is not empty, or was not checked yet */
};

/* durable.c */
/* Ends claiming. */
void det_durable_stop(struct det_durable *durable);
void det_durable_wake(struct det_durable *durable);
/* Start one of its threads, and end it; under the mutex. */
DET_MUST_CHECK int det_durable_thread(
    struct det_durable *durable, det_thread_fn *run, struct det_thread **ret);
void det_durable_leave(struct det_durable *durable);
/* Stops holding the tasks for an empty queue, unless there was news since. */
void det_durable_let_go(struct det_durable *durable, uint64_t seen);

/* durable_attempt.c; under the mutex where noted. */
static inline det_time durable_boot(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_BOOT);
}
/* "<work>#<key>", the name of a job's task, into DET_TASK_NAME_MAX + 1 bytes. */
void det_durable_task_name(const char *work, uint64_t key, char *target);
/* A copy of a claimed row. `begun`: BOOT, before the claim. NULL: no memory. */
struct durable_attempt *det_durable_attempt_open(
    struct det_durable *durable, const struct det_job_row *row, det_time begun);
void det_durable_attempt_close(struct durable_attempt *attempt);
/* Mutex. */
void det_durable_attempt_set_stage(struct durable_attempt *attempt, enum durable_stage stage);
/* Mutex. `again_after`: of DET_JOB_DELAYED. */
void det_durable_attempt_end(
    struct durable_attempt *attempt, enum det_job_state state, det_time again_after,
    const char *reason);
/* Mutex. The work has not begun. */
void det_durable_attempt_give_back(
    struct durable_attempt *attempt, det_time again_after, const char *reason);
/* On the loop, when its task has ended. */
void det_durable_attempt_reported(void *context, const struct det_task_end *end);

/* durable_store.c */
DET_MUST_CHECK int det_durable_keeper_open(struct det_durable *durable);
void det_durable_keeper_close(struct det_durable *durable);

/* durable_start.c */
DET_MUST_CHECK int det_durable_starter_open(struct det_durable *durable);
/* Mutex, which is released meanwhile. On the keeper: starts claimed jobs if that needs no wait and
 * no user code; otherwise wakes the starter. */
void det_durable_start_claimed(struct det_durable *durable);
void det_durable_starter_close(struct det_durable *durable);

/* durable_schedule.c */
DET_MUST_CHECK int det_durable_schedules_check(
    const struct det_durable_options *options, struct det_error *reterr);
/* Fires due schedules; returns the span until the next call. */
det_time det_durable_schedules_run(struct det_durable *durable);

#endif
