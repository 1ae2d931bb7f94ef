/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_test.c - specs become machines: words, rows, lists, places. */
#include <detent/tool/machine.h>

#include "machine/parse_test.h"

static void a_spec_becomes_a_machine(void **state)
{
    struct det_spec *spec = test_spec(ORDER);
    const struct det_machine *machine = test_machine(spec);

    (void)state;
    assert_string_equal(machine->name, "order");
    assert_int_equal(machine->version, 1);
    assert_int_equal(machine->state_count, 2);
    assert_int_equal(machine->event_count, 1);
    assert_int_equal(machine->initial, 0);
    assert_string_equal(machine->states[1].name, "paid");
    assert_int_equal(machine->states[1].flags, DET_STATE_FINAL);
    assert_int_equal(det_machine_step(machine, 0, 0)->outcome, DET_OUTCOME_GOTO);
    assert_int_equal(det_machine_step(machine, 0, 0)->to, 1);
    assert_int_equal(det_spec_diagnostics(spec)->count, 0);
    det_spec_close(spec);
    det_spec_close(NULL);
}

static void names_in_c_and_files_are_kept(void **state)
{
    struct det_spec *spec = test_spec(ORDER);

    (void)state;
    assert_string_equal(det_spec_state_c_name(spec, 0), "PENDING");
    assert_string_equal(det_spec_state_c_name(spec, 1), "PAID");
    assert_null(det_spec_state_c_name(spec, 2));
    assert_string_equal(det_spec_event_c_name(spec, 0), "PAY");
    assert_null(det_spec_event_c_name(spec, 1));
    assert_string_equal(det_spec_prefix(spec), "ORDER");
    assert_string_equal(det_spec_file(spec, 0), "specs/order.fsm");
    assert_null(det_spec_file(spec, 1));
    assert_null(det_spec_record(spec, 0));
    det_spec_close(spec);
}

static void rows_are_found_by_their_number(void **state)
{
    struct det_spec *spec = test_spec(HEAD "RECORD(code)\n  FIELD(tries, u8)\nEND\n"
                                           "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar)\n"
                                           "EVENT(PUSH, push, code)\n"
                                           "ON(SHUT, PUSH, AJAR)\n"
                                           "  STAY(AJAR, PUSH)\n");
    const struct det_machine *machine = test_machine(spec);
    struct det_place place;

    (void)state;
    place = det_spec_row_place(spec, det_machine_step(machine, 0, 0)->row);
    assert_string_equal(place.file, "specs/order.fsm");
    assert_int_equal(place.line, 8);
    assert_int_equal(place.column, 1);
    assert_int_equal(place.width, 2);
    assert_string_equal(place.source, "ON(SHUT, PUSH, AJAR)");
    place = det_spec_row_place(spec, det_machine_step(machine, 1, 0)->row);
    assert_int_equal(place.line, 9);
    assert_int_equal(place.column, 3);
    assert_int_equal(det_spec_row_place(spec, 1).line, 6);
    assert_null(det_spec_row_place(spec, 0).file);
    assert_null(det_spec_row_place(spec, 6).file);
    assert_null(det_spec_row_place(spec, UINT32_MAX).file);
    det_spec_close(spec);
}

static void a_row_with_a_mistake_has_no_number(void **state)
{
    struct det_spec *spec = test_spec(HEAD "ON(PENDING)\n" BASE MOVE);

    (void)state;
    assert_null(det_spec_machine(spec));
    assert_int_equal(det_spec_row_place(spec, 1).line, 4);
    assert_int_equal(det_spec_row_place(spec, 4).line, 7);
    assert_null(det_spec_row_place(spec, 5).file);
    det_spec_close(spec);
}

