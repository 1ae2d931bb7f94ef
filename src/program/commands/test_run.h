/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_run.h - one run of `detent test`: what test.c shares with test_flow.c. */
#ifndef DET_COMMANDS_TEST_RUN_H
#define DET_COMMANDS_TEST_RUN_H

#include "terminal/command.h"
#include "terminal/input.h"
#include "testing/coverage.h"
#include "testing/play.h"

#define SHEET_SIZE_MAX 262144 /* bytes of a test file */

/* A machine, and its coverage by all of its files. */
struct subject {
    struct subject *next;
    char *path;
    struct det_spec *spec;
    struct cli_coverage coverage;
};

struct run {
    struct cli *cli;       /* where the results go */
    struct cli *trace_cli; /* where a trace to "-" goes */
    const struct cli_args *args;
    struct subject *subjects, **subjects_tail;
    struct cli_trace_writer trace;
    uint64_t steps_max;
    size_t cases, passed, failed, broken;
    det_time virtual_time;
    int worst;
};

/* A test file. */
struct sheet {
    const char *path;
    struct cli_text text;
    struct det_arena arena;
    struct subject *subject;
    struct case_file file;
};

/* test.c */

/* A file that cannot be run outranks a failed case. */
void test_raise_exit(struct run *run, int code);
void test_refuse_file(
    struct run *run, const struct sheet *sheet, const struct cli_problems *problems, int code);
/* Counts and prints the result of a case. */
void test_take_result(
    struct run *run, const struct sheet *sheet, const char *name, size_t steps,
    const struct play_result *result);
/* `name` seen from the folder of the file `from`. */
bool test_join_path(const char *from, const char *name, char *target);
const char *test_filter(const struct run *run);
bool test_wants_coverage(const struct run *run);
/* Reports the line that names a missing file, and the nearest file name with this suffix. */
void test_report_missing(
    struct run *run, const struct sheet *sheet, const struct det_datum *node, const char *path,
    const char *suffix);

/* test_flow.c: runs the cases of a flow. */
void test_flow(struct run *run, struct sheet *sheet, const struct det_datum *root);

#endif
