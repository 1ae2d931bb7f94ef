/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - reading a machine of 2,000 rows without a compiler, in a process and in ours. */
#include <unistd.h>

#include <detent/tool/spec.h>

#include "bench.h"
#include "large_spec.h"

#define GOAL_NS 5e7

static char spec_path[BENCH_PATH_MAX], source_path[BENCH_PATH_MAX];
static struct det_buffer text;

static int run_words(struct bench_lap *lap, const char *const *words)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = bench_child_run(words, NULL, NULL);
    bench_lap_end(lap);
    if (r == DET_ERR_NOT_FOUND)
        return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
    return r < 0 ? bench_lap_fail(lap, r, "it does not accept the spec") : 0;
}

static int run_nothing(struct bench_lap *lap)
{
    return run_words(lap, (const char *const[]){ "true", NULL });
}

static int run_program(struct bench_lap *lap)
{
    if (access(BENCH_PROGRAM, X_OK) < 0)
        return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "the program detent is not built");
    return run_words(lap, (const char *const[]){ BENCH_PROGRAM, "check", spec_path, NULL });
}

static int run_compiler(struct bench_lap *lap)
{
    return run_words(
        lap, (const char *const[]){ "gcc", "-std=c17", "-fsyntax-only", "-I", BENCH_INCLUDE,
                                    source_path, NULL });
}

static int run_reader(struct bench_lap *lap)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        struct det_spec *spec;

        r = det_spec_read("large.fsm", text.data, text.size, NULL, &spec);
        if (r < 0)
            break;
        if (!det_spec_machine(spec))
            r = DET_ERR_DEFINITION;
        det_spec_close(spec);
    }
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

static int open_check(char *note)
{
    struct det_buffer source;
    int r;

    (void)note;
    det_buffer_init(&text, NULL);
    det_buffer_init(&source, NULL);
    bench_large_spec(&text);
    r = bench_file_write("large.fsm", text.data, text.size, spec_path);
    bench_large_source(&source, spec_path);
    if (r == 0)
        r = bench_file_write("large.c", source.data, source.size, source_path);
    if (r == 0)
        r = det_buffer_status(&text);
    if (r == 0)
        r = det_buffer_status(&source);
    det_buffer_deinit(&source);
    return r;
}

static void close_check(void)
{
    det_buffer_deinit(&text);
}

static const struct bench_case cases[] = {
    { "a process that does nothing", BENCH_LIMIT, run_nothing, NULL, 10, .clock = BENCH_CHILDREN,
      .has_no_allocations = true },
    { "detent check", BENCH_OURS, run_program, NULL, 10, .clock = BENCH_CHILDREN,
      .has_no_allocations = true,
      .goals = { { BENCH_NS_MAX, GOAL_NS, NULL }, { BENCH_AHEAD_OF, 0, "gcc -fsyntax-only" } } },
    { "det_spec_read", BENCH_OURS, run_reader, NULL, 20, .clock = BENCH_OWN, .against = "",
      .goals = { { BENCH_NS_MAX, GOAL_NS, NULL } } },
    { "gcc -fsyntax-only", BENCH_PEER, run_compiler, NULL, 1, .clock = BENCH_CHILDREN,
      .has_no_allocations = true },
};

extern const struct bench bench_check;
const struct bench bench_check = {
    .title = "checking a machine of 2,000 rows",
    .operation = "file",
    .is_slow = true,
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_check,
    .close = close_check,
};
