/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard.h - shared by the files of a guard: the mapped record, the search for processes of a
 * run, the helper process, the cgroup.
 *
 *     real_guard.c          opens, starts, closes; slots for new processes
 *     real_guard_record.c   the file format of docs/formats/processes.md
 *     real_guard_scan.c     finds the processes of a run by a walk through /proc
 *     real_guard_end.c      ends all processes that a run has left
 *     real_guard_helper.c   the helper process
 *     real_guard_cgroup.c   the cgroup of a run
 *
 * The helper is forked from a program that may have threads, so the code it uses (record, scan,
 * end, cgroup) makes only system calls: no allocation, no lock, no stdio. */
#ifndef DET_OS_REAL_GUARD_H
#define DET_OS_REAL_GUARD_H

#include <detent/driver/process_guard.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "os/real.h"

#define DET_GUARD_ID_SIZE     40
#define DET_GUARD_CGROUP_SIZE 400
#define DET_GUARD_TEXT_SIZE   40
/* Slots are allocated on the disk in steps of this many. */
#define DET_GUARD_SLOTS_STEP 4096
#define DET_GUARD_VARIABLE   "DETENT_RUN="
#define DET_GUARD_MARK_SIZE  512

enum det_process_guard_state { DET_GUARD_FREE, DET_GUARD_CLAIMED, DET_GUARD_LIVE };

struct det_process_guard_slot {
    _Atomic uint32_t state;
    uint32_t number;
    uint64_t start;
    uint32_t is_kept;
    uint32_t next; /* index of the next free one + 1; 0: none */
    char command[DET_GUARD_TEXT_SIZE];
};

struct det_process_guard_record {
    char magic[8];
    char boot[DET_GUARD_ID_SIZE];
    char run[DET_GUARD_ID_SIZE];
    uint32_t owner, session;
    uint64_t owner_start;
    uint32_t checksum;
    _Atomic uint32_t count;
    char cgroup[DET_GUARD_CGROUP_SIZE];
    struct det_process_guard_slot slots[];
};

_Static_assert(
    sizeof(struct det_process_guard_record) == 512 && sizeof(struct det_process_guard_slot) == 64,
    "the record must match docs/formats/processes.md");

/* Identifies the processes of a run. Copied from a header whose checksum was verified: an id that
 * is damaged later in the mapped file would match processes of others. */
struct det_process_guard_run {
    char name[DET_GUARD_ID_SIZE];
    char cgroup[DET_GUARD_CGROUP_SIZE];
    uint32_t session;
    uint64_t owner_start;
};

#define DET_GUARD_SIZE(count)                  \
    (sizeof(struct det_process_guard_record) + \
     (size_t)(count) * sizeof(struct det_process_guard_slot))

struct det_process_guard {
    struct det_real_world world;
    const struct det_allocator *allocator;
    pthread_mutex_t lock;
    struct det_process_guard_record *record; /* NULL: not started */
    struct det_process_guard_run run;
    int file;
    uint32_t count;     /* slots used so far; the record's own count is for its readers */
    uint32_t allocated; /* slots that are allocated on the disk */
    uint32_t free;      /* index of the first free slot below `count`, plus 1; 0: none */
    bool helper_wanted; /* from start to close */
    pid_t helper;       /* 0: none */
    int self;           /* pidfd of this program */
    int cgroup;         /* cgroup.procs of the children, opened for writing; -1: none */
    char tied[DET_GUARD_MARK_SIZE], kept[DET_GUARD_MARK_SIZE]; /* "DETENT_RUN=..." */
};

/* real_guard.c: for the start of processes. */

/* Claims a slot for a process that is about to start. DET_ERR_LIMIT, DET_ERR_NO_SPACE. */
DET_MUST_CHECK int det_process_guard_claim(
    struct det_process_guard *guard, const struct det_process_options *options,
    struct det_process_guard_slot **ret);
