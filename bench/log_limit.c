/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_limit.c - limits of a log on this machine: rows of 256 bytes with a crc32c, hand-written.
 *
 * None of them can be opened again after a crash: nothing says where the log ends, and its space is
 * reused when it is full. */
#include "log_limit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define BLOCK       4096
#define BATCH       65536
#define BUFFER      (4u << 20)
#define SCAN_BUFFER (1u << 20)
#define KEPT        (128u << 20) /* in memory */
#define SPACE       (256u << 20) /* of the file that is overwritten */
#define FILL        64           /* rows filled before the lock is taken again */

static char zeroed_path[BENCH_PATH_MAX]; /* of SPACE written zeroes; empty: not yet written */
static char scan_path[BENCH_PATH_MAX];
static uint64_t scan_rows;

void log_row_fill(struct log_row *row, uint64_t number, const char *data)
{
    row->size = LOG_DATA_SIZE;
    row->number = number;
    memcpy(row->data, data, LOG_DATA_SIZE);
    row->crc = det_crc32c(0, &row->number, sizeof row->number + LOG_DATA_SIZE);
}

bool log_row_is_valid(const struct log_row *row)
{
    return row->size == LOG_DATA_SIZE &&
           row->crc == det_crc32c(0, &row->number, sizeof row->number + LOG_DATA_SIZE);
}

static int write_all(int file, const void *data, size_t size)
{
    return write(file, data, size) == (ssize_t)size ? 0 : DET_ERR_IO;
}

int log_limit_memory(struct bench_lap *lap)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct log_row *rows = malloc(KEPT);
    char data[LOG_DATA_SIZE] = "x";

    if (!rows)
        return DET_ERR_NO_MEMORY;
    memset(rows, 1, KEPT);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        struct log_row *row = &rows[i % (KEPT / sizeof *rows)];

        pthread_mutex_lock(&mutex);
        row->size = LOG_DATA_SIZE;
        row->number = i;
        memcpy(row->data, data, LOG_DATA_SIZE);
        pthread_mutex_unlock(&mutex);
    }
    bench_lap_end(lap);
    bench_use(rows[0].number);
    free(rows);
    return 0;
}

/* Appends rows in batches; from `space` on again at the begin of the file. */
static int write_rows(int file, uint64_t count, size_t space)
{
    static _Alignas(BLOCK) char batch[BATCH];
    char data[LOG_DATA_SIZE] = "x";
    size_t used = 0, at = 0;

    for (uint64_t i = 0; i < count; i++) {
        log_row_fill((struct log_row *)(void *)(batch + used), i, data);
        used += sizeof(struct log_row);
        if (used < sizeof batch && i + 1 < count)
            continue;
        if (pwrite(file, batch, used, (off_t)at) != (ssize_t)used)
            return DET_ERR_IO;
        at = at + used < space ? at + used : 0;
        used = 0;
    }
    return 0;
}

static int write_zeroes(int file)
{
    char *zeroes = calloc(1, SCAN_BUFFER);
    int r = zeroes ? 0 : DET_ERR_NO_MEMORY;

    for (size_t at = 0; at < SPACE && r == 0; at += SCAN_BUFFER)
        r = write_all(file, zeroes, SCAN_BUFFER);
    free(zeroes);
    return r;
}

/* Opens the file that is overwritten, and writes its zeroes the first time. `flags`: O_DSYNC if
 * each write is followed by what fdatasync() does. */
static int open_zeroed(struct bench_lap *lap, int flags)
{
    bool is_new = !zeroed_path[0];
    int file, r = 0;

    if (is_new && bench_file_write("limit", "", 0, zeroed_path) < 0)
        return bench_lap_fail(lap, DET_ERR_IO, "the file cannot be created");
    file = open(zeroed_path, O_WRONLY | O_CLOEXEC | (is_new ? O_DSYNC : flags));
    if (file < 0)
        return bench_lap_fail(lap, DET_ERR_IO, "the file does not open");
    if (!is_new)
        return file;
    r = write_zeroes(file);
    (void)close(file);
    if (r == 0)
        return open_zeroed(lap, flags);
    return bench_lap_fail(lap, r, "the file cannot be written");
}

int log_limit_os(struct bench_lap *lap)
{
    int file = open_zeroed(lap, 0), r;

    if (file < 0)
        return file;
    bench_lap_begin(lap);
    r = write_rows(file, lap->operations, SPACE);
    bench_lap_end(lap);
    (void)close(file);
    return r < 0 ? bench_lap_fail(lap, r, "a write failed") : 0;
}

/* Two buffers: one is filled while the other is written and synced. */
struct pair {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char *buffers[2];
    size_t used[2];
    unsigned filled; /* the one that is filled */
    bool is_over;
    int file;
    int code;
};

static int flush_buffer(struct pair *pair, const char *buffer, size_t size, off_t *at)
{
    if (*at + (off_t)size > (off_t)SPACE)
        *at = 0;
    if (pwrite(pair->file, buffer, size, *at) != (ssize_t)size)
        return DET_ERR_IO;
    *at += (off_t)size;
    return 0;
}

