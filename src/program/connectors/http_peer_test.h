/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_peer_test.h - an HTTP server on loopback that answers by a script and keeps what it got. */
#ifndef DET_CONNECTORS_HTTP_PEER_TEST_H
#define DET_CONNECTORS_HTTP_PEER_TEST_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/test.h"

#define HTTP_PEER_REQUESTS 64
#define HTTP_PEER_SIZE     65536

struct http_peer {
    int listener;
    uint16_t port;
    pthread_t thread;
    /* Head of each answer, "503 x\r\nRetry-After: 1", or after a '|' its body; after the last one
     * "200 OK". "": none, and `on_silence` is set. */
    const char *const *script;
    atomic_bool *on_silence;
    atomic_uint count; /* requests */
    char *requests[HTTP_PEER_REQUESTS];
};

/* The size of the body by the head. */
static inline size_t http_peer_body(const char *head)
{
    const char *line = strcasestr(head, "content-length:");

    return line ? strtoul(line + 15, NULL, 10) : 0;
}

/* Reads one request; false: the client has closed. */
static inline bool http_peer_read(int peer, char *text)
{
    size_t size = 0;
    const char *end = NULL;

    while (!end || size < (size_t)(end + 4 - text) + http_peer_body(text)) {
        ssize_t count = recv(peer, text + size, HTTP_PEER_SIZE - 1 - size, 0);

        if (count <= 0)
            return false;
        size += (size_t)count;
        text[size] = 0;
        end = strstr(text, "\r\n\r\n");
    }
    return true;
}

static inline const char *http_peer_next(struct http_peer *server)
{
    unsigned count = atomic_load(&server->count);

    for (unsigned i = 0; server->script && server->script[i]; i++)
        if (i == count)
            return server->script[i];
    return "200 OK";
}

static inline void http_peer_answer(struct http_peer *server, int peer)
{
    char *text = malloc(HTTP_PEER_SIZE);

    while (http_peer_read(peer, text)) {
        const char *next = http_peer_next(server);
        unsigned count = atomic_load(&server->count);
        const char *bar = strchr(next, '|'), *body = bar ? bar + 1 : "all is well";
        char head[2000];

        if (count < HTTP_PEER_REQUESTS) {
            free(server->requests[count]);
            server->requests[count] = strdup(text);
        }
        atomic_fetch_add(&server->count, 1);
        if (!*next) {
            atomic_store(server->on_silence, true);
            (void)recv(peer, text, 1, 0);
            break;
        }
        (void)snprintf(
            head, sizeof head, "HTTP/1.1 %.*s\r\nContent-Length: %zu\r\n\r\n%s",
            (int)strcspn(next, "|"), next, strlen(body), body);
        (void)send(peer, head, strlen(head), MSG_NOSIGNAL);
    }
    free(text);
}

static inline void *http_peer_serve(void *argument)
{
    struct http_peer *server = argument;

    for (;;) {
        int peer = accept(server->listener, NULL, NULL);

        if (peer < 0)
            return NULL;
        http_peer_answer(server, peer);
        close(peer);
    }
}

static inline void http_peer_open(struct http_peer *server, const char *const *script)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;

    *server = (struct http_peer){ .script = script };
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, http_peer_serve, server), 0);
}

/* After all clients have closed their connections. */
static inline void http_peer_close(struct http_peer *server)
{
    (void)shutdown(server->listener, SHUT_RDWR);
    (void)pthread_join(server->thread, NULL);
    close(server->listener);
    for (unsigned i = 0; i < HTTP_PEER_REQUESTS; i++)
        free(server->requests[i]);
}

static inline void http_peer_has(const struct http_peer *server, unsigned index, const char *text)
{
    assert_true(index < atomic_load(&server->count));
    if (!strstr(server->requests[index], text))
        fail_msg("expected '%s' in: %s", text, server->requests[index]);
}

#endif
