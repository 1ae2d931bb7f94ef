/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_test.c - test files as data, and cases as they are played. */
#include "cli/case.h"

#include <detent/spec.h>

#include "cli/play.h"
#include "cli/stubs.h"

#include "lib/test.h"

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

/* A test file on its way: the machine, the tree, the cases. */
struct sheet {
    const struct det_allocator *allocator;
    struct det_spec *spec;
    struct det_arena arena;
    struct cli_coverage coverage;
    struct case_file file;
    struct cli_yaml_error error;
};

static int open_sheet(struct sheet *sheet, const struct det_allocator *allocator, const char *text)
{
    struct det_spec_options options = { .allocator = allocator };
    struct cli_yaml *root;
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
        r = cli_yaml_read(&sheet->arena, text, strlen(text), &root, &sheet->error);
    if (r == 0)
        r = case_machine_path(root, &path, &sheet->error);
    if (r == 0)
        r = case_file_read(
            &sheet->arena, root, det_spec_machine(sheet->spec), &sheet->file, &sheet->error);
    return r;
}

static void close_sheet(struct sheet *sheet)
{
    cli_coverage_deinit(&sheet->coverage, sheet->allocator);
    det_spec_close(sheet->spec);
    det_arena_deinit(&sheet->arena);
}

#define HEAD "machine: order.fsm\n"
/* The steps of one case, from line 5 on. */
#define STEPS(steps) HEAD "cases:\n  - name: it\n    steps:\n" steps

static void refused(const char *text, unsigned line, unsigned column, const char *sentence)
{
    struct sheet sheet;
    int r = open_sheet(&sheet, NULL, text);

    assert_int_equal(r, DET_ERR_MALFORMED);
    assert_string_equal(sheet.error.text, sentence);
    assert_int_equal(sheet.error.line, line);
    assert_int_equal(sheet.error.column, column);
    close_sheet(&sheet);
}

static void files_have_their_keys(void **state)
{
    (void)state;
    refused("cases: []\n", 1, 1, "a test file needs 'machine'");
    refused(HEAD, 1, 1, "a test file needs 'cases'");
    refused(HEAD "case: []\n", 2, 1, "a test file has no key 'case'; did you mean 'cases'?");
    refused(HEAD "zzz: []\n", 2, 1, "a test file has no key 'zzz'");
    refused("- a\n", 1, 1, "a test file is a mapping, not a sequence");
    refused("machine: [a]\ncases: []\n", 1, 10, "'machine' is a single value, not a sequence");
    refused(HEAD "cases: []\n", 2, 8, "there are no cases");
    refused(HEAD "cases: x\n", 2, 8, "'cases' is a sequence, not a single value");
}

static void cases_have_their_keys(void **state)
{
    (void)state;
    refused(HEAD "cases:\n  - steps: []\n", 3, 5, "a case needs 'name'");
    refused(HEAD "cases:\n  - name: x\n", 3, 5, "a case needs 'steps'");
    refused(HEAD "cases:\n  - name: ''\n    steps: []\n", 3, 11, "the name of a case is not empty");
    refused(
        HEAD "cases:\n  - {name: x, steps: []}\n  - {name: x, steps: []}\n", 4, 12,
        "there is a case 'x' already");
    refused(
        HEAD "cases:\n  - name: x\n    start: {cents: -1}\n    steps: []\n", 4, 20,
        "basket.cents: the number does not fit; 0 to 18446744073709551615");
    refused(
        HEAD "cases:\n  - name: x\n    start_error: action_faild\n    steps: []\n", 4, 18,
        "there is no error 'action_faild'; did you mean 'action_failed'?");
    refused(
        HEAD "cases:\n  - name: x\n    start_error: refused\n    steps: [{advance: 1s}]\n", 5, 13,
        "a case whose start fails has no steps");
}

/* The data at the start, from column 13 of line 4 on. */
#define START(data) HEAD "cases:\n  - name: x\n    start: {" data "}\n    steps: []\n"

