/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - jobs and schedules of the SQL stores, except for puts, batches and firings, which differ
 * by driver. struct det_job_ops has the contracts. */
#ifndef DET_STORE_SQL_JOBS_H
#define DET_STORE_SQL_JOBS_H

#include "store/jobs.h"
#include "store/sql/sql.h"

/* Reads a row with the columns of JOB_LIST. Pointers are into the row. */
DET_MUST_CHECK int det_sql_job_read(const struct det_sql_row *row, struct det_job_row *ret);

int det_sql_jobs_list(
    struct det_store *store, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context);
int det_sql_jobs_change(struct det_store *store, const struct det_job_change *change);
int det_sql_jobs_forget(struct det_store *store, det_time ended_before, uint64_t *ret);
int det_sql_jobs_restore(struct det_store *store, const struct det_job_row *job, bool *ret_is_new);
int det_sql_schedules(
    struct det_store *store,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context);
int det_sql_schedule(struct det_store *store, const char *name, struct det_job_schedule *ret);

#endif
