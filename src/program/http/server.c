/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server.c - shared by all connections: one timer, the sweep of their deadlines, buffers lent to
 * them, the date. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "http/http_internal.h"
#include "http/tls_stream.h"

#define SWEEP_TIME DET_SECOND
#define BLOCKS_MAX 64 /* that are kept free */

det_time http_server_now(const struct http_server *server)
{
    return det_loop_now(server->options.loop);
}

/* The date changes when the wall clock's second does; the time of the loop costs no system call. */
const char *http_server_date(struct http_server *server)
{
    det_time now = http_server_now(server), wall;
    struct tm parts;
    time_t seconds;

    if (now < server->date_until)
        return server->date;
    wall = det_world_now(server->world, DET_CLOCK_WALL);
    seconds = (time_t)(wall / DET_SECOND);
    server->date_until = now + DET_SECOND - wall % DET_SECOND;
    if (!gmtime_r(&seconds, &parts) ||
        strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &parts) == 0)
        server->date[0] = '\0';
    return server->date;
}

static void arm_timer(struct http_server *server, det_time at)
{
    int r = det_loop_timer_set(server->options.loop, &server->timer, at);

    /* It is armed already, or was a moment ago and nothing else was armed since. */
    det_assert(r == 0);
    server->timer_at = at;
}

void http_server_wake(struct http_server *server, det_time at)
{
    if (at < server->timer_at)
        arm_timer(server, at);
}

/* Late connections are attended to like all others: handling one may close another. */
static void sweep_deadlines(struct http_server *server, det_time now)
{
    DET_LIST_EACH(node, &server->connections)
    {
        struct http_connection *connection = DET_CONTAINER(node, struct http_connection, node);

        if (http_connection_is_late(connection, now))
            http_connection_wake(connection);
    }
    server->sweep_at = now + SWEEP_TIME;
}

/* Attends to connections in `todo` now; those added meanwhile wait for the next turn. */
static void attend_connections(struct http_server *server)
{
    struct det_list now, *node;

    if (det_list_is_empty(&server->todo))
        return;
    det_list_insert_before(&server->todo, &now);
    det_list_remove(&server->todo);
    while ((node = det_list_take(&now)))
        http_connection_attend(DET_CONTAINER(node, struct http_connection, todo));
}

static void on_timer(void *argument)
{
    struct http_server *server = argument;
    det_time now = http_server_now(server);

    arm_timer(server, DET_NEVER);
    if (server->rest_until && now >= server->rest_until)
        http_listeners_resume(server);
    if (now >= server->sweep_at)
        sweep_deadlines(server, now);
    attend_connections(server);
    if (server->connection_count > 0)
        http_server_wake(server, server->sweep_at);
    if (server->rest_until)
        http_server_wake(server, server->rest_until);
}

static size_t block_size(const struct http_server *server)
{
    return sizeof(struct http_block) + server->limits.header_count_max *
                                           (sizeof(struct http_header) + sizeof(struct http_place));
}

static void free_block(struct http_server *server, struct http_block *block)
{
    server->memory -= block->capacity - HTTP_BLOCK_SIZE;
    det_free(server->options.allocator, block->data, block->capacity);
    det_free(server->options.allocator, block, block_size(server));
}

struct http_block *http_block_take(struct http_server *server)
{
    const struct det_allocator *allocator = server->options.allocator;
    struct http_block *block = server->blocks;

    if (block) {
        server->blocks = block->next;
        server->block_count--;
        return block;
    }
    block = det_alloc(allocator, block_size(server));
    if (!block)
        return NULL;
    block->capacity = HTTP_BLOCK_SIZE;
    block->places = (struct http_place *)(void *)&block->headers[server->limits.header_count_max];
    block->data = det_alloc(allocator, block->capacity);
    if (block->data)
        return block;
    det_free(allocator, block, block_size(server));
    return NULL;
}

void http_block_give(struct http_server *server, struct http_block *block)
{
    if (block->capacity > HTTP_BLOCK_SIZE || server->block_count == BLOCKS_MAX) {
        free_block(server, block);
        return;
    }
    block->next = server->blocks;
    server->blocks = block;
    server->block_count++;
}

/* The limits of the input end the doubling. */
int http_block_grow(struct http_server *server, struct http_block *block)
{
    char *data;

    if (server->memory + block->capacity > server->limits.memory_max)
        return DET_ERR_LIMIT;
    data =
        det_realloc(server->options.allocator, block->data, block->capacity, block->capacity * 2);
    if (!data)
        return DET_ERR_NO_MEMORY;
    block->data = data;
    server->memory += block->capacity;
    block->capacity *= 2;
    return 0;
}

static int prepare_server(struct http_server *server, struct det_error *reterr)
{
    int r;

    r = det_loop_timer_set(server->options.loop, &server->timer, DET_NEVER);
    if (r < 0)
        return det_error_set(reterr, r, "%s", det_error_text(r));
    server->timer_at = DET_NEVER;
    if (!server->options.tls)
        return 0;
    return http_tls_open(server->options.allocator, server->options.tls, &server->tls, reterr);
}

int http_server_open(
    const struct http_options *options, struct http_server **ret, struct det_error *reterr)
{
    struct http_server *server = DET_NEW(options->allocator, struct http_server);
    int r;

    det_assert(options->loop && options->handle);
    if (!server)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    server->options = *options;
    server->limits = options->limits;
    http_limits_settle(&server->limits);
    server->world = det_loop_world(options->loop);
    server->timer = (struct det_timer){ .run = on_timer, .argument = server };
    server->reserve = -1;
    det_list_init(&server->connections);
    det_list_init(&server->strangers);
    det_list_init(&server->todo);
    det_buffer_init(&server->spare, options->allocator);
    det_map_init(
        &server->peers, options->allocator, det_world_random_u64(server->world),
        offsetof(struct http_peer, key));
    r = prepare_server(server, reterr);
    if (r < 0) {
        http_server_close(server);
        return r;
    }
    *ret = server;
    return 0;
}

void http_server_close(struct http_server *server)
{
    struct http_block *block;

    if (!server)
        return;
    http_listeners_close(server);
    while (!det_list_is_empty(&server->connections))
        http_connection_cut(DET_CONTAINER(server->connections.next, struct http_connection, node));
    det_loop_timer_cancel(server->options.loop, &server->timer);
    while ((block = server->blocks)) {
        server->blocks = block->next;
        free_block(server, block);
    }
    det_assert(server->memory == 0);
    det_buffer_deinit(&server->spare);
    det_map_deinit(&server->peers);
    http_tls_close(server->tls);
    DET_DELETE(server->options.allocator, server);
}

void http_server_drain(struct http_server *server)
{
    server->is_draining = true;
    http_listeners_close(server);
    DET_LIST_EACH(node, &server->connections)
    http_connection_wake(DET_CONTAINER(node, struct http_connection, node));
}

size_t http_server_connections(const struct http_server *server)
{
    return server->connection_count;
}

int http_server_renew(
    struct http_server *server, const struct http_tls *tls, struct det_error *reterr)
{
    struct http_tls_context *context;
    int r;

    if (!server->tls)
        return det_error_set(reterr, DET_ERR_INVALID, "the server was opened without TLS");
    r = http_tls_open(server->options.allocator, tls, &context, reterr);
    if (r < 0)
        return r;
    http_tls_close(server->tls);
    server->tls = context;
    return 0;
}
