/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.h - a queue in a store, as its files share it.
 *
 *     durable.c           opens and closes it, submits, wakes its threads
 *     durable_store.c     the thread that talks to the store: claims, renews and ends in batches
 *     durable_start.c     makes tasks of what was claimed, and the thread that watches the leases
 *     durable_attempt.c   what was claimed, from the claim to its end
 *     durable_schedule.c  puts what is due by the clock
 *
 * A claim:
 *
 *     CLAIMED --taken by the starter--> STARTING --added--> RUNNING --its task has ended--> ENDED
 *        |                                  +-- refused, or never added ----------------------^ |
 *        +-- stopping, or about to lapse -----------------------------------------------------+ |
 *                                                the store has heard of it, or never will: freed */
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

/* A claim of one job. Its stage and what follows that are under the mutex of the queue. */
struct durable_attempt {
    struct det_durable *durable;
    struct det_list node;                /* of the stage */
    const struct det_durable_work *work; /* NULL: not known here */
    struct det_durable_job job;
    uint64_t key;
    uint32_t lost;             /* claims of it that nobody has ended */
    size_t size;               /* of this block: the texts and the body are behind it */
    struct det_waiter *waiter; /* the loop's, until it is told */
    enum durable_stage stage;
    det_task_id task;   /* 0: none */
    det_time lease_end; /* BOOT, and rather too early: before it the claim has not lapsed */
    det_time renew_at;  /* BOOT */
    bool is_lost;       /* the claim has lapsed, or might before its task has stopped */
    bool is_removed;    /* its task was told to stop */
    struct det_job_end end;
    char reason[DET_REASON_MAX + 1]; /* of the end */
};

static inline struct durable_attempt *durable_attempt_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct durable_attempt, node);
}

struct det_durable {
    struct det_durable_options options; /* with its defaults; `queue` is the one below */
    char *queue;
    struct det_world *world;
    const struct det_allocator *allocator;
    const struct det_job_ops *ops;
    struct det_job_listener listener;
    bool is_listening;
    struct det_thread *keeper, *starter; /* NULL: it only submits */
    struct det_thread *clock;            /* schedules, and what is forgotten; NULL: neither */
    struct durable_batch *batch;         /* the keeper's */
    struct durable_start *starts;        /* the starter's */
    struct durable_start *own_starts;    /* the keeper's; NULL: only the starter starts */

    struct det_mutex *mutex; /* for what follows */
    struct det_condition *changed, *for_keeper, *for_starter;
    struct det_list attempts[DURABLE_STAGES];
    uint32_t counts[DURABLE_STAGES];
    uint64_t news;     /* counts what may have put something into the queue */
    uint64_t seen;     /* the news before the last claim that found less than there was room for */
    det_time claim_at; /* monotonic: when a claim is worth it without news */
    det_time due_at;   /* monotonic: when a claim looks again for what is due */
    uint32_t full;     /* claims in a row that got all they wanted */
    det_time ends_at;  /* monotonic: when the store may hear ends again */
    bool ends_alone;   /* the next batch has only ends: one with a claim was refused */
    det_time look_at;  /* monotonic: when the starter looks at the leases next */
    bool has_started;  /* the keeper has started something since the starter's last look */
    uint32_t running;  /* threads */
    bool has_kept;     /* the keeper is gone: nothing more comes to the starter */
    bool is_stopping;  /* nothing more is claimed */
    bool is_closing;   /* and what runs is cancelled */
    bool is_holding;   /* the tasks: there is something in the queue, or nobody has looked yet */
};

/* durable.c */
bool det_durable_is_stopping(struct det_durable *durable);
/* Nothing more is claimed. */
void det_durable_stop(struct det_durable *durable);
void det_durable_wake(struct det_durable *durable);
/* Starts one of its threads, and the end of it; under the mutex. */
DET_MUST_CHECK int det_durable_thread(
    struct det_durable *durable, det_thread_fn *run, struct det_thread **ret);
void det_durable_leave(struct det_durable *durable);
/* Until it is stopping, or that time has passed. */
void det_durable_wait(struct det_durable *durable, det_time span);
/* A queue that is empty is not waited for, unless there was news since. */
void det_durable_let_go(struct det_durable *durable, uint64_t seen);

/* durable_attempt.c; under the mutex where it says so. */
static inline det_time durable_boot(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_BOOT);
}
/* "<work>#<key>", the name of a job's task, into DET_TASK_NAME_MAX + 1 bytes. */
void det_durable_task_name(const char *work, uint64_t key, char *target);
/* A copy of a claimed row. `begun`: BOOT, before it was claimed. NULL: no
 * memory. */
struct durable_attempt *det_durable_attempt_open(
    struct det_durable *durable, const struct det_job_row *row, det_time begun);
void det_durable_attempt_close(struct durable_attempt *attempt);
/* Mutex. */
void det_durable_attempt_set_stage(struct durable_attempt *attempt, enum durable_stage stage);
/* Mutex. `again_after`: of DET_JOB_DELAYED. */
void det_durable_attempt_end(
    struct durable_attempt *attempt, enum det_job_state state, det_time again_after,
    const char *reason);
/* Mutex. Its work has not seen it. */
void det_durable_attempt_give_back(
    struct durable_attempt *attempt, det_time again_after, const char *reason);
/* On the loop, when its task has ended. */
void det_durable_attempt_told(void *context, const struct det_task_end *end);

/* durable_store.c */
DET_MUST_CHECK int det_durable_keeper_open(struct det_durable *durable);
void det_durable_keeper_close(struct det_durable *durable);

/* durable_start.c */
DET_MUST_CHECK int det_durable_starter_open(struct det_durable *durable);
/* Mutex, which it gives up meanwhile. On the keeper: starts what was claimed if that takes no wait
 * and no code of the user's; else wakes the starter for it. */
void det_durable_start_claimed(struct det_durable *durable);
void det_durable_starter_close(struct det_durable *durable);

/* durable_schedule.c */
DET_MUST_CHECK int det_durable_schedules_check(
    const struct det_durable_options *options, struct det_error *reterr);
/* Fires what is due; the span until the next look. */
det_time det_durable_schedules_run(struct det_durable *durable);

#endif
