/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lanes.h - threads that may block, in lanes: who writes, signs in or follows the log does not
 * wait behind reads that are slow. */
#ifndef DET_API_LANES_H
#define DET_API_LANES_H

#include "base/list.h"
#include "os/pool.h"

struct api;
struct api_call;

/* LANE(name, threads) */
#define API_LANES(LANE) \
    LANE(READS, 4)      \
    LANE(WRITES, 4)     \
    LANE(TAIL, 1)

enum api_lane_name {
#define LANE(name, threads) API_##name,
    API_LANES(LANE)
#undef LANE
        API_LANE_COUNT
};

struct api_lane {
    struct det_pool *pool; /* NULL: it is closed */
    unsigned threads;
    struct det_list calls; /* that wait, the oldest first */
    size_t waiting, running;
};

DET_MUST_CHECK int api_lanes_open(struct api *api);
/* A job that is nobody's call. Zero it first. */
struct api_lane_job {
    void (*run)(void *argument);  /* on a thread of the lane */
    void (*done)(void *argument); /* on the http thread */
    void *argument;
    bool is_dropped; /* for `done`: it stops, and `run` did not run */
    /* Ours. */
    struct api *api;
    enum api_lane_name lane;
    struct det_job job;
    struct det_list node; /* while the API is paused */
};

/* What has not begun is dropped, what has begun is waited for. When the http thread has ended. */
void api_lanes_close(struct api *api);
/* On the http thread, as the others. While the API is paused it waits; see api_pause(). */
void api_lane_submit(struct api *api, enum api_lane_name name, struct api_lane_job *job);
/* One that has waited. */
void api_lane_resume(struct api *api, struct api_lane_job *job);
/* A call, whose job is filled in, in the lane of its route; false: too many wait. */
bool api_lane_add(struct api_call *call);
/* Its job is done: the next one begins. */
void api_lane_done(struct api_call *call);
/* Nobody wants its answer any more. Whether that ends it: it is a read that has not begun. */
bool api_lane_leave(struct api_call *call);

#endif
