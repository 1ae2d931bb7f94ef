/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_component_test.c - the rows of a component through the builder: each mistake alone and with
 * its sentence, and the reader's words for them. */
#include "machine/builder_test.h"

#include <detent/tool/spec.h>

#define DISPATCH(b, s, ...)       \
    det_machine_builder_dispatch( \
        b, &(struct det_dispatch_row){ .states = DET_LIST(s), .mode = __VA_ARGS__ })

/* Rows 1 to 7; a test adds those that it is about from 8 on. */
static struct det_machine_builder *open_pump(void)
{
    struct det_machine_builder *b = open_builder("pump", NULL);

    det_machine_builder_component(b, "pump");
    STATE(b, "IDLE", .flags = DET_STATE_INITIAL);
    STATE(b, "RUNNING");
    STATE(b, "DONE", .flags = DET_STATE_FINAL);
    EVENT(b, "START");
    EVENT(b, "ERROR");
    ON(b, "IDLE", "START", "RUNNING");
    ON_LISTS(
        b, .from = DET_LIST("IDLE", "RUNNING"), .events = DET_LIST("ERROR"),
        .outcome = DET_OUTCOME_GOTO, .to = "DONE");
    return b;
}

/* Rows 8 to 10. */
static void dispatch(struct det_machine_builder *b)
{
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK);
    DISPATCH(b, "RUNNING", DET_DISPATCH_POLL, .function = "run");
    det_machine_builder_failure(b, "ERROR");
}

static struct det_machine_builder *open_sound(void)
{
    struct det_machine_builder *b = open_pump();

    dispatch(b);
    return b;
}

static void complete_component_breaks_no_rule(void **unused)
{
    struct det_machine_builder *b = open_sound();

    (void)unused;
    det_machine_builder_closed(b, DET_LIST("IDLE", "RUNNING"), "ERROR");
    det_machine_builder_completion(b, "completed");
    det_machine_builder_invariant(b, "is_sound");
    expect(b, "", NULL, NULL);
}

static void missing_rows_of_a_component_are_reported(void **unused)
{
    struct det_machine_builder *b = open_pump();

    (void)unused;
    det_machine_builder_failure(b, "ERROR");
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK);
    expect(
        b, "dispatch-missing@2", "RUNNING of pump has no DISPATCH",
        "write DISPATCH(RUNNING, BLOCK) if it only waits for events");
    b = open_pump();
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK);
    DISPATCH(b, "RUNNING", DET_DISPATCH_BLOCK);
    expect(
        b, "failure-missing@0", "pump has no failure event",
        "write FAILURE(EVENT), and accept the event in every state");
    b = open_pump();
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK);
    DISPATCH(b, "RUNNING", DET_DISPATCH_BLOCK);
    det_machine_builder_failure(b, "START");
    expect(
        b, "failure-untaken@2", "RUNNING of pump does not accept START, the failure event",
        "add a transition: ON(RUNNING, START, ...)");
}

/* Rows 11 to 16: one that drains before it is done. */
static struct det_machine_builder *open_draining(const char *stop, enum det_unhandled policy)
{
    struct det_machine_builder *b = open_sound();

    STATE(b, "DRAINING");
    EVENT(b, stop, .unhandled = policy);
    EVENT(b, "EMPTY");
    ON(b, "RUNNING", stop, "DRAINING");
    ON_LISTS(
        b, .from = DET_LIST("DRAINING"), .events = DET_LIST("EMPTY", "ERROR"),
        .outcome = DET_OUTCOME_GOTO, .to = "DONE");
    DISPATCH(b, "DRAINING", DET_DISPATCH_POLL, .function = "drain");
    return b;
}

