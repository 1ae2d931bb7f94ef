/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_write.c - writes small parts, each when there is room for it, so that a cancel is seen
 * while the reader does not read. */
#include "connectors/descriptor_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/assert.h"

static int wait_room(struct det_stage_call *call, int descriptor)
{
    struct pollfd entry = { .fd = descriptor, .events = POLLOUT };

    for (;;) {
        int count = poll(&entry, 1, DESCRIPTOR_LOOK_MS);

        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return DET_ERR_IO;
        if (det_stage_is_cancelled(call))
            return DET_ERR_CANCELLED;
    }
}

int descriptor_write(struct det_stage_call *call, int descriptor, const void *data, size_t size)
{
    const char *at = data;

    det_assert(descriptor >= 0);
    while (size > 0) {
        /* A pipe with room takes this much without blocking. */
        size_t part = size < PIPE_BUF ? size : PIPE_BUF;
        ssize_t count;
        int r;

        r = wait_room(call, descriptor);
        if (r < 0)
            return r;
        count = write(descriptor, at, part);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return errno == EPIPE ? DET_ERR_CLOSED : DET_ERR_IO;
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        }
    }
    return 0;
}
