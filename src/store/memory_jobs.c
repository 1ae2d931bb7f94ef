/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory_jobs.c - jobs and schedules in the memory store: gone with the process, and so for tests
 * and for what need not outlive it.
 *
 *     jobs:  a list in the order of their keys        ids: the same by queue and id
 *
 * What is done to them by hand is in memory_jobs_keep.c.
 *
 * Invariants, under the store's mutex
 *   1. What is in the list is in the map, and the other way round.
 *   2. A key is never used twice. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/memory_jobs.h"

struct memory_schedule {
    const char *name; /* behind the struct */
    struct det_job_schedule row;
};

#define JOB_NAME_SIZE (DET_JOB_NAME_MAX + DET_ID_MAX + 2)

/* Copies to `*place`, which moves on. */
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
    return job;
}

static void job_close(struct memory_store *store, struct memory_job *job)
{
    det_free(store->store.allocator, job, job->size);
}

static struct memory_job *find_key(struct memory_store *store, uint64_t key)
{
    DET_LIST_EACH(node, &store->jobs)
    {
        if (memory_job_at(node)->row.key == key)
            return memory_job_at(node);
    }
    return NULL;
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
    det_list_remove(&job->node);
    det_map_remove(&store->job_of, job->name);
    job_close(store, job);
}

void det_memory_job_wait(struct det_job_row *row, det_time run_at, det_time now)
{
    row->state = run_at > now ? DET_JOB_DELAYED : DET_JOB_QUEUED;
    row->due_at = run_at > now ? run_at : 0;
    row->owner = "";
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
        *ret = (struct det_job_place){ .key = job->row.key };
        return 0;
    }
    job = job_open(store, put, name);
    if (!job)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&store->job_of, job);
    if (r < 0) {
        job_close(store, job);
        return r;
    }
    job->row.key = ++store->last_job;
    job->row.submitted_at = now;
    det_memory_job_wait(&job->row, put->run_at, now);
    det_list_append(&store->jobs, &job->node);
    *ret = (struct det_job_place){ .key = job->row.key, .is_new = true };
    return 0;
}

static int memory_put(
    struct det_store *base, const struct det_job_put *put, struct det_job_place *ret)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_put(put);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = det_memory_job_put(store, put, ret);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static bool is_held(const struct det_job_row *row)
{
    return row->state == DET_JOB_RUNNING || row->state == DET_JOB_DELAYED;
}

/* Puts back what is due, counts what runs, and finds what is next. */
static struct memory_job *look_through(
    struct memory_store *store, const struct det_job_claim *claim, det_time now, det_time *ret_next)
{
    struct memory_job *first = NULL;
    uint32_t running = 0;

    *ret_next = DET_NEVER;
    DET_LIST_EACH(node, &store->jobs)
    {
        struct memory_job *job = memory_job_at(node);

        if (strcmp(job->row.queue, claim->queue) != 0)
            continue;
        if (is_held(&job->row) && job->row.due_at <= now) {
            job->row.lost += job->row.state == DET_JOB_RUNNING;
            det_memory_job_wait(&job->row, 0, now);
        }
        if (is_held(&job->row) && job->row.due_at < *ret_next)
            *ret_next = job->row.due_at;
        running += job->row.state == DET_JOB_RUNNING;
        if (!first && job->row.state == DET_JOB_QUEUED)
            first = job;
    }
    return running < claim->capacity ? first : NULL;
}

static int claim_locked(
    struct memory_store *store, const struct det_job_claim *claim,
    int (*visit)(void *context, const struct det_job_row *job), void *context, det_time *ret_next)
{
    det_time now = det_memory_now(&store->store);
    struct memory_job *job = look_through(store, claim, now, ret_next);
    struct det_job_row row;
    int r;

    if (!job)
        return DET_ERR_NOT_FOUND;
    row = job->row;
    row.state = DET_JOB_RUNNING;
    row.due_at = det_jobs_after(now, claim->span);
    row.attempts++;
    r = visit(context, &row);
    if (r != 0)
        return r;
    job->row = row;
    if (row.due_at < *ret_next)
        *ret_next = row.due_at;
    return 0;
}

