/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_line.h - a job of a durable slot as an object, for the command and for the HTTP API. */
#ifndef DET_CLI_JOB_LINE_H
#define DET_CLI_JOB_LINE_H

#include <detent/driver/jobs.h>

#include "cli/line.h"

void job_line(struct line *line, const struct det_job_row *row);

#endif
