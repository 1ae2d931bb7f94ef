/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - declarations shared by the job files of the PostgreSQL store. */
#ifndef DET_STORE_POSTGRES_JOBS_H
#define DET_STORE_POSTGRES_JOBS_H

#include "store/jobs.h"
#include "store/postgres/commit_batch.h"

/* The type number of the server. */
#define POSTGRES_BLOBS 17

/* postgres/jobs_put.c */
int det_postgres_jobs_put(
    struct det_store *base, const struct det_job_put *jobs, size_t count,
    struct det_job_place *ret);

/* postgres/jobs_claim.c */
int det_postgres_jobs_apply(struct det_store *base, struct det_job_batch *batch);

/* postgres/listen.c */
void det_postgres_jobs_listen(struct det_store *base, struct det_job_listener *listener);
void det_postgres_jobs_unlisten(struct det_store *base, struct det_job_listener *listener);

#endif
