/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_server.c - who is let in, and what can be asked. */
#include "daemon/socket_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "daemon/socket_internal.h"
#include "os/os.h"

/* Accepting rests for this long when there are no descriptors left. */
#define REST_TIME   (100 * DET_MILLISECOND)
#define ACCEPTS_MAX 16 /* in one turn */

static void run_hello(void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    (void)request;
    socket_call_answer(
        call, json_pack(
                  "{s:s, s:s, s:i, s:I}", "program", "detent", "version", det_version(), "protocol",
                  SOCKET_PROTOCOL, "process", (json_int_t)getpid()));
}

static void run_verbs(void *context, const struct socket_request *request, struct socket_call *call)
{
    const struct socket_server *server = context;
    json_t *names = json_array();

    (void)request;
    for (size_t i = 0; socket_verb_at(server, i); i++)
        json_array_append_new(names, json_string(socket_verb_at(server, i)->name));
    socket_call_answer(call, names);
}

/* Those that every server has; their context is the server. */
static const struct socket_verb own_verbs[] = { { "hello", run_hello }, { "verbs", run_verbs } };

#define OWN_COUNT (sizeof own_verbs / sizeof *own_verbs)

/* NULL behind the last one. */
const struct socket_verb *socket_verb_at(const struct socket_server *server, size_t index)
{
    const struct socket_verb *verb;

    if (index < OWN_COUNT)
        return &own_verbs[index];
    verb = &server->options.verbs[index - OWN_COUNT];
    return verb->name ? verb : NULL;
}

void *socket_verb_context(struct socket_server *server, size_t index)
{
    return index < OWN_COUNT ? server : server->options.context;
}

/* Tells one that is not let in why, and closes it. What it does not take at once is lost. */
static void turn_away(int descriptor, int code, const char *text)
{
    char *line = socket_answer_line(NULL, "error", socket_error_value(code, text));

    if (line)
        (void)!send(descriptor, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
    free(line);
    close(descriptor);
}

static void judge(struct socket_server *server, int descriptor)
{
    uid_t peer = 0;
    int r = server->options.peer ? server->options.peer(descriptor, &peer)
                                 : socket_peer(descriptor, &peer);

    if (r < 0 || !socket_is_allowed(peer, geteuid()))
        turn_away(descriptor, DET_ERR_REFUSED, "only the user who runs this detent is answered");
    else if (server->session_count == SOCKET_CLIENTS_MAX)
        turn_away(descriptor, DET_ERR_LIMIT, "there are 64 clients already");
    else if (session_open(server, descriptor, peer) < 0)
        turn_away(descriptor, DET_ERR_NO_MEMORY, "there is no memory left");
}

static void on_accept(void *argument, unsigned events)
{
    struct socket_server *server = argument;

    (void)events;
    session_reap(server);
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int descriptor =
            accept4(server->watch.descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (descriptor >= 0) {
            judge(server, descriptor);
            continue;
        }
        /* It would be told of the same one again and again; others may close theirs meanwhile. */
        if ((errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) &&
            det_loop_timer_set(
                server->options.loop, &server->rest_timer,
                det_loop_now(server->options.loop) + REST_TIME) == 0)
            det_loop_unwatch(server->options.loop, &server->watch);
        return;
    }
}

static void on_rested(void *argument)
{
    struct socket_server *server = argument;

    if (det_loop_watch(server->options.loop, &server->watch, DET_POLL_READ) < 0)
        (void)!det_loop_timer_set(
            server->options.loop, &server->rest_timer,
            det_loop_now(server->options.loop) + REST_TIME);
}

int socket_server_open(
    const struct socket_server_options *options, struct socket_server **ret,
    struct det_error *reterr)
{
    struct socket_server *server = DET_NEW(options->allocator, struct socket_server);
    int r;

    if (!server)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    server->options = *options;
    server->reap_timer = (struct det_timer){ .run = session_reap, .argument = server };
    server->rest_timer = (struct det_timer){ .run = on_rested, .argument = server };
    det_list_init(&server->sessions);
    det_list_init(&server->gone);
    r = socket_listen(options->project, &server->listener, reterr);
    if (r < 0) {
        DET_DELETE(options->allocator, server);
        return r;
    }
    server->watch = (struct det_watch){ on_accept, server, server->listener.descriptor, 0 };
    r = det_loop_watch(options->loop, &server->watch, DET_POLL_READ);
    if (r < 0) {
        det_error_set(reterr, r, "the socket cannot be watched: %s", det_error_text(r));
        socket_server_close(server);
        return r;
    }
    *ret = server;
    return 0;
}

void socket_server_close(struct socket_server *server)
{
    if (!server)
        return;
    /* Who sees that it was cut off can rely on the place being free. */
    det_loop_unwatch(server->options.loop, &server->watch);
    socket_unlisten(&server->listener);
    while (!det_list_is_empty(&server->sessions))
        session_cut(DET_CONTAINER(server->sessions.next, struct session, node));
    session_reap(server);
    det_loop_timer_cancel(server->options.loop, &server->reap_timer);
    det_loop_timer_cancel(server->options.loop, &server->rest_timer);
    DET_DELETE(server->options.allocator, server);
}

size_t socket_server_clients(const struct socket_server *server)
{
    return server->session_count;
}
