/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* index.c - a sparse index of a segment: in memory while the segment is written, then at its end.
 * When it is full, each second entry is dropped and the entries become twice as far apart. */
#include <string.h>

#include "base/hash.h"
#include "journal/file/file_log.h"

static bool grow_index(struct det_journal_index *index, const struct det_allocator *allocator)
{
    size_t capacity = index->capacity ? 2 * index->capacity : 16;
    struct det_journal_index_entry *entries;

    entries = det_realloc(
        allocator, index->entries, index->capacity * sizeof *entries, capacity * sizeof *entries);
    if (!entries)
        return false;
    index->entries = entries;
    index->capacity = capacity;
    return true;
}

static void thin_out(struct det_journal_index *index)
{
    index->count /= 2;
    for (size_t i = 0; i < index->count; i++)
        index->entries[i] = index->entries[2 * i];
    index->span *= 2;
}

void det_journal_index_add(
    struct det_journal_index *index, const struct det_allocator *allocator, uint64_t position,
    uint64_t offset)
{
    if (index->span == 0)
        index->span = DET_INDEX_SPAN;
    if (index->count > 0 && offset - index->entries[index->count - 1].offset < index->span)
        return;
    if (index->count == DET_INDEX_ENTRIES)
        thin_out(index);
    if (index->count == index->capacity && !grow_index(index, allocator))
        return;
    index->entries[index->count++] = (struct det_journal_index_entry){ position, offset };
}

uint64_t det_journal_index_next(const struct det_journal_index *index)
{
    return index->count > 0 ? index->entries[index->count - 1].offset + index->span : 0;
}

void det_journal_index_deinit(
    struct det_journal_index *index, const struct det_allocator *allocator)
{
    if (index->entries)
        DET_DELETE_ARRAY(allocator, index->entries, index->capacity);
    *index = (struct det_journal_index){ 0 };
}

struct det_journal_index_entry det_journal_index_find(
    const struct det_journal_index_entry *entries, size_t count, uint64_t position, uint64_t base)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (entries[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return (struct det_journal_index_entry){ base, DET_SEGMENT_HEAD };
    return entries[low - 1];
}

/* Reads the frame of the index that the trailer names; its size, or 0 if something is not valid. */
static size_t load_index(const struct det_file_log *log, struct det_file *file, char **ret)
{
    char trailer[DET_SEGMENT_TRAILER];
    int64_t file_size = det_file_size(log->world, file);
    uint64_t offset, size;
    char *data;

    if (file_size < (int64_t)(DET_SEGMENT_HEAD + DET_SEGMENT_TRAILER) ||
        det_file_read(
            log->world, file, (uint64_t)file_size - sizeof trailer, trailer, sizeof trailer) !=
            (int64_t)sizeof trailer ||
        memcmp(trailer, "detindex", 8) != 0 ||
        det_get32(trailer + 28) != det_crc32c(log->seed, trailer, 28))
        return 0;
    offset = det_get64(trailer + 8);
    if (offset < DET_SEGMENT_HEAD || offset > (uint64_t)file_size - DET_SEGMENT_TRAILER)
        return 0;
    size = (uint64_t)file_size - DET_SEGMENT_TRAILER - offset;
    if (size < DET_FRAME_HEAD || size > DET_FRAME_HEAD + 16u * DET_INDEX_ENTRIES)
        return 0;
    data = det_alloc(log->allocator, (size_t)size);
    if (!data)
        return 0;
    if (det_file_read(log->world, file, offset, data, (size_t)size) != (int64_t)size) {
        det_free(log->allocator, data, (size_t)size);
        return 0;
    }
    *ret = data;
    return (size_t)size;
}

/* An index before the base is that of an older segment in the same file. */
static bool index_is_valid(
    const struct det_file_log *log, const char *data, size_t size, uint64_t base)
{
    struct det_frame frame;

    return det_frame_get_head(data, size, &frame) && frame.kind == DET_FRAME_INDEX &&
           frame.first > base && frame.size == size &&
           frame.count == (size - DET_FRAME_HEAD) / 16 &&
           det_frame_head_is_valid(data, log->seed) &&
           det_frame_body_is_valid(data, size, log->seed);
}

struct det_journal_index_entry det_journal_index_find_sealed(
    const struct det_file_log *log, struct det_file *file, const struct det_segment *segment,
    uint64_t position)
{
    struct det_journal_index_entry found = { segment->base, DET_SEGMENT_HEAD };
    char *data = NULL;
    size_t size;

    size = load_index(log, file, &data);
    if (size == 0)
        return found;
    if (index_is_valid(log, data, size, segment->base)) {
        for (size_t at = DET_FRAME_HEAD; at < size; at += 16) {
            struct det_journal_index_entry entry = { det_get64(data + at),
                                                     det_get64(data + at + 8) };

            if (entry.position > position)
                break;
            found = entry;
        }
    }
    det_free(log->allocator, data, size);
    return found;
}
