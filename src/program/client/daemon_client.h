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

#include "config/socket_place.h"
#include "json/reader.h"
#include "json/writer.h"

struct daemon_client;

/* Connects to the daemon of this project. Errors as socket_reach(). */
DET_MUST_CHECK int daemon_client_open(
    const char *project, const struct det_allocator *allocator, struct daemon_client **ret,
    struct det_error *reterr);
void daemon_client_close(struct daemon_client *client);

/* Appends a part of a path or the value of a query key, encoded. */
void daemon_path_add(struct det_buffer *path, const char *part);
/* Returns the path; NULL: out of memory, which the functions below report. */
const char *daemon_path_text(const struct det_buffer *path);

/* Begins the body of a request: an open object. */
struct det_json_writer daemon_body(struct daemon_client *client);
/* Sends a request: "GET", "/v1/tasks?x=y". The body is always consumed, and closed if it is still
 * open; NULL: none. `key` is the Idempotency-Key; NULL: none. The rest of the previous answer is
 * discarded. */
DET_MUST_CHECK int daemon_client_ask(
    struct daemon_client *client, const char *method, const char *path,
    struct det_json_writer *body_take, const char *key, struct det_error *reterr);
/* Fails since the answer is not valid: DET_ERR_IO. */
int daemon_client_fail_invalid(struct det_error *reterr);
/* The next part of the answer: 1 with a value; 0 after the last part. The value is valid until the
 * next request; that of an event until the next part. An error of the daemon is returned with its
 * code and text, and ends the answer. DET_ERR_TIMEOUT at the (monotonic) deadline, after which the
 * call may be repeated; DET_ERR_CANCELLED after Ctrl-C; DET_ERR_CLOSED when the daemon is gone;
 * DET_ERR_IO for an invalid answer. */
DET_MUST_CHECK int daemon_client_next(
    struct daemon_client *client, det_time deadline, const struct det_json_value **ret,
    struct det_error *reterr);
/* The page of the last item, with its other members; also a page without items. Valid as long as
 * its items. NULL: not a list. */
const struct det_json_value *daemon_client_page(const struct daemon_client *client);
/* Allocates the remaining values of this answer, which is not a stream, in this arena. */
void daemon_client_keep(struct daemon_client *client, struct det_arena *arena);
/* Sends a request and waits at most `timeout` for the value of the answer. */
DET_MUST_CHECK int daemon_client_call(
    struct daemon_client *client, const char *method, const char *path,
    struct det_json_writer *body_take, det_time timeout, const struct det_json_value **ret,
    struct det_error *reterr);
/* The code of an error by its name; DET_ERR_IO for an unknown name. */
int daemon_error_code(const char *name);
/* Waits until no process listens in the project, at most until the (monotonic) deadline: 0, or
 * DET_ERR_TIMEOUT, DET_ERR_CANCELLED. */
DET_MUST_CHECK int daemon_client_wait_gone(
    struct daemon_client *client, det_time deadline, struct det_error *reterr);

#endif
