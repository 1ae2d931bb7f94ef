/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* byte_stream.h - what a connection needs of a stream of bytes. There are three kinds: a socket,
 * TLS over any other, and that of the tests, whose other side is simulated in virtual time. */
#ifndef DET_HTTP_BYTE_STREAM_H
#define DET_HTTP_BYTE_STREAM_H

#include <detent/driver/world.h>
#include <detent/loop.h>

struct http_connection;

struct http_part {
    const void *data;
    size_t size;
};

/* None of these waits. An error other than DET_ERR_BUSY is for good. */
struct http_io {
    /* How many bytes were read; 0: the other side has ended; DET_ERR_BUSY: nothing is there. */
    int64_t (*read)(void *stream, void *target, size_t size);
    /* How many bytes were taken of one or two parts; DET_ERR_BUSY: none. */
    int64_t (*write)(void *stream, const struct http_part *parts, size_t count);
    /* Asks for http_connection_ready() at these enum det_poll_events; 0: at none. */
    int (*watch)(void *stream, struct http_connection *connection, unsigned events);
    /* What it must be watched for before it can read or write anything else; 0, or NULL: nothing.
     * If it were watched for reading then, what it cannot read yet would be told again and again.
     */
    unsigned (*wants)(void *stream);
    /* Whether there is something to read that nobody will tell of. NULL: never. */
    bool (*has_more)(void *stream);
    /* Whether a handshake goes on, which has the time that headers have. NULL: there is none. */
    bool (*is_opening)(void *stream);
    /* The subject of the certificate that the other side has shown. NULL: there is none. */
    const char *(*subject)(void *stream);
    /* Nothing more will be written. */
    void (*end)(void *stream);
    void (*close)(void *stream);
};

/* A socket that does not block; `descriptor` is closed with it, but not when this fails. */
extern const struct http_io http_socket_io;
int http_socket_open(
    const struct det_allocator *allocator, struct det_loop *loop, int descriptor,
    void **ret) DET_MUST_CHECK;
/* Without closing the descriptor. */
void http_socket_forget(void *stream);

#endif
