/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/jobs.h - what a store must be able to do so that submissions outlive the process: the
 * `jobs` of its operations. docs/formats/sql_schema.md has the tables.
 *
 *            put               claim: attempts + 1              end
 *   (none) ------> queued --------------------------> running ------> done | failed
 *            |       ^  ^                                |
 *       later|       |  +- the claim has lapsed: lost + 1; it was never begun: attempts - 1
 *            v       | its time has come                 | again, later
 *          delayed --+ <---------------------------------+
 *
 *   manually: failed -- retry --> queued, as if put anew
 *             queued | delayed | running, and the claim has lapsed -- cancel --> failed
 *
 * Rules
 *   1. What `put` has answered with 0 is durable. An id is put once per queue as long as its row is
 *      kept, however often it is put; with another task or body it is refused.
 *   2. Of a queue at most as many run, by the store's clock, as the claim says, whoever claims.
 *   3. They are claimed in the order in which they were put; those that wait for their time let
 *      others pass, and are in their old place when it has come.
 *   4. A claim is a lease: it is renewed, and lapses. Its token is the number of the attempt. Who
 *      was gone for too long can neither renew it nor, once somebody else has it, end it.
 *   5. A job whose checksum does not match is never claimed and cannot be retried. A claim that
 *      finds nothing else in the queue makes it FAILED, for the reason DET_JOB_DAMAGED.
 *   6. A store opened for reading answers every change with DET_ERR_READ_ONLY.
 *   7. Jobs are put, claimed, renewed and ended in batches. A batch is one transaction. Each job of
 *      it keeps its own claim: when a process dies, each job that it had claimed loses a claim. */
#ifndef DETENT_DRIVER_JOBS_H
#define DETENT_DRIVER_JOBS_H

#include <detent/base.h>

DET_BEGIN

struct det_store;

#define DET_JOB_NAME_MAX 128 /* bytes of a queue, a task or a schedule, none of them control */
#define DET_JOB_BODY_MAX (1 << 20) /* bytes of a body */
#define DET_JOB_DAMAGED  "damaged"

/* Each with its name in the tables. */
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
    uint64_t key; /* grows */
    const char *queue, *id, *task;
    const void *body;
    size_t body_size;
    enum det_job_state state;
    det_time due_at; /* DELAYED: from when on it is queued; RUNNING: the end of the claim; else 0 */
    uint32_t attempts; /* the token of the last claim */
    uint32_t lost;     /* how many claims have lapsed: their process died, or was cut off */
    const char *owner; /* RUNNING: the node that has it; else "" */
    det_time submitted_at, ended_at;
    const char *reason; /* why the last attempt failed; else "" */
    bool is_damaged;    /* its checksum does not match: nothing of it can be relied on */
};

/* A job to be put. */
struct det_job_put {
    const char *queue, *id, *task; /* the id: 1 to DET_ID_MAX bytes [A-Za-z0-9._:-] */
    const void *body;
    size_t body_size;
    det_time run_at; /* not before this, by the store's clock; 0: at once */
};
/* What became of it. */
struct det_job_place {
    /* 0; DET_ERR_INVALID; DET_ERR_CONFLICT: the id has another task or body; DET_ERR_BUSY: other
     * processes put jobs at the same time, and it was not put; try again */
    int result;
    uint64_t key;
    bool is_new;           /* false: the id was there. True only once, unless an answer was lost */
    det_time submitted_at; /* of the job that has the id */
};

/* How an attempt ended. */
struct det_job_end {
    uint64_t key;
    uint32_t token;
    enum det_job_state state; /* DONE or FAILED for good; DELAYED: again from `run_at` on */
    det_time run_at;
    const char *reason; /* NULL: none; at most DET_REASON_MAX bytes of it are kept */
    /* DELAYED: its work has not seen it, so the attempt does not count. Say this only once: after
     * an error it is not known whether the next claim has the same token already. */
    bool is_unbegun;
    int result; /* out: 0, DET_ERR_LOCK_LOST */
};

struct det_job_renewal {
    uint64_t key;
    uint32_t token;
    int result; /* out: 0, DET_ERR_LOCK_LOST */
};

