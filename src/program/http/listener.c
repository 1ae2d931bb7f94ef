/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* listener.c - listeners: binds them, and admits connections.
 *
 * At a connection limit the oldest untrusted connection is closed to make room: clients that have
 * shown a token are never shut out by others. When no descriptors are left, some untrusted
 * connections are closed too, since other parts of the process are short of them as well. If there
 * are none, the reserve descriptor is released to accept one client from the queue and refuse it
 * with a reason; then all listeners pause for a while, so that the loop does not spin. */
#include <detent/driver/loop.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/address.h"
#include "http/http_internal.h"
#include "http/tls_stream.h"

#define ACCEPTS_MAX 64 /* in one turn */
#define REST_TIME   (100 * DET_MILLISECOND)
#define SHED_COUNT  16 /* connections that are closed when there are no descriptors left */

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct det_watch watch;
    const void *user;
    bool is_local; /* a unix socket */
    char address[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
};

/* Closes the oldest untrusted connection of the server, or of a peer; false if there is none. */
static bool shed_one(struct http_server *server, const struct http_peer *peer)
{
    struct http_connection *connection;

    if (peer ? det_list_is_empty(&peer->strangers) : det_list_is_empty(&server->strangers))
        return false;
    connection = peer ? DET_CONTAINER(peer->strangers.next, struct http_connection, peer_stranger)
                      : DET_CONTAINER(server->strangers.next, struct http_connection, stranger);
    http_connection_cut(connection);
    return true;
}

static struct http_peer *add_peer(struct http_server *server, const char *address)
{
    struct http_peer *peer = DET_NEW(server->options.allocator, struct http_peer);

    if (!peer)
        return NULL;
    peer->key = peer->address;
    det_list_init(&peer->strangers);
    (void)det_text_copy(peer->address, sizeof peer->address, address);
    if (det_map_put(&server->peers, peer) == 0)
        return peer;
    DET_DELETE(server->options.allocator, peer);
    return NULL;
}

/* NULL, and HTTP_ACCEPTED for a local one: it is not counted. */
static enum http_refusal count_peer(
    struct http_server *server, const union http_address *address, struct http_peer **ret)
{
    char text[HTTP_PEER_TEXT];
    struct http_peer *peer;

    *ret = NULL;
    http_address_print_origin(address, text, sizeof text);
    if (!text[0])
        return HTTP_ACCEPTED;
    peer = det_map_get(&server->peers, text);
    if (!peer)
        peer = add_peer(server, text);
    if (!peer)
        return HTTP_REFUSED_MEMORY;
    /* Counted first, so that the peer outlives its last connection. */
    peer->count++;
    if (peer->count > server->limits.peer_connections_max && !shed_one(server, peer)) {
        peer->count--;
        return HTTP_REFUSED_PEER_CONNECTIONS;
    }
    *ret = peer;
    return HTTP_ACCEPTED;
}

void http_peer_release(struct http_server *server, struct http_peer *peer)
{
    det_assert(peer->count > 0);
    if (--peer->count > 0)
        return;
    (void)det_map_remove(&server->peers, peer->key);
    DET_DELETE(server->options.allocator, peer);
}

/* Returns the user at the other side of a unix socket; -1: unknown. */
static int64_t uid_of(int descriptor)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? (int64_t)who.uid
                                                                             : -1;
}

static bool is_encrypted(const struct http_listener *listener)
{
    return listener->server->tls && !listener->is_local;
}

/* Takes over the descriptor on success. */
static int open_stream(
    struct http_server *server, int descriptor, bool is_encrypted, const struct http_io **ret_io,
    void **ret)
{
    void *below;
    int r;

    r = http_socket_open(server->options.allocator, server->options.loop, descriptor, &below);
    if (r < 0)
        return r;
    *ret_io = &http_socket_io;
    *ret = below;
    if (!is_encrypted)
        return 0;
    r = http_tls_stream_open(server->tls, &http_socket_io, below, ret);
    if (r < 0)
        http_socket_forget(below);
    *ret_io = &http_tls_io;
    return r;
}

static enum http_refusal open_connection(
    const struct http_listener *listener, int descriptor, const union http_address *address,
    struct http_peer *peer)
{
    struct http_server *server = listener->server;
    struct http_origin origin = {
        .from = peer,
        .user = listener->user,
        .uid = listener->is_local ? uid_of(descriptor) : -1,
        .is_local = listener->is_local,
        .is_encrypted = is_encrypted(listener),
    };
    struct http_connection *connection;
    const struct http_io *io;
    char text[HTTP_PEER_TEXT];
    void *stream;

