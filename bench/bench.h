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
 * Such machines are noisy, so what counts is the ratio of two cases in the same round: the ratio in
 * the table is the median of the rounds' own ratios, not the ratio of two medians. */
#ifndef BENCH_H
#define BENCH_H

#include <detent/base.h>

#include "base/buffer.h"

#define BENCH_GOALS_MAX  3
#define BENCH_CASES_MAX  24
#define BENCH_ROUNDS_MAX 64
#define BENCH_NOTE_MAX   160

enum bench_role {
    BENCH_LIMIT, /* what the machine can do when somebody writes the same by hand */
    BENCH_OURS,
    BENCH_PEER,
};

enum bench_goal_kind {
    BENCH_NO_GOAL,
    BENCH_RATIO_MAX,       /* at most `value` times the case it is compared with */
    BENCH_NS_MAX,          /* at most `value` nanoseconds an operation */
    BENCH_AHEAD_OF,        /* faster than the case `against`, when that one ran: `value` times as
                              fast at least; 0: at all */
    BENCH_ALLOCATIONS_MAX, /* at most `value` allocations an operation */
    BENCH_BYTES_MAX,       /* at most `value` bytes of memory that an operation keeps */
};

struct bench_goal {
    enum bench_goal_kind kind;
    double value;
    const char *against;
};

/* Whose time is measured. Work of one thread that never waits is measured in its own time, so that
 * other programs on the machine do not count; so is that of children which do one thing at a time.
 */
enum bench_clock {
    BENCH_WALL,
    BENCH_OWN,
    BENCH_CHILDREN, /* that were waited for */
};

/* One lap of one case. `run` reads the first part, and fills the second through bench_lap_begin()
 * and bench_lap_end(), or by itself where a child has measured. Who can only stop after a few more
 * operations than it was asked for sets `operations` to those it did. */
struct bench_lap {
    uint64_t operations;
    const void *argument;
    enum bench_clock clock;

    int64_t started_ns;
    int64_t processor_started_ns;
    double nanoseconds;  /* of all operations */
    double processor_ns; /* of all threads of this process; 0: nobody looked */
    uint64_t allocations;
    double kept_bytes;         /* of all operations; 0: nobody looked */
    char note[BENCH_NOTE_MAX]; /* why it was skipped, or failed */
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
    const char *against;     /* what the ratio is to; NULL: the first case; "": nothing */
    bool has_no_allocations; /* they happen elsewhere, and are not counted */
    bool is_latency;         /* how long one takes says nothing of how many there are */
    struct bench_goal goals[BENCH_GOALS_MAX];
};

struct bench {
    const char *title;
    const char *operation; /* "step": the unit is ns/step */
    bool is_slow;          /* milliseconds instead of nanoseconds */
    bool has_processor;    /* the time of processors is shown beside that on the wall */
    unsigned rounds;       /* 0: 21; with --quick 1 */
    bool has_no_warm_up;   /* a round takes minutes: none is run without being measured */
    const struct bench_case *cases;
    size_t case_count;
    int (*open)(char *note); /* NULL: nothing; `note` of BENCH_NOTE_MAX says why it cannot run */
    void (*close)(void);
};

/* The measured part of a lap. */
void bench_lap_begin(struct bench_lap *lap);
void bench_lap_end(struct bench_lap *lap);
/* Writes the note and returns `code`, so that giving up is one line. */
int bench_lap_fail(struct bench_lap *lap, int code, const char *format, ...) DET_PRINTF(3, 4);

int64_t bench_now_ns(void);
/* Calls of malloc() and its kin so far, in all threads. */
uint64_t bench_allocations(void);
/* Results that are used are not optimised away. */
void bench_use(uint64_t value);
/* The next number of a seeded sequence. */
uint64_t bench_random(uint64_t *seed);

/* Runs a program and waits for it; its output goes into `output` (NULL: all that it says is
 * dropped). DET_ERR_NOT_FOUND when there is no such program, DET_ERR_IO when it did not end well.
 * `ret_exit` gets its exit code and may be NULL. */
DET_MUST_CHECK int bench_child_run(
    const char *const *arguments, struct det_buffer *output, int *ret_exit);
/* A peer in a program of its own: told where the events lie and how many to take, it prints how
 * long it took as {"nanoseconds": 123}; exit code 3 means that it is not installed. */
DET_MUST_CHECK int bench_child_peer(struct bench_lap *lap, const char *const *arguments);
/* A file in the folder of this run, which is removed at the end. `path` has BENCH_PATH_MAX bytes.
 */
#define BENCH_PATH_MAX 512
DET_MUST_CHECK int bench_file_write(const char *name, const void *data, size_t size, char *path);
/* A folder there, in which programs may write what they like. DET_ERR_EXISTS. */
DET_MUST_CHECK int bench_folder_make(const char *name, char *path);
/* A whole file; free() the result. NULL when it cannot be read. */
char *bench_file_read(const char *path, size_t *ret_size);
void bench_files_remove(void);
/* Where that folder and the clusters of servers are made, and on which file system that is. */
void bench_place_use(const char *chosen);
const char *bench_place(void);
const char *bench_file_system(void);

#endif
