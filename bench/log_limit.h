/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_limit.h - limits of a log on this machine: rows of 256 bytes with a crc32c, hand-written. */
#ifndef BENCH_LOG_LIMIT_H
#define BENCH_LOG_LIMIT_H

#include "bench.h"

#define LOG_ROW_SIZE  256
#define LOG_DATA_SIZE 240 /* of a row, without length, checksum and number */

/* One row as the limits write it. */
struct log_row {
    uint32_t size;
    uint32_t crc; /* over number and data */
    uint64_t number;
    char data[LOG_DATA_SIZE];
};

void log_row_fill(struct log_row *row, uint64_t number, const char *data);
bool log_row_is_valid(const struct log_row *row);

/* Copies rows into 128 MiB of memory, each with a mutex locked. */
int log_limit_memory(struct bench_lap *lap);
/* Writes 64 KiB at a time over a file of 256 MiB, without a sync. */
int log_limit_os(struct bench_lap *lap);
/* One thread fills a buffer, another one writes the other buffer over zeroes and syncs it. */
int log_limit_disk(struct bench_lap *lap);
/* Writes a block over zeroes and syncs it, one row at a time. */
int log_limit_disk_single(struct bench_lap *lap);
/* Reads a file of rows in blocks of 1 MiB and validates each row. */
int log_limit_scan(struct bench_lap *lap);
/* Removes the files of the limits. */
void log_limit_close(void);

#endif