    origin.is_trusted = origin.uid == (int64_t)geteuid() || origin.uid == 0;
    http_address_print(address, text, sizeof text);
    origin.peer = text;
    if (open_stream(server, descriptor, origin.is_encrypted, &io, &stream) < 0)
        return HTTP_REFUSED_MEMORY;
    if (http_connection_open(server, io, stream, &origin, &connection) < 0) {
        io->close(stream);
        return HTTP_REFUSED_DESCRIPTORS; /* it is closed without an answer */
    }
    return HTTP_ACCEPTED;
}

/* Sends a refused client the reason, as far as the socket accepts it at once. */
static void turn_away(
    const struct http_listener *listener, int descriptor, enum http_refusal refusal)
{
    char text[512];
    size_t size = http_refusal_text(refusal, text, sizeof text);

    if (!is_encrypted(listener))
        (void)!send(descriptor, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(descriptor, SHUT_WR);
    close(descriptor);
}

/* Returns true if there is room for another connection, if necessary by closing one. */
static bool make_room(struct http_server *server, bool is_local)
{
    if (is_local)
        return server->local_count < server->limits.local_connections_max;
    return server->connection_count - server->local_count < server->limits.connections_max ||
           shed_one(server, NULL);
}

/* The limit of the peer comes first: a peer over its limit makes no other client give way. */
static enum http_refusal find_room(
    const struct http_listener *listener, const union http_address *address, struct http_peer **ret)
{
    struct http_server *server = listener->server;
    enum http_refusal refusal = count_peer(server, address, ret);

    if (refusal != HTTP_ACCEPTED || make_room(server, listener->is_local))
        return refusal;
    if (*ret)
        http_peer_release(server, *ret);
    return HTTP_REFUSED_CONNECTIONS;
}

static void let_in(
    const struct http_listener *listener, int descriptor, const union http_address *address)
{
    struct http_server *server = listener->server;
    struct http_peer *peer = NULL;
    enum http_refusal refusal = find_room(listener, address, &peer);

    if (refusal == HTTP_ACCEPTED) {
        refusal = open_connection(listener, descriptor, address, peer);
        if (refusal != HTTP_ACCEPTED && peer)
            http_peer_release(server, peer);
        if (refusal != HTTP_REFUSED_MEMORY)
            return;
    }
    turn_away(listener, descriptor, refusal);
}

/* Accepts no connections for a while. */
static void rest_listeners(struct http_server *server)
{
    for (struct http_listener *at = server->listeners; at; at = at->next)
        det_loop_unwatch(server->options.loop, &at->watch);
    server->rest_until = http_server_now(server) + REST_TIME;
    http_server_wake(server, server->rest_until);
}

/* Closes some connections; if there are none to close, refuses one waiting client with a reason.
 * The listeners accept again after a while. */
static void give_up_reserve(struct http_listener *listener)
{
    struct http_server *server = listener->server;
    int descriptor, count = 0;

    while (count < SHED_COUNT && shed_one(server, NULL))
        count++;
    if (count > 0)
        return;
    if (server->reserve >= 0) {
        close(server->reserve);
        descriptor = accept4(listener->watch.descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor >= 0)
            turn_away(listener, descriptor, HTTP_REFUSED_DESCRIPTORS);
        server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    rest_listeners(server);
}

static void on_accept(void *argument, unsigned events)
{
    struct http_listener *listener = argument;

    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        union http_address address = { .any.sa_family = AF_UNSPEC };
        socklen_t size = sizeof address;
        int descriptor =
            accept4(listener->watch.descriptor, &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (descriptor >= 0) {
            http_address_unmap(&address);
            let_in(listener, descriptor, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            give_up_reserve(listener);
            return;
        }
        /* A client may leave before it is accepted: accepts the next one. */
        if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO)
            return;
    }
}

void http_listeners_resume(struct http_server *server)
{
    int r = 0;

    server->rest_until = 0;
    if (server->reserve < 0)
        server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (struct http_listener *at = server->listeners; at && r == 0; at = at->next)
        r = det_loop_watch(server->options.loop, &at->watch, DET_POLL_READ);
    if (r < 0)
        rest_listeners(server);
}

void http_listeners_close(struct http_server *server)
{
    struct http_listener *listener;

    while ((listener = server->listeners)) {
        server->listeners = listener->next;
        det_loop_unwatch(server->options.loop, &listener->watch);
        close(listener->watch.descriptor);
        DET_DELETE(server->options.allocator, listener);
    }
    if (server->reserve >= 0)
        close(server->reserve);
    server->reserve = -1;
    server->rest_until = 0;
}

/* Appends, so that the numbers of the others stay. */
static void append_listener(struct http_server *server, struct http_listener *listener)
{
    struct http_listener **end = &server->listeners;

    while (*end)
        end = &(*end)->next;
    *end = listener;
}

static void print_bound(struct http_listener *listener, int descriptor)
{
    union http_address address = { .any.sa_family = AF_UNSPEC };
    socklen_t size = sizeof address;

    if (getsockname(descriptor, &address.any, &size) < 0)
        address.any.sa_family = AF_UNSPEC;
    listener->is_local = address.any.sa_family == AF_UNIX;
    if (listener->is_local)
        (void)det_text_copy(listener->address, sizeof listener->address, address.local.sun_path);
    else
        http_address_print(&address, listener->address, sizeof listener->address);
}

/* Takes over the descriptor on success. */
static int add_listener(
    struct http_server *server, int descriptor, const void *user, struct det_error *reterr)
{
    const struct det_allocator *allocator = server->options.allocator;
    struct http_listener *listener = DET_NEW(allocator, struct http_listener);
    int r;

    if (!listener)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    listener->server = server;
    listener->user = user;
    listener->watch =
        (struct det_watch){ .run = on_accept, .argument = listener, .descriptor = descriptor };
    print_bound(listener, descriptor);
    r = det_loop_watch(server->options.loop, &listener->watch, DET_POLL_READ);
    if (r < 0) {
        DET_DELETE(allocator, listener);
        return det_error_set(reterr, r, "%s", det_error_text(r));
    }
    append_listener(server, listener);
    if (server->reserve < 0)
        server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 0;
}

static int fail_bind(const char *where, struct det_error *reterr)
{
    int cause = errno;
    int code = cause == EADDRINUSE ? DET_ERR_BUSY : DET_ERR_IO;

    det_error_set(reterr, code, "cannot listen at %.200s: %s", where, strerrordesc_np(cause));
    if (reterr)
        reterr->cause = cause;
    return code;
}

int http_listen(
    struct http_server *server, const char *address, const void *user, struct det_error *reterr)
{
    union http_address place;
    int descriptor, r;

    r = http_address_read(address, &place, reterr);
    if (r < 0)
        return r;
    descriptor = http_address_bind(&place);
    if (descriptor < 0)
        return fail_bind(address, reterr);
    r = add_listener(server, descriptor, user, reterr);
    if (r < 0)
        close(descriptor);
    return r;
}

int http_bind_path(const char *path, unsigned mode, int *ret, struct det_error *reterr)
{
    union http_address place = { .local.sun_family = AF_UNIX };

    if (!det_text_copy(place.local.sun_path, sizeof place.local.sun_path, path))
        return det_error_set(
            reterr, DET_ERR_INVALID, "%.100s...: the path of a socket has at most %zu bytes", path,
            sizeof place.local.sun_path - 1);
    if (http_address_is_taken(&place))
        return det_error_set(reterr, DET_ERR_BUSY, "%.200s is in use", path);
    *ret = http_address_bind_path(&place, mode);
    return *ret < 0 ? fail_bind(path, reterr) : 0;
}

int http_listen_given(
    struct http_server *server, int descriptor, const void *user, struct det_error *reterr)
{
    int flags = fcntl(descriptor, F_GETFL), is_listening = 0;
    socklen_t size = sizeof is_listening;

    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 ||
        getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0)
        return fail_bind("the descriptor", reterr);
    /* On a unix socket this fails, and is not needed. */
    (void)http_address_tune(descriptor);
    if (!is_listening)
        return det_error_set(reterr, DET_ERR_INVALID, "the descriptor does not listen");
    return add_listener(server, descriptor, user, reterr);
}

const char *http_listener_address(const struct http_server *server, size_t index)
{
    const struct http_listener *at = server->listeners;

    while (at && index-- > 0)
        at = at->next;
    return at ? at->address : NULL;
}