static void *flush_buffers(void *argument)
{
    struct pair *pair = argument;
    off_t at = 0;

    pthread_mutex_lock(&pair->mutex);
    for (;;) {
        unsigned flushed = pair->filled;
        int r;

        while (pair->used[flushed] == 0 && !pair->is_over)
            pthread_cond_wait(&pair->changed, &pair->mutex);
        if (pair->used[flushed] == 0)
            break;
        pair->filled = 1 - flushed;
        pthread_mutex_unlock(&pair->mutex);
        r = flush_buffer(pair, pair->buffers[flushed], pair->used[flushed], &at);
        pthread_mutex_lock(&pair->mutex);
        pair->used[flushed] = 0;
        if (r < 0)
            pair->code = r;
        pthread_cond_broadcast(&pair->changed);
    }
    pthread_mutex_unlock(&pair->mutex);
    return NULL;
}

static void fill_buffers(struct pair *pair, uint64_t count)
{
    char data[LOG_DATA_SIZE] = "x";

    pthread_mutex_lock(&pair->mutex);
    for (uint64_t number = 0; number < count && pair->code == 0;) {
        char *buffer;

        while (pair->used[pair->filled] == BUFFER)
            pthread_cond_wait(&pair->changed, &pair->mutex);
        buffer = pair->buffers[pair->filled];
        for (unsigned i = 0; i < FILL && number < count && pair->used[pair->filled] < BUFFER; i++) {
            log_row_fill(
                (struct log_row *)(void *)(buffer + pair->used[pair->filled]), number++, data);
            pair->used[pair->filled] += sizeof(struct log_row);
        }
        pthread_cond_broadcast(&pair->changed);
        pthread_mutex_unlock(&pair->mutex);
        pthread_mutex_lock(&pair->mutex);
    }
    pair->is_over = true;
    pthread_cond_broadcast(&pair->changed);
    pthread_mutex_unlock(&pair->mutex);
}

int log_limit_disk(struct bench_lap *lap)
{
    struct pair pair = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    pthread_t flusher;

    pair.file = open_zeroed(lap, O_DSYNC);
    if (pair.file < 0)
        return pair.file;
    pair.buffers[0] = aligned_alloc(BLOCK, BUFFER);
    pair.buffers[1] = aligned_alloc(BLOCK, BUFFER);
    if (!pair.buffers[0] || !pair.buffers[1])
        return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no memory");
    memset(pair.buffers[0], 1, BUFFER);
    memset(pair.buffers[1], 1, BUFFER);
    bench_lap_begin(lap);
    if (pthread_create(&flusher, NULL, flush_buffers, &pair) != 0)
        return bench_lap_fail(lap, DET_ERR_IO, "no thread");
    fill_buffers(&pair, lap->operations);
    (void)pthread_join(flusher, NULL);
    bench_lap_end(lap);
    free(pair.buffers[0]);
    free(pair.buffers[1]);
    (void)close(pair.file);
    return pair.code < 0 ? bench_lap_fail(lap, pair.code, "a write failed") : 0;
}

int log_limit_disk_single(struct bench_lap *lap)
{
    static _Alignas(BLOCK) char block[BLOCK];
    char data[LOG_DATA_SIZE] = "x";
    int file = open_zeroed(lap, O_DSYNC), r = 0;

    if (file < 0)
        return file;
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        log_row_fill((struct log_row *)(void *)block, i, data);
        if (pwrite(file, block, sizeof block, (off_t)(i % (SPACE / BLOCK)) * BLOCK) != BLOCK)
            r = DET_ERR_IO;
    }
    bench_lap_end(lap);
    (void)close(file);
    return r < 0 ? bench_lap_fail(lap, r, "a write failed") : 0;
}

/* The file that is scanned is written once. */
static int open_scanned(struct bench_lap *lap)
{
    int file, r;

    if (scan_rows == lap->operations)
        return open(scan_path, O_RDONLY | O_CLOEXEC);
    if (bench_file_write("limit-scan", "", 0, scan_path) < 0)
        return DET_ERR_IO;
    file = open(scan_path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return DET_ERR_IO;
    r = write_rows(file, lap->operations, SIZE_MAX);
    if (r == 0 && lseek(file, 0, SEEK_SET) == 0) {
        scan_rows = lap->operations;
        return file;
    }
    (void)close(file);
    return DET_ERR_IO;
}

static uint64_t scan_block(const char *block, size_t size)
{
    uint64_t valid = 0;

    for (size_t at = 0; at + sizeof(struct log_row) <= size; at += sizeof(struct log_row))
        valid += log_row_is_valid((const struct log_row *)(const void *)(block + at));
    return valid;
}

int log_limit_scan(struct bench_lap *lap)
{
    char *block = aligned_alloc(BLOCK, SCAN_BUFFER);
    int file = open_scanned(lap);
    uint64_t valid = 0;
    ssize_t size;

    if (file < 0 || !block) {
        free(block);
        return bench_lap_fail(lap, DET_ERR_IO, "the file cannot be written");
    }
    memset(block, 1, SCAN_BUFFER);
    bench_lap_begin(lap);
    while ((size = read(file, block, SCAN_BUFFER)) > 0)
        valid += scan_block(block, (size_t)size);
    bench_lap_end(lap);
    (void)close(file);
    free(block);
    return valid == lap->operations ? 0 : bench_lap_fail(lap, DET_ERR_CORRUPT, "rows are missing");
}

void log_limit_close(void)
{
    if (zeroed_path[0])
        (void)unlink(zeroed_path);
    if (scan_path[0])
        (void)unlink(scan_path);
    zeroed_path[0] = scan_path[0] = '\0';
    scan_rows = 0;
}
