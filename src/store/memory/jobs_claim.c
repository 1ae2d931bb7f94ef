/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_claim.c - claims in the memory store: ends, renewals and new claims of one queue, under the
 * store's mutex. */
#include "os/os.h"
#include "store/memory/jobs.h"

static void end_job(struct memory_job *job, const struct det_job_end *end, det_time now)
{
    if (job->row.ended_at)
        return;
    (void)det_text_copy(job->reason, sizeof job->reason, end->reason ? end->reason : "");
    job->row.attempts -= end->is_unbegun;
    if (end->state == DET_JOB_DELAYED) {
        det_memory_job_wait(job, end->run_at, now);
        return;
    }
    job->row.ended_at = now;
    det_memory_job_set_state(job, end->state, 0);
}

static void end_all(struct memory_store *store, struct det_job_batch *batch, det_time now)
{
    for (size_t i = 0; i < batch->end_count; i++) {
        struct det_job_end *end = &batch->ends[i];
        struct memory_job *job = det_memory_job_of_key(store, end->key);

        if (!job || job->row.attempts != end->token)
            continue;
        end_job(job, end, now);
        end->result = 0;
    }
}

static void renew_all(struct memory_store *store, struct det_job_batch *batch, det_time now)
{
    for (size_t i = 0; i < batch->renewal_count; i++) {
        struct det_job_renewal *renewal = &batch->renewals[i];
        struct memory_job *job = det_memory_job_of_key(store, renewal->key);

        if (!job || job->row.state != DET_JOB_RUNNING || job->row.attempts != renewal->token ||
            job->row.due_at <= now)
            continue;
        det_memory_job_set_state(job, DET_JOB_RUNNING, det_jobs_after(now, batch->span));
        renewal->result = 0;
    }
}

static struct memory_job *first_of(const struct det_heap *heap)
{
    struct det_heap_node *node = det_heap_first(heap);

    return node ? DET_CONTAINER(node, struct memory_job, place) : NULL;
}

/* Returns due delayed jobs and jobs with lapsed claims to the queue. */
static void put_back(const struct det_heap *heap, det_time now)
{
    struct memory_job *job;

    while ((job = first_of(heap)) && job->row.due_at <= now) {
        job->row.lost += job->row.state == DET_JOB_RUNNING;
        det_memory_job_wait(job, 0, now);
    }
}

static det_time next_of(const struct det_heap *heap, det_time next)
{
    const struct memory_job *job = first_of(heap);

    return job && job->row.due_at < next ? job->row.due_at : next;
}

static int claim_some(struct memory_queue *queue, struct det_job_batch *batch, det_time now)
{
    struct memory_job *job;
    int r = 0;

    while (batch->claimed < batch->wanted && queue->running.count < batch->capacity &&
           (job = first_of(&queue->queued))) {
        struct det_job_row row = job->row;

        row.state = DET_JOB_RUNNING;
        row.due_at = det_jobs_after(now, batch->span);
        row.attempts++;
        r = batch->visit(batch->context, &row);
        if (r != 0)
            break;
        job->row.attempts++;
        det_memory_job_set_state(job, DET_JOB_RUNNING, row.due_at);
        batch->claimed++;
    }
    return r;
}

static int apply_locked(struct memory_store *store, struct det_job_batch *batch)
{
    struct memory_queue *queue = det_map_get(&store->queues, batch->queue);
    det_time now = det_memory_now(&store->store);
    int r;

    end_all(store, batch, now);
    renew_all(store, batch, now);
    if (!queue || !batch->wanted)
        return 0;
    put_back(&queue->delayed, now);
    put_back(&queue->running, now);
    r = claim_some(queue, batch, now);
    batch->next = next_of(&queue->running, next_of(&queue->delayed, DET_NEVER));
    return r;
}

int det_memory_jobs_apply(struct det_store *base, struct det_job_batch *batch)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_batch(batch);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = apply_locked(store, batch);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}
