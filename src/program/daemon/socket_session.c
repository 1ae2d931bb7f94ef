/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_session.c - one client of the local socket: lines in, calls, lines out. Its states and
 * invariants are in socket_internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/socket_internal.h"
#include "os/os.h"

#define READ_SIZE  4096
#define VERBS_NEAR 256

static size_t waiting(const struct session *session)
{
    return session->out.size - session->sent;
}

static void assert_session(const struct session *session)
{
    det_assert(session->call_count <= SOCKET_CALLS_MAX);
    det_assert(session->sent <= session->out.size);
    det_assert((session->state == SESSION_GONE) == (session->watch.descriptor < 0));
    if (session->state != SESSION_GONE)
        det_assert(!(session->watch.events & DET_POLL_WRITE) == !waiting(session));
}

/* The one place where a state changes. */
static void set_state(struct session *session, enum session_state state)
{
    struct socket_server *server = session->server;

    det_assert(state > session->state);
    session->state = state;
    if (state != SESSION_GONE)
        return;
    det_loop_unwatch(server->options.loop, &session->watch);
    close(session->watch.descriptor);
    session->watch.descriptor = -1;
    det_list_remove(&session->node);
    det_list_append(&server->gone, &session->node);
    server->session_count--;
    /* Without memory for the timer it is freed with the next event of any client. */
    (void)!det_loop_timer_set(server->options.loop, &server->reap_timer, 0);
}

static void free_call(struct session_call *call)
{
    det_list_remove(&call->node);
    call->session->call_count--;
    DET_DELETE(call->session->server->options.allocator, call);
}

static void tell_asked(const struct session_call *call, int code)
{
    const struct socket_server_options *options = &call->session->server->options;

    if (call->what[0])
        options->asked(options->context, call->what, call->session->uid, code);
}

static void free_session(struct session *session)
{
    const struct det_allocator *allocator = session->server->options.allocator;

    while (!det_list_is_empty(&session->calls)) {
        struct session_call *call = DET_CONTAINER(session->calls.next, struct session_call, node);
        void (*on_gone)(void *user) = call->call.on_gone;
        void *user = call->call.user;

        tell_asked(call, 1);
        free_call(call);
        if (on_gone)
            on_gone(user);
    }
    det_buffer_deinit(&session->in);
    det_buffer_deinit(&session->out);
    DET_DELETE(allocator, session);
}

void session_reap(void *argument)
{
    struct socket_server *server = argument;
    struct det_list *node;

    while ((node = det_list_take(&server->gone)))
        free_session(DET_CONTAINER(node, struct session, node));
}

/* Watches for what the state and the queue ask for. */
static void watch_session(struct session *session)
{
    unsigned events = 0;

    if (session->state == SESSION_GONE)
        return;
    if (waiting(session))
        events |= DET_POLL_WRITE;
    if (session->state == SESSION_OPEN && waiting(session) <= SOCKET_PAUSE_AT)
        events |= DET_POLL_READ;
    if (!events || (events != session->watch.events &&
                    det_loop_watch(session->server->options.loop, &session->watch, events) < 0)) {
        set_state(session, SESSION_GONE);
        return;
    }
    assert_session(session);
}

/* Sends what the socket takes. */
static void flush(struct session *session)
{
    while (session->state != SESSION_GONE && waiting(session)) {
        ssize_t count = send(
            session->watch.descriptor, session->out.data + session->sent, waiting(session),
            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (count < 0 && errno != EINTR)
            set_state(session, SESSION_GONE);
        session->sent += count > 0 ? (size_t)count : 0;
    }
    /* What was sent is dropped in large pieces, so that not every send moves the rest. */
    if (session->sent > session->out.size / 2) {
        det_buffer_drop(&session->out, session->sent);
        session->sent = 0;
    }
}

/* A line to the client. A queue that is full, or no memory for it, and it is gone. What waits is
 * sent by on_session() alone, which then also takes the lines that were left. */
static void put_line(struct session *session, const char *line)
{
    bool has_waited = waiting(session) > 0;

    if (!line || waiting(session) + strlen(line) > SOCKET_QUEUE_MAX) {
        set_state(session, SESSION_GONE);
        return;
    }
    det_buffer_append_text(&session->out, line);
    if (det_buffer_status(&session->out) < 0) {
        set_state(session, SESSION_GONE);
        return;
    }
    if (!has_waited)
        flush(session);
    watch_session(session);
}

static void put_value(
    struct session *session, const uint64_t *id, const char *key, json_t *value_take)
{
    char *line;

    if (session->state == SESSION_GONE) {
        json_decref(value_take);
        return;
    }
    line = value_take ? socket_answer_line(id, key, value_take) : NULL;
    put_line(session, line);
    free(line);
}

/* A call, as the one who carries it. */

static struct session_call *session_call_of(struct socket_call *call)
{
    return DET_CONTAINER(call, struct session_call, call);
}

static const struct session *session_of(const struct socket_call *call)
{
    return ((const struct session_call *)(const void *)call)->session;
}

static int error_of(const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "code"));

    return name ? socket_error_code(name) : DET_ERR_NO_MEMORY;
}

static void put_part(struct socket_call *call, const char *key, json_t *value_take)
{
    struct session_call *it = session_call_of(call);

    if (strcmp(key, "error") == 0)
        it->code = error_of(value_take);
    put_value(it->session, &it->id, key, value_take);
}

static size_t call_waiting(const struct socket_call *call)
{
    return waiting(session_of(call));
}

static bool call_is_gone(const struct socket_call *call)
{
    return session_of(call)->state == SESSION_GONE;
}

