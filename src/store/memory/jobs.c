/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - jobs and schedules in the memory store. They end with the process: use them for
 * tests and for jobs that need not outlive it.
 *
 *     jobs:    a list ordered by key, a map by key, and a map by queue and id
 *     queues:  heaps of queued, delayed and running jobs
 *
 * memory/jobs_claim.c has claims, memory/jobs_keep.c has manual changes.
 *
 * Invariants, under the store's mutex
 *   1. The list and the maps contain the same jobs.
 *   2. A key is never used twice.
 *   3. A job is in the heap of its state; an ended job is in none. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/memory/jobs.h"

struct memory_schedule {
    const char *name; /* follows the struct */
    struct det_job_schedule row;
};

#define JOB_NAME_SIZE (DET_JOB_NAME_MAX + DET_ID_MAX + 2)

/* Copies bytes to `*place` and advances it. */
static char *put_bytes(char **place, const void *bytes, size_t size)
{
    char *begin = *place;

    if (size)
        memcpy(begin, bytes, size);
    *place += size;
    return begin;
}

static char *put_text(char **place, const char *text)
{
    return put_bytes(place, text, strlen(text) + 1);
}

static void make_name(const char *queue, const char *id, char target[JOB_NAME_SIZE])
{
    (void)put_bytes(&target, queue, strlen(queue));
    (void)put_bytes(&target, "\n", 1);
    (void)put_text(&target, id);
}

static struct memory_job *job_open(
    struct memory_store *store, const struct det_job_put *put, const char *name)
{
    size_t size = sizeof(struct memory_job) + strlen(name) + strlen(put->queue) + strlen(put->id) +
                  strlen(put->task) + 4 + put->body_size;
    struct memory_job *job = det_alloc_zero(store->store.allocator, size);
    char *place;

    if (!job)
        return NULL;
    place = (char *)(job + 1);
    job->size = size;
    job->name = put_text(&place, name);
    job->row.queue = put_text(&place, put->queue);
    job->row.id = put_text(&place, put->id);
    job->row.task = put_text(&place, put->task);
    job->row.body = put_bytes(&place, put->body, put->body_size);
    job->row.body_size = put->body_size;
    job->row.owner = "";
    job->row.reason = job->reason;
    det_heap_node_init(&job->place);
    return job;
}

static void job_close(struct memory_store *store, struct memory_job *job)
{
    det_free(store->store.allocator, job, job->size);
}

/* Queues. */

static void queue_close(struct memory_store *store, struct memory_queue *queue)
{
    det_heap_deinit(&queue->queued);
    det_heap_deinit(&queue->delayed);
    det_heap_deinit(&queue->running);
    det_free(store->store.allocator, queue, sizeof *queue + strlen(queue->name) + 1);
}

static struct memory_queue *queue_open(struct memory_store *store, const char *name)
{
    const struct det_allocator *allocator = store->store.allocator;
    size_t length = strlen(name);
    struct memory_queue *queue = det_alloc_zero(allocator, sizeof *queue + length + 1);

    if (!queue)
        return NULL;
    queue->name = memcpy(queue + 1, name, length + 1);
    det_heap_init(&queue->queued, allocator);
    det_heap_init(&queue->delayed, allocator);
    det_heap_init(&queue->running, allocator);
    if (det_map_put(&store->queues, queue) == 0)
        return queue;
    queue_close(store, queue);
    return NULL;
}

/* Reserves room for one more job in every heap. */
static int queue_reserve(struct memory_queue *queue)
{
    size_t count = queue->count + 1;
    int r;

    r = det_heap_reserve(&queue->queued, count);
    if (r == 0)
        r = det_heap_reserve(&queue->delayed, count);
    if (r == 0)
        r = det_heap_reserve(&queue->running, count);
    return r;
}

/* NULL: the job has ended. */
static struct det_heap *heap_of(struct memory_job *job)
{
    switch (job->row.state) {
    case DET_JOB_QUEUED:
        return &job->queue->queued;
    case DET_JOB_DELAYED:
        return &job->queue->delayed;
    case DET_JOB_RUNNING:
        return &job->queue->running;
    case DET_JOB_DONE:
    case DET_JOB_FAILED:
        break;
    }
    return NULL;
}

void det_memory_job_set_state(struct memory_job *job, enum det_job_state state, det_time due_at)
{
    struct det_heap *heap;
    int r = 0;

    if (det_heap_contains(&job->place))
        det_heap_remove(heap_of(job), &job->place);
    job->row.state = state;
    job->row.due_at = due_at;
    heap = heap_of(job);
    if (heap)
        r = det_heap_insert(
            heap, &job->place, state == DET_JOB_QUEUED ? (int64_t)job->row.key : due_at);
    det_assert(r == 0);
}

struct memory_job *det_memory_job_of_key(struct memory_store *store, uint64_t key)
{
    struct det_id_node *node = det_id_map_get(&store->job_keys, key);

