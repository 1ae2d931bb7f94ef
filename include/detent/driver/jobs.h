/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/jobs.h - operations with which a store keeps submissions across restarts: `jobs` of the
 * store's operations. docs/formats/sql_schema.md has the tables.
 *
 *            put               claim: attempts + 1              end
 *   (none) ------> queued --------------------------> running ------> done | failed
 *            |       ^  ^                                |
 *       later|       |  +- the claim has lapsed: lost + 1; not begun: attempts - 1
 *            v       | its time has come                 | again, later
 *          delayed --+ <---------------------------------+
 *
 *   manually: failed -- retry --> queued, like a new job
 *             queued | delayed | running, and the claim has lapsed -- cancel --> failed
 *
 * Rules
 *   1. A job is durable when `put` has returned 0 for it. An id is put once per queue as long as
 *      its row is kept, however often `put` is called; another task or body for it is refused.
 *   2. The capacity of the claim limits how many jobs of a queue run, by the store's clock, over
 *      all processes.
 *   3. Jobs are claimed in the order in which they were put. A delayed job does not block others,
 *      and returns to its old place when its time has come.
 *   4. A claim is a lease: its holder renews it, or it lapses. Its token is the number of the
 *      attempt. The holder of a lapsed claim cannot renew it, and cannot end the job once another
 *      process has claimed it.
 *   5. A job whose checksum does not match is never claimed and cannot be retried. A claim that
 *      finds nothing else in the queue makes it FAILED, with the reason DET_JOB_DAMAGED.
 *   6. A store opened for reading answers every change with DET_ERR_READ_ONLY.
 *   7. Jobs are put, claimed, renewed and ended in batches. A batch is one transaction. Each job of
 *      a batch has its own claim: when a process dies, each job that it had claimed loses a
 *      claim. */
#ifndef DETENT_DRIVER_JOBS_H
#define DETENT_DRIVER_JOBS_H

#include <detent/base.h>

DET_BEGIN

struct det_store;

#define DET_JOB_NAME_MAX \
    128                            /* bytes in the name of a queue, task or schedule: no control
                                    * characters */
#define DET_JOB_BODY_MAX (1 << 20) /* bytes in a body */
#define DET_JOB_DAMAGED  "damaged"

/* The states of a job, each with its name in the tables. */
#define DET_JOB_STATES(X) \
    X(QUEUED, "queued")   \
    X(DELAYED, "delayed") \
    X(RUNNING, "running") \
    X(DONE, "done")       \
    X(FAILED, "failed")
enum det_job_state {
#define DET_JOB_STATE(name, text) DET_JOB_##name,
    DET_JOB_STATES(DET_JOB_STATE)
#undef DET_JOB_STATE
};

struct det_job_row {
    uint64_t key; /* grows with every put */
    const char *queue, *id, *task;
    const void *body;
    size_t body_size;
    enum det_job_state state;
    det_time due_at;   /* DELAYED: when the job is queued again; RUNNING: the end of the claim;
                      * else 0 */
    uint32_t attempts; /* the token of the last claim */
    uint32_t lost;     /* number of claims that lapsed because their process died or lost the
                        * store */
    const char *owner; /* RUNNING: the node that holds the claim; else "" */
    det_time submitted_at, ended_at;
    const char *reason; /* why the last attempt failed; else "" */
    bool is_damaged;    /* its checksum does not match: none of its fields is reliable */
};

/* A job to be put. */
struct det_job_put {
    const char *queue, *id, *task; /* the id: 1 to DET_ID_MAX bytes [A-Za-z0-9._:-] */
    const void *body;
    size_t body_size;
    det_time run_at; /* not before this, by the store's clock; 0: at once */
};
/* The result of putting one job. */
struct det_job_place {
    /* 0; DET_ERR_INVALID; DET_ERR_CONFLICT: the id has another task or body; DET_ERR_BUSY: not put
     * because of concurrent puts of other processes; try again */
    int result;
    uint64_t key;
    bool is_new;           /* false: the id exists already. True only once, unless an answer was
                            * lost */
    det_time submitted_at; /* when the job with this id was submitted */
};

/* How an attempt ended. */
struct det_job_end {
    uint64_t key;
    uint32_t token;
    enum det_job_state state; /* DONE; FAILED: no more attempts; DELAYED: another attempt from
                               * `run_at` on */
    det_time run_at;
    const char *reason; /* NULL: none; at most DET_REASON_MAX bytes of it are kept */
    /* DELAYED: the work has not begun, so the attempt does not count. Set this only once: after an
     * error the next claim may have the same token already. */
    bool is_unbegun;
    int result; /* out: 0, DET_ERR_LOCK_LOST */
};

struct det_job_renewal {
    uint64_t key;
    uint32_t token;
    int result; /* out: 0, DET_ERR_LOCK_LOST */
};

