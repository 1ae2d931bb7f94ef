/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lanes.h - threads that may block, in lanes: writes, sign-ins and the tail of the log do not queue
 * after slow reads. */
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
    struct det_pool *pool; /* NULL: closed */
    unsigned threads;
    struct det_list calls; /* waiting, oldest first */
    size_t waiting, running;
};

DET_MUST_CHECK int api_lanes_open(struct api *api);
/* A job without a call. Zero it first. */
struct api_lane_job {
    void (*run)(void *argument);  /* on a thread of the lane */
    void (*done)(void *argument); /* on the http thread */
    void *argument;
    bool is_dropped; /* for `done`: the API is closing, and `run` was not called */
    /* Private. */
    struct api *api;
    enum api_lane_name lane;
    struct det_job job;
    struct det_list node; /* while the API is paused */
};

/* Drops waiting jobs and waits for running ones. After the http thread has ended. */
void api_lanes_close(struct api *api);
/* Runs a job in a lane; while the API is paused it waits, see api_pause(). On the http thread, like
 * the functions below. */
void api_lane_submit(struct api *api, enum api_lane_name name, struct api_lane_job *job);
/* Runs a job that has waited for the end of a pause. */
void api_lane_resume(struct api *api, struct api_lane_job *job);
/* Adds a call, whose job is filled in, to the lane of its route. False: too many wait. */
bool api_lane_add(struct api_call *call);
/* Its job is done: starts the next one. */
void api_lane_done(struct api_call *call);
/* The client no longer waits. Returns true if the call must be finished: a read that has not
 * begun. */
bool api_lane_leave(struct api_call *call);

#endif
