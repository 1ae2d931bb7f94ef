/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bank.c - asks the payment service over HTTP, one connection for each request. The answer is the
 * status: 200 is yes, 402 is no, everything else is no answer. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "shop.h"

#define STATUS_LINE "HTTP/1.0 "

/* A descriptor, or an error. No call on it waits longer than two seconds. */
static int bank_connect(uint16_t port)
{
    const struct timeval patience = { .tv_sec = 2 };
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connection < 0)
        return DET_ERR_IO;
    if (setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(connection, (const struct sockaddr *)&address, sizeof address) < 0) {
        close(connection);
        return DET_ERR_IO;
    }
    return connection;
}

static int bank_ask(int connection, const char *key, uint64_t cents)
{
    char request[256];
    int size = snprintf(
        request, sizeof request,
        "POST /charges/%" PRIu64 " HTTP/1.0\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n",
        cents, key);

    if (size < 0 || (size_t)size >= sizeof request)
        return DET_ERR_LIMIT;
    return send(connection, request, (size_t)size, MSG_NOSIGNAL) == size ? 0 : DET_ERR_IO;
}

/* The first bytes are enough; they may come in pieces. */
static int bank_receive(int connection)
{
    char status[sizeof STATUS_LINE + 3] = "";
    size_t size = 0;

    while (size < sizeof status - 1) {
        ssize_t received = recv(connection, status + size, sizeof status - 1 - size, 0);

        if (received <= 0)
            return DET_ERR_IO;
        size += (size_t)received;
    }
    if (strcmp(status, STATUS_LINE "200") == 0)
        return BANK_YES;
    return strcmp(status, STATUS_LINE "402") == 0 ? BANK_NO : DET_ERR_IO;
}

int bank_charge(const struct shop *shop, const char *key, uint64_t cents)
{
    int connection = bank_connect(shop->bank_port);
    int r;

    if (connection < 0)
        return connection;
    r = bank_ask(connection, key, cents);
    if (r == 0)
        r = bank_receive(connection);
    close(connection);
    return r;
}
