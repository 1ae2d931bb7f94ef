/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_print.c - a job of a durable slot as an object. */
#include "inspect/job_print.h"

#include "store/jobs.h"

void job_line(struct line *line, const struct det_job_row *row)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "job");
    line_number(line, "key", row->key);
    line_text(line, "queue", row->queue);
    line_text(line, "id", row->id);
    line_text(line, "work", row->task);
    line_text(line, "state", det_jobs_state_name(row->state));
    if (row->is_damaged)
        line_bool(line, "damaged", true);
    line_number(line, "attempts", row->attempts);
    line_time(line, "submitted_at", row->submitted_at);
    if (row->due_at)
        line_time(line, row->state == DET_JOB_RUNNING ? "claimed_until" : "due_at", row->due_at);
    if (row->ended_at)
        line_time(line, "ended_at", row->ended_at);
    if (row->reason[0])
        line_text(line, "reason", row->reason);
    line_number(line, "body_size", row->body_size);
    line_bytes(line, "body", row->body, row->body_size);
    line_close(line, '}');
}
