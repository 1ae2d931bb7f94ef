/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - what the jobs of all drivers have in common: which are valid, and the names of their
 * states. */
#ifndef DET_STORE_JOBS_H
#define DET_STORE_JOBS_H

#include <detent/driver/jobs.h>

#include "base/text.h"

/* Others come between two of these. */
#define DET_JOBS_FORGOTTEN_AT_ONCE 500

/* 0 or DET_ERR_INVALID. */
DET_MUST_CHECK int det_jobs_check_name(const char *name);
DET_MUST_CHECK int det_jobs_check_put(const struct det_job_put *job);
DET_MUST_CHECK int det_jobs_check_claim(const struct det_job_claim *claim);
DET_MUST_CHECK int det_jobs_check_end(const struct det_job_end *end);
DET_MUST_CHECK int det_jobs_check_change(const struct det_job_change *change);
DET_MUST_CHECK int det_jobs_check_firing(const struct det_job_firing *firing);
/* Also what it is when it comes into another store. */
DET_MUST_CHECK int det_jobs_check_restored(const struct det_job_row *job, struct det_job_row *ret);

const char *det_jobs_state_name(enum det_job_state state);
/* DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_jobs_state_find(const char *name, enum det_job_state *ret);

/* A moment after another one, which may be DET_NEVER. */
static inline det_time det_jobs_after(det_time now, det_time span)
{
    return span < DET_NEVER - now ? now + span : DET_NEVER;
}

#endif