static void a_value_that_does_not_fit_is_told_what_does(void **state)
{
    (void)state;
    refused(START("nte: x"), 4, 13, "basket has no field 'nte'; did you mean 'note'?");
    refused(
        START("note: 12345678901234567"), 4, 19,
        "basket.note: the text is too long; at most 16 bytes");
    refused(
        START("paint: pink"), 4, 20, "basket.paint: the enum has no such value; one of red, blue");
    refused(
        START("lines: [{}, {}, {}, {}, {}]"), 4, 20,
        "basket.lines: there are too many elements; at most 4");
    refused(
        START("lines: [{}, {count: 4294967296}]"), 4, 20,
        "basket.lines[1].count: the number does not fit; 0 to 4294967295");
    refused(
        START("lines: [{item: '123456789'}]"), 4, 20,
        "basket.lines[0].item: the text is too long; at most 8 bytes");
    refused(
        START("lines: [{itm: x}]"), 4, 20,
        "basket.lines[0]: there is no field itm (did you mean item?)");
    refused(START("shift: 128"), 4, 20, "basket.shift: the number does not fit; -128 to 127");
    refused(START("rate: 1e999"), 4, 19, "basket.rate: the number does not fit");
}

static void steps_do_one_thing(void **state)
{
    (void)state;
    refused(STEPS("      - {}\n"), 5, 9, "the step is empty");
    refused(
        STEPS("      - {send: pay, advance: 1s}\n"), 5, 30,
        "a step does one thing: 'send' or 'advance'");
    refused(STEPS("      - {with: {cents: 1}}\n"), 5, 16, "'with' needs an action in this step");
    refused(STEPS("      - {advance: 1s, id: x}\n"), 5, 27, "'id' does not go with 'advance'");
    refused(STEPS("      - {send: pya}\n"), 5, 16, "order has no event 'pya'; did you mean 'pay'?");
    refused(STEPS("      - {send: [pay]}\n"), 5, 16, "an event is a single value, not a sequence");
    refused(STEPS("      - {send: look, with: {a: 1}}\n"), 5, 28, "the event look carries nothing");
    refused(
        STEPS("      - {send: pay, with: {cent: 1}}\n"), 5, 28,
        "payment has no field 'cent'; did you mean 'cents'?");
    refused(
        STEPS("      - {send: pay, with: {cents: x}}\n"), 5, 35,
        "payment.cents: a whole number was expected");
    refused(STEPS("      - {send_all: []}\n"), 5, 20, "'send_all' has 1 to 64 events");
    refused(
        STEPS("      - {advance: soon}\n"), 5, 19,
        "this is a time such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years");
    refused(
        STEPS("      - {answer: chrage}\n"), 5, 18,
        "order has no effect 'chrage'; did you mean 'charge'?");
    refused(
        STEPS("      - {answer: mail, produce: no}\n"), 5, 33,
        "the effect mail does not produce 'no'");
    refused(
        STEPS("      - {answer: charge, produce: no, fail: true}\n"), 5, 35,
        "an effect produces, fails or is done: one of these");
    refused(
        STEPS("      - {answer: charge, with: {cents: 1}}\n"), 5, 32,
        "'with' is the payload of what is produced: say 'produce'");
    refused(
        STEPS("      - {let: {guard: {}}}\n"), 5, 16,
        "'let' has no key 'guard'; did you mean 'guards'?");
    refused(
        STEPS("      - {stop: [x]}\n"), 5, 16,
        "the reason of a stop is a single value, not a sequence");
}