static void release_call(struct socket_call *call)
{
    struct session_call *it = session_call_of(call);

    tell_asked(it, it->code);
    free_call(it);
}

static const struct socket_call_ops call_ops = { put_part, call_waiting, call_is_gone,
                                                 release_call };

static void fail_verb(
    const struct socket_server *server, struct socket_call *call, const char *verb)
{
    const char *names[VERBS_NEAR];
    size_t count = 0;
    int nearest;

    for (size_t i = 0; socket_verb_at(server, i) && count < VERBS_NEAR; i++)
        names[count++] = socket_verb_at(server, i)->name;
    nearest = det_text_nearest(verb, names, count);
    if (nearest < 0)
        socket_call_fail(call, DET_ERR_NOT_FOUND, "there is no verb '%s'", verb);
    else
        socket_call_fail(
            call, DET_ERR_NOT_FOUND, "there is no verb '%s'; did you mean '%s'?", verb,
            names[nearest]);
}

/* The call with this id; NULL: there is none. */
static struct session_call *find_call(const struct session *session, uint64_t id)
{
    DET_LIST_EACH(node, &session->calls)
    {
        struct session_call *call = DET_CONTAINER(node, struct session_call, node);

        if (call->id == id)
            return call;
    }
    return NULL;
}

static void run_verb(struct session *session, const struct socket_request *request)
{
    struct socket_server *server = session->server;
    const struct socket_server_options *options = &server->options;
    struct session_call *call = find_call(session, request->id);
    const struct socket_verb *verb;
    size_t index = 0;

    if (!options->describe || !options->describe(request, call->what, sizeof call->what))
        call->what[0] = '\0';
    while ((verb = socket_verb_at(server, index)) && strcmp(verb->name, request->verb) != 0)
        index++;
    if (verb)
        verb->run(socket_verb_context(server, index), request, &call->call);
    else
        fail_verb(server, &call->call, request->verb);
    call = find_call(session, request->id);
    det_assert(!call || call->call.is_kept);
}

static int add_call(struct session *session, uint64_t id, struct det_error *reterr)
{
    const struct det_allocator *allocator = session->server->options.allocator;
    struct session_call *call;

    if (find_call(session, id))
        return det_error_set(
            reterr, DET_ERR_INVALID, "the id is in use by a request before this one");
    if (session->call_count == SOCKET_CALLS_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "there are %d requests without an answer already",
            SOCKET_CALLS_MAX);
    call = DET_NEW(allocator, struct session_call);
    if (!call)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    call->call.ops = &call_ops;
    call->session = session;
    call->id = id;
    det_list_init(&call->node);
    det_list_append(&session->calls, &call->node);
    session->call_count++;
    return 0;
}

static void take_line(struct session *session, const char *line, size_t size)
{
    struct socket_request request;
    struct det_error error;
    int r;

    r = socket_request_read(line, size, &request, &error);
    if (r == 0)
        r = add_call(session, request.id, &error);
    if (r == 0)
        run_verb(session, &request);
    else
        put_value(
            session, request.has_id ? &request.id : NULL, "error",
            socket_error_value(r, error.text));
    socket_request_deinit(&request);
}

static void refuse_length(struct session *session)
{
    put_value(
        session, NULL, "error",
        socket_error_value(DET_ERR_LIMIT, "the line is longer than 64 KiB"));
    if (session->state == SESSION_OPEN)
        set_state(session, SESSION_ENDING);
    det_buffer_clear(&session->in);
}

/* Whole lines of what was read, as long as the client takes the answers. */
static void take_lines(struct session *session)
{
    size_t from = 0;

    while (session->state == SESSION_OPEN && waiting(session) <= SOCKET_PAUSE_AT) {
        const char *line = det_buffer_text(&session->in) + from;
        const char *end = memchr(line, '\n', session->in.size - from);
        size_t size = end ? (size_t)(end - line) : session->in.size - from;

        if (size >= SOCKET_LINE_MAX) {
            refuse_length(session);
            return;
        }
        if (!end)
            break;
        from += size + 1;
        take_line(session, line, size);
    }
    det_buffer_drop(&session->in, from);
}

static void read_session(struct session *session)
{
    char part[READ_SIZE];
    ssize_t count = recv(session->watch.descriptor, part, sizeof part, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (count <= 0) {
        set_state(session, count < 0 ? SESSION_GONE : SESSION_ENDING);
        return;
    }
    det_buffer_append(&session->in, part, (size_t)count);
    if (det_buffer_status(&session->in) < 0)
        set_state(session, SESSION_GONE);
}

static void on_session(void *argument, unsigned events)
{
    struct session *session = argument;

    session_reap(session->server);
    if (events & DET_POLL_WRITE)
        flush(session);
    if (session->state == SESSION_OPEN && (events & DET_POLL_READ))
        read_session(session);
    else if (session->state != SESSION_GONE && (events & DET_POLL_HANGUP))
        set_state(session, SESSION_GONE);
    take_lines(session);
    watch_session(session);
}

int session_open(struct socket_server *server, int descriptor_take, uid_t uid)
{
    struct session *session = DET_NEW(server->options.allocator, struct session);

    if (!session)
        return DET_ERR_NO_MEMORY;
    session->server = server;
    session->uid = uid;
    session->watch = (struct det_watch){ on_session, session, descriptor_take, 0 };
    det_buffer_init(&session->in, server->options.allocator);
    det_buffer_init(&session->out, server->options.allocator);
    det_list_init(&session->calls);
    det_list_init(&session->node);
    det_list_append(&server->sessions, &session->node);
    server->session_count++;
    watch_session(session);
    return 0;
}

void session_cut(struct session *session)
{
    set_state(session, SESSION_GONE);
}