static void stop_event_unhandled_while_stopping_is_a_warning(void **unused)
{
    struct det_machine_builder *b = open_draining("stop", DET_UNHANDLED_ERROR);

    (void)unused;
    expect(
        b, "stop-again@14",
        "DRAINING of pump does not accept stop: a repetition of the stop that led there is "
        "ignored, any other stop fails the component",
        "write STAY(DRAINING, stop), or UNHANDLED(stop, IGNORE)");
    b = open_draining("stop", DET_UNHANDLED_ERROR);
    ON_LISTS(
        b, .from = DET_LIST("DRAINING"), .events = DET_LIST("stop"), .outcome = DET_OUTCOME_STAY);
    expect(b, "", NULL, NULL);
    b = open_draining("stop", DET_UNHANDLED_IGNORE);
    expect(b, "", NULL, NULL);
    b = open_draining("begin", DET_UNHANDLED_ERROR);
    expect(b, "", NULL, NULL);
}

static void repeated_component_rows_are_reported(void **unused)
{
    struct det_machine_builder *b = open_sound();

    (void)unused;
    DISPATCH(b, "IDLE", DET_DISPATCH_POLL, .function = "wait");
    expect(b, "dispatch-twice@11", "IDLE of pump already has its DISPATCH", NULL);
    b = open_sound();
    DISPATCH(b, "DONE", DET_DISPATCH_BLOCK);
    expect(b, "dispatch-twice@11", "DONE of pump is FINAL, and cannot have DISPATCH", NULL);
    b = open_sound();
    det_machine_builder_closed(b, DET_LIST("IDLE", "IDLE"), "START");
    expect(b, "dispatch-twice@11", "IDLE of pump already has its CLOSED", NULL);
    b = open_sound();
    det_machine_builder_failure(b, "START");
    expect(b, "component-twice@11", "the component of pump already has its FAILURE", NULL);
    b = open_sound();
    det_machine_builder_completion(b, "ended");
    det_machine_builder_completion(b, "over");
    det_machine_builder_invariant(b, "is_sound");
    det_machine_builder_invariant(b, "is_right");
    expect(b, "component-twice@12 component-twice@14", NULL, NULL);
}

static void closed_row_needs_states_that_detect_and_handle_it(void **unused)
{
    struct det_machine_builder *b = open_pump();

    (void)unused;
    DISPATCH(b, "IDLE", DET_DISPATCH_IGNORE, .function = "wait");
    DISPATCH(b, "RUNNING", DET_DISPATCH_BLOCK);
    det_machine_builder_failure(b, "ERROR");
    det_machine_builder_closed(b, DET_LIST("IDLE", "RUNNING"), "START");
    expect(
        b, "closed-untaken@11 closed-untaken@11",
        "CLOSED(IDLE, START) has no effect: IDLE of pump does not receive events from outside",
        NULL);
    /* Of a state that is unknown, or has no DISPATCH, that is said. */
    b = open_sound();
    det_machine_builder_closed(b, DET_LIST("NOWHERE"), "START");
    expect(b, "unknown-state@11", NULL, NULL);
    b = open_sound();
    det_machine_builder_closed(b, DET_LIST("IDLE"), "NOTHING");
    expect(b, "unknown-event@11", NULL, NULL);
    b = open_sound();
    det_machine_builder_closed(b, NULL, "START");
    expect(b, "row-arguments@11", "a row of pump names no state", NULL);
}

static void a_dispatch_has_a_function_unless_it_blocks(void **unused)
{
    struct det_machine_builder *b = open_pump();

    (void)unused;
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK, .function = "wait");
    DISPATCH(b, "RUNNING", DET_DISPATCH_IGNORE);
    det_machine_builder_failure(b, "ERROR");
    expect(b, "row-arguments@8 row-arguments@9", "DISPATCH with BLOCK takes no function", NULL);
}

static void a_function_has_one_role(void **unused)
{
    struct det_machine_builder *b = open_sound();

    (void)unused;
    det_machine_builder_guard(b, "wait", NULL);
    ON(b, "RUNNING", "START", "DONE", .guard = "wait");
    det_machine_builder_completion(b, "wait");
    expect(
        b, "duplicate-name@13",
        "wait is already a guard of pump, and cannot be the function of COMPLETION as well", NULL);
    b = open_sound();
    det_machine_builder_completion(b, "run");
    det_machine_builder_invariant(b, "run");
    expect(b, "duplicate-name@11 duplicate-name@12 duplicate-name@12", NULL, NULL);
}

