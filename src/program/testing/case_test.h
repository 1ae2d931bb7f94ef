/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_test.h - a test file in memory with its machine: for the tests of the reader and the player.
 */
#ifndef DET_TESTING_CASE_TEST_H
#define DET_TESTING_CASE_TEST_H

#include "lib/test.h"

#include <detent/tool/spec.h>

#include "testing/case.h"
#include "testing/coverage.h"
#include "testing/stubs.h"

static const char spec_text[] =
    "#define FSM_NAME order\n"
    "#define FSM_PREFIX ORDER\n"
    "#define FSM_DATA basket\n"
    "ENUM(color) VALUE(RED, red) VALUE(BLUE, blue) END\n"
    "RECORD(line) FIELD(item, str(8)) FIELD(count, u32) END\n"
    "RECORD(basket) FIELD(cents, u64) FIELD(paint, one_of(color)) OPTIONAL(note, str(16))\n"
    "    ARRAY(lines, nested(line), 4) FIELD(shift, i8) FIELD(rate, f64) END\n"
    "RECORD(payment) FIELD(card, str(8), SENSITIVE) FIELD(cents, u64) END\n"
    "RECORD(since) FIELD(days, u8) END\n"
    "STATE(OPEN, open, INITIAL)\n"
    "STATE(PAYING, paying)\n"
    "STATE(PAID, paid)\n"
    "EVENT(PAY, pay, payment)\n"
    "EVENT(LOOK, look)\n"
    "EVENT(END_IT, end_it)\n"
    "EVENT(CALL_OFF, call_off)\n"
    "INTERNAL(YES, yes, payment)\n"
    "INTERNAL(NO, no)\n"
    "INTERNAL(LATE, late, since)\n"
    "UNHANDLED(LOOK, IGNORE)\n"
    "UNHANDLED(CALL_OFF, DEFER)\n"
    "GUARD(enough)\n"
    "HOOK(stock)\n"
    "UPDATE(add)\n"
    "FILL(how_long)\n"
    "EFFECT(charge, YES, NO)\n"
    "EFFECT(mail)\n"
    "TIMER(remind, HOURS(24), LATE, how_long)\n"
    "ON(OPEN, PAY, PAYING, IF(enough), CALL(stock), KEEP(cents), DO(charge, mail), ARM(remind))\n"
    "ON(PAYING, YES, PAID, SET(add))\n"
    "ON(PAYING, NO, OPEN, DISARM(remind))\n"
    "STAY(ANY(OPEN, PAYING, PAID), LATE)\n"
    "STOP(PAID, END_IT, REASON(\"all done\"))\n"
    "ON(PAID, CALL_OFF, OPEN)\n"
    "STAY(PAID, LOOK)\n"
    "AFTER(PAYING, MINUTES(5), NO)\n";

/* A test file that is being run: the machine, the tree, the cases. */
struct sheet {
    const struct det_allocator *allocator;
    struct det_spec *spec;
    struct det_arena arena;
    struct cli_coverage coverage;
    struct case_file file;
    struct cli_problems problems;
};

static inline int open_sheet(
    struct sheet *sheet, const struct det_allocator *allocator, const char *text)
{
    struct det_spec_options options = { .allocator = allocator };
    struct det_datum *root;
    const char *path;
    int r;

    *sheet = (struct sheet){ .allocator = allocator };
    det_arena_init(&sheet->arena, allocator);
    r = det_spec_read("order.fsm", spec_text, sizeof spec_text - 1, &options, &sheet->spec);
    if (r < 0)
        return r;
    assert_non_null(det_spec_machine(sheet->spec));
    assert_int_equal(cli_stubs_bind(det_spec_machine(sheet->spec), NULL), 0);
    r = cli_coverage_init(&sheet->coverage, det_spec_machine(sheet->spec), allocator);
    if (r == 0)
        r = det_yaml_read(&sheet->arena, text, strlen(text), &root, &sheet->problems.items[0]);
    if (r == 0)
        r = case_machine_path(root, &path, &sheet->problems);
    if (r == 0)
        r = case_file_read(
            &sheet->arena, root, det_spec_machine(sheet->spec), &sheet->file, &sheet->problems);
    return r;
}

static inline void close_sheet(struct sheet *sheet)
{
    cli_coverage_deinit(&sheet->coverage, sheet->allocator);
    det_spec_close(sheet->spec);
    det_arena_deinit(&sheet->arena);
}

#define HEAD "machine: order.fsm\n"
/* The steps of one case, from line 5 on. */
#define STEPS(steps) HEAD "cases:\n  - name: it\n    steps:\n" steps

#endif
