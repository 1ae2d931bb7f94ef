/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bench.h - one frame for all benchmarks: the limit, ours and the peers side by side in one run.
 *
 * A bench is one file that defines `const struct bench bench_<name>` and one line in benches.def.
 * It has cases; each case does a number of operations, a lap, and is measured over many laps:
 *
 *     warm-up:  case 1, case 2, case 3
 *     round 1:  case 1, case 2, case 3
 *     round 2:  case 1, case 2, case 3     ...
 *
 * Machines are noisy, so the ratio of two cases in the same round is compared: the ratio in the
 * table is the median of the ratios of the rounds, not the ratio of two medians. */
#ifndef BENCH_H
#define BENCH_H

#include <detent/base.h>

#include "base/buffer.h"

#define BENCH_GOALS_MAX  3
#define BENCH_CASES_MAX  24
#define BENCH_ROUNDS_MAX 64
#define BENCH_NOTE_MAX   160

enum bench_role {
    BENCH_LIMIT, /* the limit of the machine: the same work in hand-written code */
    BENCH_OURS,
    BENCH_PEER,
};

enum bench_goal_kind {
    BENCH_NO_GOAL,
    BENCH_RATIO_MAX,       /* at most `value` times the case it is compared with */
    BENCH_NS_MAX,          /* at most `value` nanoseconds an operation */
    BENCH_AHEAD_OF,        /* faster than the case `against`, if that one ran: at least `value`
                            * times as fast; 0: faster at all */
    BENCH_ALLOCATIONS_MAX, /* at most `value` allocations an operation */
    BENCH_BYTES_MAX,       /* at most `value` bytes of memory that an operation keeps */
};

struct bench_goal {
    enum bench_goal_kind kind;
    double value;
    const char *against;
};

/* The measured clock. Work of one thread that never waits is measured in processor time, so that
 * other programs on the machine do not count; so is work of children that do one thing at a
 * time. */
enum bench_clock {
    BENCH_WALL,
    BENCH_OWN,
    BENCH_CHILDREN, /* that were reaped */
};

/* One lap of one case. `run` reads the first part, and fills the second through bench_lap_begin()
 * and bench_lap_end(), or directly with the measurement of a child. A case that can only stop after
 * a few more operations than requested sets `operations` to the actual number. */
struct bench_lap {
    uint64_t operations;
    const void *argument;
    enum bench_clock clock;

    int64_t started_ns;
    int64_t processor_started_ns;
    double nanoseconds;  /* of all operations */
    double processor_ns; /* of all threads of this process; 0: not measured */
    uint64_t allocations;
    double kept_bytes;         /* of all operations; 0: not measured */
    char note[BENCH_NOTE_MAX]; /* reason of a skip or a failure */
};

/* 0, or a negative error with a note. DET_ERR_UNSUPPORTED: cannot run on this machine. */
typedef int bench_run_fn(struct bench_lap *lap);

struct bench_case {
    const char *name;
    enum bench_role role;
    bench_run_fn *run;
    const void *argument;
    uint64_t operations; /* of one lap; a fiftieth of it with --quick, at least 1 */
    double bytes;        /* of one operation, for MB/s; 0: not shown */
    enum bench_clock clock;
    const char *against;     /* the case of the ratio; NULL: the first one; "": no ratio */
    bool has_no_allocations; /* they happen in another process, and are not counted */
    bool is_latency;         /* the latency of one operation is not the inverse of the throughput */
    struct bench_goal goals[BENCH_GOALS_MAX];
};

struct bench {
    const char *title;
    const char *operation; /* "step": the unit is ns/step */
    bool is_slow;          /* milliseconds instead of nanoseconds */
    bool has_processor;    /* the processor time is shown beside the wall time */
    unsigned rounds;       /* 0: 21; with --quick 1 */
    bool has_no_warm_up;   /* a round takes minutes: no warm-up round */
    const struct bench_case *cases;
    size_t case_count;
    int (*open)(char *note); /* NULL: nothing; on failure `note`, of BENCH_NOTE_MAX bytes, has the
                              * reason */
    void (*close)(void);
};

/* The measured part of a lap. */
void bench_lap_begin(struct bench_lap *lap);
void bench_lap_end(struct bench_lap *lap);
/* Writes the note and returns `code`, so that a failure is one line. */
int bench_lap_fail(struct bench_lap *lap, int code, const char *format, ...) DET_PRINTF(3, 4);

int64_t bench_now_ns(void);
/* Number of calls of malloc(), calloc() and realloc() so far, in all threads. */
uint64_t bench_allocations(void);
/* Uses a result, so that its computation is not optimised away. */
void bench_use(uint64_t value);
/* Returns the next number of a seeded sequence. */
uint64_t bench_random(uint64_t *seed);

/* Runs a program and waits for it; its output goes into `output` (NULL: all of it is dropped).
 * DET_ERR_NOT_FOUND if the program does not exist, DET_ERR_IO if it failed. `ret_exit` gets its
 * exit code and may be NULL. */
DET_MUST_CHECK int bench_child_run(
    const char *const *arguments, struct det_buffer *output, int *ret_exit);
/* Runs a peer program: its arguments are the file of events and their number, and it prints its
 * time as {"nanoseconds": 123}; exit code 3 means that it is not installed. */
DET_MUST_CHECK int bench_child_peer(struct bench_lap *lap, const char *const *arguments);
/* Reads a number of the object that a program has printed; false: the object has no such number. */
bool bench_child_number(const char *text, const char *name, double *ret);
/* The path of a file in the folder of this run, which is removed at the end. `path` has
 * BENCH_PATH_MAX bytes. */
#define BENCH_PATH_MAX 512
DET_MUST_CHECK int bench_file_write(const char *name, const void *data, size_t size, char *path);
/* Creates a folder there for the files of programs. DET_ERR_EXISTS. */
DET_MUST_CHECK int bench_folder_make(const char *name, char *path);
/* Removes a folder with everything in it. */
void bench_folder_remove(const char *path);
/* Reads a whole file; free() the result. NULL: it cannot be read. */
char *bench_file_read(const char *path, size_t *ret_size);
void bench_files_remove(void);
/* The parent of that folder and of the clusters of servers, and its file system. */
void bench_place_use(const char *chosen);
const char *bench_place(void);
const char *bench_file_system(void);

#endif
