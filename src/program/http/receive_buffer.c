/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* receive_buffer.c - the input of a connection: a block that the server lends while part of a
 * request is present.
 *
 *     block->data | requests that are over | parse.data, parse.size | room | a byte for a NUL | */
#include <string.h>

#include "base/assert.h"
#include "http/http_internal.h"

void http_input_release(struct http_connection *connection)
{
    if (!connection->block)
        return;
    http_block_give(connection->server, connection->block);
    connection->block = NULL;
    connection->parse.data = NULL;
    connection->parse.size = 0;
}

static int take_block(struct http_connection *connection)
{
    struct http_parse *parse = &connection->parse;
    struct http_block *block = http_block_take(connection->server);

    if (!block)
        return DET_ERR_NO_MEMORY;
    connection->block = block;
    parse->headers = block->headers;
    parse->places = block->places;
    parse->data = block->data;
    parse->size = 0;
    http_parse_begin(parse);
    return 0;
}

size_t http_input_room(const struct http_connection *connection)
{
    const struct http_block *block = connection->block;
    const struct http_parse *parse = &connection->parse;

    return (size_t)(block->data + block->capacity - (parse->data + parse->size)) - 1;
}

/* Moves the rest of the input to the front; if it is there already, doubles the room. */
static int make_room(struct http_connection *connection)
{
    struct http_block *block = connection->block;
    struct http_parse *parse = &connection->parse;
    int r = 0;

    if (parse->data != block->data)
        memmove(block->data, parse->data, parse->size);
    else
        r = http_block_grow(connection->server, block);
    parse->data = block->data;
    return r;
}

int http_input_prepare(struct http_connection *connection, bool may_move)
{
    if (!connection->block)
        return take_block(connection);
    return may_move && http_input_room(connection) == 0 ? make_room(connection) : 0;
}

/* Interprets a read without bytes. */
static void note_end(struct http_connection *connection, int64_t size)
{
    if (size == 0)
        connection->is_ended = true;
    else if (size != DET_ERR_BUSY)
        connection->is_broken = true;
}

bool http_input_hides(const struct http_connection *connection)
{
    return connection->io->has_more && connection->io->has_more(connection->stream);
}

bool http_input_fill(struct http_connection *connection)
{
    struct http_parse *parse = &connection->parse;
    uint64_t before = connection->moved;
    int64_t size;

    do {
        size_t room = http_input_room(connection);

        if (room == 0)
            break;
        size = connection->io->read(connection->stream, parse->data + parse->size, room);
        if (size <= 0) {
            note_end(connection, size);
            break;
        }
        http_parse_add(parse, (size_t)size);
        connection->moved += (uint64_t)size;
    } while (http_input_hides(connection));
    return connection->moved > before;
}

void http_input_discard(struct http_connection *connection)
{
    char bytes[HTTP_BLOCK_SIZE];
    int64_t size = connection->io->read(connection->stream, bytes, sizeof bytes);

    if (size > 0)
        connection->moved += (uint64_t)size;
    else
        note_end(connection, size);
}
