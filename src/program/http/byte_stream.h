/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* byte_stream.h - the byte stream below a connection: a socket, TLS over another stream, or a
 * simulated peer of tests in virtual time. */
#ifndef DET_HTTP_BYTE_STREAM_H
#define DET_HTTP_BYTE_STREAM_H

#include <detent/driver/world.h>
#include <detent/loop.h>

struct http_connection;

struct http_part {
    const void *data;
    size_t size;
};

/* None of these blocks. An error other than DET_ERR_BUSY is permanent. */
struct http_io {
    /* Returns how many bytes were read; 0 at the end of the stream; DET_ERR_BUSY if nothing is
     * available. */
    int64_t (*read)(void *stream, void *target, size_t size);
    /* Returns how many bytes of one or two parts were written; DET_ERR_BUSY if none. */
    int64_t (*write)(void *stream, const struct http_part *parts, size_t count);
    /* Requests http_connection_ready() for these enum det_poll_events; 0: for none. */
    int (*watch)(void *stream, struct http_connection *connection, unsigned events);
    /* Returns the events required before it can read or write again; 0, or NULL: none. Watching for
     * reads meanwhile would report unreadable input over and over. */
    unsigned (*wants)(void *stream);
    /* Returns true if buffered input exists that no event reports. NULL: never. */
    bool (*has_more)(void *stream);
    /* Returns true during a handshake, which has the time limit of headers. NULL: no handshake. */
    bool (*is_opening)(void *stream);
    /* Returns the subject of the peer's certificate. NULL: none. */
    const char *(*subject)(void *stream);
    /* Ends the writing side. */
    void (*end)(void *stream);
    void (*close)(void *stream);
};

/* A non-blocking socket; closes `descriptor` with it, but not if this fails. */
extern const struct http_io http_socket_io;
int http_socket_open(
    const struct det_allocator *allocator, struct det_loop *loop, int descriptor,
    void **ret) DET_MUST_CHECK;
/* Frees the stream without closing the descriptor. */
void http_socket_forget(void *stream);

#endif
