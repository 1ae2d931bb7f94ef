/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mark.c - the file "mark": the last acknowledged position, in two slots that are written in turn.
 * An update survives the end of the process; after a power failure the mark may be older than the
 * rows, but with durability DISK never newer. */
#include <string.h>

#include "base/hash.h"
#include "journal/file/file_log.h"

#define MAGIC "detmrk01"

enum {
    AT_GENERATION = 8,
    AT_IDENTITY = 16,
    AT_ACKNOWLEDGED = 32,
    AT_SYNCED = 40,
    AT_SEGMENT = 48,
    AT_OFFSET = 56,
    AT_DURABILITY = 64,
    AT_TIME = 72,
    AT_STARTED = 80,
    AT_SUM = 88,
    SLOT_USED = 92,
};

static void decode_slot(const struct det_file_log *log, const char *slot, struct det_log_mark *mark)
{
    uint64_t generation = det_get64(slot + AT_GENERATION);
    uint32_t durability = det_get32(slot + AT_DURABILITY);

    if (memcmp(slot, MAGIC, 8) != 0 ||
        memcmp(slot + AT_IDENTITY, log->head.identity, DET_IDENTITY_SIZE) != 0 ||
        det_get32(slot + AT_SUM) != det_crc32c(log->seed, slot, AT_SUM) ||
        generation <= mark->generation || durability > DET_JOURNAL_MEMORY)
        return;
    *mark = (struct det_log_mark){
        .generation = generation,
        .acknowledged = det_get64(slot + AT_ACKNOWLEDGED),
        .synced = det_get64(slot + AT_SYNCED),
        .segment = det_get64(slot + AT_SEGMENT),
        .offset = det_get64(slot + AT_OFFSET),
        .durability = (enum det_journal_durability)durability,
        .at = (det_time)det_get64(slot + AT_TIME),
        .started = (det_time)det_get64(slot + AT_STARTED),
    };
}

int det_log_mark_load(struct det_file_log *log, struct det_file *file)
{
    char slots[2 * DET_LOG_MARK_SLOT] = { 0 };
    int64_t size;

    log->mark = (struct det_log_mark){ 0 };
    size = det_file_read(log->world, file, 0, slots, sizeof slots);
    if (size < 0)
        return (int)size;
    decode_slot(log, slots, &log->mark);
    decode_slot(log, slots + DET_LOG_MARK_SLOT, &log->mark);
    return 0;
}

int det_log_mark_store(struct det_file_log *log)
{
    struct det_log_mark *mark = &log->mark;
    char slot[DET_LOG_MARK_SLOT] = { 0 };

    mark->generation++;
    mark->acknowledged = log->position;
    if (det_log_is_durable(log))
        mark->synced = log->position;
    mark->segment = log->last;
    mark->offset = log->offset;
    mark->durability = log->options.durability;
    mark->at = det_world_now(log->world, DET_CLOCK_WALL);
    mark->started = mark->at - det_world_now(log->world, DET_CLOCK_BOOT);
    memcpy(slot, MAGIC, 8);
    det_put64(slot + AT_GENERATION, mark->generation);
    memcpy(slot + AT_IDENTITY, log->head.identity, DET_IDENTITY_SIZE);
    det_put64(slot + AT_ACKNOWLEDGED, mark->acknowledged);
    det_put64(slot + AT_SYNCED, mark->synced);
    det_put64(slot + AT_SEGMENT, mark->segment);
    det_put64(slot + AT_OFFSET, mark->offset);
    det_put32(slot + AT_DURABILITY, (uint32_t)mark->durability);
    det_put64(slot + AT_TIME, (uint64_t)mark->at);
    det_put64(slot + AT_STARTED, (uint64_t)mark->started);
    det_put32(slot + AT_SUM, det_crc32c(log->seed, slot, AT_SUM));
    return det_file_write(
        log->world, log->mark_file, mark->generation % 2 * DET_LOG_MARK_SLOT, slot, sizeof slot);
}

int det_log_mark_open(struct det_file_log *log)
{
    char path[DET_PATH_MAX];
    int r;

    r = det_log_path(log, "mark", path);
    if (r < 0)
        return r;
    return det_file_open(
        log->world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_NO_LINK,
        &log->mark_file);
}
