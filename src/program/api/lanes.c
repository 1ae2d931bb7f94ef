/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lanes.c - schedules calls on the threads of lanes.
 *
 *     http thread:  reads   [ ][ ][ ][ ] --handed over--> 1-4 threads  --post--> http thread
 *                   writes  [ ]          --handed over--> 1-4 threads
 *                   tail    -----------------------------> one thread
 *
 * Invariants
 *   1. Queues and counts belong to the http thread. Few calls are handed over, so that the others
 *      wait here, where a call can be dropped when its client leaves.
 *   2. At most `waiting_max` calls wait in a lane; one more is refused.
 *   3. A read whose client has left is not run. A write is always run.
 *
 * A client that has shut down its side may have left or may wait for its answer. If its read has to
 * wait in the queue, it is taken to have left, and the read is refused with BUSY. */
#include "api/lanes.h"

#include "api/api.h"
#include "base/assert.h"

static const unsigned thread_counts[] = {
#define LANE(name, threads) threads,
    API_LANES(LANE)
#undef LANE
};

/* Keeps the threads busy while the http thread does something else. */
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
        r = det_pool_open_growing(
            api->world, api->allocator, 1, thread_counts[i], &api->lanes[i].pool);
    }
    return r;
}

static struct api_lane *lane_of(const struct api_call *call)
{
    return &call->api->lanes[api_is_read(call->route) ? API_READS : API_WRITES];
}

/* See the invariants. */
static void assert_lane(const struct api_lane *lane)
{
    det_assert(det_list_is_empty(&lane->calls) == (lane->waiting == 0));
    det_assert(lane->threads > 0 && (lane->running <= handed_max(lane) || !lane->pool));
}

static void append_call(struct api_lane *lane, struct api_call *call)
{
    det_assert(det_list_is_empty(&call->lane_node));
    lane->waiting++;
    det_list_append(&lane->calls, &call->lane_node);
}

static struct api_call *take_call(struct api_lane *lane)
{
    struct det_list *node = det_list_take(&lane->calls);

    lane->waiting -= node != NULL;
    assert_lane(lane);
    return node ? DET_CONTAINER(node, struct api_call, lane_node) : NULL;
}

static void refuse_call(struct api_call *call, int code, const char *text)
{
    api_fail(call, code, "%s", text);
    api_finish(call);
}

/* Refuses a queued read whose client has shut down its side. Returns true if refused. */
static bool drop_if_left(struct api_call *call)
{
    if (!api_is_read(call->route) || !http_is_ended(call->exchange))
        return false;
    refuse_call(call, DET_ERR_BUSY, "too many requests are waiting; retry later");
    return true;
}

void api_lanes_close(struct api *api)
{
    for (size_t i = 0; i < API_LANE_COUNT; i++) {
        struct api_lane *lane = &api->lanes[i];
        struct det_pool *pool = lane->pool;
        struct api_call *call;

        lane->pool = NULL;
        while (pool && (call = take_call(lane)))
            refuse_call(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
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

    det_assert(api->pause.inside > 0);
    job->is_dropped = job->job.is_dropped;
    job->done(job->argument); /* It may have freed the job. */
    api_release_store(api);
}

void api_lane_resume(struct api *api, struct api_lane_job *job)
{
    det_assert(api->pause.state == API_SERVING && det_list_is_empty(&job->node));
    job->job = (struct det_job){
        .run = run_lane_job, .done = end_lane_job, .argument = job, .loop = api->loop
    };
    api->pause.inside++;
    submit_job(&api->lanes[job->lane], &job->job);
}

void api_lane_submit(struct api *api, enum api_lane_name name, struct api_lane_job *job)
{
    det_assert(name < API_LANE_COUNT && job->run && job->done);
    job->api = api;
    job->lane = name;
    job->is_dropped = false;
    det_list_init(&job->node);
    if (api->pause.state == API_SERVING)
        api_lane_resume(api, job);
    else
        det_list_append(&api->pause.held_jobs, &job->node);
}

static void run_next(struct api_lane *lane)
{
    struct api_call *call;

    while (lane->pool && lane->running < handed_max(lane) && (call = take_call(lane))) {
        if (drop_if_left(call))
            continue;
        lane->running++;
        det_pool_submit(lane->pool, &call->job);
    }
    assert_lane(lane);
}

/* Returns true if there is room, if necessary after dropping reads of clients that have left. */
static bool has_room(struct api_lane *lane, size_t most)
{
    size_t count = lane->waiting;
    struct api_call *call;

    if (count < most)
        return true;
    while (count-- > 0 && (call = take_call(lane))) {
        if (!drop_if_left(call))
            append_call(lane, call);
    }
    return lane->waiting < most;
}

bool api_lane_add(struct api_call *call)
{
    struct api_lane *lane = lane_of(call);

    det_assert(call->job.run && call->job.done && call->is_inside);
    if (!lane->pool || lane->running < handed_max(lane)) {
        lane->running++;
        submit_job(lane, &call->job);
        return true;
    }
    if (!has_room(lane, call->api->http.waiting_max))
        return false;
    append_call(lane, call);
    assert_lane(lane);
    det_assert(!lane->pool || lane->waiting <= call->api->http.waiting_max);
    return true;
}

void api_lane_done(struct api_call *call)
{
    struct api_lane *lane = lane_of(call);

    det_assert(lane->running > 0);
    lane->running--;
    run_next(lane);
}

bool api_lane_leave(struct api_call *call)
{
    atomic_store(&call->is_left, true);
    if (det_list_is_empty(&call->lane_node) || !api_is_read(call->route))
        return false;
    det_assert(lane_of(call)->waiting > 0);
    det_list_remove(&call->lane_node);
    lane_of(call)->waiting--;
    assert_lane(lane_of(call));
    return true;
}
