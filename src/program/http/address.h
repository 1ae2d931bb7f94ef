/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* address.h - where a server listens and where its clients are: as text, and as a socket. */
#ifndef DET_HTTP_ADDRESS_H
#define DET_HTTP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HTTP_BACKLOG 1024

union http_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* An IPv4 address in the form that IPv6 has for it becomes one of IPv4 again: a listener of both
 * has such clients. */
void http_address_unmap(union http_address *address);
/* "127.0.0.1:80", "[::1]:80", "unix" */
void http_address_print(const union http_address *address, char *target, size_t capacity);
/* By whom connections are counted: an address, or the network of 64 bits that one host may have.
 * "" for a unix socket: they are not. */
void http_address_print_origin(const union http_address *address, char *target, size_t capacity);
/* "host:port" with an IPv6 address in brackets; "localhost" is 127.0.0.1, whatever others say. */
bool http_address_read(const char *text, union http_address *ret, socklen_t *ret_size);
/* What the connections of a TCP listener have from it: small answers go at once, and who has
 * vanished without a word is noticed in two minutes. 0, or -1 and errno. */
int http_address_tune(int descriptor);
/* A descriptor that listens, or -1 and errno. */
int http_address_bind(const union http_address *address, socklen_t size);
/* The same at a path, with this mode. */
int http_address_bind_path(const union http_address *place, unsigned mode);
/* Whether there is something at a path that must stay. A socket that nobody answers at is left
 * over, and removed. */
bool http_address_is_taken(const union http_address *place);

#endif
