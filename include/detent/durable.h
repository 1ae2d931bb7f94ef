/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.h - durable queues: submissions that outlive the process, and the supervised tasks that
 * do their work.
 *
 *     submit --> row in the store --> claimed, in order --> a task --> row has ended
 *      (0: it is durable)     ^       by one process           |
 *                             +--- the process died: its claim lapses
 *
 * A submission names its work, which is found again after a restart in the table of works, and has
 * a body, which is given to it. It is done at least once: what ran when the process died runs
 * again, with the next attempt. It is never done twice at the same time, as long as the work stops
 * within a quarter of the lease when it is cancelled: a claim is renewed while the task runs, and
 * given up, with the task cancelled, before it can lapse. (After a machine has slept, or a process
 * was stopped as a whole, that is up to a second late; what is written elsewhere then can be told
 * from the next attempt by the number of the attempt.)
 *
 * Claims, renewals and ends go to the store in batches, as many at a time as the queue is wide; a
 * process that is killed loses the claims of all that it had.
 *
 * On a shared store any number of processes may open the same queue: its width holds across all of
 * them. On a SQLite file there is one, and what ran in the one before it runs again at once.
 *
 * det_tasks_run() goes on while an open queue that has works has submissions that have not ended,
 * those of the future too, and as long as it is open if it has schedules.
 *
 * Schedules put submissions by the clock. Their next time is in the store: what was due while
 * nobody was there is put as `missed` says when somebody is, and each time only once, however many
 * processes have the same schedule. */
#ifndef DETENT_DURABLE_H
#define DETENT_DURABLE_H

#include <detent/store.h>
#include <detent/task.h>

DET_BEGIN

struct det_durable;

/* The argument of a work's function or step: what it is to do. There until the task is removed. */
struct det_durable_job {
    const char *queue, *id;
    const void *body; /* `size` bytes, and a final 0 */
    size_t size;
    uint32_t attempt; /* 1 for the first; 2 and more: an earlier one may have done parts of it */
};

/* Works and schedules are borrowed until closing. A work's task has the name "<name>#<number>";
 * argument and release of its spec are not looked at. A process needs `environment`, and has in it,
 * beside what that says, DETENT_JOB (the id), DETENT_JOB_ATTEMPT and DETENT_JOB_BODY: a body with a
 * 0 in it, or of more than 64 KiB, is not for a process. */
struct det_durable_work {
    const char *name; /* at most 100 bytes */
    const struct det_task_spec *spec;
    /* Completes a copy of the spec for this job, on a thread of the queue; NULL: it is complete.
     * What it makes stays until `finish` is called with the handle. An error is the job's end. */
    int (*prepare)(
        void *user, const struct det_durable_job *job, struct det_task_spec *spec,
        void **ret_handle, struct det_error *reterr);
    void (*finish)(void *user, void *handle);
    void *user;
};

struct det_durable_schedule {
    const char *name; /* at most 100 bytes [A-Za-z0-9._-]; shared by all processes that have it */
    struct det_schedule schedule; /* its spread is not looked at */
    const char *work;
    const void *body;
    size_t size;
};

struct det_durable_options {
    struct det_tasks *tasks;
    struct det_store *store; /* one that keeps jobs, else DET_ERR_UNSUPPORTED */
    const char *queue;
    uint32_t width; /* at the same time, over all processes that share the store; 0: 1 */
    const struct det_durable_work *works;
    size_t work_count; /* 0: it only submits, and runs nothing */
    const struct det_durable_schedule *schedules;
    size_t schedule_count;
    det_time lease; /* 0: 30 s */
    det_time poll;  /* what other processes put is seen within this, or at once where the store
                       notifies (PostgreSQL); 0: 1 s */
    det_time kept;  /* how long an ended one, and so its id, is remembered; 0: 7 days */
    /* So many that nobody has ended, since their process died or was cut off: then it has failed.
     * What was stopped with its process, or is not known here, does not count. 0: 20 */
    uint32_t attempts_max;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Opens a queue and starts its work. DET_ERR_INVALID: the options, with the reason;
 * DET_ERR_UNSUPPORTED: the store keeps no jobs; or an error of the store. */
DET_API int det_durable_open(
    const struct det_durable_options *options, struct det_durable **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Cancels what runs, and waits for it. The next one does it again: at once, or, where the store did
 * not hear of it, when the claim has lapsed. Before the tasks and the store are closed. Where the
 * tasks have a loop of yours: on the thread that turns it, or while it is turned. */
DET_API void det_durable_close(struct det_durable *durable);
DET_SCOPED_CLOSE(durable)

struct det_durable_submission {
    /* 1 to DET_ID_MAX bytes [A-Za-z0-9._:-]; submitted again it is the same one, with another work
     * or body a conflict. */
    const char *id;
    const char *work; /* need not be known here */
    const void *body;
    size_t size;
    det_time run_at; /* wall: not before this; 0: at once */
};
/* When this returns 0 it is durable. `ret_is_new` (may be NULL): false when the id was there.
 * Blocks for the store; calls of several threads share a transaction. DET_ERR_INVALID;
 * DET_ERR_CONFLICT: the id was submitted with other content; DET_ERR_BUSY: other processes
 * submitted at the same time, and it was not taken; DET_ERR_IO, DET_ERR_CANCELLED: it may be
 * durable. After these three submit it again, with the same id. */
DET_API int det_durable_submit(
    struct det_durable *durable, const struct det_durable_submission *submission, bool *ret_is_new,
    struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
