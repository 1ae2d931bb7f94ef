/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* streams.c - the named streams of a journal, and the table of them at the start of a segment. */
#include "journal/journal_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

int det_journal_streams_init(struct det_journal *journal)
{
    struct det_journal_stream *main_stream;

    det_map_init(
        &journal->names, journal->allocator, det_world_random_u64(journal->world),
        offsetof(struct det_journal_stream, name));
    return det_journal_streams_add(journal, "main", 4, &main_stream);
}

void det_journal_streams_deinit(struct det_journal *journal)
{
    det_map_deinit(&journal->names);
    for (size_t i = 0; i < journal->stream_count; i++)
        DET_DELETE(journal->allocator, journal->streams[i]);
    if (journal->streams)
        DET_DELETE_ARRAY(journal->allocator, journal->streams, journal->stream_capacity);
}

static int grow_streams(struct det_journal *journal)
{
    size_t capacity = journal->stream_capacity ? 2 * journal->stream_capacity : 8;
    struct det_journal_stream **streams;

    if (journal->stream_count < journal->stream_capacity)
        return 0;
    streams = det_realloc(
        journal->allocator, journal->streams, journal->stream_capacity * sizeof(void *),
        capacity * sizeof(void *));
    if (!streams)
        return DET_ERR_NO_MEMORY;
    journal->streams = streams;
    journal->stream_capacity = capacity;
    return 0;
}

int det_journal_streams_add(
    struct det_journal *journal, const char *name, size_t size, struct det_journal_stream **ret)
{
    struct det_journal_stream *stream;
    int r;

    det_assert(size <= DET_JOURNAL_NAME_MAX);
    if (journal->stream_count == DET_JOURNAL_STREAMS_MAX)
        return DET_ERR_LIMIT;
    r = grow_streams(journal);
    if (r < 0)
        return r;
    stream = DET_NEW(journal->allocator, struct det_journal_stream);
    if (!stream)
        return DET_ERR_NO_MEMORY;
    memcpy(stream->text, name, size);
    stream->name = stream->text;
    stream->number = (uint16_t)journal->stream_count;
    r = det_map_put(&journal->names, stream);
    if (r < 0) {
        DET_DELETE(journal->allocator, stream);
        return r;
    }
    journal->streams[journal->stream_count++] = stream;
    *ret = stream;
    return 0;
}

int det_journal_streams_found(
    void *context, uint16_t number, const char *name, size_t name_size, uint64_t sequence,
    uint64_t position)
{
    struct det_journal *journal = context;
    struct det_journal_stream *stream;
    int r;

    if (number > journal->stream_count)
        return DET_ERR_CORRUPT;
    if (number == journal->stream_count) {
        if (!name)
            return DET_ERR_CORRUPT;
        r = det_journal_streams_add(journal, name, name_size, &stream);
        if (r < 0)
            return r == DET_ERR_EXISTS ? DET_ERR_CORRUPT : r;
    }
    stream = journal->streams[number];
    if (name && (strlen(stream->name) != name_size || memcmp(stream->name, name, name_size) != 0))
        return DET_ERR_CORRUPT;
    if (sequence > stream->sequence) {
        stream->sequence = sequence;
        stream->position = position;
    }
    return 0;
}

size_t det_journal_streams_table_size(const struct det_journal *journal)
{
    size_t size = DET_FRAME_HEAD;

    for (size_t i = 0; i < journal->stream_count; i++)
        size += det_frame_entry_size(strlen(journal->streams[i]->name));
    return size;
}

void det_journal_streams_table(
    const struct det_journal *journal, uint64_t next, det_time at, void *target, size_t size)
{
    struct det_frame frame = {
        .kind = DET_FRAME_TABLE,
        .size = (uint32_t)size,
        .first = next,
        .synced = det_journal_synced(journal),
        .at = at,
        .count = (uint32_t)journal->stream_count,
    };
    char *place = (char *)target + DET_FRAME_HEAD;

    for (size_t i = 0; i < journal->stream_count; i++) {
        const struct det_journal_stream *stream = journal->streams[i];

        place += det_frame_put_entry(
            place, &(struct det_frame_entry){
                       .stream = stream->number,
                       .sequence = stream->sequence,
                       .position = stream->position,
                       .name = stream->name,
                       .name_size = strlen(stream->name),
                   });
    }
    det_assert(place == (char *)target + size);
    det_frame_put_head(target, &frame);
    det_frame_seal(target, size, journal->seed);
}

