/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - validates jobs, claims and firings, and converts the names of states. */
#include "store/jobs.h"

#include <string.h>

#include "base/assert.h"
#include "store/store.h"

static const char *const names[] = {
#define DET_JOB_STATE(name, text) text,
    DET_JOB_STATES(DET_JOB_STATE)
#undef DET_JOB_STATE
};

const char *det_jobs_state_name(enum det_job_state state)
{
    return names[state];
}

int det_jobs_state_find(const char *name, enum det_job_state *ret)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        *ret = (enum det_job_state)i;
        return 0;
    }
    return DET_ERR_CORRUPT;
}

int det_jobs_check_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    if (length == 0 || length > DET_JOB_NAME_MAX || det_utf8_check(name, length) != length)
        return DET_ERR_INVALID;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return DET_ERR_INVALID;
    }
    return 0;
}

static int check_put(const struct det_job_put *job)
{
    if (det_jobs_check_name(job->queue) < 0 || det_jobs_check_name(job->task) < 0)
        return DET_ERR_INVALID;
    if (!job->id || !det_store_id_is_valid(job->id) || job->run_at < 0 || job->run_at == DET_NEVER)
        return DET_ERR_INVALID;
    return job->body_size <= DET_JOB_BODY_MAX && (job->body || !job->body_size) ? 0
                                                                                : DET_ERR_INVALID;
}

int det_jobs_check_restored(const struct det_job_row *job, struct det_job_row *ret)
{
    const struct det_job_put put = { job->queue, job->id, job->task, job->body, job->body_size, 0 };
    bool has_ended = job->state == DET_JOB_DONE || job->state == DET_JOB_FAILED;
    int r;

    *ret = *job;
    ret->owner = "";
    ret->reason = job->reason ? job->reason : "";
    ret->state = job->state == DET_JOB_RUNNING ? DET_JOB_QUEUED : job->state;
    ret->due_at = job->state == DET_JOB_DELAYED ? job->due_at : 0;
    r = check_put(&put);
    if (r < 0)
        return r;
    return has_ended == (job->ended_at > 0) && job->ended_at >= 0 && job->submitted_at >= 0 &&
                   ret->due_at >= 0 && strlen(ret->reason) <= DET_REASON_MAX
               ? 0
               : DET_ERR_INVALID;
}

static int check_end(const struct det_job_end *end)
{
    switch (end->state) {
    case DET_JOB_DONE:
    case DET_JOB_FAILED:
        return end->token && !end->is_unbegun ? 0 : DET_ERR_INVALID;
    case DET_JOB_DELAYED:
        return end->token && end->run_at >= 0 && end->run_at != DET_NEVER ? 0 : DET_ERR_INVALID;
    case DET_JOB_QUEUED:
    case DET_JOB_RUNNING:
        break;
    }
    return DET_ERR_INVALID;
}

int det_jobs_check_batch(struct det_job_batch *batch)
{
    int r;

    det_assert(batch->ends || !batch->end_count);
    det_assert(batch->renewals || !batch->renewal_count);
    det_assert(batch->visit || !batch->wanted);
    batch->claimed = 0;
    batch->next = DET_NEVER;
    r = det_jobs_check_name(batch->queue);
    if (batch->wanted && (batch->capacity == 0 || batch->span <= 0))
        r = DET_ERR_INVALID;
    if (batch->renewal_count && batch->span <= 0)
        r = DET_ERR_INVALID;
    for (size_t i = 0; r == 0 && i < batch->end_count; i++)
        r = check_end(&batch->ends[i]);
    for (size_t i = 0; i < batch->end_count; i++)
        batch->ends[i].result = DET_ERR_LOCK_LOST;
    for (size_t i = 0; i < batch->renewal_count; i++)
        batch->renewals[i].result = DET_ERR_LOCK_LOST;
    return r;
}

bool det_jobs_check_puts(const struct det_job_put *jobs, size_t count, struct det_job_place *ret)
{
    bool is_any = false;

    det_assert(!count || (jobs && ret));
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct det_job_place){ .result = check_put(&jobs[i]) };
        is_any = is_any || ret[i].result == 0;
    }
    return is_any;
}

bool det_jobs_is_same(const struct det_job_put *job, const struct det_job_row *row)
{
    return strcmp(job->task, row->task) == 0 && job->body_size == row->body_size &&
           (!job->body_size || memcmp(job->body, row->body, job->body_size) == 0);
}

int det_jobs_check_change(const struct det_job_change *change)
{
    return change->id && det_store_id_is_valid(change->id) ? det_jobs_check_name(change->queue)
                                                           : DET_ERR_INVALID;
}

int det_jobs_check_firing(const struct det_job_firing *firing)
{
    int r;

    r = det_jobs_check_name(firing->name);
    if (r < 0)
        return r;
    if (firing->next_at < 0 || firing->last_at < 0)
        return DET_ERR_INVALID;
    return firing->job ? check_put(firing->job) : 0;
}
