/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_keep.c - what is done by hand to the jobs of a SQLite store: trying again and
 * cancelling, forgetting those that have ended, and bringing in those of another store. */
#include "store/sqlite/jobs.h"

/* `refusal` is what the caller is told when nothing failed, and nothing was changed. */
struct changing {
    const struct det_job_change *change;
    int refusal;
};

static int change_step(struct sqlite_store *store, void *context)
{
    struct changing *changing = context;
    const struct det_job_change *change = changing->change;
    bool is_retry = change->verb == DET_JOB_RETRY;
    char reason[DET_REASON_MAX + 1];
    struct sqlite_call call;
    int r;

    (void)det_text_copy(reason, sizeof reason, change->reason ? change->reason : "");
    det_sqlite_call(&store->writer, is_retry ? STATEMENT_JOB_RETRY : STATEMENT_JOB_CANCEL, &call);
    det_sqlite_text(&call, change->queue);
    det_sqlite_text(&call, change->id);
    det_sqlite_number(&call, sqlite_now(store));
    if (!is_retry) {
        det_sqlite_text(&call, reason);
        det_sqlite_text(&call, det_sqlite_jobs_owner(store));
        det_sqlite_number(&call, det_sqlite_jobs_steady(store));
    }
    r = det_sqlite_run(&call);
    if (r == 0 && sqlite_changed_rows(store) == 0)
        changing->refusal = DET_ERR_NOT_FOUND;
    return r;
}

int det_sqlite_jobs_change(struct det_store *base, const struct det_job_change *change)
{
    struct changing changing = { .change = change };
    int r;

    r = det_jobs_check_change(change);
    if (r < 0)
        return r;
    r = det_sqlite_alone(sqlite_store_of(base), change_step, &changing);
    return r != 0 ? r : changing.refusal;
}

struct forgetting {
    det_time ended_before;
    uint64_t count;
};

static int forget_step(struct sqlite_store *store, void *context)
{
    struct forgetting *forgetting = context;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_FORGET, &call);
    det_sqlite_number(&call, forgetting->ended_before);
    det_sqlite_number(&call, DET_JOBS_FORGOTTEN_AT_ONCE);
    r = det_sqlite_run(&call);
    forgetting->count = r == 0 ? (uint64_t)sqlite_changed_rows(store) : 0;
    return r;
}

int det_sqlite_jobs_forget(struct det_store *base, det_time ended_before, uint64_t *ret)
{
    struct forgetting forgetting = { .ended_before = ended_before };
    int r;

    *ret = 0;
    do {
        r = det_sqlite_alone(sqlite_store_of(base), forget_step, &forgetting);
        *ret += r == 0 ? forgetting.count : 0;
    } while (r == 0 && forgetting.count == DET_JOBS_FORGOTTEN_AT_ONCE);
    return r;
}

struct restoring {
    const struct det_job_row *row;
    bool is_new;
};

static int restore_step(struct sqlite_store *store, void *context)
{
    struct restoring *restoring = context;
    const struct det_job_row *row = restoring->row;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_RESTORE, &call);
    det_sqlite_text(&call, row->queue);
    det_sqlite_text(&call, row->id);
    det_sqlite_text(&call, row->task);
    det_sqlite_bytes(
        &call, (struct det_chain_bytes){ row->body_size ? row->body : "", row->body_size });
    det_sqlite_text(&call, det_jobs_state_name(row->state));
    det_sqlite_number(&call, row->due_at);
    det_sqlite_number(&call, row->attempts);
    det_sqlite_number(&call, row->submitted_at);
    det_sqlite_number(&call, row->ended_at);
    det_sqlite_text(&call, row->reason);
    det_sqlite_number(&call, row->lost);
    r = det_sqlite_run(&call);
    restoring->is_new = r == 0 && sqlite_changed_rows(store) > 0;
    return r;
}

int det_sqlite_jobs_restore(struct det_store *base, const struct det_job_row *job, bool *ret_is_new)
{
    struct det_job_row row;
    struct restoring restoring = { .row = &row };
    int r;

    r = det_jobs_check_restored(job, &row);
    if (r < 0)
        return r;
    r = det_sqlite_alone(sqlite_store_of(base), restore_step, &restoring);
    *ret_is_new = r == 0 && restoring.is_new;
    return r;
}
