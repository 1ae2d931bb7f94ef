/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_client.h - asks a `detent up` that runs, by its local socket. Blocks; one request at a
 * time. */
#ifndef DET_CLIENT_SOCKET_CLIENT_H
#define DET_CLIENT_SOCKET_CLIENT_H

#include "config/socket_place.h"
#include "daemon/socket.h"

struct socket_client;

/* To the one that runs in this project. Errors as socket_connect(). */
DET_MUST_CHECK int socket_client_open(
    const char *project, const struct det_allocator *allocator, struct socket_client **ret,
    struct det_error *reterr);
void socket_client_close(struct socket_client *client);

/* Sends a request. Arguments are taken in any case; NULL: none. */
DET_MUST_CHECK int socket_client_ask(
    struct socket_client *client, const char *verb, json_t *arguments_take,
    struct det_error *reterr);
/* The next part of the answer: 1 with the data, which are the caller's; 0 after the last part. An
 * error of the other side comes with its code and text; then nothing follows. DET_ERR_TIMEOUT at
 * the (monotonic) deadline; DET_ERR_CANCELLED after Ctrl-C; DET_ERR_CLOSED when the other side went
 * away; DET_ERR_MALFORMED when it does not speak as it should. */
DET_MUST_CHECK int socket_client_next(
    struct socket_client *client, det_time deadline, json_t **ret, struct det_error *reterr);
/* Both, for a verb with one answer, which is to come within `timeout`. */
DET_MUST_CHECK int socket_client_call(
    struct socket_client *client, const char *verb, json_t *arguments_take, det_time timeout,
    json_t **ret, struct det_error *reterr);

#endif
