/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play_test.c - cases as they are played. */
#include "testing/play.h"

#include "testing/case_test.h"

static struct play_result play(const char *text)
{
    struct cli_trace_writer trace = { .is_wanted = false };
    struct play_result result;
    struct play_options options;
    struct sheet sheet;

    if (open_sheet(&sheet, NULL, text) < 0)
        fail_msg(
            "%u:%u: %s", sheet.problems.items[0].line, sheet.problems.items[0].column,
            sheet.problems.items[0].text);
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
            "line %u: %s; expected %s, actual %s", result.failures[0].line, result.failures[0].text,
            result.failures[0].expected, result.failures[0].actual);
}

static void fails(const char *text, unsigned line, const char *expected, const char *actual)
{
    struct play_result result = play(text);

    assert_false(result.is_ok);
    assert_int_equal(result.failure_count, 1);
    assert_int_equal(result.failures[0].line, line);
    assert_string_equal(result.failures[0].expected, expected);
    assert_string_equal(result.failures[0].actual, actual);
}

static void case_with_every_key_passes(void **state)
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
           "      - send: pay\n        payload: {card: 4242, cents: 7}\n        id: one\n"
           "        expect: {outcome: goto, state: paying, timeout: 5m, timers: {remind: 24h},\n"
           "          effects: [charge, mail], data: {cents: 7, paint: red, note: ~}}\n"
           "      - {send: pay, id: one, payload: {card: 4242, cents: 7},\n"
           "         expect: {duplicate: true, sequence: 1}}\n"
           "      - {send: pay, id: one, payload: {card: 4242, cents: 8},\n"
           "         expect: {error: conflict, sequence: 1}}\n"
           "      - {answer: mail}\n"
           "      - {answer: charge, fail: io, expect: {effects: [charge]}}\n"
           "      - {send: call_off, expect: {outcome: deferred, deferred: 1}}\n"
           "      - {stop: enough, expect: {stopped: true, reason: enough, timers: []}}\n"
           "      - {send: pay, expect: {error: stopped}}\n");
}

static void configured_effects_answer_automatically(void **state)
{
    (void)state;
    passes(
        HEAD
        "effects: {mail: done, charge: {produce: 'yes', payload: {cents: 3}, after: 2s}}\n"
        "cases:\n  - name: it\n    updates: {add: {cents: 9}}\n    steps:\n"
        "      - {send: pay}\n"
        "      - {advance: 1999ms, expect: {state: paying}}\n"
        "      - {advance: 1ms, expect: {state: paid, data: {cents: 9}, history: [paying, open]}}\n"
        "      - {send: end_it, expect: {outcome: stop, stopped: true, reason: all done}}\n");
}

static void answers_change_per_call_and_by_let(void **state)
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

static void failed_expectation_shows_both_values(void **state)
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

static void every_failed_expectation_of_a_step_is_shown(void **state)
{
    struct play_result result =
        play(STEPS("      - expect: {state: paid, sequence: 0, timeout: 5m,\n"
                   "          data: {cents: 1, note: ~, paint: blue}}\n"));

    (void)state;
    assert_int_equal(result.failure_count, 4);
    assert_string_equal(result.failures[0].text, "state is not as expected");
    assert_string_equal(result.failures[0].expected, "paid");
    assert_string_equal(result.failures[1].expected, "{\"cents\":1}");
    assert_string_equal(result.failures[2].expected, "{\"paint\":\"blue\"}");
    assert_int_equal(result.failures[2].line, 6);
    assert_string_equal(result.failures[3].text, "timeout is not as expected");
    assert_string_equal(result.failures[3].actual, "none");
}

static void failures_over_the_limit_are_counted(void **state)
{
    struct play_result result =
        play(STEPS("      - send: look\n        expect: {state: paid, sequence: 3, stopped: true,\n"
                   "          reason: done, deferred: 1, timeout: 5m, timers: {remind: 1h},\n"
                   "          effects: [mail], dead: [mail], history: [open], error: refused,\n"
                   "          action: enough, outcome: stay, duplicate: true, data: {cents: 1,\n"
                   "          paint: blue, note: hi, lines: [{item: a, count: 2}]}}\n"));

    (void)state;
    assert_int_equal(result.failure_count, 18);
    assert_int_not_equal(result.failures[PLAY_FAILURES_MAX - 1].line, 0);
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
        result.note,
        "update add ran and changed nothing: define what updates do in the case (updates: "
        "{add: {FIELD: VALUE}})");
    result = play(STEPS("      - {send: pay, expect: {data: {cents: 9}}}\n"));
    assert_false(result.is_ok);
    assert_string_equal(result.note, "");
}

static void unexpected_error_fails_the_case(void **state)
{
    struct play_result result = play(STEPS("      - {send: end_it}\n"));

    (void)state;
    assert_false(result.is_ok);
    assert_non_null(strstr(result.failures[0].text, "it failed: unhandled: order case is open"));
    result = play(STEPS("      - {answer: mail}\n"));
    assert_string_equal(result.failures[0].text, "no call of the effect mail waits for an answer");
    result = play(HEAD "effects: {mail: fail}\ncases:\n  - name: it\n    steps:\n"
                       "      - {send: pay, expect: {state: open}}\n");
    assert_false(result.is_ok);
    assert_string_equal(result.note, "an attempt of effect mail failed: cancelled");
    result = play(HEAD "cases: [{name: it, start_error: refused, steps: []}]\n");
    assert_string_equal(result.failures[0].text, "the start should have failed: refused");
    assert_int_equal(result.step, 0);
}

static int play_scenario(struct det_test_memory *memory, void *argument)
{
    static const char given_text[] = STEPS(
        "      - {send: pay, payload: {cents: 1}, expect: {state: paying, data: {cents: 1}}}\n"
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
        cmocka_unit_test(case_with_every_key_passes),
        cmocka_unit_test(configured_effects_answer_automatically),
        cmocka_unit_test(answers_change_per_call_and_by_let),
        cmocka_unit_test(several_events_in_one_commit_are_all_or_nothing),
        cmocka_unit_test(failed_expectation_shows_both_values),
        cmocka_unit_test(every_failed_expectation_of_a_step_is_shown),
        cmocka_unit_test(failures_over_the_limit_are_counted),
        cmocka_unit_test(an_update_that_does_nothing_is_noted_when_data_differs),
        cmocka_unit_test(unexpected_error_fails_the_case),
        cmocka_unit_test(playing_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