static void instance_rows_are_refused_in_components(void **unused)
{
    static const struct det_field fields[] = {
        { .name = "text", .kind = DET_KIND_TEXT, .capacity = 599, .size = 600 }
    };
    static const struct det_record large = {
        .name = "large", .size = 600, .fields = fields, .field_count = 1, .version = 1
    };
    struct det_machine_builder *b = open_sound();

    (void)unused;
    det_machine_builder_update(b, "count", NULL);
    det_machine_builder_fill(b, "note", NULL);
    TIMER(b, "later", DET_SECOND, "START");
    det_machine_builder_event_unhandled(b, "START", DET_UNHANDLED_DEFER);
    det_machine_builder_event_unhandled(b, "ERROR", DET_UNHANDLED_IGNORE);
    expect(
        b, "instance-row@11 instance-row@12 instance-row@13 instance-row@14",
        "UPDATE is not permitted in pump, which is a component", NULL);
    b = open_sound();
    det_machine_builder_data(b, &payment_record);
    det_machine_builder_unhandled(b, DET_UNHANDLED_DEAD_LETTER);
    expect(
        b, "instance-row@0 instance-row@0",
        "a record of data is not permitted in pump, which is a component", NULL);
    b = open_sound();
    EVENT(b, "NOTE", .payload = &large, .unhandled = DET_UNHANDLED_DEFER);
    STAY(b, "IDLE", DET_LIST("NOTE"));
    expect(b, "instance-row@11 too-large@11", NULL, NULL);
}

static void component_rows_without_context_are_reported_once(void **unused)
{
    struct det_machine_builder *b = open_builder("pump", NULL);

    (void)unused;
    STATE(b, "IDLE", .flags = DET_STATE_INITIAL);
    EVENT(b, "ERROR");
    STAY(b, "IDLE", DET_LIST("ERROR"));
    det_machine_builder_invariant(b, "is_sound");
    DISPATCH(b, "IDLE", DET_DISPATCH_BLOCK);
    det_machine_builder_failure(b, "ERROR");
    expect(
        b, "component-row@4",
        "INVARIANT is permitted only in a component, and pump is not a component",
        "name the struct of its context: #define FSM_CONTEXT");
}

static void an_internal_event_of_a_component_may_come_from_a_dispatch_function(void **unused)
{
    struct det_machine_builder *b = open_sound();

    (void)unused;
    EVENT(b, "OPENED", .is_internal = true);
    ON(b, "RUNNING", "OPENED", "DONE");
    expect(b, "", NULL, NULL);
}

static int build(struct det_test_memory *memory, void *argument)
{
    struct det_diagnostics found;
    struct det_machine_builder *b;
    struct det_machine *machine = NULL;
    int r;

    (void)argument;
    r = det_machine_builder_open("pump", &memory->allocator, &b);
    if (r < 0)
        return r;
    det_machine_builder_component(b, "pump");
    STATE(b, "IDLE", .flags = DET_STATE_INITIAL);
    EVENT(b, "ERROR");
    STAY(b, "IDLE", DET_LIST("ERROR"));
    DISPATCH(b, "IDLE", DET_DISPATCH_POLL, .function = "wait");
    det_machine_builder_failure(b, "ERROR");
    det_machine_builder_closed(b, DET_LIST("IDLE"), "ERROR");
    det_machine_builder_completion(b, "completed");
    det_machine_builder_invariant(b, "is_sound");
    r = det_machine_builder_build(b, &machine, &found);
    det_machine_builder_close(b);
    if (r == 0)
        det_machine_close(machine);
    return r;
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    det_test_each_failure(build, NULL);
}

#define HEAD "#define FSM_NAME pump\n#define FSM_PREFIX PUMP\n"
#define TAIL                                                            \
    "STATE(IDLE, idle, INITIAL)\nEVENT(ERROR, error)\nFAILURE(ERROR)\n" \
    "DISPATCH(IDLE, BLOCK)\nSTAY(IDLE, ERROR)\n"

