/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk.h - files in memory that record their changes, so that the power can be cut at every moment
 * of a run, later, with every result that a disk allows.
 *
 *     run:      create write write sync  mark  write write write sync  mark ...
 *                                  |                  ^
 *                      durable <---+----- pending ----+ the power is cut here
 *
 * Possible results of a power cut
 *   1. Writes to a file before its last sync are there.
 *   2. Of each write since: all, nothing, or any of its sectors of 512 bytes, independently of
 *      every other write. A lost write may still have extended the file, with zeros.
 *   3. Truncations since: each happened or did not.
 *   4. Files created and deleted since the last sync of the folder: each happened or did not.
 *
 * The test sets the marks: the promises up to that place in the log. For one thread at a time, as
 * in the simulated world. */
#ifndef DET_CRASH_DISK_H
#define DET_CRASH_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRASH_NAMES     8   /* paths on a disk */
#define CRASH_NODES     512 /* all files, including deleted ones */
#define CRASH_SECTOR    512
#define CRASH_PATH_MAX  127
#define CRASH_SHM_MAX   8 /* regions of shared memory of one file */
#define CRASH_SHM_LOCKS 8

enum crash_kind {
    CRASH_WRITE,
    CRASH_TRUNCATE,
    CRASH_SYNC,
    CRASH_DROP,   /* a failed sync: the pending operations will never reach the disk */
    CRASH_CREATE, /* of a name */
    CRASH_DELETE,
    CRASH_FOLDER_SYNC,
    CRASH_MARK,
};

struct crash_op {
    enum crash_kind kind;
    unsigned node, name;
    uint64_t offset; /* or the new size, or the number of the mark */
    size_t size;
    uint8_t *data;
};

struct crash_bytes {
    uint8_t *data;
    size_t size, capacity;
};

/* Shared by several connections to one file. */
struct crash_shm {
    void *regions[CRASH_SHM_MAX];
    unsigned users;
    unsigned shared[CRASH_SHM_LOCKS];
    bool exclusive[CRASH_SHM_LOCKS];
};

/* A path, with or without a file (node). */
struct crash_name {
    char path[CRASH_PATH_MAX + 1];
    int node; /* -1: no file */
    struct crash_shm shm;
    unsigned shared; /* connections with a lock on it */
    bool is_reserved, is_pending, is_exclusive;
};

struct crash_memo;

/* A fault and its place. */
struct crash_fault {
    uint64_t sync_at;   /* the number of the sync, from 1; 0: none */
    bool is_sticky;     /* also every later one */
    bool drops;         /* the pages are dropped, as Linux does: the next sync succeeds */
    bool ignores_syncs; /* a broken disk, or a broken store: syncs have no effect */
    uint64_t dies_at;   /* before the change with this number, from 1, the process dies; 0: never */
};

struct crash_disk {
    struct crash_name names[CRASH_NAMES];
    unsigned name_count;
    struct crash_bytes nodes[CRASH_NODES];
    unsigned node_count;
    bool is_recording;
    struct crash_op *ops;
    size_t op_count, op_capacity;
    uint64_t sync_count;
    uint64_t change_count; /* syncs too */
    uint64_t deaths;       /* a process that opened a file before the last one is dead */
    void **graves;         /* shared memory of dead processes, which may still read it */
    size_t grave_count;
    uint64_t failed_syncs;
    size_t failed_at; /* the place in the log where a sync failed last */
    struct crash_fault fault;
    struct crash_memo *memo; /* called for each read; NULL: none */
};

void crash_disk_init(struct crash_disk *disk);
void crash_disk_deinit(struct crash_disk *disk);
/* Removes all files, the log and locks; keeps the memory for the next run. */
void crash_disk_clear(struct crash_disk *disk);

/* Begins to record: the present files are the beginning of the log, and durable. Returns the number
 * of operations for them. */
size_t crash_disk_record(struct crash_disk *disk);

/* Returns the number of a path; assigns one if necessary. */
unsigned crash_disk_name(struct crash_disk *disk, const char *path);
/* Counts a change that is about to happen. False: its process is dead. */
bool crash_disk_begin(struct crash_disk *disk, uint64_t deaths);
/* The operations on files. Each is recorded. */
void crash_disk_create(struct crash_disk *disk, unsigned name);
void crash_disk_delete(struct crash_disk *disk, unsigned name);
void crash_disk_write(
    struct crash_disk *disk, unsigned node, uint64_t offset, const void *data, size_t size);
void crash_disk_truncate(struct crash_disk *disk, unsigned node, uint64_t size);
/* False: it failed by the fault. */
bool crash_disk_sync(struct crash_disk *disk, unsigned node);
void crash_disk_sync_folder(struct crash_disk *disk);
/* Drops the clean cached pages of a file, which are then read from the disk again: writes that a
 * failed sync dropped are lost. Requires the log. */
void crash_disk_forget(struct crash_disk *disk, unsigned node);
void crash_disk_mark(struct crash_disk *disk, uint64_t number);

void crash_shm_free(struct crash_shm *shm);
/* Changes of bytes, to build a disk from a log. */
void crash_bytes_write(struct crash_bytes *bytes, uint64_t offset, const void *data, size_t size);
void crash_bytes_resize(struct crash_bytes *bytes, uint64_t size);
void crash_bytes_copy(struct crash_bytes *target, const struct crash_bytes *source);

#endif
