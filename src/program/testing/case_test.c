/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_test.c - test files as data. */
#include "testing/case_test.h"

static void refused(const char *text, unsigned line, unsigned column, const char *sentence)
{
    struct sheet sheet;
    int r = open_sheet(&sheet, NULL, text);

    assert_int_equal(r, DET_ERR_MALFORMED);
    assert_string_equal(sheet.problems.items[0].text, sentence);
    assert_int_equal(sheet.problems.items[0].line, line);
    assert_int_equal(sheet.problems.items[0].column, column);
    for (size_t i = 1; i < sheet.problems.count; i++)
        print_message("and: %s\n", sheet.problems.items[i].text);
    assert_int_equal(sheet.problems.count, 1);
    close_sheet(&sheet);
}

static void independent_problems_are_all_reported(void **state)
{
    static const char text[] =
        HEAD "gards: {}\n"
             "effects: {chrge: done, mail: fial}\n"
             "cases:\n"
             "  - name: one\n"
             "    start: {cents: -1, paint: green, shift: 3}\n"
             "    hooks: {stock: perhaps}\n"
             "    steps:\n"
             "      - {snd: pay, expect: {state: opne, timers: {remnd: 1x}}}\n"
             "      - {send: look, advance: 1s, expect: {sequence: x, history: [a, open, b]}}\n"
             "      - {send_all: [look, lok, pya]}\n"
             "  - name: one\n"
             "    stesp: []\n"
             "  - {steps: [{stop: []}, {}]}\n";
    static const struct det_yaml_error wanted[] = {
        { 2, 1, "a test file has no key 'gards'; did you mean 'guards'?" },
        { 3, 11, "order has no effect 'chrge'; did you mean 'charge'?" },
        { 3, 30, "order has no event 'fial'; did you mean 'fail'?" },
        { 6, 20, "cents" },
        { 6, 31, "paint" },
        { 7, 20, "there is no error 'perhaps'" },
        { 9, 10, "a step has no key 'snd'; did you mean 'send'?" },
        { 9, 36, "order has no state 'opne'; did you mean 'open'?" },
        { 9, 51, "order has no timer 'remnd'; did you mean 'remind'?" },
        { 9, 58, "expected a duration such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years" },
        { 10, 31, "a step does one thing: 'send' or 'advance'" },
        { 10, 54, "expected a whole number" },
        { 10, 67, "order has no state 'a'" },
        { 10, 76, "order has no state 'b'" },
        { 11, 27, "order has no event 'lok'; did you mean 'look'?" },
        { 11, 32, "order has no event 'pya'; did you mean 'pay'?" },
        { 13, 5, "a case has no key 'stesp'; did you mean 'steps'?" },
        { 12, 11, "there is a case 'one' already" },
        { 14, 5, "a case needs 'name'" },
        { 14, 21, "the reason of a stop is a single value, not a sequence" },
    };
    struct sheet sheet;

    (void)state;
    assert_int_equal(open_sheet(&sheet, NULL, text), DET_ERR_MALFORMED);
    for (size_t i = 0; i < sheet.problems.count; i++) {
        const struct det_yaml_error *found = &sheet.problems.items[i];

        assert_non_null(strstr(found->text, wanted[i].text));
        assert_int_equal(found->line, wanted[i].line);
        assert_int_equal(found->column, wanted[i].column);
    }
    assert_int_equal(sheet.problems.count, CLI_PROBLEMS_MAX);
    /* The step that is empty. */
    assert_true(sheet.problems.is_cut);
    close_sheet(&sheet);
}

static void files_have_their_keys(void **state)
{
    (void)state;
    refused("cases: []\n", 1, 1, "a test file needs 'machine'");
    refused(HEAD, 1, 1, "a test file needs 'cases'");
    refused(HEAD "case: []\n", 2, 1, "a test file has no key 'case'; did you mean 'cases'?");
    refused(
        HEAD "zzz: []\n", 2, 1,
        "a test file has no key 'zzz'; its keys are guards, hooks, updates, fills, effects, "
        "machine, cases");
    refused("- a\n", 1, 1, "a test file is a mapping, not a sequence");
    refused("machine: [a]\ncases: []\n", 1, 10, "'machine' is a single value, not a sequence");
    refused(HEAD "cases: []\n", 2, 8, "there are no cases");
    refused(HEAD "cases: x\n", 2, 8, "'cases' is a sequence, not a single value");
}

static void invalid_case_keys_are_refused(void **state)
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

