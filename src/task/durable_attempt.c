/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_attempt.c - a claimed job, from the claim to its end.
 *
 * The claim is counted from before the request, so it ends here before it does in the store. */
#include "task/durable.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

void det_durable_task_name(const char *work, uint64_t key, char *target)
{
    (void)snprintf(target, DET_TASK_NAME_MAX + 1, "%s#%llu", work, (unsigned long long)key);
}

static const struct det_durable_work *find_work(
    const struct det_durable_options *options, const char *name)
{
    for (size_t i = 0; i < options->work_count; i++) {
        if (strcmp(options->works[i].name, name) == 0)
            return &options->works[i];
    }
    return NULL;
}

struct durable_attempt *det_durable_attempt_open(
    struct det_durable *durable, const struct det_job_row *row, det_time begun)
{
    size_t id_size = strlen(row->id) + 1;
    size_t size = sizeof(struct durable_attempt) + id_size + row->body_size + 1;
    struct durable_attempt *attempt = det_alloc_zero(durable->allocator, size);
    char *text;

    if (!attempt)
        return NULL;
    text = (char *)(attempt + 1);
    memcpy(text, row->id, id_size);
    if (row->body_size)
        memcpy(text + id_size, row->body, row->body_size);
    attempt->durable = durable;
    attempt->size = size;
    attempt->work = find_work(&durable->options, row->task);
    attempt->key = row->key;
    attempt->lost = row->lost;
    attempt->lease_end = begun + durable->options.lease;
    attempt->renew_at = begun + durable->options.lease / 3;
    attempt->job = (struct det_durable_job){
        .queue = durable->options.queue,
        .id = text,
        .body = text + id_size,
        .size = row->body_size,
        .attempt = row->attempts,
    };
    attempt->stage = DURABLE_STAGES;
    det_list_init(&attempt->node);
    return attempt;
}

void det_durable_attempt_close(struct durable_attempt *attempt)
{
    det_waiter_close(attempt->waiter);
    det_free(attempt->durable->allocator, attempt, attempt->size);
}

void det_durable_attempt_set_stage(struct durable_attempt *attempt, enum durable_stage stage)
{
    struct det_durable *durable = attempt->durable;

    if (attempt->stage != DURABLE_STAGES) {
        det_list_remove(&attempt->node);
        durable->counts[attempt->stage]--;
    }
    attempt->stage = stage;
    if (stage == DURABLE_STAGES)
        return;
    det_list_append(&durable->attempts[stage], &attempt->node);
    durable->counts[stage]++;
}

/* The first end wakes the keeper, and so does the last of the running jobs: in between the keeper
 * waits for more ends, or talks to the store. */
static void note_ended(struct durable_attempt *attempt)
{
    struct det_durable *durable = attempt->durable;

    det_durable_attempt_set_stage(attempt, DURABLE_ENDED);
    if (durable->counts[DURABLE_ENDED] == 1 || durable->counts[DURABLE_RUNNING] == 0)
        det_condition_signal(durable->world, durable->for_keeper);
    if (durable->is_stopping)
        det_condition_signal(durable->world, durable->for_starter);
}

void det_durable_attempt_end(
    struct durable_attempt *attempt, enum det_job_state state, det_time again_after,
    const char *reason)
{
    struct det_store *store = attempt->durable->options.store;

    det_assert(attempt->stage != DURABLE_ENDED);
    (void)det_text_copy(attempt->reason, sizeof attempt->reason, reason ? reason : "");
    attempt->end = (struct det_job_end){
        .key = attempt->key,
        .token = attempt->job.attempt,
        .state = state,
        .run_at = again_after ? store->ops->now(store) + again_after : 0,
        .reason = attempt->reason,
    };
    note_ended(attempt);
}

void det_durable_attempt_give_back(
    struct durable_attempt *attempt, det_time again_after, const char *reason)
{
    det_durable_attempt_end(attempt, DET_JOB_DELAYED, again_after, reason);
    attempt->end.is_unbegun = true;
}

/* A cancel comes from a removal of the job, or from the end of this process. */
static void end_cancelled(struct durable_attempt *attempt, const char *reason)
{
    struct det_durable *durable = attempt->durable;

    if (durable->is_stopping || !det_tasks_is_open(durable->options.tasks))
        det_durable_attempt_end(attempt, DET_JOB_DELAYED, 0, "stopped with the process");
    else
        det_durable_attempt_end(attempt, DET_JOB_FAILED, 0, reason[0] ? reason : "cancelled");
}

static void end_as(struct durable_attempt *attempt, const struct det_task_end *end)
{
    switch (end->outcome) {
    case DET_TASK_OUTCOME_COMPLETED:
        det_durable_attempt_end(attempt, DET_JOB_DONE, 0, NULL);
        return;
    case DET_TASK_OUTCOME_CANCELLED:
    case DET_TASK_OUTCOME_FORCE_ABORTED:
    case DET_TASK_OUTCOME_REJECTED:
        end_cancelled(attempt, end->reason);
        return;
    case DET_TASK_OUTCOME_NONE:
    case DET_TASK_OUTCOME_FAILED:
    case DET_TASK_OUTCOME_FATAL:
    case DET_TASK_OUTCOME_COUNT:
        break;
    }
    det_durable_attempt_end(attempt, DET_JOB_FAILED, 0, end->reason);
}

/* Of a lost claim only a success is worth recording; otherwise another process has the job now. */
void det_durable_attempt_reported(void *context, const struct det_task_end *end)
{
    struct durable_attempt *attempt = context;
    struct det_durable *durable = attempt->durable;

    det_mutex_lock(durable->world, durable->mutex);
    attempt->task = 0;
    end_as(attempt, end);
    if (attempt->is_lost && end->outcome != DET_TASK_OUTCOME_COMPLETED)
        attempt->end.token = 0;
    det_mutex_unlock(durable->world, durable->mutex);
}