/* Some of the claims of one queue: first the ends, then the renewals, then a claim of others. */
struct det_job_batch {
    const char *queue;
    struct det_job_end *ends;
    size_t end_count;
    struct det_job_renewal *renewals;
    size_t renewal_count;
    det_time span;     /* of claims and renewals, from now by the store's clock */
    uint32_t capacity; /* of the queue: how many may run at the same time, the new ones too */
    uint32_t wanted;   /* the most jobs to claim; 0: none, and what follows is not used */
    /* Shown each row as it is now claimed, in the order of the keys; it must not call the store.
     * Its non-zero answer is returned: that row and those after it are in the queue again. */
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
    /* The driver may leave delayed jobs that are due and claims that have lapsed as they are; the
     * caller does not use `next`, and asks for them in a later batch. A driver may ignore this. */
    bool leaves_due;
    uint32_t claimed; /* out: how many */
    det_time next;    /* out: when, by the store's clock, something that is known now may change
                         what can be claimed; DET_NEVER: nothing is known */
};

struct det_job_query {
    const char *queue, *id; /* NULL: any */
    bool is_newest_first;   /* by descending key; else by ascending key */
    uint64_t after;         /* a key: only those that follow it in this order; 0: all */
    size_t limit;
    bool has_state; /* only those in `state` */
    enum det_job_state state;
};

/* What people do about one that nobody has claimed. */
enum det_job_verb {
    DET_JOB_RETRY,  /* FAILED: put again, behind all others, with a new key and no attempts yet */
    DET_JOB_CANCEL, /* QUEUED, DELAYED, or its claim has lapsed: has FAILED, for the reason */
};
struct det_job_change {
    enum det_job_verb verb;
    const char *queue, *id;
    const char *reason; /* CANCEL: NULL: none; at most DET_REASON_MAX bytes of it are kept */
};

struct det_job_schedule {
    det_time next_at, last_at;
    uint64_t token; /* 0: there is none */
};
struct det_job_firing {
    const char *name;
    uint64_t token; /* as it was seen; 0: there is none yet */
    det_time next_at, last_at;
    const struct det_job_put *job; /* put with it; NULL: none */
};

/* The caller's, as long as it listens. */
struct det_job_listener {
    const char *queue;
    void (*wake)(void *context);
    void *context;
    struct det_job_listener *next; /* the store's */
};

struct det_job_ops {
    /* Puts some, in this order, all or none of those whose result is 0. An error is of all: what
     * was there or invalid is in the results. Calls of several threads may share a transaction. */
    int (*put)(
        struct det_store *store, const struct det_job_put *jobs, size_t count,
        struct det_job_place *ret);
    /* Ends, renews and claims in one transaction. What was shown counts when this returns 0, or the
     * answer of `visit`.
     *   An end counts also when the claim has lapsed, as long as nobody has claimed it since. Again
     * with the same token is fine, and changes nothing that has ended for good. */
    int (*apply)(struct det_store *store, struct det_job_batch *batch);
    /* By key, in the order of the query, including ended and damaged jobs. `visit` must not call
     * the store. */
    int (*list)(
        struct det_store *store, const struct det_job_query *query,
        int (*visit)(void *context, const struct det_job_row *job), void *context);
    /* DET_ERR_NOT_FOUND when there is none, it is in another state, or RETRY finds it damaged. */
    int (*change)(struct det_store *store, const struct det_job_change *change);
    /* Deletes those that ended before a time, some after the other, so that others need not wait
     * for all; their ids may be put again. `ret` is how many, also when it has failed then. */
    int (*forget)(struct det_store *store, det_time ended_before, uint64_t *ret);
    /* Puts one that another store had, behind all others, with what is known of it but without its
     * claim: one that ran is queued. An id that is there is left alone: `ret_is_new` is false.
     * DET_ERR_INVALID when no store can have had it. */
    int (*restore)(struct det_store *store, const struct det_job_row *job, bool *ret_is_new);
    /* All schedules, in the order of their names. `visit` must not call the store. */
    int (*schedules)(
        struct det_store *store,
        int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
        void *context);
    /* A schedule, 0 also when there is none. */
    int (*schedule)(struct det_store *store, const char *name, struct det_job_schedule *ret);
    /* Sets the times of a schedule, and puts the job of the firing, both or nothing. An id that is
     * there is left alone. DET_ERR_CONFLICT when the token is another one by now. */
    int (*fire)(struct det_store *store, const struct det_job_firing *firing);
    /* Calls `wake`, on a thread of the store, when another process may have put something into a
     * queue; NULL: this store cannot tell. Notifications may be lost. */
    void (*listen)(struct det_store *store, struct det_job_listener *listener);
    /* `wake` is not called after this has returned. */
    void (*unlisten)(struct det_store *store, struct det_job_listener *listener);
};

DET_END
#endif
