/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_server.h - answers requests on the local socket, on a loop.
 *
 * What can be asked is a table of verbs. A verb gets a call and finishes it, at once or later:
 *
 *     (request) --verb--> call --socket_call_answer--------------------------------> finished
 *                          |  --socket_call_send--> ... --socket_call_send/end-----> finished
 *                          |  --socket_call_fail-----------------------------------> finished
 *                          \--the client went away: on_gone of a call that is kept-> finished
 *
 * All functions are for the thread of the loop. */
#ifndef DET_CLI_SOCKET_SERVER_H
#define DET_CLI_SOCKET_SERVER_H

#include <detent/loop.h>

#include "cli/socket.h"

#define SOCKET_CLIENTS_MAX 64
#define SOCKET_CALLS_MAX   16 /* of one client, unfinished */

struct socket_server;
struct socket_call;

/* `request` is borrowed for the call of this function. It finishes the call or keeps it. */
typedef void socket_verb_fn(
    void *context, const struct socket_request *request, struct socket_call *call);

struct socket_verb {
    const char *name;
    socket_verb_fn *run;
};

struct socket_server_options {
    const struct det_allocator *allocator;
    struct det_loop *loop;
    const char *project;                     /* the folder of detent.yaml */
    const struct socket_verb *verbs;         /* ends with a NULL name; outlives the server */
    void *context;                           /* of the verbs */
    int (*peer)(int descriptor, uid_t *ret); /* NULL: the kernel says */
};

/* Listens from now on. DET_ERR_EXISTS when another one does. */
DET_MUST_CHECK int socket_server_open(
    const struct socket_server_options *options, struct socket_server **ret,
    struct det_error *reterr);
/* Gives up all calls, with their on_gone(). Not from a verb or on_gone(). */
void socket_server_close(struct socket_server *server);
/* How many are connected. */
size_t socket_server_clients(const struct socket_server *server);

/* Data are taken in any case; NULL is taken for a lack of memory. After a client went away data are
 * thrown away, and the functions work as before: what a verb does needs no test for it. */
/* The one answer. */
void socket_call_answer(struct socket_call *call, json_t *data_take);
/* A part of the answer. DET_ERR_CLOSED: nobody gets it any more; the call is still to be finished,
 * or will get its on_gone(). */
int socket_call_send(struct socket_call *call, json_t *data_take);
/* How many bytes of answers wait for the client to read them, of all its calls. */
size_t socket_call_waiting(const struct socket_call *call);
/* After the last part. */
void socket_call_end(struct socket_call *call);
void socket_call_fail(struct socket_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
/* The call will be finished later. `on_gone` comes instead when the client goes away first; then
 * the call is finished too. Not while one of the functions above runs. */
void socket_call_keep(struct socket_call *call, void (*on_gone)(void *user), void *user);

#endif
