/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard.h - what the files of a guard share: the record that is mapped, the search for
 * processes of a run, the helper process, the cgroup.
 *
 *     real_guard.c          opens, starts, closes; slots for new processes
 *     real_guard_record.c   the file, as docs/formats/processes.md says it
 *     real_guard_scan.c     the processes of a run, by a walk through /proc
 *     real_guard_end.c      the end of all that a run has left
 *     real_guard_helper.c   the helper process
 *     real_guard_cgroup.c   the cgroup of a run
 *
 * The helper is forked from a program that may have threads, so what it uses (record, scan, end,
 * cgroup) makes system calls and nothing else: no allocation, no lock, no stdio. */
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
/* As many slots get their place on the disk at once. */
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
    "the record is as docs/formats/processes.md says it");

/* What says who belongs to a run. It is copied from a header whose checksum is right: a name of a
 * run that is damaged later, when the file is mapped, would name processes of others. */
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
    uint32_t count;     /* slots that were ever used; the record's is for its readers */
    uint32_t allocated; /* slots that have their place on the disk */
    uint32_t free;      /* index of the first free one below `count` + 1; 0: none */
    bool helper_wanted; /* from start to close */
    pid_t helper;       /* 0: none */
    int self;           /* pidfd of this program */
    int cgroup;         /* cgroup.procs of the children, to write to; -1: there is none */
    char tied[DET_GUARD_MARK_SIZE], kept[DET_GUARD_MARK_SIZE]; /* "DETENT_RUN=..." */
};

/* real_guard.c: for the start of processes. */

/* A slot for a process that is about to be started. DET_ERR_LIMIT, DET_ERR_NO_SPACE. */
DET_MUST_CHECK int det_process_guard_claim(
    struct det_process_guard *guard, const struct det_process_options *options,
    struct det_process_guard_slot **ret);
/* Its process was reaped, or never was. */
void det_process_guard_release(
    struct det_process_guard *guard, struct det_process_guard_slot *slot);
/* In the child, before its exec. 0, or -1 with errno. */
int det_process_guard_record_self(struct det_process_guard_slot *slot, int cgroup);

/* real_guard_record.c */

/* A new file in the place of what is there. */
DET_MUST_CHECK int det_process_guard_record_create(
    struct det_process_guard *guard, const char *path);
/* Closes it; `is_over`: nothing that it lists lives, so that the file becomes empty. */
void det_process_guard_record_close(struct det_process_guard *guard, bool is_over);
/* A copy of the one that is there; NULL and 0: there is none, or all of it is over. Freed with
 * det_process_guard_record_unload(). DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_process_guard_record_load(
    const char *path, struct det_process_guard_run *ret_run, struct det_process_guard_record **ret,
    size_t *ret_size);
void det_process_guard_record_unload(struct det_process_guard_record *record, size_t size);
uint32_t det_process_guard_record_checksum(const struct det_process_guard_record *record);
/* Place on the disk for the slots up to `count`. */
DET_MUST_CHECK int det_process_guard_record_grow(struct det_process_guard *guard, uint32_t count);

/* real_guard_scan.c */

/* A line of /proc/<pid>/stat. */
struct det_process_guard_seen {
    pid_t number, parent, group, session;
    uint64_t start;
    char state;
    char name[17];
};
/* False: it is gone. */
bool det_process_guard_look(int proc, pid_t number, struct det_process_guard_seen *ret);

typedef void det_process_guard_found_fn(
    void *user, const struct det_process_guard_seen *seen, const char *command);
struct det_process_guard_scan {
    int proc; /* /proc */
    const struct det_process_guard_run *run;
    const struct det_process_guard_record *record;
    size_t slot_count; /* of the record, that can be read */
    bool with_kept;
    uint32_t *found; /* for each number: the start time of the process that was found, see .c */
};
/* 0 or -1 with errno. */
int det_process_guard_scan_init(
    struct det_process_guard_scan *scan, const struct det_process_guard_run *run,
    const struct det_process_guard_record *record, size_t slot_count, bool with_kept);
void det_process_guard_scan_deinit(struct det_process_guard_scan *scan);
/* Finds the processes of the run that live; those of the caller and above it are not among them.
 * Calls `call` (NULL: nothing) with each, then sends it the signal (0: none). How many there were,
 * or -1 with errno. */
int det_process_guard_scan_run(
    struct det_process_guard_scan *scan, int signal, det_process_guard_found_fn *call, void *user);

/* real_guard_end.c */

/* Kills all of the run until none is left. False: some live at the (monotonic) deadline. */
bool det_process_guard_kill_all(struct det_process_guard_scan *scan, det_time deadline);
/* SIGTERM, the grace, SIGKILL. How many lived at first; DET_ERR_TIMEOUT: some still do. */
int det_process_guard_end_all(
    struct det_process_guard_scan *scan, const struct det_process_guard_options *options,
    det_process_guard_found_fn *call);

/* real_guard_helper.c */

/* Forks it. 0, or -1 with errno. */
int det_process_guard_helper_start(struct det_process_guard *guard);
void det_process_guard_helper_stop(struct det_process_guard *guard);

/* real_guard_cgroup.c */

/* A new cgroup for the children: its path into the record and the descriptor of its cgroup.procs,
 * or -1 where none may be made. */
int det_process_guard_cgroup_make(char path[DET_GUARD_CGROUP_SIZE], const char *run);
/* Kills all that is in it. */
void det_process_guard_cgroup_kill(const char *path);
/* False: something is still in it. */
bool det_process_guard_cgroup_remove(const char *path);

#endif