    return node ? DET_CONTAINER(node, struct memory_job, by_key) : NULL;
}

struct memory_job *det_memory_job_find(
    struct memory_store *store, const char *queue, const char *id)
{
    char name[JOB_NAME_SIZE];

    make_name(queue, id, name);
    return det_map_get(&store->job_of, name);
}

void det_memory_job_remove(struct memory_store *store, struct memory_job *job)
{
    if (det_heap_contains(&job->place))
        det_heap_remove(heap_of(job), &job->place);
    job->queue->count--;
    det_list_remove(&job->node);
    det_id_map_remove(&store->job_keys, &job->by_key);
    det_map_remove(&store->job_of, job->name);
    job_close(store, job);
}

void det_memory_job_wait(struct memory_job *job, det_time run_at, det_time now)
{
    bool is_later = run_at > now;

    det_memory_job_set_state(
        job, is_later ? DET_JOB_DELAYED : DET_JOB_QUEUED, is_later ? run_at : 0);
}

void det_memory_job_set_last(struct memory_store *store, struct memory_job *job)
{
    if (job->row.key) {
        det_list_remove(&job->node);
        det_id_map_remove(&store->job_keys, &job->by_key);
    }
    job->row.key = job->by_key.id = ++store->last_job;
    det_list_append(&store->jobs, &job->node);
    det_id_map_put(&store->job_keys, &job->by_key);
}

static int add_job(
    struct memory_store *store, const struct det_job_put *put, const char *name,
    struct memory_job **ret)
{
    struct memory_queue *queue = det_map_get(&store->queues, put->queue);
    struct memory_job *job;
    int r;

    if (!queue)
        queue = queue_open(store, put->queue);
    r = queue ? queue_reserve(queue) : DET_ERR_NO_MEMORY;
    if (r == 0)
        r = det_id_map_reserve(&store->job_keys);
    if (r < 0)
        return r;
    job = job_open(store, put, name);
    if (!job)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&store->job_of, job);
    if (r < 0) {
        job_close(store, job);
        return r;
    }
    job->queue = queue;
    queue->count++;
    det_memory_job_set_last(store, job);
    *ret = job;
    return 0;
}

int det_memory_job_put(
    struct memory_store *store, const struct det_job_put *put, struct det_job_place *ret)
{
    det_time now = det_memory_now(&store->store);
    char name[JOB_NAME_SIZE];
    struct memory_job *job;
    int r;

    make_name(put->queue, put->id, name);
    job = det_map_get(&store->job_of, name);
    if (job) {
        *ret = (struct det_job_place){ .key = job->row.key, .submitted_at = job->row.submitted_at };
        if (!det_jobs_is_same(put, &job->row))
            ret->result = DET_ERR_CONFLICT;
        return 0;
    }
    r = add_job(store, put, name, &job);
    if (r < 0)
        return r;
    job->row.submitted_at = now;
    det_memory_job_wait(job, put->run_at, now);
    *ret = (struct det_job_place){ .key = job->row.key, .is_new = true, .submitted_at = now };
    return 0;
}

/* Removes the new jobs of a call that ran out of memory. */
static void take_back(struct memory_store *store, const struct det_job_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (places[i].result == 0 && places[i].is_new)
            det_memory_job_remove(store, det_memory_job_of_key(store, places[i].key));
    }
}

static int put_locked(
    struct memory_store *store, const struct det_job_put *jobs, size_t count,
    struct det_job_place *ret)
{
    int r;

    for (size_t i = 0; i < count; i++) {
        if (ret[i].result < 0)
            continue;
        r = det_memory_job_put(store, &jobs[i], &ret[i]);
        if (r < 0) {
            take_back(store, ret, i);
            return r;
        }
    }
    return 0;
}

static int memory_put(
    struct det_store *base, const struct det_job_put *jobs, size_t count, struct det_job_place *ret)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    if (!det_jobs_check_puts(jobs, count, ret))
        return 0;
    det_mutex_lock(base->world, store->mutex);
    r = put_locked(store, jobs, count, ret);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static bool is_asked_for(const struct det_job_query *query, const struct det_job_row *row)
{
    bool follows =
        query->is_newest_first ? !query->after || row->key < query->after : row->key > query->after;

    return follows && (!query->queue || strcmp(row->queue, query->queue) == 0) &&
           (!query->id || strcmp(row->id, query->id) == 0) &&
           (!query->has_state || row->state == query->state);
}

static struct det_list *next_listed(const struct det_job_query *query, struct det_list *node)
{
    return query->is_newest_first ? node->previous : node->next;
}

