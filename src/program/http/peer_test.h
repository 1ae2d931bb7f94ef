/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* peer_test.h - a client that controls every byte of a connection. For suites and fuzz targets, in
 * a simulated or the real world. */
#ifndef DET_HTTP_PEER_TEST_H
#define DET_HTTP_PEER_TEST_H

#include <string.h>

#include "http/http_internal.h"

#define NO_WINDOW ((size_t)1 << 40)

/* The client of a connection. */
struct client {
    struct det_loop *loop;
    struct http_connection *connection; /* not valid once it is closed */
    struct det_buffer sent;             /* by the client */
    size_t sent_at;                     /* the server has read up to here */
    size_t read_max;                    /* in one read; 0: any */
    struct det_buffer got;              /* by the client */
    size_t window;                      /* bytes that it will read */
    unsigned events;                    /* that it is watched for */
    unsigned reads, writes, watches;
    bool has_ended; /* its own side */
    bool is_reset;
    bool is_ended;    /* by the server */
    bool is_closed;   /* by the server */
    bool fails_watch; /* watching it fails */
};

static inline int64_t client_read(void *stream, void *target, size_t size)
{
    struct client *client = stream;
    size_t left = client->sent.size - client->sent_at;

    client->reads++;
    if (client->is_reset)
        return DET_ERR_IO;
    if (left == 0)
        return client->has_ended ? 0 : DET_ERR_BUSY;
    if (size > left)
        size = left;
    if (client->read_max && size > client->read_max)
        size = client->read_max;
    memcpy(target, client->sent.data + client->sent_at, size);
    client->sent_at += size;
    return (int64_t)size;
}

static inline int64_t client_write(void *stream, const struct http_part *parts, size_t count)
{
    struct client *client = stream;
    int64_t total = 0;

    client->writes++;
    if (client->is_reset)
        return DET_ERR_IO;
    for (size_t i = 0; i < count; i++) {
        size_t size = parts[i].size < client->window ? parts[i].size : client->window;

        det_buffer_append(&client->got, parts[i].data, size);
        client->window -= size;
        total += (int64_t)size;
    }
    return total ? total : DET_ERR_BUSY;
}

static inline int client_watch(void *stream, struct http_connection *connection, unsigned events)
{
    struct client *client = stream;

    client->connection = connection;
    client->watches++;
    if (client->fails_watch)
        return DET_ERR_IO;
    client->events = events;
    return 0;
}

static inline void client_end(void *stream)
{
    ((struct client *)stream)->is_ended = true;
}

static inline void client_close(void *stream)
{
    ((struct client *)stream)->is_closed = true;
}

static const struct http_io client_io = {
    .read = client_read,
    .write = client_write,
    .watch = client_watch,
    .end = client_end,
    .close = client_close,
};

static inline int client_init(
    struct client *client, struct http_server *server, struct det_loop *loop)
{
    *client = (struct client){ .loop = loop, .window = NO_WINDOW };
    return http_connection_open(
        server, &client_io, client, &(struct http_origin){ .peer = "client" }, &client->connection);
}

static inline void client_deinit(struct client *client)
{
    if (!client->is_closed)
        http_connection_cut(client->connection);
    det_buffer_deinit(&client->sent);
    det_buffer_deinit(&client->got);
}

/* Runs everything that is ready. */
static inline void client_pump(struct client *client)
{
    bool is_ready = true;

    while (is_ready && !client->is_closed) {
        bool can_read = client->sent.size > client->sent_at || client->has_ended;
        unsigned events = 0;

        if ((client->events & DET_POLL_READ) && (can_read || client->is_reset))
            events |= DET_POLL_READ;
        if ((client->events & DET_POLL_WRITE) && client->window > 0)
            events |= DET_POLL_WRITE;
        if (client->is_reset && client->events)
            events |= DET_POLL_HANGUP;
        is_ready = events != 0;
        if (events)
            http_connection_ready(client->connection, events);
        while (det_loop_turn(client->loop, 0) > 0)
            is_ready = true;
    }
}

#endif
