/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream.h - what a simulated program says, until it is read: bytes in a pipe, or messages.
 *
 * A pipe holds as much as that of Linux does, and who writes to a full one waits. Messages are kept
 * apart by their length before them. */
#ifndef DET_OS_SIM_STREAM_H
#define DET_OS_SIM_STREAM_H

#include "base/buffer.h"
#include "base/list.h"
#include "os/sim/simulation.h"

struct det_sim_stream {
    struct det_buffer bytes;
    size_t taken;            /* of these; moved out of the way once they are the larger part */
    struct det_list writers; /* who waits for room */
    bool is_open;            /* somebody will read it */
};

static inline size_t det_sim_stream_size(const struct det_sim_stream *stream)
{
    return stream->bytes.size - stream->taken;
}

void det_sim_stream_init(
    struct det_sim_stream *stream, const struct det_allocator *allocator, bool is_open);
void det_sim_stream_deinit(struct det_sim_stream *stream);
/* Bytes, some now and some after others were read. DET_ERR_NO_MEMORY; what was written stays. */
DET_MUST_CHECK int det_sim_stream_write(
    struct det_sim *sim, struct det_sim_stream *stream, const char *data, size_t size);
DET_MUST_CHECK int det_sim_stream_send(
    struct det_sim *sim, struct det_sim_stream *stream, const char *message, size_t size);
/* How many bytes; 0: there are none. */
size_t det_sim_stream_read(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size);
/* The next message; one that is longer than `size` is thrown away, as is one of no bytes. */
size_t det_sim_stream_receive(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size);

#endif
