/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_request.h - a request of another thread to the loop of the daemon, and its answer.
 *
 *     open --up_request_end---------------------------------------> finished
 *       |  --up_request_part--> ... --up_request_part, end--------> finished
 *       |  --up_request_fail--------------------------------------> finished
 *       \--the client disconnects: on_gone of a request that is kept--> finished
 *
 * The requester embeds a struct up_request, posts to the loop, and calls there a function of the
 * daemon with it and with typed arguments. That function writes the answer into `json` and ends the
 * request, fails it, or keeps it to be finished later. All functions are for the thread of the
 * loop; `json` belongs to that thread until the request is finished.
 *
 * After the client has disconnected, everything works as before and parts are discarded, so a
 * function of the daemon needs no test for it. */
#ifndef DET_DAEMON_LOOP_REQUEST_H
#define DET_DAEMON_LOOP_REQUEST_H

#include <detent/driver/loop.h>

#include "base/list.h"
#include "json/writer.h"

struct up_request;

struct up_request_ops {
    /* `json` holds one part of the answer; the function clears it. NULL: parts stay in `json`, and
     * the answer consists of them. */
    void (*part)(struct up_request *request);
    /* Bytes of parts that the client has not read; NULL: 0. */
    size_t (*waiting)(const struct up_request *request);
    /* The request is finished: `json` is the answer or empty, `error.code` is 0 or the failure. */
    void (*finished)(struct up_request *request);
};

struct up_request {
    const struct up_request_ops *ops;
    struct det_json_writer *json; /* of the requester */
    struct det_error error;
    struct det_list node; /* of the open requests */
    bool is_kept;
    void (*on_gone)(void *user);
    void *user;
};

struct up;

/* Posts to the loop of the daemon. From any thread. */
void up_post(struct up *up, struct det_post *post);
/* Opens the request. The caller has set `ops` and `json`; the rest is zero. */
void up_request_open(struct up *up, struct up_request *request);
/* `json` holds one more part of the answer, a whole value. */
void up_request_part(struct up_request *request);
/* Returns the number of bytes of parts that wait for the client to read them. */
size_t up_request_waiting(const struct up_request *request);
/* Finishes the request with what `json` holds. */
void up_request_end(struct up_request *request);
void up_request_fail(struct up_request *request, int code, const char *format, ...)
    DET_PRINTF(3, 4);
void up_request_fail_memory(struct up_request *request);
/* The request will be finished later. If the client disconnects first, `on_gone` is called instead
 * and the request is finished; never while one of the functions above runs. */
void up_request_keep(struct up_request *request, void (*on_gone)(void *user), void *user);
/* The client has disconnected: finishes the request with DET_ERR_CANCELLED. */
void up_request_abandon(struct up_request *request);
/* Fails all open requests: the daemon is shutting down. */
void up_requests_close(struct up *up);

#endif