static void answers_are_for_functions_that_are_there(void **state)
{
    (void)state;
    refused(
        HEAD "guards: {enogh: true}\ncases: [{name: x, steps: []}]\n", 2, 10,
        "order has no guard 'enogh'; did you mean 'enough'?");
    refused(
        HEAD "guards: {enough: maybe}\ncases: [{name: x, steps: []}]\n", 2, 18,
        "this is true or false");
    refused(
        HEAD "hooks: {stock: [ok]}\ncases: [{name: x, steps: []}]\n", 2, 16,
        "the answer of a hook is a single value, not a sequence");
    refused(
        HEAD "updates: {add: 1}\ncases: [{name: x, steps: []}]\n", 2, 16,
        "basket is a mapping, not a single value");
    refused(
        HEAD "fills: {how_long: {weeks: 1}}\ncases: [{name: x, steps: []}]\n", 2, 20,
        "since has no field 'weeks'");
    refused(
        HEAD "effects: {charge: []}\ncases: [{name: x, steps: []}]\n", 2, 19,
        "the sequence of answers is empty");
    refused(
        HEAD "effects: {charge: late}\ncases: [{name: x, steps: []}]\n", 2, 19,
        "the effect charge does not produce 'late'");
    refused(
        HEAD "effects: []\ncases: [{name: x, steps: []}]\n", 2, 10,
        "this list of functions is a mapping, not a sequence");
}

static void expectations_are_of_their_kind(void **state)
{
    (void)state;
    refused(
        STEPS("      - expect: {stat: open}\n"), 5, 18,
        "an expectation has no key 'stat'; did you mean 'state'?");
    refused(
        STEPS("      - expect: {state: opn}\n"), 5, 25,
        "order has no state 'opn'; did you mean 'open'?");
    refused(
        STEPS("      - expect: {outcome: unhandled}\n"), 5, 27,
        "an outcome is goto, stay, stop, ignored, deferred or dead_letter");
    refused(STEPS("      - expect: {sequence: x}\n"), 5, 28, "this is a whole number");
    refused(
        STEPS("      - expect: {action: nobody}\n"), 5, 26, "order has no guard or hook 'nobody'");
    refused(
        STEPS("      - expect: {timers: {remnd: 1h}}\n"), 5, 34,
        "order has no timer 'remnd'; did you mean 'remind'?");
    refused(
        STEPS("      - expect: {effects: charge}\n"), 5, 27,
        "this list of names is a sequence, not a single value");
    refused(
        STEPS("      - expect: {timeout: never}\n"), 5, 27,
        "this is a time such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years");
}

/* Plays the only case of a text. */
static struct play_result play(const char *text)
{
    struct cli_trace_writer trace = { .is_wanted = false };
    struct play_result result;
    struct play_options options;
    struct sheet sheet;

    if (open_sheet(&sheet, NULL, text) < 0)
        fail_msg("%u:%u: %s", sheet.error.line, sheet.error.column, sheet.error.text);
    options = (struct play_options){ .coverage = &sheet.coverage, .trace = &trace };
    assert_int_equal(
        play_case(&sheet.file, sheet.file.cases, det_spec_machine(sheet.spec), &options, &result),
        0);
    close_sheet(&sheet);
    return result;
}

static void passes(const char *text)
{
    struct play_result result = play(text);

    if (!result.is_ok)
        fail_msg(
            "line %u: %s; expected %s, actual %s", result.line, result.text, result.expected,
            result.actual);
}

static void fails(const char *text, unsigned line, const char *expected, const char *actual)
{
    struct play_result result = play(text);

    assert_false(result.is_ok);
    assert_int_equal(result.line, line);
    assert_string_equal(result.expected, expected);
    assert_string_equal(result.actual, actual);
}

static void a_case_that_says_all_there_is_passes(void **state)
{
    (void)state;
    passes(HEAD
           "updates: {add: {paint: blue, note: hi, lines: [{item: a, count: 2}]}}\n"
           "fills: {how_long: {days: 1}}\n"
           "cases:\n  - name: it\n    start: {cents: 5, paint: red}\n    steps:\n"
           "      - expect: {state: open, sequence: 0, timeout: none, timers: [], effects: []}\n"
           "      - {send: look, expect: {outcome: ignored, sequence: 0}}\n"
           "      - {send: end_it, expect: {error: unhandled, state: open}}\n"
           "      - {send: 'yes', expect: {error: invalid}}\n"
           "      - send: pay\n        with: {card: 4242, cents: 7}\n        id: one\n"
           "        expect: {outcome: goto, state: paying, timeout: 5m, timers: {remind: 24h},\n"
           "          effects: [charge, mail], data: {cents: 7, paint: red, note: ~}}\n"
           "      - {send: pay, id: one, expect: {duplicate: true, sequence: 1}}\n"
           "      - {answer: mail}\n"
           "      - {answer: charge, fail: io, expect: {effects: [charge]}}\n"
           "      - {send: call_off, expect: {outcome: deferred, deferred: 1}}\n"
           "      - {stop: enough, expect: {stopped: true, reason: enough, timers: []}}\n"
           "      - {send: pay, expect: {error: stopped}}\n");
}

