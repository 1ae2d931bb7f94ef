/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* delivered.c - the position of the last delivered row of each stage that a sink reads. */
#include "connectors/delivered.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

static void extend(struct delivered *delivered, unsigned stream)
{
    if (delivered->end <= stream)
        delivered->end = (uint16_t)(stream + 1);
}

bool delivered_load(struct delivered *delivered, int64_t stream, int64_t position)
{
    if (stream < 0 || stream >= DET_JOURNAL_STREAMS_MAX || position < 0)
        return false;
    delivered->done[stream] = delivered->pending[stream] = (uint64_t)position;
    extend(delivered, (unsigned)stream);
    return true;
}

bool delivered_has(const struct delivered *delivered, const struct det_row_info *row)
{
    det_assert(row->stream < DET_JOURNAL_STREAMS_MAX);
    return row->position <= delivered->pending[row->stream];
}

void delivered_add(struct delivered *delivered, const struct det_row_info *row)
{
    det_assert(row->position > delivered->pending[row->stream]);
    delivered->pending[row->stream] = row->position;
    extend(delivered, row->stream);
}

int delivered_next(const struct delivered *delivered, int stream)
{
    for (; stream < delivered->end; stream++)
        if (delivered->pending[stream] > delivered->done[stream])
            return stream;
    return -1;
}

void delivered_commit(struct delivered *delivered)
{
    memcpy(delivered->done, delivered->pending, delivered->end * sizeof *delivered->done);
}

void delivered_roll_back(struct delivered *delivered)
{
    memcpy(delivered->pending, delivered->done, delivered->end * sizeof *delivered->done);
}

void delivered_write(const struct delivered *delivered, struct det_buffer *buffer)
{
    const char *between = "";

    for (unsigned stream = 0; stream < delivered->end; stream++) {
        if (!delivered->pending[stream])
            continue;
        det_buffer_format(
            buffer, "%s%u:%llu", between, stream, (unsigned long long)delivered->pending[stream]);
        between = ",";
    }
}

bool delivered_read(struct delivered *delivered, const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        const char *colon = memchr(text, ':', (size_t)(stop - text));
        uint64_t stream, position;

        if (!colon || det_parse_u64(det_view_of(text, (size_t)(colon - text)), &stream) < 0 ||
            det_parse_u64(det_view_of(colon + 1, (size_t)(stop - colon) - 1), &position) < 0 ||
            stream >= DET_JOURNAL_STREAMS_MAX || position > INT64_MAX ||
            !delivered_load(delivered, (int64_t)stream, (int64_t)position))
            return false;
        text = comma ? comma + 1 : end;
    }
    return true;
}