static int memory_list(
    struct det_store *base, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct memory_store *store = memory_store_of(base);
    size_t left = query->limit;
    int r = 0;

    det_mutex_lock(base->world, store->mutex);
    for (struct det_list *node = next_listed(query, &store->jobs);
         r == 0 && left && node != &store->jobs; node = next_listed(query, node)) {
        const struct det_job_row *row = &memory_job_at(node)->row;

        if (!is_asked_for(query, row))
            continue;
        left--;
        r = visit(context, row);
    }
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static int memory_schedule(struct det_store *base, const char *name, struct det_job_schedule *ret)
{
    struct memory_store *store = memory_store_of(base);
    const struct memory_schedule *schedule;

    if (det_jobs_check_name(name) < 0)
        return DET_ERR_INVALID;
    det_mutex_lock(base->world, store->mutex);
    schedule = det_map_get(&store->schedules, name);
    *ret = schedule ? schedule->row : (struct det_job_schedule){ 0 };
    det_mutex_unlock(base->world, store->mutex);
    return 0;
}

/* The next schedule after a name; NULL: none. A linear search, since schedules are few. */
static struct memory_schedule *next_schedule(struct memory_store *store, const char *name)
{
    struct memory_schedule *schedule, *next = NULL;

    for (size_t cursor = 0; (schedule = det_map_next(&store->schedules, &cursor));) {
        if (schedule->row.token && strcmp(schedule->name, name) > 0 &&
            (!next || strcmp(schedule->name, next->name) < 0))
            next = schedule;
    }
    return next;
}

static int memory_schedules(
    struct det_store *base,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context)
{
    struct memory_store *store = memory_store_of(base);
    const struct memory_schedule *schedule;
    int r = 0;

    det_mutex_lock(base->world, store->mutex);
    schedule = next_schedule(store, "");
    while (r == 0 && schedule) {
        r = visit(context, schedule->name, &schedule->row);
        schedule = next_schedule(store, schedule->name);
    }
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static void schedule_close(struct memory_store *store, struct memory_schedule *schedule)
{
    det_free(store->store.allocator, schedule, sizeof *schedule + strlen(schedule->name) + 1);
}

static int schedule_open(struct memory_store *store, const char *name, struct memory_schedule **ret)
{
    size_t length = strlen(name);
    struct memory_schedule *schedule =
        det_alloc_zero(store->store.allocator, sizeof *schedule + length + 1);
    int r;

    if (!schedule)
        return DET_ERR_NO_MEMORY;
    schedule->name = memcpy(schedule + 1, name, length + 1);
    r = det_map_put(&store->schedules, schedule);
    if (r < 0)
        schedule_close(store, schedule);
    else
        *ret = schedule;
    return r;
}

/* A schedule with token 0 remains from a first firing that ran out of memory. */
static int fire_locked(struct memory_store *store, const struct det_job_firing *firing)
{
    struct memory_schedule *schedule = det_map_get(&store->schedules, firing->name);
    struct det_job_place place;
    int r = 0;

    if ((schedule ? schedule->row.token : 0) != firing->token)
        return DET_ERR_CONFLICT;
    if (!schedule)
        r = schedule_open(store, firing->name, &schedule);
    if (r == 0 && firing->job)
        r = det_memory_job_put(store, firing->job, &place);
    if (r < 0)
        return r;
    schedule->row =
        (struct det_job_schedule){ firing->next_at, firing->last_at, firing->token + 1 };
    return 0;
}

static int memory_fire(struct det_store *base, const struct det_job_firing *firing)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_firing(firing);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = fire_locked(store, firing);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

void det_memory_jobs_init(struct memory_store *store)
{
    det_list_init(&store->jobs);
    det_id_map_init(&store->job_keys, store->store.allocator);
    det_map_init(
        &store->queues, store->store.allocator, store->seed, offsetof(struct memory_queue, name));
    det_map_init(
        &store->job_of, store->store.allocator, store->seed, offsetof(struct memory_job, name));
    det_map_init(
        &store->schedules, store->store.allocator, store->seed,
        offsetof(struct memory_schedule, name));
}

void det_memory_jobs_deinit(struct memory_store *store)
{
    struct memory_schedule *schedule;
    struct memory_queue *queue;
    struct det_list *node;

    while ((node = det_list_take(&store->jobs)))
        job_close(store, memory_job_at(node));
    for (size_t cursor = 0; (queue = det_map_next(&store->queues, &cursor));)
        queue_close(store, queue);
    for (size_t cursor = 0; (schedule = det_map_next(&store->schedules, &cursor));)
        schedule_close(store, schedule);
    det_map_deinit(&store->job_of);
    det_map_deinit(&store->schedules);
    det_map_deinit(&store->queues);
    det_id_map_deinit(&store->job_keys);
}

const struct det_job_ops det_memory_jobs = {
    .put = memory_put,
    .apply = det_memory_jobs_apply,
    .list = memory_list,
    .change = det_memory_jobs_change,
    .forget = det_memory_jobs_forget,
    .restore = det_memory_jobs_restore,
    .schedules = memory_schedules,
    .schedule = memory_schedule,
    .fire = memory_fire,
};
