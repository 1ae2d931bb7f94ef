/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_server.h - answers requests on the local socket, on a loop.
 *
 * What can be asked is a table of verbs. A verb gets a call (call.h) and finishes it, at once or
 * later.
 *
 * All functions are for the thread of the loop. */
#ifndef DET_DAEMON_SOCKET_SERVER_H
#define DET_DAEMON_SOCKET_SERVER_H

#include <detent/loop.h>

#include "config/socket_place.h"
#include "daemon/call.h"
#include "daemon/socket.h"

#define SOCKET_CLIENTS_MAX 64
#define SOCKET_CALLS_MAX   16 /* of one client, unfinished */
#define SOCKET_WHAT        160

struct socket_server;

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
    /* What a request does, in words, if it is to be told of; and when it is answered, with 0, its
     * error, or 1: who asked went away before. Both or none. */
    bool (*describe)(const struct socket_request *request, char *target, size_t size);
    void (*asked)(void *context, const char *what, uid_t uid, int code);
};

/* Listens from now on. DET_ERR_EXISTS when another one does. */
DET_MUST_CHECK int socket_server_open(
    const struct socket_server_options *options, struct socket_server **ret,
    struct det_error *reterr);
/* Gives up all calls, with their on_gone(). Not from a verb or on_gone(). */
void socket_server_close(struct socket_server *server);
/* How many are connected. */
size_t socket_server_clients(const struct socket_server *server);

#endif
