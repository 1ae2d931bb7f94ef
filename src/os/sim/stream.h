/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream.h - output of a simulated program until it is read: bytes in a pipe, or messages.
 *
 * A pipe has the capacity of one of Linux, and a writer to a full pipe waits. Each message is
 * preceded by its length. */
#ifndef DET_OS_SIM_STREAM_H
#define DET_OS_SIM_STREAM_H

#include "base/buffer.h"
#include "base/list.h"
#include "os/sim/simulation.h"

struct det_sim_stream {
    struct det_buffer bytes;
    size_t taken;            /* bytes already read; removed once they are the larger part */
    struct det_list writers; /* writers that wait for room */
    bool is_open;            /* a reader exists */
};

static inline size_t det_sim_stream_size(const struct det_sim_stream *stream)
{
    return stream->bytes.size - stream->taken;
}

void det_sim_stream_init(
    struct det_sim_stream *stream, const struct det_allocator *allocator, bool is_open);
void det_sim_stream_deinit(struct det_sim_stream *stream);
/* Writes bytes, some of them after others were read. DET_ERR_NO_MEMORY; what was written stays. */
DET_MUST_CHECK int det_sim_stream_write(
    struct det_sim *sim, struct det_sim_stream *stream, const char *data, size_t size);
DET_MUST_CHECK int det_sim_stream_send(
    struct det_sim *sim, struct det_sim_stream *stream, const char *message, size_t size);
/* Returns how many bytes were read; 0 if there are none. */
size_t det_sim_stream_read(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size);
/* Reads the next message; drops one that is longer than `size` or empty. */
size_t det_sim_stream_receive(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size);

#endif