/* A batch on the claims of one queue: first the ends, then the renewals, then new claims. */
struct det_job_batch {
    const char *queue;
    struct det_job_end *ends;
    size_t end_count;
    struct det_job_renewal *renewals;
    size_t renewal_count;
    det_time span;     /* duration of claims and renewals, from now by the store's clock */
    uint32_t capacity; /* how many jobs of the queue may run at once, including new ones */
    uint32_t wanted;   /* the most jobs to claim; 0: none, and the following fields are not used */
    /* Called for each claimed row, in the order of the keys; must not call the store. Its non-zero
     * return value is returned: that row and the following ones return to the queue. */
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
    /* The driver may skip delayed jobs that are due and lapsed claims; the caller ignores `next`
     * and requests these jobs in a later batch. A driver may ignore this flag. */
    bool leaves_due;
    uint32_t claimed; /* out: number of claimed jobs */
    det_time next;    /* out: earliest time, by the store's clock, at which the set of claimable
                       * jobs may change without a put; DET_NEVER: none is known */
};

struct det_job_query {
    const char *queue, *id; /* NULL: any */
    bool is_newest_first;   /* by descending key; false: by ascending key */
    uint64_t after;         /* a key: list only jobs after it in this order; 0: all */
    size_t limit;
    bool has_state; /* list only jobs in `state` */
    enum det_job_state state;
};

/* A manual change of a job that no process has claimed. */
enum det_job_verb {
    DET_JOB_RETRY,  /* FAILED: put the job at the end of the queue again, with a new key and no
                     * attempts */
    DET_JOB_CANCEL, /* QUEUED, DELAYED, or the claim has lapsed: make the job FAILED, with the
                     * reason */
};
struct det_job_change {
    enum det_job_verb verb;
    const char *queue, *id;
    const char *reason; /* CANCEL: NULL: none; at most DET_REASON_MAX bytes of it are kept */
};

struct det_job_schedule {
    det_time next_at, last_at;
    uint64_t token; /* 0: the schedule has no row yet */
};
struct det_job_firing {
    const char *name;
    uint64_t token; /* the token read before; 0: no row yet */
    det_time next_at, last_at;
    const struct det_job_put *job; /* the job to put with it; NULL: none */
};

/* Owned by the caller until unlisten(). */
struct det_job_listener {
    const char *queue;
    void (*wake)(void *context);
    void *context;
    struct det_job_listener *next; /* owned by the store */
};

struct det_job_ops {
    /* Puts jobs in this order: all of those whose result is 0, or none. An error concerns all of
     * them: `results` says which ids exist already or are invalid. Calls of several threads may
     * share a transaction. */
    int (*put)(
        struct det_store *store, const struct det_job_put *jobs, size_t count,
        struct det_job_place *ret);
    /* Ends, renews and claims in one transaction. The rows passed to `visit` are claimed when this
     * returns 0 or the return value of `visit`. An end counts even if the claim has lapsed, unless
     * another process has claimed the job since. Repeating an end with the same token succeeds and
     * changes nothing if the job has ended. */
    int (*apply)(struct det_store *store, struct det_job_batch *batch);
    /* Lists jobs by key, in the order of the query, including ended and damaged ones. `visit` must
     * not call the store. */
    int (*list)(
        struct det_store *store, const struct det_job_query *query,
        int (*visit)(void *context, const struct det_job_row *job), void *context);
    /* DET_ERR_NOT_FOUND: no such job, it is in another state, or RETRY finds it damaged. */
    int (*change)(struct det_store *store, const struct det_job_change *change);
    /* Deletes jobs that ended before a time, in several transactions, so that other users of the
     * store do not wait. Their ids may be put again. `ret` is the number of deleted jobs, even
     * after an error. */
    int (*forget)(struct det_store *store, det_time ended_before, uint64_t *ret);
    /* Imports a job of another store at the end of the queue, without its claim: a running job
     * becomes queued. A job with an existing id is not changed: `ret_is_new` is false.
     * DET_ERR_INVALID: no store can have had this row. */
    int (*restore)(struct det_store *store, const struct det_job_row *job, bool *ret_is_new);
    /* Lists all schedules by name. `visit` must not call the store. */
    int (*schedules)(
        struct det_store *store,
        int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
        void *context);
    /* Reads a schedule; returns 0 also if there is none (token 0). */
    int (*schedule)(struct det_store *store, const char *name, struct det_job_schedule *ret);
    /* Sets the times of a schedule and puts the job of the firing in one transaction. A job with an
     * existing id is not changed. DET_ERR_CONFLICT: the token has changed. */
    int (*fire)(struct det_store *store, const struct det_job_firing *firing);
    /* Calls `wake`, on a thread of the store, when another process may have put a job. NULL: the
     * store does not notify. Notifications may be lost. */
    void (*listen)(struct det_store *store, struct det_job_listener *listener);
    /* `wake` is not called after this returns. */
    void (*unlisten)(struct det_store *store, struct det_job_listener *listener);
};

DET_END
#endif
