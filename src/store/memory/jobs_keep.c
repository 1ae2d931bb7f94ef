/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_keep.c - manual changes of jobs in a memory store: retry, cancel, deletion of ended jobs,
 * and import from another store. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/memory/jobs.h"

static void retry_job(struct memory_store *store, struct memory_job *job)
{
    det_memory_job_set_last(store, job);
    job->row.attempts = job->row.lost = 0;
    job->row.submitted_at = det_memory_now(&store->store);
    job->row.ended_at = 0;
    job->reason[0] = 0;
    det_memory_job_wait(job, 0, 0);
}

/* No holder, or its claim has lapsed. */
static bool is_free(const struct det_job_row *row, det_time now)
{
    return row->state == DET_JOB_QUEUED || row->state == DET_JOB_DELAYED ||
           (row->state == DET_JOB_RUNNING && row->due_at <= now);
}

static void cancel_job(struct memory_store *store, struct memory_job *job, const char *reason)
{
    det_memory_job_set_state(job, DET_JOB_FAILED, 0);
    job->row.ended_at = det_memory_now(&store->store);
    (void)det_text_copy(job->reason, sizeof job->reason, reason ? reason : "");
}

static int change_locked(struct memory_store *store, const struct det_job_change *change)
{
    struct memory_job *job = det_memory_job_find(store, change->queue, change->id);

    if (!job)
        return DET_ERR_NOT_FOUND;
    switch (change->verb) {
    case DET_JOB_RETRY:
        if (job->row.state != DET_JOB_FAILED)
            return DET_ERR_NOT_FOUND;
        retry_job(store, job);
        return 0;
    case DET_JOB_CANCEL:
        if (!is_free(&job->row, det_memory_now(&store->store)))
            return DET_ERR_NOT_FOUND;
        cancel_job(store, job, change->reason);
        return 0;
    }
    return DET_ERR_INVALID;
}

int det_memory_jobs_change(struct det_store *base, const struct det_job_change *change)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_change(change);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = change_locked(store, change);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

int det_memory_jobs_forget(struct det_store *base, det_time ended_before, uint64_t *ret)
{
    struct memory_store *store = memory_store_of(base);

    *ret = 0;
    det_mutex_lock(base->world, store->mutex);
    for (struct det_list *node = store->jobs.next; node != &store->jobs;) {
        struct memory_job *job = memory_job_at(node);

        node = node->next;
        if (!job->row.ended_at || job->row.ended_at >= ended_before)
            continue;
        det_memory_job_remove(store, job);
        ++*ret;
    }
    det_mutex_unlock(base->world, store->mutex);
    return 0;
}

static int restore_locked(
    struct memory_store *store, const struct det_job_row *row, bool *ret_is_new)
{
    const struct det_job_put put = { row->queue, row->id, row->task, row->body, row->body_size, 0 };
    struct det_job_place place;
    struct memory_job *job;
    int r;

    r = det_memory_job_put(store, &put, &place);
    *ret_is_new = r == 0 && place.is_new;
    if (!*ret_is_new)
        return r;
    job = det_memory_job_find(store, row->queue, row->id);
    det_assert(job);
    det_memory_job_set_state(job, row->state, row->due_at);
    job->row.attempts = row->attempts;
    job->row.lost = row->lost;
    job->row.submitted_at = row->submitted_at;
    job->row.ended_at = row->ended_at;
    (void)det_text_copy(job->reason, sizeof job->reason, row->reason);
    return 0;
}

int det_memory_jobs_restore(struct det_store *base, const struct det_job_row *job, bool *ret_is_new)
{
    struct memory_store *store = memory_store_of(base);
    struct det_job_row row;
    int r;

    r = det_jobs_check_restored(job, &row);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = restore_locked(store, &row, ret_is_new);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}