/* Appends the name of a new stream to the log, so that it precedes the rows of the stream. */
static int append_name(struct det_journal *journal, const char *name)
{
    size_t name_size = strlen(name);
    size_t size = DET_FRAME_HEAD + det_frame_entry_size(name_size);
    uint64_t next = atomic_load(&journal->end) + 1;
    struct det_frame frame = {
        .kind = DET_FRAME_TABLE,
        .size = (uint32_t)size,
        .first = next,
        .synced = det_journal_synced(journal),
        .at = det_world_now(journal->world, DET_CLOCK_WALL),
        .count = 1,
    };
    struct det_frame_entry entry = {
        .stream = (uint16_t)journal->stream_count,
        .name = name,
        .name_size = name_size,
    };
    struct det_journal_stream *stream;
    void *target;
    int r;

    r = det_journal_buffers_reserve(journal, size, true, &target);
    if (r == 0)
        r = det_journal_streams_add(journal, name, name_size, &stream);
    if (r < 0)
        return r;
    (void)det_frame_put_entry((char *)target + DET_FRAME_HEAD, &entry);
    det_frame_put_head(target, &frame);
    det_frame_seal(target, size, journal->seed);
    det_journal_buffers_commit(journal, size, next, next - 1, frame.at);
    det_journal_write_soon(journal);
    return 0;
}

static int make_stream(struct det_journal *journal, const char *name)
{
    struct det_journal_stream *stream;
    int r;

    if (journal->options.is_read_only)
        return DET_ERR_NOT_FOUND;
    r = det_journal_failure_locked(journal, NULL);
    if (r < 0)
        return r;
    if (journal->stream_count == DET_JOURNAL_STREAMS_MAX)
        return DET_ERR_LIMIT;
    if (det_journal_is_immediate(journal))
        return det_journal_streams_add(journal, name, strlen(name), &stream);
    return append_name(journal, name);
}

int det_journal_stream(
    struct det_journal *journal, const char *name, uint16_t *ret, struct det_error *reterr)
{
    const struct det_journal_stream *stream;
    int r = 0;

    if (!det_frame_name_is_valid(name, strnlen(name, DET_JOURNAL_NAME_MAX + 1)))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "'%.100s' is not the name of a stream: 1 to %d of a-z, 0-9, '_', '.', '-'", name,
            DET_JOURNAL_NAME_MAX);
    det_journal_lock(journal);
    stream = det_map_get(&journal->names, name);
    if (!stream) {
        r = make_stream(journal, name);
        stream = det_map_get(&journal->names, name);
    }
    det_journal_unlock(journal);
    if (r < 0)
        return det_error_set(
            reterr, r,
            r == DET_ERR_NOT_FOUND ? "stream '%s': there is no such stream%.0s" : "stream '%s': %s",
            name, det_error_text(r));
    *ret = stream->number;
    return 0;
}

const char *det_journal_stream_name(const struct det_journal *journal, uint16_t stream)
{
    const char *name = NULL;

    det_journal_lock(journal);
    if (stream < journal->stream_count)
        name = journal->streams[stream]->name;
    det_journal_unlock(journal);
    return name;
}

int det_journal_last(
    struct det_journal *journal, uint16_t stream, uint64_t *ret_sequence, uint64_t *ret_position)
{
    int r = DET_ERR_NOT_FOUND;

    det_journal_lock(journal);
    if (stream < journal->stream_count) {
        if (ret_sequence)
            *ret_sequence = journal->streams[stream]->sequence;
        if (ret_position)
            *ret_position = journal->streams[stream]->position;
        r = 0;
    }
    det_journal_unlock(journal);
    return r;
}
