/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - declarations shared by the job files of the SQLite store. */
#ifndef DET_STORE_SQLITE_JOBS_H
#define DET_STORE_SQLITE_JOBS_H

#include "store/jobs.h"
#include "store/sqlite/sqlite.h"

/* The owner of the claims of this opening. */
const char *det_sqlite_jobs_owner(struct sqlite_store *store);
/* The clock of claims: the wall clock when the store was opened, advanced by the boot clock. */
det_time det_sqlite_jobs_steady(struct sqlite_store *store);

/* sqlite/jobs_put.c */
DET_MUST_CHECK int det_sqlite_jobs_insert(
    struct sqlite_store *store, const struct det_job_put *put, struct det_job_place *ret);
int det_sqlite_jobs_put(
    struct det_store *base, const struct det_job_put *jobs, size_t count,
    struct det_job_place *ret);

/* sqlite/jobs_claim.c */
int det_sqlite_jobs_apply(struct det_store *base, struct det_job_batch *batch);

#endif
