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

int http_address_read(const char *text, union http_address *ret, struct det_error *reterr)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool is_v6 = size > 2 && text[0] == '[' && text[size - 1] == ']', is_right;
    char host[INET6_ADDRSTRLEN] = "";
    uint64_t port = UINT64_MAX;

    memset(ret, 0, sizeof *ret);
    if (colon && det_parse_u64(det_view_text(colon + 1), &port) < 0)
        port = UINT64_MAX;
    size -= is_v6 ? 2 : 0;
    if (size < sizeof host)
        memcpy(host, text + is_v6, size);
    if (is_v6) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        is_right = inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
    } else {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        is_right = inet_pton(
                       AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                       &ret->v4.sin_addr) == 1;
    }
    if (is_right && port <= UINT16_MAX)
        return 0;
    return det_error_set(reterr, DET_ERR_MALFORMED, "'%.100s': " HTTP_ADDRESS_RULE, text);
}

uint16_t http_address_port(const union http_address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}

bool http_address_is_loopback(const union http_address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
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

int http_address_bind(const union http_address *address)
{
    const int on = 1;
    bool is_v6 = address->any.sa_family == AF_INET6;
    socklen_t size = is_v6 ? sizeof address->v6 : sizeof address->v4;
    int descriptor = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int cause;

    if (descriptor < 0)
        return -1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        http_address_tune(descriptor) == 0 &&
        (!is_v6 || setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
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

/* No client can connect before listen(), so no client sees another mode. */
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