static void effects_answer_by_themselves_when_told_so(void **state)
{
    (void)state;
    passes(
        HEAD
        "effects: {mail: done, charge: {produce: 'yes', with: {cents: 3}, after: 2s}}\n"
        "cases:\n  - name: it\n    updates: {add: {cents: 9}}\n    steps:\n"
        "      - {send: pay}\n"
        "      - {advance: 1999ms, expect: {state: paying}}\n"
        "      - {advance: 1ms, expect: {state: paid, data: {cents: 9}, history: [paying, open]}}\n"
        "      - {send: end_it, expect: {outcome: stop, stopped: true, reason: all done}}\n");
}

static void answers_change_from_call_to_call_and_by_let(void **state)
{
    (void)state;
    passes(HEAD
           "guards: {enough: false}\n"
           "cases:\n  - name: it\n    effects: {mail: {done: true}, charge: ['no', {fail: true}]}\n"
           "    steps:\n"
           "      - {send: pay, expect: {error: refused, action: enough}}\n"
           "      - {let: {guards: {enough: true}, hooks: {stock: fail}}}\n"
           "      - {send: pay, expect: {error: action_failed, action: stock}}\n"
           "      - {let: {hooks: {stock: ok}}}\n"
           "      - {send: pay, expect: {state: open, sequence: 2, timers: []}}\n"
           "      - {send: pay, expect: {state: paying, effects: [charge]}}\n"
           "      - {let: {effects: {charge: {fail: no_space}}}}\n"
           "      - {advance: 4m, expect: {dead: [charge], effects: [], state: paying}}\n"
           "      - {advance: 1m, expect: {state: open}}\n");
}

static void several_events_in_one_commit_are_all_or_nothing(void **state)
{
    (void)state;
    passes(STEPS("      - {send_all: [pay, end_it], expect: {error: unhandled, sequence: 0}}\n"
                 "      - {send_all: [pay], expect: {outcome: goto, sequence: 1}}\n"));
}

static void what_differs_is_shown(void **state)
{
    (void)state;
    fails(STEPS("      - expect: {state: paid}\n"), 5, "paid", "open");
    fails(STEPS("      - expect: {sequence: 3}\n"), 5, "3", "0");
    fails(STEPS("      - expect: {stopped: true}\n"), 5, "true", "false");
    fails(STEPS("      - expect: {reason: done}\n"), 5, "done", "none");
    fails(STEPS("      - expect: {deferred: 1}\n"), 5, "1", "0");
    fails(STEPS("      - expect: {timeout: 5m}\n"), 5, "5m", "none");
    fails(STEPS("      - expect: {timers: {remind: 1h}}\n"), 5, "remind: 1h", "none");
    fails(STEPS("      - expect: {effects: [mail]}\n"), 5, "mail", "none");
    fails(STEPS("      - expect: {dead: [mail]}\n"), 5, "mail", "none");
    fails(STEPS("      - expect: {history: [open]}\n"), 5, "open", "none");
    fails(STEPS("      - expect: {data: {cents: 1}}\n"), 5, "{\"cents\":1}", "{\"cents\":0}");
    fails(STEPS("      - {send: pay, expect: {error: refused}}\n"), 5, "refused", "none");
    fails(STEPS("      - {send: pay, expect: {action: enough}}\n"), 5, "enough", "none");
    fails(STEPS("      - {send: pay, expect: {outcome: stay}}\n"), 5, "stay", "goto");
    fails(STEPS("      - {send: pay, expect: {duplicate: true}}\n"), 5, "true", "false");
    fails(
        STEPS("      - send: pay\n      - expect: {timers: {remind: 23h}}\n"), 6, "remind: 23h",
        "remind: 1d");
    fails(
        STEPS("      - send: pay\n      - expect: {effects: [mail, charge]}\n"), 6, "mail, charge",
        "charge, mail");
}

