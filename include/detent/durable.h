/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.h - durable queues: submissions that outlive the process, and the supervised tasks that
 * execute them.
 *
 *     submit --> row in the store --> claimed, in order --> a task --> row has ended
 *      (0: it is durable)     ^       by one process           |
 *                             +--- the process died: its claim lapses
 *
 * A submission names its work, which the table of works defines after every restart, and carries a
 * body for that work. It is executed at least once: if the process dies, the submission runs again
 * with the next attempt number. It never runs twice at the same time, provided that the work stops
 * within a quarter of the lease when it is cancelled: the queue renews the claim while the task
 * runs. If it cannot renew the claim, it cancels the task before the claim can lapse. (After
 * machine sleep, or after the whole process was stopped, the cancel comes up to a second late. The
 * attempt number then distinguishes writes of the old attempt from those of the next one.)
 *
 * Claims, renewals and ends go to the store in batches of at most the width of the queue. A process
 * that is killed loses all of its claims.
 *
 * Any number of processes may open the same queue of a shared store: its width is the limit for all
 * of them together. A SQLite file has one process; after a restart, its interrupted submissions run
 * again at once.
 *
 * det_tasks_run() continues while an open queue with works has submissions that have not ended,
 * including delayed ones, and as long as a queue with schedules is open.
 *
 * Schedules submit by the clock. Their next time is in the store. Times missed while no process ran
 * are handled according to `missed` when a process opens the queue; each time is submitted once,
 * however many processes have the same schedule. */
#ifndef DETENT_DURABLE_H
#define DETENT_DURABLE_H

#include <detent/store.h>
#include <detent/task.h>

DET_BEGIN

struct det_durable;

/* The argument of a work's function or step. It exists until the task is removed. */
struct det_durable_job {
    const char *queue, *id;
    const void *body; /* `size` bytes, and a final 0 */
    size_t size;
    uint32_t attempt; /* 1 for the first; 2 and more: an earlier attempt may have done part of the
                       * work */
};

/* Works and schedules are borrowed until closing. The task of a work has the name
 * "<name>#<number>"; argument and release of its spec are ignored. A process needs `environment`,
 * to which DETENT_JOB (the id), DETENT_JOB_ATTEMPT and DETENT_JOB_BODY are added; a process cannot
 * get a body that contains a zero byte or exceeds 64 KiB. */
struct det_durable_work {
    const char *name; /* at most 100 bytes */
    const struct det_task_spec *spec;
    /* Completes a copy of the spec for this job, on a thread of the queue; NULL: the spec is
     * complete. Resources made here must stay until `finish` is called with the handle. An error
     * ends the job. */
    int (*prepare)(
        void *user, const struct det_durable_job *job, struct det_task_spec *spec,
        void **ret_handle, struct det_error *reterr);
    void (*finish)(void *user, void *handle);
    void *user;
};

struct det_durable_schedule {
    const char *name; /* at most 100 bytes [A-Za-z0-9._-]; processes with the same name share the
                       * schedule */
    struct det_schedule schedule; /* its spread is ignored */
    const char *work;
    const void *body;
    size_t size;
};

struct det_durable_options {
    struct det_tasks *tasks;
    struct det_store *store; /* must support jobs, else DET_ERR_UNSUPPORTED */
    const char *queue;
    uint32_t width; /* how many may run at once, over all processes that share the store; 0: 1 */
    const struct det_durable_work *works;
    size_t work_count; /* 0: submits only, executes nothing */
    const struct det_durable_schedule *schedules;
    size_t schedule_count;
    det_time lease; /* 0: 30 s */
    det_time poll;  /* interval of looking for jobs of other processes; with notifications
                     * (PostgreSQL) they are seen at once; 0: 1 s */
    det_time kept;  /* how long an ended job and its id are kept; 0: 7 days */
    /* The job fails after this many attempts without an end, because the process died or lost the
     * store. Attempts that stopped with their process, or whose work is unknown here, do not count.
     * 0: 20 */
    uint32_t attempts_max;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a queue and starts executing. DET_ERR_INVALID: the options, with the reason;
 * DET_ERR_UNSUPPORTED: the store keeps no jobs; or an error of the store. */
DET_API int det_durable_open(
    const struct det_durable_options *options, struct det_durable **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Cancels running jobs and waits for them. The next process runs them again: at once, or, if the
 * store could not be reached, when the claims have lapsed. Call this before closing the tasks and
 * the store. With your own loop: on the thread that turns it, or while another thread turns it. */
DET_API void det_durable_close(struct det_durable *durable);
DET_SCOPED_CLOSE(durable)

struct det_durable_submission {
    /* 1 to DET_ID_MAX bytes [A-Za-z0-9._:-]. Submitting an id again returns the existing job; with
     * another work or body it is a conflict. */
    const char *id;
    const char *work; /* need not be defined in this process */
    const void *body;
    size_t size;
    det_time run_at; /* wall time: not before this; 0: at once */
};
/* Submits a job, which is durable when this returns 0. `ret_is_new` (may be NULL): false if the id
 * exists. Blocks for the store; calls of several threads share a transaction. DET_ERR_INVALID;
 * DET_ERR_CONFLICT: the id was submitted with other content; DET_ERR_BUSY: refused because of
 * concurrent submissions of other processes; DET_ERR_IO, DET_ERR_CANCELLED: the job may be durable.
 * After the last three, submit it again with the same id. */
DET_API int det_durable_submit(
    struct det_durable *durable, const struct det_durable_submission *submission, bool *ret_is_new,
    struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
