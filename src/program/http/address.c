/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* address.c - parses, prints and binds addresses. */
#include "http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

void http_address_unmap(union http_address *address)
{
    struct sockaddr_in plain = { .sin_family = AF_INET };

    if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
        return;
    plain.sin_port = address->v6.sin6_port;
    memcpy(&plain.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof plain.sin_addr);
    address->v4 = plain;
}

void http_address_print(const union http_address *address, char *target, size_t capacity)
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (address->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address->v4.sin_addr, text, sizeof text);
        (void)snprintf(target, capacity, "%s:%u", text, ntohs(address->v4.sin_port));
    } else if (address->any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &address->v6.sin6_addr, text, sizeof text);
        (void)snprintf(target, capacity, "[%s]:%u", text, ntohs(address->v6.sin6_port));
    } else {
        (void)snprintf(target, capacity, "unix");
    }
}

void http_address_print_origin(const union http_address *address, char *target, size_t capacity)
{
    struct in6_addr prefix;

    target[0] = '\0';
    if (address->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &address->v4.sin_addr, target, (socklen_t)capacity);
    } else if (address->any.sa_family == AF_INET6) {
        prefix = address->v6.sin6_addr;
        memset(&prefix.s6_addr[8], 0, 8);
        (void)inet_ntop(AF_INET6, &prefix, target, (socklen_t)capacity);
    }
}

static bool read_host(const char *host, uint16_t port, union http_address *ret, socklen_t *ret_size)
{
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        *ret_size = sizeof ret->v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons(port);
        *ret_size = sizeof ret->v6;
        return true;
    }
    return false;
}

bool http_address_read(const char *text, union http_address *ret, socklen_t *ret_size)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN];
    uint64_t port;
    size_t size;

    if (!colon || det_parse_u64(det_view_text(colon + 1), &port) < 0 || port > UINT16_MAX)
        return false;
    size = (size_t)(colon - text);
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    } else if (memchr(text, ':', size)) {
        return false;
    }
    if (size >= sizeof host)
        return false;
    memcpy(host, text, size);
    host[size] = '\0';
    return read_host(
        strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, (uint16_t)port, ret, ret_size);
}

int http_address_tune(int descriptor)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, 60 }, { IPPROTO_TCP, TCP_KEEPINTVL, 15 },
        { IPPROTO_TCP, TCP_KEEPCNT, 4 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, 120000 },
    };
    int r = 0;

    for (size_t i = 0; i < sizeof options / sizeof *options && r == 0; i++)
        r = setsockopt(
            descriptor, options[i].level, options[i].name, &options[i].value,
            sizeof options[i].value);
    return r;
}

int http_address_bind(const union http_address *address, socklen_t size)
{
    const int on = 1;
    int descriptor = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int cause;

    if (descriptor < 0)
        return -1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        http_address_tune(descriptor) == 0 &&
        (address->any.sa_family != AF_INET6 ||
         setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
        bind(descriptor, &address->any, size) == 0 && listen(descriptor, HTTP_BACKLOG) == 0)
        return descriptor;
    cause = errno;
    close(descriptor);
    errno = cause;
    return -1;
}

bool http_address_is_taken(const union http_address *place)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat found;
    bool is_dead;

    if (descriptor < 0)
        return true;
    is_dead = connect(descriptor, &place->any, sizeof place->local) < 0 && errno == ECONNREFUSED;
    close(descriptor);
    if (lstat(place->local.sun_path, &found) < 0)
        return false;
    return !is_dead || !S_ISSOCK(found.st_mode) || unlink(place->local.sun_path) < 0;
}

/* Nobody can connect before listen(), so there is no moment with another mode. */
int http_address_bind_path(const union http_address *place, unsigned mode)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), cause;

    if (descriptor < 0)
        return -1;
    if (bind(descriptor, &place->any, sizeof place->local) == 0) {
        if (chmod(place->local.sun_path, (mode_t)mode) == 0 &&
            listen(descriptor, HTTP_BACKLOG) == 0)
            return descriptor;
        cause = errno;
        (void)unlink(place->local.sun_path);
        errno = cause;
    }
    cause = errno;
    close(descriptor);
    errno = cause;
    return -1;
}