/* Releases a slot whose process was reaped or never started. */
void det_process_guard_release(
    struct det_process_guard *guard, struct det_process_guard_slot *slot);
/* Called in the child, before its exec. Returns 0, or -1 with errno. */
int det_process_guard_record_self(struct det_process_guard_slot *slot, int cgroup);

/* real_guard_record.c */

/* Creates a new file in place of the existing one. */
DET_MUST_CHECK int det_process_guard_record_create(
    struct det_process_guard *guard, const char *path);
/* Closes the record; `is_over`: none of its processes lives, so the file is truncated. */
void det_process_guard_record_close(struct det_process_guard *guard, bool is_over);
/* Loads a copy of the existing record; NULL and 0 if there is none or all of it is over. Free it
 * with det_process_guard_record_unload(). DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_process_guard_record_load(
    const char *path, struct det_process_guard_run *ret_run, struct det_process_guard_record **ret,
    size_t *ret_size);
void det_process_guard_record_unload(struct det_process_guard_record *record, size_t size);
uint32_t det_process_guard_record_checksum(const struct det_process_guard_record *record);
/* Allocates disk space for the slots up to `count`. */
DET_MUST_CHECK int det_process_guard_record_grow(struct det_process_guard *guard, uint32_t count);

/* real_guard_scan.c */

/* A line of /proc/<pid>/stat. */
struct det_process_guard_seen {
    pid_t number, parent, group, session;
    uint64_t start;
    char state;
    char name[17];
};
/* Returns false if the process is gone. */
bool det_process_guard_find(int proc, pid_t number, struct det_process_guard_seen *ret);

typedef void det_process_guard_found_fn(
    void *user, const struct det_process_guard_seen *seen, const char *command);
struct det_process_guard_scan {
    int proc; /* /proc */
    const struct det_process_guard_run *run;
    const struct det_process_guard_record *record;
    size_t slot_count; /* of the record, that can be read */
    bool with_kept;
    uint32_t *found; /* for each number: start time of the process found, see the .c file */
};
/* 0 or -1 with errno. */
int det_process_guard_scan_init(
    struct det_process_guard_scan *scan, const struct det_process_guard_run *run,
    const struct det_process_guard_record *record, size_t slot_count, bool with_kept);
void det_process_guard_scan_deinit(struct det_process_guard_scan *scan);
/* Finds living processes of the run, except the caller and its ancestors. Calls `call` (if not
 * NULL) with each, then sends it the signal (0: none). Returns how many were found, or -1 with
 * errno. */
int det_process_guard_scan_run(
    struct det_process_guard_scan *scan, int signal, det_process_guard_found_fn *call, void *user);

/* real_guard_end.c */

/* Kills processes of the run until none is left. Returns false if some live at the (monotonic)
 * deadline. */
bool det_process_guard_kill_all(struct det_process_guard_scan *scan, det_time deadline);
/* Sends SIGTERM, waits for the grace period, sends SIGKILL. Returns how many lived at first;
 * DET_ERR_TIMEOUT if some still do. */
int det_process_guard_end_all(
    struct det_process_guard_scan *scan, const struct det_process_guard_options *options,
    det_process_guard_found_fn *call);

/* real_guard_helper.c */

/* Forks the helper. Returns 0, or -1 with errno. */
int det_process_guard_helper_start(struct det_process_guard *guard);
void det_process_guard_helper_stop(struct det_process_guard *guard);

/* real_guard_cgroup.c */

/* Creates a cgroup for the children: writes its path into the record and returns the descriptor of
 * its cgroup.procs, or -1 where none may be created. */
int det_process_guard_cgroup_make(char path[DET_GUARD_CGROUP_SIZE], const char *run);
/* Kills all processes in it. */
void det_process_guard_cgroup_kill(const char *path);
/* Returns false if it still contains a process. */
bool det_process_guard_cgroup_remove(const char *path);

#endif
