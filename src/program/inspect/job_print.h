/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_print.h - writes a job of a durable slot as an object, for the command and for the HTTP
 * API. */
#ifndef DET_INSPECT_JOB_PRINT_H
#define DET_INSPECT_JOB_PRINT_H

#include <detent/driver/jobs.h>

#include "json/writer.h"

void job_line(struct det_json_writer *json, const struct det_job_row *row);

#endif
