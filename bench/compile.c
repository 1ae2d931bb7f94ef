/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile.c - compile time of a machine of 2,000 rows, beside the same table in C. */
#include <stdio.h>

#include "bench.h"
#include "large_spec.h"

#define GOAL_NS 1e9

static char plain_path[BENCH_PATH_MAX], template_path[BENCH_PATH_MAX], object_path[BENCH_PATH_MAX];

struct job {
    const char *compiler;
    const char *source;
};

static int run_compiler(struct bench_lap *lap)
{
    const struct job *job = lap->argument;
    const char *words[] = { job->compiler, "-std=c17", "-O2",       "-Wall", "-Wextra",   "-I",
                            BENCH_INCLUDE, "-c",       job->source, "-o",    object_path, NULL };
    int r;

    bench_lap_begin(lap);
    r = bench_child_run(words, NULL, NULL);
    bench_lap_end(lap);
    if (r == DET_ERR_NOT_FOUND)
        return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
    return r < 0 ? bench_lap_fail(lap, r, "%s does not compile it", job->compiler) : 0;
}

static int open_compile(char *note)
{
    struct det_buffer text;
    char spec_path[BENCH_PATH_MAX];
    int r;

    (void)note;
    det_buffer_init(&text, NULL);
    bench_large_spec(&text);
    r = bench_file_write("large.fsm", text.data, text.size, spec_path);
    det_buffer_clear(&text);
    bench_large_source(&text, spec_path);
    if (r == 0)
        r = bench_file_write("large.c", text.data, text.size, template_path);
    det_buffer_clear(&text);
    bench_large_plain(&text);
    if (r == 0)
        r = bench_file_write("plain.c", text.data, text.size, plain_path);
    if (r == 0)
        r = bench_file_write("large.o", "", 0, object_path);
    if (r == 0)
        r = det_buffer_status(&text);
    det_buffer_deinit(&text);
    return r;
}

static const struct job gcc_plain = { "gcc", plain_path }, gcc_template = { "gcc", template_path },
                        clang_plain = { "clang", plain_path },
                        clang_template = { "clang", template_path };

#define COMMON .operations = 1, .clock = BENCH_CHILDREN, .has_no_allocations = true
#define GOALS  .goals = { { BENCH_NS_MAX, GOAL_NS, NULL } }

static const struct bench_case cases[] = {
    { "gcc, a hand-written table", BENCH_LIMIT, run_compiler, &gcc_plain, COMMON },
    { "gcc, the template", BENCH_OURS, run_compiler, &gcc_template, COMMON, GOALS },
    { "clang, a hand-written table", BENCH_LIMIT, run_compiler, &clang_plain, COMMON,
      .against = "" },
    { "clang, the template", BENCH_OURS, run_compiler, &clang_template, COMMON,
      .against = "clang, a hand-written table", GOALS },
};

extern const struct bench bench_compile;
const struct bench bench_compile = {
    .title = "compiling a machine of 2,000 rows",
    .operation = "file",
    .is_slow = true,
    .rounds = 5,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_compile,
};
