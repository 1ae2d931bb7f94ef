/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lanes.c - which call runs next on which threads.
 *
 *     http thread:  reads   [ ][ ][ ][ ] --handed over--> four threads --post--> http thread
 *                   writes  [ ]          --handed over--> four threads
 *                   tail    -----------------------------> one thread
 *
 * Invariants
 *   1. Queues and counts are of the http thread. So few calls are handed over that what waits does
 *      so here, where it can be let go when its client is.
 *   2. At most `waiting_max` calls wait in a lane; one more is refused.
 *   3. A read that nobody waits for is not run; a write is: it was asked for.
 *
 * A client that has ended its own side may be gone, or wait for its answer: nobody can tell. One
 * that has to wait in line for a read is taken for gone, and told so in case it is not. */
#include "api/lanes.h"

#include "api/api.h"

static const unsigned thread_counts[] = {
#define LANE(name, threads) threads,
    API_LANES(LANE)
#undef LANE
};

/* Threads go on with these while the http thread has something else to do. */
static size_t handed_max(const struct api_lane *lane)
{
    return 2 * (size_t)lane->threads;
}

int api_lanes_open(struct api *api)
{
    int r = 0;

    for (size_t i = 0; i < API_LANE_COUNT; i++)
        det_list_init(&api->lanes[i].calls);
    for (size_t i = 0; r == 0 && i < API_LANE_COUNT; i++) {
        api->lanes[i].threads = thread_counts[i];
        r = det_pool_open(api->world, api->allocator, thread_counts[i], &api->lanes[i].pool);
    }
    return r;
}

static struct api_lane *lane_of(const struct api_call *call)
{
    return &call->api->lanes[api_is_read(call->route) ? API_READS : API_WRITES];
}

static void append(struct api_lane *lane, struct api_call *call)
{
    lane->waiting++;
    det_list_append(&lane->calls, &call->lane_node);
}

static struct api_call *take(struct api_lane *lane)
{
    struct det_list *node = det_list_take(&lane->calls);

    lane->waiting -= node != NULL;
    return node ? DET_CONTAINER(node, struct api_call, lane_node) : NULL;
}

static void refuse(struct api_call *call, int code, const char *text)
{
    api_fail(call, code, "%s", text);
    api_finish(call);
}

/* Whether it was let go instead of being run. */
static bool is_dropped(struct api_call *call)
{
    if (!api_is_read(call->route) || !http_is_ended(call->exchange))
        return false;
    refuse(
        call, DET_ERR_BUSY,
        "more was asked for before this than could be answered: ask again in a while");
    return true;
}

void api_lanes_close(struct api *api)
{
    for (size_t i = 0; i < API_LANE_COUNT; i++) {
        struct api_lane *lane = &api->lanes[i];
        struct det_pool *pool = lane->pool;
        struct api_call *call;

        lane->pool = NULL;
        while (pool && (call = take(lane)))
            refuse(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
        det_pool_close(pool);
    }
}

static void submit_job(struct api_lane *lane, struct det_job *job)
{
    if (lane->pool)
        det_pool_submit(lane->pool, job);
    else
        det_job_drop(job);
}

static void run_lane_job(void *argument)
{
    struct api_lane_job *job = argument;

    job->run(job->argument);
}

static void end_lane_job(void *argument)
{
    struct api_lane_job *job = argument;
    struct api *api = job->api;

    job->is_dropped = job->job.is_dropped;
    job->done(job->argument); /* Its memory may be gone. */
    api_leave(api);
}

void api_lane_resume(struct api *api, struct api_lane_job *job)
{
    job->job = (struct det_job){
        .run = run_lane_job, .done = end_lane_job, .argument = job, .loop = api->loop
    };
    api->inside++;
    submit_job(&api->lanes[job->lane], &job->job);
}

void api_lane_submit(struct api *api, enum api_lane_name name, struct api_lane_job *job)
{
    job->api = api;
    job->lane = name;
    job->is_dropped = false;
    det_list_init(&job->node);
    if (api->state == API_SERVING)
        api_lane_resume(api, job);
    else
        det_list_append(&api->held_jobs, &job->node);
}

static void run_next(struct api_lane *lane)
{
    struct api_call *call;

    while (lane->pool && lane->running < handed_max(lane) && (call = take(lane))) {
        if (is_dropped(call))
            continue;
        lane->running++;
        det_pool_submit(lane->pool, &call->job);
    }
}

/* Room is made by those who went away. */
static bool has_room(struct api_lane *lane, size_t most)
{
    size_t count = lane->waiting;
    struct api_call *call;

    if (count < most)
        return true;
    while (count-- > 0 && (call = take(lane))) {
        if (!is_dropped(call))
            append(lane, call);
    }
    return lane->waiting < most;
}

bool api_lane_add(struct api_call *call)
{
    struct api_lane *lane = lane_of(call);

    if (!lane->pool || lane->running < handed_max(lane)) {
        lane->running++;
        submit_job(lane, &call->job);
        return true;
    }
    if (!has_room(lane, call->api->http.waiting_max))
        return false;
    append(lane, call);
    return true;
}

void api_lane_done(struct api_call *call)
{
    struct api_lane *lane = lane_of(call);

    lane->running--;
    run_next(lane);
}

bool api_lane_leave(struct api_call *call)
{
    atomic_store(&call->is_left, true);
    if (det_list_is_empty(&call->lane_node) || !api_is_read(call->route))
        return false;
    det_list_remove(&call->lane_node);
    lane_of(call)->waiting--;
    return true;
}