static void options_may_be_left_out(void **state)
{
    struct det_spec *spec;

    (void)state;
    assert_int_equal(det_spec_read("order", ORDER, strlen(ORDER), NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    det_spec_close(spec);
}

static void defines_are_applied_to_the_machine(void **state)
{
    struct det_spec *spec =
        test_spec(HEAD "#define FSM_VERSION 7\n#define FSM_DATA info\n"
                       "#define FSM_UNHANDLED DEFER\n"
                       "RECORD(info) FIELD(x, u8) END\n"
                       "UNHANDLED(CALL_OFF, DEAD_LETTER)\nEVENT(CALL_OFF, off)\n"
                       "STAY(PENDING, CALL_OFF)\n" BASE MOVE);
    const struct det_machine *machine = test_machine(spec);

    (void)state;
    assert_int_equal(machine->version, 7);
    assert_string_equal(det_machine_data(machine)->name, "info");
    assert_int_equal(machine->events[0].unhandled, DET_UNHANDLED_DEAD_LETTER);
    assert_int_equal(machine->events[1].unhandled, DET_UNHANDLED_DEFER);
    det_spec_close(spec);
}

static void invalid_defines_are_refused(void **state)
{
    (void)state;
    test_only(
        HEAD "#define FSM_VERSION 0\n" BASE MOVE, NULL, DET_RULE_ROW_ARGUMENTS,
        "specs/order.fsm:3:21", "FSM_VERSION must be a whole number");
    test_only(
        HEAD "#define FSM_VERSION 4294967296\n" BASE MOVE, NULL, DET_RULE_ROW_ARGUMENTS,
        "specs/order.fsm:3:21", "FSM_VERSION must be a whole number");
    test_only(
        HEAD "#define FSM_DATA 5\n" BASE MOVE, NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:3:18",
        "FSM_DATA is the name of a record");
    test_only(
        HEAD "#define FSM_UNHANDLED DROP\n" BASE MOVE, NULL, DET_RULE_ROW_ARGUMENTS,
        "specs/order.fsm:3:23", "FSM_UNHANDLED is");
    test_only(
        "#define FSM_NAME order\n#define FSM_PREFIX 5\n" BASE MOVE, NULL, DET_RULE_BAD_NAME,
        "specs/order.fsm:2:20", "5 is not a name");
    test_only(
        "#define FSM_NAME a, b\n" ORDER, NULL, DET_RULE_SYNTAX, "specs/order.fsm:1:21",
        "b is one too many");
    test_only(
        "#define FSM_NAME other\n" ORDER, NULL, DET_RULE_SYNTAX, "specs/order.fsm:2:9",
        "FSM_NAME is defined twice");
    test_only(
        "#define FSM_PREFIX ORDER\n" BASE MOVE, NULL, DET_RULE_NO_NAME, "specs/order.fsm:1:1",
        "FSM_NAME");
    test_only(
        "#define FSM_NAME order\n" BASE MOVE, NULL, DET_RULE_NO_NAME, "specs/order.fsm:1:18",
        "FSM_PREFIX");
}

static const struct det_transition_more *more_of(
    const struct det_machine *machine, const char *from, const char *event)
{
    int state = det_machine_find_state(machine, from),
        kind = det_machine_find_event(machine, event);

    assert_true(state >= 0 && kind >= 0);
    return det_machine_step(machine, (unsigned)state, (unsigned)kind)->more;
}

static void every_extra_reaches_its_transition(void **state)
{
    struct det_spec *spec = test_spec(
        HEAD "#define FSM_DATA info\nRECORD(info) FIELD(cents, u64) END\n"
             "RECORD(payment) FIELD(cents, u64) END\nSTATE(PENDING, pending, INITIAL)\n"
             "STATE(PAID, paid)\nEVENT(PAY, pay, payment)\nEVENT(QUIT, quit)\nGUARD(g)\nHOOK(h)\n"
             "UPDATE(u)\nFILL(f)\nEFFECT(e)\nEFFECT(d, QUIT)\nTIMER(t, SECONDS(2), QUIT, f)\n"
             "ON(PENDING, PAY, PAID, IF(g), CALL(h), SET(u), KEEP(cents), DO(d, e), ARM(t),\n"
             "    DISARM(t), WITHIN(MILLISECONDS(5), QUIT, f))\nSTAY(PAID, PAY)\n"
             "STOP(ANY(PENDING, PAID), QUIT, REASON(\"a \\\"b\\\"\\t\\\\\\n\"))\n"
             "ENTRY(PAID, h)\nEXIT(PENDING, h)\nAFTER(PENDING, DAYS(1), QUIT, f)\n");
    const struct det_machine *machine = test_machine(spec);
    const struct det_transition_more *more = more_of(machine, "pending", "pay");

    (void)state;
    assert_string_equal(more->guard->name, "g");
    assert_string_equal(more->hook->name, "h");
    assert_string_equal(more->update->name, "u");
    assert_int_equal(more->keep_count, 1);
    assert_string_equal(more->keeps[0].name, "cents");
    assert_int_equal(more->effect_count, 2);
    assert_string_equal(machine->effects[more->effects[0]].name, "d");
    assert_string_equal(machine->timers[more->arms[0]].name, "t");
    assert_int_equal(more->disarm_count, 1);
    assert_int_equal(more->within->after, 5 * DET_MILLISECOND);
    assert_string_equal(more->within->fill->name, "f");
    assert_int_equal(machine->timers[0].timeout.after, 2 * DET_SECOND);
    assert_string_equal(more_of(machine, "paid", "quit")->reason, "a \"b\"\t\\\n");
    assert_string_equal(machine->states[1].entry->name, "h");
    assert_string_equal(machine->states[0].exit->name, "h");
    assert_int_equal(machine->states[0].timeout.after, DET_DAY);
    det_spec_close(spec);
}

static void every_kind_of_transition_is_read(void **state)
{
    struct det_spec *spec = test_spec(HEAD BASE "EVENT(A, a)\nEVENT(B, b)\nEVENT(C, c)\n" MOVE
                                                "ON_EACH(ANY(A, B), PAID, PENDING, PAID)\n"
                                                "STAY(PENDING, C)\nSTOP(PAID, C)\n"
                                                "OVERRIDE(PENDING, A, PENDING)\n"
                                                "OVERRIDE_STAY(PAID, A)\nOVERRIDE_STOP(PAID, B)\n");
    const struct det_machine *machine = test_machine(spec);

    (void)state;
    assert_int_equal(det_machine_step(machine, 0, 1)->to, 0);
    assert_int_equal(det_machine_step(machine, 0, 2)->to, 1);
    assert_int_equal(det_machine_step(machine, 0, 3)->outcome, DET_OUTCOME_STAY);
    assert_int_equal(det_machine_step(machine, 1, 0)->outcome, DET_OUTCOME_UNHANDLED);
    assert_int_equal(det_machine_step(machine, 1, 1)->outcome, DET_OUTCOME_STAY);
    assert_int_equal(det_machine_step(machine, 1, 2)->outcome, DET_OUTCOME_STOP);
    assert_int_equal(det_machine_step(machine, 1, 3)->outcome, DET_OUTCOME_STOP);
    det_spec_close(spec);
}

static void every_kind_of_alternative_is_read(void **state)
{
    struct det_spec *spec = test_spec(HEAD BASE "#define FSM_DATA some\n"
                                                "RECORD(some)\nFIELD(n, u32)\nEND\n"
                                                "EVENT(A, a)\nGUARD(g)\nGUARD(h)\nUPDATE(u)\n" MOVE
                                                "ON  (PENDING, A, PAID, IF(g))\n"
                                                "ELSE(PENDING, A, PENDING, IF(h), SET(u))\n"
                                                "ELSE_STOP(PENDING, A, REASON(\"no\"))\n"
                                                "STAY(PAID, ANY(PAY, A), IF(g))\n"
                                                "ELSE_STAY(PAID, ANY(PAY, A))\n");
    const struct det_machine *machine = test_machine(spec);
    const struct det_choice *first = det_machine_choice(machine, 0, 1, NULL);
    const struct det_choice *second = det_machine_choice(machine, 0, 1, first);

    (void)state;
    assert_int_equal(machine->choice_count, 4);
    assert_string_equal(first->transition.more->guard->name, "h");
    assert_string_equal(first->transition.more->update->name, "u");
    assert_int_equal(first->transition.to, 0);
    assert_int_equal(second->transition.outcome, DET_OUTCOME_STOP);
    assert_string_equal(second->transition.more->reason, "no");
    assert_null(det_machine_choice(machine, 0, 1, second));
    assert_int_equal(det_machine_choice(machine, 1, 0, NULL)->transition.outcome, DET_OUTCOME_STAY);
    assert_int_equal(det_machine_choice(machine, 1, 1, NULL)->transition.outcome, DET_OUTCOME_STAY);
    det_spec_close(spec);
}

static void places_have_their_line_as_text(void **state)
{
    struct det_spec *spec =
        test_spec(HEAD BASE "ON(PENDING, PAY, PAID)\r\n"
                            "  ON(PENDING,\tPAY, PAID) // again\r\nSTAY(PAID, PAY)");
    const struct det_diagnostic *found = test_finding(spec, DET_RULE_DUPLICATE_TRANSITION, "PAY");

    (void)state;
    assert_string_equal(found->place.source, "  ON(PENDING,\tPAY, PAID) // again");
    assert_int_equal(found->place.line, 7);
    assert_int_equal(found->place.column, 6);
    assert_int_equal(found->place.width, 7);
    assert_int_equal(found->other.line, 6);
    assert_string_equal(found->other.source, "ON(PENDING, PAY, PAID)");
    det_spec_close(spec);
}

static void many_mistakes_are_found_in_one_go(void **state)
{
    struct det_spec *spec = test_spec(HEAD "STATE(A a)\nSTATE(B, b, wrong)\nNOBODY(x)\nOTHER(y)\n"
                                           "ON(A, B\nSTAY(A, B,)\nAFTER(A, 5, B)\nEVENT(E, e);\n"
                                           "#ifdef X\nSTATE(B, b)\n");

    (void)state;
    assert_int_equal(test_finding(spec, DET_RULE_SYNTAX, "comma or a closing")->place.line, 3);
    assert_int_equal(test_finding(spec, DET_RULE_ROW_ARGUMENTS, "INITIAL or FINAL")->place.line, 4);
    assert_int_equal(test_finding(spec, DET_RULE_UNKNOWN_ROW, "NOBODY")->place.line, 5);
    assert_int_equal(test_finding(spec, DET_RULE_UNKNOWN_ROW, "OTHER")->place.line, 6);
    assert_int_equal(test_finding(spec, DET_RULE_SYNTAX, "ON( is not closed")->place.line, 7);
    assert_int_equal(test_finding(spec, DET_RULE_SYNTAX, "expected an argument")->place.line, 8);
    assert_int_equal(test_finding(spec, DET_RULE_BAD_DURATION, "AFTER")->place.line, 9);
    assert_int_equal(test_finding(spec, DET_RULE_SYNTAX, "do not end with ;")->place.line, 10);
    assert_int_equal(
        test_finding(spec, DET_RULE_SYNTAX, "only #define and #include may follow a #")->place.line,
        11);
    assert_int_equal(test_finding(spec, DET_RULE_DUPLICATE_NAME, "B is already")->place.line, 12);
    det_spec_close(spec);
}

static void invalid_row_arguments_are_refused(void **state)
{
    (void)state;
    test_only(
        ORDER "STAY(PAID)\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:1",
        "STAY has 1 argument instead of 2 to 10; it is written STAY(STATE or ANY(...)");
    test_only(
        ORDER "GUARD()\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:1",
        "GUARD has 0 arguments instead of 1;");
    test_only(
        ORDER "GROUP(a)\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:1",
        "GROUP has 1 argument instead of 2 or more;");
    test_only(
        ORDER "STAY(PAID, ANY())\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:12",
        "argument 2 of STAY is an event or ANY(...) of events, not ANY(...)");
    test_only(
        ORDER "STAY(SOME(PAID), PAY)\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:6",
        "not SOME(...)");
    test_only(
        ORDER "STAY(PAID, PAY, IF())\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:17",
        "IF has 0 arguments instead of 1; it is written IF(guard)");
    test_only(
        ORDER "STAY(PAID, PAY, now)\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:17",
        "argument 3 of STAY is one of IF, CALL");
    test_only(
        ORDER "STOP(PAID, PAY, REASON(why))\n", NULL, DET_RULE_ROW_ARGUMENTS,
        "specs/order.fsm:7:24", "argument 1 of REASON is the reason in double quotes, not why");
    test_only(
        ORDER "USES(shop)\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:6",
        "argument 1 of USES is the name of a file in double quotes, not shop");
    test_only(
        ORDER "GROUP(x, \"y\")\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:10",
        "GROUP has names only: states");
    test_only(
        ORDER "GUARD(END)\n", NULL, DET_RULE_BAD_NAME, "specs/order.fsm:7:7",
        "END is a row, and cannot be a name");
}

static void a_row_with_a_wrong_argument_is_left_out(void **state)
{
    static const char *const rows[] = { "EVENT(5, x)",
                                        "STATE(5, x)",
                                        "UNHANDLED(5, IGNORE)",
                                        "TIMER(5, SECONDS(1), PAY)",
                                        "EFFECT(5)",
                                        "GUARD(5)",
                                        "HOOK(5)",
                                        "UPDATE(5)",
                                        "FILL(5)",
                                        "GROUP(5, PAID)",
                                        "EVENT_GROUP(5, PAY)",
                                        "ON_EACH(5, PAID, PENDING)",
                                        "ENTRY(5, h)",
                                        "EXIT(5, h)",
                                        "AFTER(5, SECONDS(1), PAY)",
                                        "STAY(5, PAY)" };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned column = (unsigned)(strchr(rows[i], '5') - rows[i]) + 1;
        char place[64];

        (void)snprintf(place, sizeof place, "specs/order.fsm:7:%u", column);
        (void)snprintf(text, sizeof text, "%s%s\n", ORDER, rows[i]);
        test_only(text, NULL, DET_RULE_ROW_ARGUMENTS, place, "argument 1 of");
    }
    test_only(
        ORDER "USES()\n", NULL, DET_RULE_ROW_ARGUMENTS, "specs/order.fsm:7:1",
        "USES has 0 arguments");
}

static void durations_are_whole_and_bounded(void **state)
{
    static const char *const wrong[] = {
        "SECONDS(0)", "SECONDS(-1)", "DAYS(3651)",    "SECONDS(99999999999999999999)",
        "SECONDS(x)", "SECONDS()",   "SECONDS(1, 2)", "WEEKS(1)",
        "5",          "SECONDS",     "\"5s\""
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)snprintf(text, sizeof text, "%sAFTER(PENDING, %s, PAY)\n", ORDER, wrong[i]);
        test_only(
            text, NULL, DET_RULE_BAD_DURATION, "specs/order.fsm:7:16",
            "argument 2 of AFTER is a duration");
    }
}

