/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - puts, claims, ends and lists jobs, for the cases about them. */
#ifndef DET_CONFORM_JOBS_H
#define DET_CONFORM_JOBS_H

#include "conform/conform.h"
#include "store/jobs_test.h"

#define LONG  DET_HOUR
#define SHORT DET_MILLISECOND

/* A job as it was shown, without its pointers. */
struct shown {
    uint64_t key;
    char queue[DET_JOB_NAME_MAX + 1], id[DET_ID_MAX + 1], task[DET_JOB_NAME_MAX + 1], body[64];
    char reason[DET_REASON_MAX + 1], owner[DET_OWNER_MAX + 1];
    size_t body_size;
    enum det_job_state state;
    det_time due_at, submitted_at, ended_at;
    uint32_t attempts, lost;
};

struct listed {
    struct shown rows[16];
    size_t count;
    int answer;
};

static inline int show(void *context, const struct det_job_row *job)
{
    struct shown *shown = context;

    snprintf(shown->queue, sizeof shown->queue, "%s", job->queue);
    snprintf(shown->id, sizeof shown->id, "%s", job->id);
    snprintf(shown->task, sizeof shown->task, "%s", job->task);
    snprintf(shown->reason, sizeof shown->reason, "%s", job->reason);
    snprintf(shown->owner, sizeof shown->owner, "%s", job->owner);
    memcpy(shown->body, job->body, job->body_size < 64 ? job->body_size : 64);
    shown->key = job->key;
    shown->body_size = job->body_size;
    shown->state = job->state;
    shown->due_at = job->due_at;
    shown->submitted_at = job->submitted_at;
    shown->ended_at = job->ended_at;
    shown->attempts = job->attempts;
    shown->lost = job->lost;
    return 0;
}

static inline int note(void *context, const struct det_job_row *job)
{
    struct listed *listed = context;

    assert_true(listed->count < 16);
    (void)show(&listed->rows[listed->count++], job);
    return listed->answer;
}

static inline int refuse(void *context, const struct det_job_row *job)
{
    (void)context;
    (void)job;
    return DET_ERR_CANCELLED;
}

/* NULL: the driver has none. */
static inline const struct det_job_ops *ops_of(void **state)
{
    return ((struct box *)*state)->store->ops->jobs;
}

/* A store without jobs skips the test. */
#define NEEDS_JOBS(state)   \
    do {                    \
        if (!ops_of(state)) \
            return;         \
    } while (0)

static inline uint64_t put_in(struct box *box, const char *queue, const char *id, det_time run_at)
{
    struct det_job_put put = { queue, id, "work", "body", 4, run_at };
    struct det_job_place place = { 0 };

    assert_int_equal(det_jobs_put(box->store, &put, &place), 0);
    assert_true(place.is_new);
    return place.key;
}

static inline uint64_t put(struct box *box, const char *id)
{
    return put_in(box, "q", id, 0);
}

static inline int claim_of(
    struct box *box, uint32_t capacity, det_time span, struct shown *ret, det_time *ret_next)
{
    struct det_job_claim claim = { "q", capacity, span };

    memset(ret, 0, sizeof *ret);
    return det_jobs_claim(box->store, &claim, show, ret, ret_next);
}

/* Claims a job, which must be this one. */
static inline struct shown claim(struct box *box, uint32_t capacity, det_time span, const char *id)
{
    struct shown shown;
    det_time next;

    assert_int_equal(claim_of(box, capacity, span, &shown, &next), 0);
    assert_string_equal(shown.id, id);
    return shown;
}

static inline void claim_none(struct box *box, uint32_t capacity)
{
    struct shown shown;
    det_time next;

    assert_int_equal(claim_of(box, capacity, LONG, &shown, &next), DET_ERR_NOT_FOUND);
}

static inline int end(
    struct box *box, const struct shown *job, enum det_job_state state, det_time run_at)
{
    struct det_job_end how = {
        .key = job->key, .token = job->attempts, .state = state, .run_at = run_at, .reason = "why"
    };

    return det_jobs_end(box->store, "q", &how);
}

static inline int change(struct box *box, enum det_job_verb verb, const char *id)
{
    struct det_job_change how = { verb, "q", id, "by hand" };

    return box->store->ops->jobs->change(box->store, &how);
}

static inline struct listed list(struct box *box, const char *queue, uint64_t after, size_t limit)
{
    struct det_job_query query = { .queue = queue, .after = after, .limit = limit };
    struct listed listed = { 0 };

    assert_int_equal(box->store->ops->jobs->list(box->store, &query, note, &listed), 0);
    return listed;
}

/* Waits until a time by the store's clock has passed, which may be a little slow. */
static inline void wait_past(struct box *box, det_time until)
{
    box_wait(box, until + (box->sim ? 1 : 50 * DET_MILLISECOND));
}

/* Of those in `state`; NULL: of all ids. */
static inline struct listed find(struct box *box, const char *id, enum det_job_state state)
{
    struct det_job_query query = { .id = id, .limit = 9, .has_state = true, .state = state };
    struct listed listed = { 0 };

    assert_int_equal(box->store->ops->jobs->list(box->store, &query, note, &listed), 0);
    return listed;
}

#endif
