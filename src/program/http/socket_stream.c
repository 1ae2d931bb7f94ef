/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_stream.c - a stream over a socket, watched by a loop. It is not part of the seam because
 * the library has no network; time still comes from the loop. */
#include <detent/driver/loop.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "http/byte_stream.h"
#include "http/http_internal.h"

struct socket_stream {
    const struct det_allocator *allocator;
    struct det_loop *loop;
    struct det_watch watch; /* its argument is the connection */
};

static int64_t result_of(ssize_t size)
{
    if (size >= 0)
        return size;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DET_ERR_BUSY : DET_ERR_IO;
}

static int64_t socket_read(void *stream, void *target, size_t size)
{
    const struct socket_stream *self = stream;

    return result_of(recv(self->watch.descriptor, target, size, 0));
}

static int64_t socket_write(void *stream, const struct http_part *parts, size_t count)
{
    const struct socket_stream *self = stream;
    struct iovec vectors[2];
    struct msghdr message = { .msg_iov = vectors, .msg_iovlen = count };

    det_assert(count >= 1 && count <= 2);
    if (count == 1)
        return result_of(send(self->watch.descriptor, parts->data, parts->size, MSG_NOSIGNAL));
    for (size_t i = 0; i < count; i++)
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): a cast of the pointer would drop its const */
        vectors[i] = (struct iovec){ (void *)(uintptr_t)parts[i].data, parts[i].size };
    return result_of(sendmsg(self->watch.descriptor, &message, MSG_NOSIGNAL));
}

static void on_ready(void *argument, unsigned events)
{
    http_connection_ready(argument, events);
}

static int socket_watch(void *stream, struct http_connection *connection, unsigned events)
{
    struct socket_stream *self = stream;

    self->watch.argument = connection;
    if (events)
        return det_loop_watch(self->loop, &self->watch, events);
    det_loop_unwatch(self->loop, &self->watch);
    return 0;
}

static void socket_end(void *stream)
{
    const struct socket_stream *self = stream;

    (void)shutdown(self->watch.descriptor, SHUT_WR);
}

void http_socket_forget(void *stream)
{
    struct socket_stream *self = stream;

    det_loop_unwatch(self->loop, &self->watch);
    DET_DELETE(self->allocator, self);
}

static void socket_close(void *stream)
{
    int descriptor = ((struct socket_stream *)stream)->watch.descriptor;

    http_socket_forget(stream);
    close(descriptor);
}

const struct http_io http_socket_io = {
    .read = socket_read,
    .write = socket_write,
    .watch = socket_watch,
    .end = socket_end,
    .close = socket_close,
};

int http_socket_open(
    const struct det_allocator *allocator, struct det_loop *loop, int descriptor, void **ret)
{
    struct socket_stream *self = DET_NEW(allocator, struct socket_stream);

    if (!self)
        return DET_ERR_NO_MEMORY;
    self->allocator = allocator;
    self->loop = loop;
    self->watch = (struct det_watch){ .run = on_ready, .descriptor = descriptor };
    *ret = self;
    return 0;
}