static void a_name_may_be_long_but_not_too_long(void **state)
{
    char text[1024], name[130];

    (void)state;
    memset(name, 'N', sizeof name);
    name[128] = '\0';
    (void)snprintf(text, sizeof text, "%sGROUP(%s, PENDING)\n", ORDER, name);
    det_spec_close(test_spec(text));
    name[128] = 'N';
    name[129] = '\0';
    (void)snprintf(text, sizeof text, "%sGROUP(%s, PENDING)\n", ORDER, name);
    test_only(text, NULL, DET_RULE_BAD_NAME, "specs/order.fsm:7:7", "longer than 128 bytes");
}

static void unhandled_pairs_are_reported_on_request(void **state)
{
    struct det_spec_options options = { .report_unhandled = true };
    struct det_spec *spec;

    (void)state;
    assert_int_equal(det_spec_read("order", ORDER, strlen(ORDER), &options, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    assert_non_null(test_finding(spec, DET_RULE_UNHANDLED_PAIR, "PAID"));
    det_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_becomes_a_machine),
        cmocka_unit_test(names_in_c_and_files_are_kept),
        cmocka_unit_test(rows_are_found_by_their_number),
        cmocka_unit_test(a_row_with_a_mistake_has_no_number),
        cmocka_unit_test(options_may_be_left_out),
        cmocka_unit_test(defines_are_applied_to_the_machine),
        cmocka_unit_test(invalid_defines_are_refused),
        cmocka_unit_test(every_extra_reaches_its_transition),
        cmocka_unit_test(every_kind_of_transition_is_read),
        cmocka_unit_test(every_kind_of_alternative_is_read),
        cmocka_unit_test(places_have_their_line_as_text),
        cmocka_unit_test(many_mistakes_are_found_in_one_go),
        cmocka_unit_test(invalid_row_arguments_are_refused),
        cmocka_unit_test(a_row_with_a_wrong_argument_is_left_out),
        cmocka_unit_test(durations_are_whole_and_bounded),
        cmocka_unit_test(a_name_may_be_long_but_not_too_long),
        cmocka_unit_test(unhandled_pairs_are_reported_on_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
