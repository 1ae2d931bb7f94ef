/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* address.h - addresses of listeners and clients: as text, and as a socket. */
#ifndef DET_HTTP_ADDRESS_H
#define DET_HTTP_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <detent/base.h>

#define HTTP_BACKLOG 1024

union http_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* Converts an IPv4-mapped IPv6 address to IPv4: a listener of both has such clients. */
void http_address_unmap(union http_address *address);
/* "127.0.0.1:80", "[::1]:80", "unix" */
void http_address_print(const union http_address *address, char *target, size_t capacity);
/* Prints the key by which connections are counted: an IPv4 address, or the /64 network of an IPv6
 * address. "" for a unix socket: not counted. */
void http_address_print_origin(const union http_address *address, char *target, size_t capacity);
/* Parses "127.0.0.1:7788", "[::1]:7788" or "localhost:7788", which is 127.0.0.1, whatever the
 * resolver says. DET_ERR_MALFORMED with a sentence. */
DET_MUST_CHECK int http_address_read(
    const char *text, union http_address *ret, struct det_error *reterr);
#define HTTP_ADDRESS_RULE \
    "an address is 127.0.0.1:7788, [::1]:7788 or localhost:7788: numbers, and a port"
/* Of IPv4 and IPv6. */
uint16_t http_address_port(const union http_address *address);
/* Returns true if other machines cannot reach it. */
bool http_address_is_loopback(const union http_address *address);
/* Options of the connections of a TCP listener: small answers are sent at once, and a vanished
 * client is noticed within two minutes. Returns 0, or -1 and errno. */
int http_address_tune(int descriptor);
/* Returns a listening descriptor, or -1 and errno. */
int http_address_bind(const union http_address *address);
/* Like http_address_bind(), at a path with this mode. */
int http_address_bind_path(const union http_address *place, unsigned mode);
/* Returns true if the path must not be replaced. Removes a stale socket on which no process
 * listens. */
bool http_address_is_taken(const union http_address *place);

#endif