/* The only finding, or none. */
static void assert_read(const char *text, const char *rule, const char *part)
{
    const struct det_diagnostics *found;
    struct det_spec *spec;

    assert_int_equal(det_spec_read("pump.fsm", text, strlen(text), NULL, &spec), 0);
    found = det_spec_diagnostics(spec);
    assert_int_equal(found->count, 1);
    assert_string_equal(det_rule_id(found->items[0].rule), rule);
    if (strstr(found->items[0].text, part) == NULL)
        assert_string_equal(found->items[0].text, part);
    det_spec_close(spec);
}

static void component_defines_are_read(void **unused)
{
    (void)unused;
    assert_read(
        HEAD "#define FSM_CONTEX pump\n" TAIL, "syntax",
        "FSM_UNHANDLED, FSM_CONTEXT and FSM_HANDLER");
    assert_read(
        HEAD "#define FSM_CONTEXT 7\n" TAIL, "row-arguments",
        "FSM_CONTEXT is the name of a struct");
    assert_read(
        HEAD "#define FSM_CONTEXT pump\n#define FSM_HANDLER 7\n" TAIL, "row-arguments",
        "FSM_HANDLER is the name of a struct");
    assert_read(
        HEAD "#define FSM_CONTEXT pump\nSTATE(BUSY, busy)\nDISPATCH(BUSY, POOL, work)\n"
             "ON(IDLE, ERROR, BUSY)\nSTATE(IDLE, idle, INITIAL)\nEVENT(ERROR, error)\n"
             "FAILURE(ERROR)\nDISPATCH(IDLE, BLOCK)\nSTAY(BUSY, ERROR)\n",
        "row-arguments", "BLOCK, POLL or IGNORE");
}

static void spec_names_the_functions_of_its_component(void **unused)
{
    static const char text[] =
        HEAD "#define FSM_CONTEXT pump\n#define FSM_HANDLER pump_handler\n"
             "STATE(A, a, INITIAL)\nSTATE(B, b)\nEVENT(ERROR, error)\nFAILURE(ERROR)\n"
             "DISPATCH(A, POLL, run)\nDISPATCH(B, IGNORE, run)\nCOMPLETION(completed)\n"
             "ON(A, ERROR, B)\nON(B, ERROR, A)\n";
    struct det_spec *spec;

    (void)unused;
    assert_int_equal(det_spec_read("pump.fsm", text, strlen(text), NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    assert_string_equal(det_spec_context(spec), "pump");
    assert_string_equal(det_spec_handler(spec), "pump_handler");
    assert_string_equal(det_spec_function(spec, DET_SPEC_DISPATCH, 0), "run");
    assert_null(det_spec_function(spec, DET_SPEC_DISPATCH, 1));
    assert_string_equal(det_spec_function(spec, DET_SPEC_COMPLETION, 0), "completed");
    assert_null(det_spec_function(spec, DET_SPEC_INVARIANT, 0));
    det_spec_close(spec);
    assert_int_equal(det_spec_read("pump.fsm", "", 0, NULL, &spec), 0);
    assert_null(det_spec_context(spec));
    assert_null(det_spec_handler(spec));
    det_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_component_breaks_no_rule),
        cmocka_unit_test(missing_rows_of_a_component_are_reported),
        cmocka_unit_test(stop_event_unhandled_while_stopping_is_a_warning),
        cmocka_unit_test(repeated_component_rows_are_reported),
        cmocka_unit_test(closed_row_needs_states_that_detect_and_handle_it),
        cmocka_unit_test(a_dispatch_has_a_function_unless_it_blocks),
        cmocka_unit_test(a_function_has_one_role),
        cmocka_unit_test(instance_rows_are_refused_in_components),
        cmocka_unit_test(component_rows_without_context_are_reported_once),
        cmocka_unit_test(an_internal_event_of_a_component_may_come_from_a_dispatch_function),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(component_defines_are_read),
        cmocka_unit_test(spec_names_the_functions_of_its_component),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