static void an_update_that_does_nothing_is_noted_when_data_differs(void **state)
{
    struct play_result result =
        play(HEAD "effects: {charge: 'yes'}\n"
                  "cases:\n  - name: it\n    steps:\n"
                  "      - {send: pay, expect: {state: paid, data: {cents: 9}}}\n");

    (void)state;
    assert_false(result.is_ok);
    assert_string_equal(
        result.note, "update add ran and changed nothing: the case says what updates do (updates: "
                     "{add: {FIELD: VALUE}})");
    result = play(STEPS("      - {send: pay, expect: {data: {cents: 9}}}\n"));
    assert_false(result.is_ok);
    assert_string_equal(result.note, "");
}

static void what_goes_wrong_by_itself_fails_the_case(void **state)
{
    struct play_result result = play(STEPS("      - {send: end_it}\n"));

    (void)state;
    assert_false(result.is_ok);
    assert_non_null(strstr(result.text, "it failed: unhandled: order case is open"));
    result = play(STEPS("      - {answer: mail}\n"));
    assert_string_equal(result.text, "no call of the effect mail waits for an answer");
    result = play(HEAD "effects: {mail: fail}\ncases:\n  - name: it\n    steps:\n"
                       "      - {send: pay, expect: {state: open}}\n");
    assert_false(result.is_ok);
    assert_string_equal(result.note, "an attempt of effect mail failed: cancelled");
    result = play(HEAD "cases: [{name: it, start_error: refused, steps: []}]\n");
    assert_string_equal(result.text, "the start should have failed: refused");
    assert_int_equal(result.step, 0);
}

static int play_scenario(struct det_test_memory *memory, void *argument)
{
    static const char given_text[] =
        STEPS("      - {send: pay, with: {cents: 1}, expect: {state: paying, data: {cents: 1}}}\n"
              "      - {answer: charge, produce: 'no', expect: {state: open}}\n");
    struct cli_trace_writer trace = { .is_wanted = false };
    struct play_result result;
    struct play_options options;
    struct sheet sheet;
    int r;

    (void)argument;
    r = open_sheet(&sheet, &memory->allocator, given_text);
    if (r == 0) {
        options = (struct play_options){ &memory->allocator, &sheet.coverage, &trace, 0 };
        r = play_case(
            &sheet.file, sheet.file.cases, det_spec_machine(sheet.spec), &options, &result);
        assert_true(r < 0 || result.is_ok || memory->failed);
    }
    close_sheet(&sheet);
    return r;
}

static void playing_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(play_scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_their_keys),
        cmocka_unit_test(cases_have_their_keys),
        cmocka_unit_test(a_value_that_does_not_fit_is_told_what_does),
        cmocka_unit_test(steps_do_one_thing),
        cmocka_unit_test(answers_are_for_functions_that_are_there),
        cmocka_unit_test(expectations_are_of_their_kind),
        cmocka_unit_test(a_case_that_says_all_there_is_passes),
        cmocka_unit_test(effects_answer_by_themselves_when_told_so),
        cmocka_unit_test(answers_change_from_call_to_call_and_by_let),
        cmocka_unit_test(several_events_in_one_commit_are_all_or_nothing),
        cmocka_unit_test(what_differs_is_shown),
        cmocka_unit_test(an_update_that_does_nothing_is_noted_when_data_differs),
        cmocka_unit_test(what_goes_wrong_by_itself_fails_the_case),
        cmocka_unit_test(playing_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
