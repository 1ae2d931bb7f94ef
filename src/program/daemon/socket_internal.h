/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_internal.h - what the server and its sessions share.
 *
 *     (accept) --> open --end of input, line too long--> ending --all is sent--> gone --> freed
 *                   \--error, hangup, queue full, no memory------------------/
 *
 * Invariants
 *   1. A session that is gone has no descriptor and is not watched; it and its calls stay in memory
 *      until a turn of the loop of their own, so that a verb never loses its call under its hands.
 *   2. A session is watched for writing if and only if something waits to be sent, and for reading
 *      if and only if it is open and not much waits.
 *   3. Every call is in the list of its session, and is freed when it is finished. */
#ifndef DET_DAEMON_SOCKET_INTERNAL_H
#define DET_DAEMON_SOCKET_INTERNAL_H

#include "base/buffer.h"
#include "base/list.h"
#include "daemon/socket_server.h"

enum session_state { SESSION_OPEN, SESSION_ENDING, SESSION_GONE };

struct session {
    struct det_list node; /* of the sessions, or of those that are gone */
    struct socket_server *server;
    enum session_state state;
    struct det_watch watch;
    struct det_buffer in;
    struct det_buffer out; /* what waits, from `sent` on */
    size_t sent;
    struct det_list calls;
    size_t call_count;
    uid_t uid; /* the client's */
};

struct session_call {
    struct socket_call call;
    struct det_list node;
    struct session *session;
    uint64_t id;
    char what[SOCKET_WHAT]; /* it does, for who wants to be told; "": nobody does */
    int code;               /* of its answer */
};

struct socket_server {
    struct socket_server_options options;
    struct socket_listener listener;
    struct det_watch watch;
    struct det_timer reap_timer, rest_timer;
    struct det_list sessions, gone;
    size_t session_count;
};

/* socket_session.c */

/* Takes the descriptor over. 0 or DET_ERR_NO_MEMORY, when it is still the caller's. */
DET_MUST_CHECK int session_open(struct socket_server *server, int descriptor_take, uid_t uid);
/* Gone at once; freed by session_reap(). */
void session_cut(struct session *session);
/* Frees those that are gone, and tells their calls. The argument is the server. */
void session_reap(void *argument);

/* socket_server.c: in the order of the table, the server's own first; NULL behind the last one. */
const struct socket_verb *socket_verb_at(const struct socket_server *server, size_t index);
/* What its function gets. */
void *socket_verb_context(struct socket_server *server, size_t index);

#endif
