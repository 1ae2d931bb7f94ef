/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - jobs and schedules in SQL: lists, manual changes, import, and deletion of old jobs. */
#include "store/sql/jobs.h"

#include "base/assert.h"

/* Columns of JOB_LIST. */
enum {
    JOB_KEY,
    JOB_QUEUE,
    JOB_ID,
    JOB_TASK,
    JOB_BODY,
    JOB_STATE,
    JOB_DUE_AT,
    JOB_ATTEMPTS,
    JOB_OWNER,
    JOB_SUBMITTED_AT,
    JOB_ENDED_AT,
    JOB_REASON,
    JOB_LOST,
    JOB_COMPLETE,
};

/* Columns of SCHEDULE_READ and SCHEDULE_LIST. */
enum { SCHEDULE_NEXT_AT, SCHEDULE_LAST_AT, SCHEDULE_TOKEN, SCHEDULE_NAME, SCHEDULE_COMPLETE };

int det_sql_job_read(const struct det_sql_row *row, struct det_job_row *ret)
{
    struct det_chain_bytes body = det_sql_bytes(row, JOB_BODY);
    int found, r;

    *ret = (struct det_job_row){
        .key = det_sql_count(row, JOB_KEY),
        .queue = det_sql_text(row, JOB_QUEUE),
        .id = det_sql_text(row, JOB_ID),
        .task = det_sql_text(row, JOB_TASK),
        .body = body.data,
        .body_size = body.size,
        .due_at = det_sql_number(row, JOB_DUE_AT),
        .attempts = (uint32_t)det_sql_number(row, JOB_ATTEMPTS),
        .owner = det_sql_text(row, JOB_OWNER),
        .submitted_at = det_sql_number(row, JOB_SUBMITTED_AT),
        .ended_at = det_sql_number(row, JOB_ENDED_AT),
        .reason = det_sql_text(row, JOB_REASON),
        .lost = (uint32_t)det_sql_number(row, JOB_LOST),
        .is_damaged = !det_sql_flag(row, JOB_COMPLETE),
    };
    found = det_jobs_state_find(det_sql_text(row, JOB_STATE), &ret->state);
    r = det_sql_status(row);
    if (r < 0)
        return r;
    if (found < 0 && ret->is_damaged)
        ret->state = DET_JOB_FAILED;
    return ret->is_damaged ? 0 : found;
}

struct job_walk {
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
};

static int visit_job(void *context, const struct det_sql_row *row)
{
    const struct job_walk *walk = context;
    struct det_job_row job;
    int r;

    r = det_sql_job_read(row, &job);
    return r < 0 ? r : walk->visit(walk->context, &job);
}

/* The statement with an index, so that a list does not read every ended job. */
static enum det_sql_statement list_statement(const struct det_job_query *query)
{
    static const enum det_sql_statement by_state[][2] = {
        [DET_JOB_QUEUED] = { DET_SQL_JOB_LIST_QUEUED, DET_SQL_JOB_LIST_QUEUED_NEWEST },
        [DET_JOB_DELAYED] = { DET_SQL_JOB_LIST_DELAYED, DET_SQL_JOB_LIST_DELAYED_NEWEST },
        [DET_JOB_RUNNING] = { DET_SQL_JOB_LIST_RUNNING, DET_SQL_JOB_LIST_RUNNING_NEWEST },
        [DET_JOB_DONE] = { DET_SQL_JOB_LIST, DET_SQL_JOB_LIST_NEWEST },
        [DET_JOB_FAILED] = { DET_SQL_JOB_LIST, DET_SQL_JOB_LIST_NEWEST },
    };
    bool is_newest_first = query->is_newest_first;

    det_assert(!query->has_state || (unsigned)query->state <= DET_JOB_FAILED);
    if (query->queue && query->id)
        return is_newest_first ? DET_SQL_JOB_LIST_ID_NEWEST : DET_SQL_JOB_LIST_ID;
    if (query->queue && query->has_state)
        return by_state[query->state][is_newest_first];
    return is_newest_first ? DET_SQL_JOB_LIST_NEWEST : DET_SQL_JOB_LIST;
}

int det_sql_jobs_list(
    struct det_store *store, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct job_walk walk = { visit, context };
    struct det_sql_values values = { 0 };
    const struct det_sql_question question = {
        .statement = list_statement(query), .values = &values, .read = visit_job, .context = &walk
    };

    det_sql_add_text(&values, query->queue);
    det_sql_add_number(&values, det_jobs_list_after(query));
    det_sql_add_count(&values, query->limit);
    det_sql_add_text(&values, query->id);
    det_sql_add_text(&values, query->has_state ? det_jobs_state_name(query->state) : NULL);
    return det_sql_ask(store, &question, 1, NULL);
}

