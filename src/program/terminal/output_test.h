/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_test.h - catches the output of a run of the program, for tests. */
#ifndef DET_TERMINAL_OUTPUT_TEST_H
#define DET_TERMINAL_OUTPUT_TEST_H

#include "lib/test.h"

#include "terminal/terminal.h"

/* A run with both streams caught in one. */
struct caught {
    struct cli cli;
    char *text;
    size_t size;
};

static inline void catch_output(struct caught *caught)
{
    *caught = (struct caught){ .cli = { .world = det_world_real() } };
    caught->cli.out = open_memstream(&caught->text, &caught->size);
    assert_non_null(caught->cli.out);
    caught->cli.err = caught->cli.out;
}

static inline void expect_output(struct caught *caught, const char *text)
{
    fclose(caught->cli.out);
    assert_string_equal(caught->text, text);
    assert_false(caught->cli.has_failed);
    free(caught->text);
}

#endif