static void invalid_value_is_reported_with_the_valid_ones(void **state)
{
    (void)state;
    refused(START("nte: x"), 4, 13, "basket has no field 'nte'; did you mean 'note'?");
    refused(
        START("note: 12345678901234567"), 4, 19,
        "basket.note: the text is too long; at most 16 bytes");
    refused(
        START("paint: pink"), 4, 20, "basket.paint: the enum has no such value; one of red, blue");
    refused(
        START("lines: [{}, {}, {}, {}, {}]"), 4, 20, "basket.lines: too many elements; at most 4");
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

static void step_with_several_actions_is_refused(void **state)
{
    (void)state;
    refused(STEPS("      - {}\n"), 5, 9, "the step is empty");
    refused(
        STEPS("      - {send: pay, advance: 1s}\n"), 5, 30,
        "a step does one thing: 'send' or 'advance'");
    refused(
        STEPS("      - {payload: {cents: 1}}\n"), 5, 19, "'payload' needs an action in this step");
    refused(STEPS("      - {advance: 1s, id: x}\n"), 5, 27, "'id' does not go with 'advance'");
    refused(STEPS("      - {send: pya}\n"), 5, 16, "order has no event 'pya'; did you mean 'pay'?");
    refused(STEPS("      - {send: [pay]}\n"), 5, 16, "an event is a single value, not a sequence");
    refused(
        STEPS("      - {send: look, payload: {a: 1}}\n"), 5, 31, "the event look has no payload");
    refused(
        STEPS("      - {send: pay, payload: {cent: 1}}\n"), 5, 31,
        "payment has no field 'cent'; did you mean 'cents'?");
    refused(
        STEPS("      - {send: pay, payload: {cents: x}}\n"), 5, 38,
        "payment.cents: expected a whole number");
    refused(STEPS("      - {send_all: []}\n"), 5, 20, "'send_all' has 1 to 64 events");
    refused(
        STEPS("      - {advance: soon}\n"), 5, 19,
        "expected a duration such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years");
    refused(
        STEPS("      - {answer: chrage}\n"), 5, 18,
        "order has no effect 'chrage'; did you mean 'charge'?");
    refused(
        STEPS("      - {answer: mail, produce: no}\n"), 5, 33,
        "the effect mail does not produce 'no'; it produces nothing");
    refused(
        STEPS("      - {answer: charge, produce: no, fail: true}\n"), 5, 35,
        "an effect produces, fails or is done: one of these");
    refused(
        STEPS("      - {answer: charge, payload: {cents: 1}}\n"), 5, 35,
        "'payload' belongs to the produced event; add 'produce'");
    refused(
        STEPS("      - {let: {guard: {}}}\n"), 5, 16,
        "'let' has no key 'guard'; did you mean 'guards'?");
    refused(
        STEPS("      - {stop: [x]}\n"), 5, 16,
        "the reason of a stop is a single value, not a sequence");
}

static void answers_must_name_existing_functions(void **state)
{
    (void)state;
    refused(
        HEAD "guards: {enogh: true}\ncases: [{name: x, steps: []}]\n", 2, 10,
        "order has no guard 'enogh'; did you mean 'enough'?");
    refused(
        HEAD "guards: {enough: maybe}\ncases: [{name: x, steps: []}]\n", 2, 18,
        "expected true or false");
    refused(
        HEAD "guards: {enough: [false, true]}\ncases: [{name: x, steps: []}]\n", 2, 18,
        "expected true or false; to change it on the way, add a step {let: {guards: {enough: "
        "true}}}");
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
        "the effect charge does not produce 'late'; it produces yes, no");
    refused(
        HEAD "effects: []\ncases: [{name: x, steps: []}]\n", 2, 10,
        "this list of functions is a mapping, not a sequence");
}

static void invalid_expectations_are_refused(void **state)
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
    refused(STEPS("      - expect: {sequence: x}\n"), 5, 28, "expected a whole number");
    refused(
        STEPS("      - expect: {action: nobody}\n"), 5, 26, "order has no guard or hook 'nobody'");
    refused(
        STEPS("      - expect: {timers: {remnd: 1h}}\n"), 5, 27,
        "order has no timer 'remnd'; did you mean 'remind'?");
    refused(
        STEPS("      - expect: {effects: charge}\n"), 5, 27,
        "this list of names is a sequence, not a single value");
    refused(
        STEPS("      - expect: {timeout: never}\n"), 5, 27,
        "expected a duration such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years, or none");
}

/* Plays the only case of a text. */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_problems_are_all_reported),
        cmocka_unit_test(files_have_their_keys),
        cmocka_unit_test(invalid_case_keys_are_refused),
        cmocka_unit_test(invalid_value_is_reported_with_the_valid_ones),
        cmocka_unit_test(step_with_several_actions_is_refused),
        cmocka_unit_test(answers_must_name_existing_functions),
        cmocka_unit_test(invalid_expectations_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
