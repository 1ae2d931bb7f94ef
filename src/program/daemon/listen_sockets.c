/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* listen_sockets.c - the sockets of the HTTP API: those that who started us has opened, or our own,
 * bound while we may be root still. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/text.h"
#include "daemon/serve.h"

#define GIVEN_FIRST 3 /* as sd_listen_fds(3) has it */
#define BACKLOG     1024

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un path;
    struct sockaddr_storage storage;
};

/* Which address it is bound to. */
static int describe(struct serve_socket *found)
{
    union address address = { .storage = { .ss_family = AF_UNSPEC } };
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN];

    if (getsockname(found->descriptor, &address.any, &size) < 0)
        return -1;
    switch (address.any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &address.four.sin_addr, host, sizeof host);
        snprintf(found->text, sizeof found->text, "%s:%u", host, ntohs(address.four.sin_port));
        found->is_loopback = ntohl(address.four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        return 0;
    case AF_INET6:
        inet_ntop(AF_INET6, &address.six.sin6_addr, host, sizeof host);
        snprintf(found->text, sizeof found->text, "[%s]:%u", host, ntohs(address.six.sin6_port));
        found->is_loopback = IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr);
        return 0;
    case AF_UNIX:
        snprintf(found->text, sizeof found->text, "%.100s", address.path.sun_path);
        found->is_unix = found->is_loopback = true;
        return 0;
    default:
        return -1;
    }
}

/* Given sockets. */

static uint64_t number_of(const char *variable)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet */
    const char *text = getenv(variable);
    uint64_t number = 0;

    return text && det_parse_u64(det_view_text(text), &number) == 0 ? number : 0;
}

/* The name at this place of a list with colons; "" where it ends before. */
static void name_at(size_t index, char *target, size_t capacity)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet */
    const char *names = getenv("LISTEN_FDNAMES");
    size_t size;

    for (; names && index; index--) {
        names = strchr(names, ':');
        names += names ? 1 : 0;
    }
    size = names ? strcspn(names, ":") : 0;
    snprintf(
        target, capacity, "%.*s", (int)(size < capacity ? size : capacity - 1), names ? names : "");
}

static bool is_listening(int descriptor)
{
    socklen_t size = sizeof(int);
    int is_on = 0, type = 0;

    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_on, &size) == 0 && is_on &&
           getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static bool prepare(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);

    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0 &&
           fcntl(descriptor, F_SETFD, FD_CLOEXEC) >= 0;
}

int serve_sockets_given(struct serve_sockets *sockets, struct det_error *reterr)
{
    uint64_t count = number_of("LISTEN_FDS");

    *sockets = (struct serve_sockets){ .count = 0 };
    if (!count || number_of("LISTEN_PID") != (uint64_t)getpid())
        return 0;
    if (count > SERVE_SOCKETS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "LISTEN_FDS gives %llu sockets, and %d is the most",
            (unsigned long long)count, SERVE_SOCKETS_MAX);
    sockets->is_given = true;
    for (size_t i = 0; i < count; i++) {
        struct serve_socket *found = &sockets->items[sockets->count];

        *found = (struct serve_socket){ .descriptor = GIVEN_FIRST + (int)i };
        name_at(i, found->name, sizeof found->name);
        if (!is_listening(found->descriptor) || !prepare(found->descriptor) || describe(found) < 0)
            return det_error_set(
                reterr, DET_ERR_INVALID,
                "LISTEN_FDS: descriptor %d is no socket that listens for connections",
                found->descriptor);
        sockets->count++;
    }
    return 0;
}

/* Our own. */

static int fail_bind(
    const char *text, const struct config_address *wanted, int cause, struct det_error *reterr)
{
    char holder[SERVE_HOLDER_TEXT];

    if (cause == EADDRINUSE) {
        serve_holder(wanted->port, holder);
        return det_error_set(
            reterr, DET_ERR_EXISTS,
            "%s is taken%s%s; stop that one, or listen elsewhere: --listen 127.0.0.1:0 takes any "
            "port, --listen none no one at all",
            text, *holder ? " by " : "", holder);
    }
    if (cause == EACCES)
        return det_error_set(
            reterr, DET_ERR_REFUSED,
            "%s: only root may listen on port %u; start it as root with --user NAME, or let "
            "systemd "
            "open the socket",
            text, wanted->port);
    if (cause == EADDRNOTAVAIL)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s: this machine does not have that address", text);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    return det_error_set(reterr, DET_ERR_IO, "%s: %s", text, strerror(cause));
}

