/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal.h - the lines of a journal of tasks: their checksum and their end. */
#ifndef DET_TASK_TASK_JOURNAL_H
#define DET_TASK_TASK_JOURNAL_H

#include <detent/bus.h>
#include <detent/driver/world.h>

#define DET_TASK_JOURNAL_FORMAT   1
#define DET_TASK_JOURNAL_LINE_MAX 4096 /* including its newline */

/* The checksum over the bytes of a line before its crc. */
uint32_t det_task_journal_crc(const char *line, size_t size);

struct det_task_journal_extent {
    uint64_t size;   /* the end of the whole lines */
    uint64_t synced; /* how much of that was certainly on the disk, according to the lines */
};

/* Reads all lines through `buffer`, of at least two lines' size. DET_ERR_CORRUPT with line and
 * offset, DET_ERR_MALFORMED, DET_ERR_VERSION, DET_ERR_IO. */
DET_MUST_CHECK int det_task_journal_scan(
    struct det_world *world, struct det_file *file, char *buffer, size_t capacity,
    struct det_task_journal_extent *ret, struct det_error *reterr);

#endif
