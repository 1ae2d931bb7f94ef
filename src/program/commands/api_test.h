/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_test.h - a client of the HTTP API that a test can count on: it says why nothing came. */
#ifndef DET_COMMANDS_API_TEST_H
#define DET_COMMANDS_API_TEST_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/api_internal.h"
#include "terminal/folder_test.h"

#define PATIENCE (10 * DET_MINUTE)
#define GONE     0   /* the connection was closed instead of an answer */
#define HANGS    999 /* neither */
#define ANSWER   65536

struct client {
    struct fixture *fixture;
    struct det_test_memory *memory;
    pthread_t thread;
    atomic_bool is_over;      /* `up` has ended */
    int socket;               /* -1: there is no connection */
    unsigned attempt, status; /* the last one */
    size_t points, gone;
    char link[128], token[128]; /* of a session; "": none */
    char answer[ANSWER];
    char fault[512]; /* "": none */
};

/* Asking. */

static inline int dial_file(const struct client *client)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(
        address.sun_path, sizeof address.sun_path, "%s/.detent/detent.sock",
        client->fixture->folder);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

/* A token counts only where it is needed. */
static inline int dial_port(const struct client *client)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((uint16_t)strtoul(client->link + strlen("http://127.0.0.1:"), NULL, 10)),
    };
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

static inline bool dial(struct client *client)
{
    const struct timeval patience = { .tv_sec = PATIENCE / DET_SECOND };

    client->socket = *client->token ? dial_port(client) : dial_file(client);
    if (client->socket < 0)
        return false;
    (void)setsockopt(client->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return true;
}

static inline void hang_up(struct client *client)
{
    if (client->socket >= 0)
        close(client->socket);
    client->socket = -1;
}

/* Puts the number of the attempt in the place of each @. */
static inline const char *numbered(
    const struct client *client, const char *text, char *target, size_t size)
{
    size_t used = 0;

    for (; text && *text && used + 12 < size; text++) {
        if (*text == '@')
            used += (size_t)snprintf(target + used, size - used, "%u", client->attempt);
        else
            target[used++] = *text;
    }
    target[used] = '\0';
    return target;
}

static inline bool is_complete(const char *answer, size_t size)
{
    const char *end = strstr(answer, "\r\n\r\n");
    const char *length = strcasestr(answer, "\r\ncontent-length: ");

    if (!end)
        return false;
    if (!length || length > end)
        return strncmp(answer, "HTTP/1.1 204", 12) == 0;
    return size >= (size_t)(end + 4 - answer) + strtoul(length + 18, NULL, 10);
}

/* Why nothing came. */
static inline unsigned silence(ssize_t got)
{
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? HANGS : GONE;
}

/* The status of the answer, GONE or HANGS. */
static inline unsigned receive(struct client *client)
{
    size_t size = 0;

    client->answer[0] = '\0';
    while (!is_complete(client->answer, size)) {
        /* Only the end of a long text is kept. */
        size_t kept = size < ANSWER - 4096 ? size : ANSWER - 4096;
        ssize_t got = recv(client->socket, client->answer + kept, ANSWER - 1 - kept, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return silence(got);
        client->answer[kept + (size_t)got] = '\0';
        size += (size_t)got;
    }
    return (unsigned)strtoul(client->answer + strlen("HTTP/1.1 "), NULL, 10);
}

static inline unsigned ask(
    struct client *client, const char *method, const char *path, const char *body)
{
    char request[1024], target[256], content[512], bearer[160] = "";
    unsigned status;
    int size;

    numbered(client, path, target, sizeof target);
    numbered(client, body, content, sizeof content);
    if (*client->token)
        snprintf(bearer, sizeof bearer, "Authorization: Bearer %s\r\n", client->token);
    size = snprintf(
        request, sizeof request,
        "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s"
        "Content-Length: %zu\r\n\r\n%s",
        method, target, bearer, strlen(content), content);
    if (client->socket < 0 && !dial(client))
        return GONE;
    (void)send(client->socket, request, (size_t)size, MSG_NOSIGNAL);
    client->status = status = receive(client);
    if (status == GONE || strcasestr(client->answer, "connection: close"))
        hang_up(client);
    return status;
}

#endif