static int memory_claim(
    struct det_store *base, const struct det_job_claim *claim,
    int (*visit)(void *context, const struct det_job_row *job), void *context, det_time *ret_next)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_claim(claim);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = claim_locked(store, claim, visit, context, ret_next);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static int memory_renew(struct det_store *base, uint64_t key, uint32_t token, det_time span)
{
    struct memory_store *store = memory_store_of(base);
    det_time now = det_memory_now(base);
    struct memory_job *job;
    int r = DET_ERR_LOCK_LOST;

    if (span <= 0)
        return DET_ERR_INVALID;
    det_mutex_lock(base->world, store->mutex);
    job = find_key(store, key);
    if (job && job->row.state == DET_JOB_RUNNING && job->row.attempts == token &&
        job->row.due_at > now) {
        job->row.due_at = det_jobs_after(now, span);
        r = 0;
    }
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static int end_locked(struct memory_store *store, const struct det_job_end *end)
{
    struct memory_job *job = find_key(store, end->key);
    det_time now = det_memory_now(&store->store);

    if (!job || job->row.attempts != end->token)
        return DET_ERR_LOCK_LOST;
    if (job->row.ended_at)
        return 0;
    (void)det_text_copy(job->reason, sizeof job->reason, end->reason ? end->reason : "");
    det_memory_job_wait(&job->row, end->run_at, now);
    if (end->state == DET_JOB_DELAYED)
        return 0;
    job->row.state = end->state;
    job->row.due_at = 0;
    job->row.ended_at = now;
    return 0;
}

static int memory_end(struct det_store *base, const struct det_job_end *end)
{
    struct memory_store *store = memory_store_of(base);
    int r;

    r = det_jobs_check_end(end);
    if (r < 0)
        return r;
    det_mutex_lock(base->world, store->mutex);
    r = end_locked(store, end);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

static bool is_asked_for(const struct det_job_query *query, const struct det_job_row *row)
{
    return row->key > query->after && (!query->queue || strcmp(row->queue, query->queue) == 0) &&
           (!query->id || strcmp(row->id, query->id) == 0) &&
           (!query->has_state || row->state == query->state);
}

static int memory_list(
    struct det_store *base, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct memory_store *store = memory_store_of(base);
    size_t left = query->limit;
    int r = 0;

    det_mutex_lock(base->world, store->mutex);
    for (struct det_list *node = store->jobs.next; r == 0 && left && node != &store->jobs;
         node = node->next) {
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

/* The next behind a name; NULL: none. They are few. */
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

/* A schedule whose token is 0 is there only because its first firing had no memory. */
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
    det_map_init(
        &store->job_of, store->store.allocator, store->seed, offsetof(struct memory_job, name));
    det_map_init(
        &store->schedules, store->store.allocator, store->seed,
        offsetof(struct memory_schedule, name));
}

void det_memory_jobs_deinit(struct memory_store *store)
{
    struct memory_schedule *schedule;
    struct det_list *node;

    while ((node = det_list_take(&store->jobs)))
        job_close(store, memory_job_at(node));
    for (size_t cursor = 0; (schedule = det_map_next(&store->schedules, &cursor));)
        schedule_close(store, schedule);
    det_map_deinit(&store->job_of);
    det_map_deinit(&store->schedules);
}

const struct det_job_ops det_memory_jobs = {
    .put = memory_put,
    .claim = memory_claim,
    .renew = memory_renew,
    .end = memory_end,
    .list = memory_list,
    .change = det_memory_jobs_change,
    .forget = det_memory_jobs_forget,
    .restore = det_memory_jobs_restore,
    .schedules = memory_schedules,
    .schedule = memory_schedule,
    .fire = memory_fire,
};