int det_sql_jobs_change(struct det_store *store, const struct det_job_change *job)
{
    bool is_retry = job->verb == DET_JOB_RETRY;
    struct det_sql_values values = { 0 };
    struct det_sql_change change = { .statement = is_retry ? DET_SQL_JOB_RETRY : DET_SQL_JOB_CANCEL,
                                     .values = &values };
    char reason[DET_REASON_MAX + 1];
    int r;

    r = det_jobs_check_change(job);
    if (r < 0)
        return r;
    (void)det_text_copy(reason, sizeof reason, job->reason ? job->reason : "");
    det_sql_add_text(&values, job->queue);
    det_sql_add_text(&values, job->id);
    if (!is_retry)
        det_sql_add_text(&values, reason);
    r = det_sql_change(store, &change, NULL);
    return r == 0 && !change.rows ? DET_ERR_NOT_FOUND : r;
}

int det_sql_jobs_forget(struct det_store *store, det_time ended_before, uint64_t *ret)
{
    struct det_sql_values values = { 0 };
    struct det_sql_change change = { .statement = DET_SQL_JOB_FORGET,
                                     .values = &values,
                                     .is_repeatable = true };

    det_sql_add_number(&values, ended_before);
    det_sql_add_number(&values, DET_JOBS_FORGOTTEN_AT_ONCE);
    return det_sql_change_all(store, &change, DET_JOBS_FORGOTTEN_AT_ONCE, ret);
}

int det_sql_jobs_restore(struct det_store *store, const struct det_job_row *job, bool *ret_is_new)
{
    struct det_sql_values values = { 0 };
    struct det_sql_change change = { .statement = DET_SQL_JOB_RESTORE,
                                     .values = &values,
                                     .is_repeatable = true };
    struct det_job_row row;
    int r;

    r = det_jobs_check_restored(job, &row);
    if (r < 0)
        return r;
    det_sql_add_text(&values, row.queue);
    det_sql_add_text(&values, row.id);
    det_sql_add_text(&values, row.task);
    det_sql_add_bytes(&values, row.body, row.body_size);
    det_sql_add_text(&values, det_jobs_state_name(row.state));
    det_sql_add_number(&values, row.due_at);
    det_sql_add_number(&values, row.attempts);
    det_sql_add_number(&values, row.submitted_at);
    det_sql_add_number(&values, row.ended_at);
    det_sql_add_text(&values, row.reason);
    det_sql_add_number(&values, row.lost);
    r = det_sql_change(store, &change, NULL);
    *ret_is_new = r == 0 && change.rows > 0;
    return r;
}

/* Schedules. */

struct schedule_walk {
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule);
    void *context;
};

static int read_schedule(void *context, const struct det_sql_row *row)
{
    *(struct det_job_schedule *)context = (struct det_job_schedule){
        .next_at = det_sql_number(row, SCHEDULE_NEXT_AT),
        .last_at = det_sql_number(row, SCHEDULE_LAST_AT),
        .token = det_sql_count(row, SCHEDULE_TOKEN),
    };
    return det_sql_check(row, SCHEDULE_COMPLETE);
}

static int visit_schedule(void *context, const struct det_sql_row *row)
{
    const struct schedule_walk *walk = context;
    const char *name = det_sql_text(row, SCHEDULE_NAME);
    struct det_job_schedule schedule;
    int r;

    r = read_schedule(&schedule, row);
    return r < 0 ? r : walk->visit(walk->context, name, &schedule);
}

int det_sql_schedule(struct det_store *store, const char *name, struct det_job_schedule *ret)
{
    struct det_sql_values values = { 0 };
    const struct det_sql_question question = {
        .statement = DET_SQL_SCHEDULE_READ, .values = &values, .read = read_schedule, .context = ret
    };
    int r;

    r = det_jobs_check_name(name);
    if (r < 0)
        return r;
    *ret = (struct det_job_schedule){ 0 };
    det_sql_add_text(&values, name);
    return det_sql_ask(store, &question, 1, NULL);
}

int det_sql_schedules(
    struct det_store *store,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context)
{
    struct schedule_walk walk = { visit, context };
    const struct det_sql_question question = { .statement = DET_SQL_SCHEDULE_LIST,
                                               .read = visit_schedule,
                                               .context = &walk };

    return det_sql_ask(store, &question, 1, NULL);
}
