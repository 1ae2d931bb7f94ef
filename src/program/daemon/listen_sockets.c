/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* listen_sockets.c - the sockets of the HTTP API: inherited from the service manager, or bound, if
 * necessary before root is dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text.h"
#include "daemon/host.h"
#include "http/address.h"

#define GIVEN_FIRST 3 /* SD_LISTEN_FDS_START of sd_listen_fds(3) */

/* Reads the address of a bound socket. */
static int describe_socket(struct serve_socket *found)
{
    union http_address address = { .any.sa_family = AF_UNSPEC };
    socklen_t size = sizeof address;

    if (getsockname(found->descriptor, &address.any, &size) < 0)
        return -1;
    if (address.any.sa_family == AF_UNIX) {
        snprintf(found->text, sizeof found->text, "%.100s", address.local.sun_path);
        found->is_unix = found->is_loopback = true;
        return 0;
    }
    if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6)
        return -1;
    http_address_print(&address, found->text, sizeof found->text);
    found->is_loopback = http_address_is_loopback(&address);
    return 0;
}

/* Inherited sockets. */

uint64_t serve_environment_number(const char *variable)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet */
    const char *text = getenv(variable);
    uint64_t number = 0;

    return text && det_parse_u64(det_view_text(text), &number) == 0 ? number : 0;
}

/* Copies the name at this index of a list with colons; "" past its end. */
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

static bool prepare_socket(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);

    return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0 &&
           fcntl(descriptor, F_SETFD, FD_CLOEXEC) >= 0;
}

int serve_sockets_given(struct serve_sockets *sockets, struct det_error *reterr)
{
    uint64_t count = serve_environment_number("LISTEN_FDS");

    *sockets = (struct serve_sockets){ .count = 0 };
    if (!count || serve_environment_number("LISTEN_PID") != (uint64_t)getpid())
        return 0;
    if (count > SERVE_SOCKETS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "LISTEN_FDS gives %llu sockets, and the maximum is %d",
            (unsigned long long)count, SERVE_SOCKETS_MAX);
    sockets->is_given = true;
    for (size_t i = 0; i < count; i++) {
        struct serve_socket *found = &sockets->items[sockets->count];

        *found = (struct serve_socket){ .descriptor = GIVEN_FIRST + (int)i };
        name_at(i, found->name, sizeof found->name);
        if (!is_listening(found->descriptor) || !prepare_socket(found->descriptor) ||
            describe_socket(found) < 0)
            return det_error_set(
                reterr, DET_ERR_INVALID, "LISTEN_FDS: descriptor %d is not a listening socket",
                found->descriptor);
        sockets->count++;
    }
    return 0;
}

/* Bound sockets. */

static int fail_bind(const char *text, uint16_t port, int cause, struct det_error *reterr)
{
    char holder[SERVE_HOLDER_TEXT];

    if (cause == EADDRINUSE) {
        serve_holder(port, holder);
        return det_error_set(
            reterr, DET_ERR_EXISTS,
            "%s is taken%s%s; stop that process, or use another address: --listen 127.0.0.1:0 (any "
            "free port) or --listen none",
            text, *holder ? " by " : "", holder);
    }
    if (cause == EACCES)
        return det_error_set(
            reterr, DET_ERR_REFUSED,
            "%s: only root may listen on port %u; start it as root with --user NAME, or let "
            "systemd "
            "open the socket",
            text, port);
    if (cause == EADDRNOTAVAIL)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s: this machine does not have that address", text);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    return det_error_set(reterr, DET_ERR_IO, "%s: %s", text, strerror(cause));
}

static int bind_one(const char *text, struct serve_socket *ret, struct det_error *reterr)
{
    union http_address address;
    int r;

    r = http_address_read(text, &address, reterr);
    if (r < 0)
        return r;
    *ret = (struct serve_socket){ .descriptor = http_address_bind(&address) };
    if (ret->descriptor >= 0 && describe_socket(ret) == 0)
        return 0;
    r = fail_bind(text, http_address_port(&address), errno, reterr);
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

/* Addresses that override those of the file. */

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
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed */
    const char *variable = getenv("DETENT_LISTEN");
    const char *text = option ? option : variable && *variable ? variable : NULL;
    union http_address address;
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
            r = http_address_read(items[count++] = item, &address, reterr);
        if (!text[size])
            break;
        text += size + 1;
    }
    if (!items)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r < 0)
        return DET_ERR_INVALID;
    http->listen = items;
    return 0;
}
