/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - what the files of the jobs of the PostgreSQL store share. */
#ifndef DET_STORE_POSTGRES_JOBS_H
#define DET_STORE_POSTGRES_JOBS_H

#include "store/jobs.h"
#include "store/postgres/batch.h"

/* The server's number of the type. */
#define POSTGRES_BLOBS 17

/* Parameters of a statement that are arrays. */
#define POSTGRES_ARRAYS_MAX 8
struct postgres_arrays {
    struct postgres_column columns[POSTGRES_ARRAYS_MAX];
};
void det_postgres_arrays_init(
    struct postgres_arrays *arrays, const struct det_allocator *allocator);
void det_postgres_arrays_deinit(struct postgres_arrays *arrays);
void det_postgres_arrays_text(struct postgres_arrays *arrays, size_t column, const char *text);
/* Completes the column and adds it to the parameters. */
DET_MUST_CHECK int det_postgres_arrays_add(
    struct postgres_arrays *arrays, size_t column, uint32_t type,
    struct postgres_parameters *parameters);

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
