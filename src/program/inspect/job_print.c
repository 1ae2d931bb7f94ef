/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_print.c - writes a job of a durable slot as an object. */
#include "inspect/job_print.h"

#include "store/jobs.h"

void job_line(struct det_json_writer *json, const struct det_job_row *row)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "type", "job");
    det_json_number(json, "key", row->key);
    det_json_text(json, "queue", row->queue);
    det_json_text(json, "id", row->id);
    det_json_text(json, "work", row->task);
    det_json_text(json, "state", det_jobs_state_name(row->state));
    if (row->is_damaged)
        det_json_bool(json, "damaged", true);
    det_json_number(json, "attempts", row->attempts);
    det_json_time(json, "submitted_at", row->submitted_at);
    if (row->due_at)
        det_json_time(
            json, row->state == DET_JOB_RUNNING ? "claimed_until" : "due_at", row->due_at);
    if (row->ended_at)
        det_json_time(json, "ended_at", row->ended_at);
    if (row->reason[0])
        det_json_text(json, "reason", row->reason);
    det_json_number(json, "body_size", row->body_size);
    det_json_bytes(json, "body", row->body, row->body_size);
    det_json_close(json, '}');
}