static socklen_t to_native(const struct config_address *wanted, union address *ret)
{
    bool is_name = strcmp(wanted->host, "localhost") == 0;

    *ret = (union address){ .storage = { .ss_family = AF_UNSPEC } };
    if (wanted->is_v6) {
        ret->six.sin6_family = AF_INET6;
        ret->six.sin6_port = htons(wanted->port);
        det_assert(inet_pton(AF_INET6, wanted->host, &ret->six.sin6_addr) == 1);
        return sizeof ret->six;
    }
    ret->four.sin_family = AF_INET;
    ret->four.sin_port = htons(wanted->port);
    det_assert(inet_pton(AF_INET, is_name ? "127.0.0.1" : wanted->host, &ret->four.sin_addr) == 1);
    return sizeof ret->four;
}

static int bind_one(const char *text, struct serve_socket *ret, struct det_error *reterr)
{
    struct config_address wanted;
    union address address;
    socklen_t size;
    const int yes = 1;
    int r;

    r = config_parse_address(text, &wanted, reterr);
    if (r < 0)
        return r;
    size = to_native(&wanted, &address);
    *ret = (struct serve_socket){
        .descriptor = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
    };
    if (ret->descriptor >= 0 &&
        setsockopt(ret->descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (!wanted.is_v6 ||
         setsockopt(ret->descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0) &&
        bind(ret->descriptor, &address.any, size) == 0 && listen(ret->descriptor, BACKLOG) == 0 &&
        describe(ret) == 0)
        return 0;
    r = fail_bind(text, &wanted, errno, reterr);
    if (ret->descriptor >= 0)
        close(ret->descriptor);
    return r;
}

int serve_sockets_bind(
    struct serve_sockets *sockets, const struct config_http *http, struct det_error *reterr)
{
    for (const char *const *listen = http->listen; !sockets->is_given && *listen; listen++) {
        int r;

        if (sockets->count == SERVE_SOCKETS_MAX)
            return det_error_set(
                reterr, DET_ERR_LIMIT, "'listen' has more than %d addresses", SERVE_SOCKETS_MAX);
        r = bind_one(*listen, &sockets->items[sockets->count], reterr);
        if (r < 0)
            return r;
        sockets->count++;
    }
    return 0;
}

int serve_socket_take(struct serve_socket *socket)
{
    int descriptor = socket->descriptor;

    socket->descriptor = -1;
    return descriptor;
}

void serve_sockets_close(struct serve_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++) {
        if (sockets->items[i].descriptor >= 0)
            close(serve_socket_take(&sockets->items[i]));
    }
    sockets->count = 0;
}

int serve_local_bind(struct serve_local *local, const char *path, struct det_error *reterr)
{
    int descriptor, r;

    if (path && strcmp(path, local->path) == 0)
        return 0;
    r = path ? http_bind_path(path, 0600, &descriptor, reterr) : 0;
    if (r < 0)
        return r;
    serve_local_close(local);
    if (!path)
        return 0;
    local->descriptor = descriptor;
    (void)det_text_copy(local->path, sizeof local->path, path);
    return 0;
}

void serve_local_close(struct serve_local *local)
{
    if (!local->path[0])
        return;
    (void)unlink(local->path);
    close(local->descriptor);
    local->path[0] = '\0';
}

/* What goes before the file. */

static size_t count_parts(const char *text)
{
    size_t count = 1;

    for (; *text; text++)
        count += *text == ',';
    return count;
}

int serve_listen(
    const char *option, struct det_arena *arena, struct config_http *http, struct det_error *reterr)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment here */
    const char *variable = getenv("DETENT_LISTEN");
    const char *text = option ? option : variable && *variable ? variable : NULL;
    struct config_address address;
    const char **items;
    size_t count = 0;
    int r = 0;

    if (!text)
        return 0;
    items = det_arena_array(arena, count_parts(text) + 1, sizeof *items);
    while (items && r == 0 && strcmp(text, "none") != 0) {
        size_t size = strcspn(text, ",");
        const char *item = det_arena_format(arena, "%.*s", (int)size, text);

        if (!item)
            items = NULL;
        else
            r = config_parse_address(items[count++] = item, &address, reterr);
        if (!text[size])
            break;
        text += size + 1;
    }
    if (!items)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r < 0)
        return DET_ERR_INVALID;
    http->listen = items;
    return 0;
}
