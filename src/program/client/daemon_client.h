/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_client.h - calls the HTTP API of the `detent up` of a project, over its unix socket.
 * Blocks; one request at a time.
 *
 *     an answer in JSON:      its value ---------------------> one part, and the end
 *     a list with pages:      each of its "items" -----------> parts, and the end
 *     Server-Sent Events:     the data of each event --------> parts, until it ends
 *     {"error": {...}}, in either: ---------------------------> an error with its code and text */
#ifndef DET_CLIENT_DAEMON_CLIENT_H
#define DET_CLIENT_DAEMON_CLIENT_H

#include <jansson.h>

#include "base/buffer.h"
#include "config/socket_place.h"

struct daemon_client;

/* To the one that runs in this project. Errors as socket_reach(). */
DET_MUST_CHECK int daemon_client_open(
    const char *project, const struct det_allocator *allocator, struct daemon_client **ret,
    struct det_error *reterr);
void daemon_client_close(struct daemon_client *client);

/* Appends a part of a path or the value of a query key, encoded. */
void daemon_path_add(struct det_buffer *path, const char *part);
/* The path; NULL: there was no memory for it, which the functions below say. */
const char *daemon_path_text(const struct det_buffer *path);

/* Sends a request: "GET", "/v1/tasks?x=y". A body is taken in any case; NULL: none. What is still
 * to come of the request before is given up. */
DET_MUST_CHECK int daemon_client_ask(
    struct daemon_client *client, const char *method, const char *path, json_t *body_take,
    struct det_error *reterr);
/* The same with a body that is written already; NULL: none. `key` is the Idempotency-Key; NULL:
 * none. */
DET_MUST_CHECK int daemon_client_ask_text(
    struct daemon_client *client, const char *method, const char *path, const char *body,
    const char *key, struct det_error *reterr);
/* The next part of the answer: 1 with a value, which is the caller's; 0 after the last part. An
 * error of the other side comes with its code and text; then nothing follows. DET_ERR_TIMEOUT at
 * the (monotonic) deadline, after which one may go on; DET_ERR_CANCELLED after Ctrl-C;
 * DET_ERR_CLOSED when the other side went away; DET_ERR_MALFORMED when it does not speak as it
 * should. */
DET_MUST_CHECK int daemon_client_next(
    struct daemon_client *client, det_time deadline, json_t **ret, struct det_error *reterr);
/* Both, for an answer that is one value, which is to come within `timeout`. */
DET_MUST_CHECK int daemon_client_call(
    struct daemon_client *client, const char *method, const char *path, json_t *body_take,
    det_time timeout, json_t **ret, struct det_error *reterr);
/* Waits until no process listens in the project, at most until the (monotonic) deadline: 0, or
 * DET_ERR_TIMEOUT, DET_ERR_CANCELLED. */
DET_MUST_CHECK int daemon_client_wait_gone(
    struct daemon_client *client, det_time deadline, struct det_error *reterr);

#endif
