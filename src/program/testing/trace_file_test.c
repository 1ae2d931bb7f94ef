/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_file_test.c - traces are read back as they were written, and wrong ones are refused. */
#include "testing/trace_file.h"

#include <detent/tool/spec.h>

#include "lib/test.h"

static const char spec_text[] =
    "#define FSM_NAME door\n#define FSM_PREFIX DOOR\n"
    "RECORD(code) FIELD(digits, str(8), SENSITIVE) FIELD(tries, u8) END\n"
    "STATE(SHUT, shut, INITIAL) STATE(AJAR, ajar)\n"
    "EVENT(PUSH, push, code) EVENT(PULL, pull)\n"
    "ON(SHUT, PUSH, AJAR) ON(AJAR, PULL, SHUT) STAY(AJAR, PUSH)\n";

struct fixture {
    struct det_spec *spec;
    const struct det_machine *machine;
    struct cli_trace_writer writer;
};

static int open_fixture(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .writer = { .is_wanted = true } };
    assert_int_equal(
        det_spec_read("door.fsm", spec_text, sizeof spec_text - 1, NULL, &fixture.spec), 0);
    fixture.machine = det_spec_machine(fixture.spec);
    assert_non_null(fixture.machine);
    *state = &fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    det_buffer_deinit(&fixture->writer.lines);
    det_spec_close(fixture->spec);
    return 0;
}

/* One step of the machine as the runtime would tell it. */
static void write_step(
    struct fixture *fixture, uint64_t sequence, unsigned from, unsigned event, unsigned outcome)
{
    const struct det_machine *machine = fixture->machine;
    char *value = calloc(1, machine->event_size);
    struct det_note note = {
        .machine = machine,
        .sequence = sequence,
        .from = (uint16_t)from,
        .to = event == UINT16_MAX ? (uint16_t)from : det_machine_step(machine, from, event)->to,
        .event = (uint16_t)event,
        .outcome = (uint16_t)outcome,
        .at = 1500 * DET_MILLISECOND,
        .event_value = value,
    };

    assert_non_null(value);
    memcpy(value, &event, sizeof event);
    cli_trace_step(&fixture->writer, &note);
    free(value);
}

static int read_run(struct fixture *fixture, const char *run, struct cli_trace *trace)
{
    struct det_error error = { 0 };

    return cli_trace_read(
        fixture->machine, det_view_text(det_buffer_text(&fixture->writer.lines)), run, NULL, trace,
        &error);
}

static void written_trace_is_read_back(void **state)
{
    struct fixture *fixture = *state;
    struct cli_trace trace;

    cli_trace_run(&fixture->writer, fixture->machine, "first");
    write_step(fixture, 1, 0, 0, DET_OUTCOME_GOTO);
    write_step(fixture, 2, 1, 0, DET_OUTCOME_STAY);
    cli_trace_run(&fixture->writer, fixture->machine, "second");
    write_step(fixture, 1, 0, 0, DET_OUTCOME_GOTO);
    assert_int_equal(read_run(fixture, NULL, &trace), 0);
    assert_string_equal(trace.trace.instance, "first");
    assert_int_equal(trace.trace.step_count, 2);
    assert_int_equal(trace.trace.current, 1);
    assert_int_equal(trace.trace.steps[1].outcome, DET_OUTCOME_STAY);
    assert_int_equal(trace.trace.steps[1].at, 1500 * DET_MILLISECOND);
    assert_string_equal(trace.trace.steps[0].detail, "code{digits={redacted}, tries=0}");
    cli_trace_deinit(&trace);
    assert_int_equal(read_run(fixture, "second", &trace), 0);
    assert_int_equal(trace.trace.step_count, 1);
    cli_trace_deinit(&trace);
    assert_int_equal(read_run(fixture, "third", &trace), DET_ERR_NOT_FOUND);
}

static void records_that_are_not_steps_are_not_written(void **state)
{
    struct fixture *fixture = *state;
    size_t size;

    cli_trace_run(&fixture->writer, fixture->machine, "x");
    size = fixture->writer.lines.size;
    write_step(fixture, 1, 0, UINT16_MAX, DET_OUTCOME_STOP);
    write_step(fixture, 1, 0, 1, DET_OUTCOME_DEFERRED);
    assert_int_equal(fixture->writer.lines.size, size);
    fixture->writer.is_wanted = false;
    write_step(fixture, 1, 0, 0, DET_OUTCOME_GOTO);
    cli_trace_run(&fixture->writer, fixture->machine, "y");
    assert_int_equal(fixture->writer.lines.size, size);
}

static void many_steps_are_read(void **state)
{
    struct fixture *fixture = *state;
    struct cli_trace trace;

    cli_trace_run(&fixture->writer, fixture->machine, "long");
    for (uint64_t i = 1; i <= 1000; i++)
        write_step(fixture, i, (i + 1) % 2, (i + 1) % 2, DET_OUTCOME_GOTO);
    assert_int_equal(read_run(fixture, "long", &trace), 0);
    assert_int_equal(trace.trace.step_count, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(trace.trace.steps[i].sequence, i + 1);
    cli_trace_deinit(&trace);
}

#define RUN "{\"type\":\"run\",\"machine\":\"door\",\"run\":\"a\",\"initial\":\"shut\"}\n"
#define STEP(from, event, to, outcome, at)                                          \
    "{\"type\":\"step\",\"from\":\"" from "\",\"event\":\"" event "\",\"to\":\"" to \
    "\",\"outcome\":\"" outcome "\",\"at\":\"" at "\"}\n"

static void refused(struct fixture *fixture, const char *text, int code, const char *sentence)
{
    struct det_error error = { 0 };
    struct cli_trace trace;

    assert_int_equal(
        cli_trace_read(fixture->machine, det_view_text(text), NULL, NULL, &trace, &error), code);
    if (!strstr(error.text, sentence))
        fail_msg("'%s' does not say '%s'", error.text, sentence);
}

#define EVENT(sequence, from, event, to, outcome)                                             \
    "{\"type\":\"event\",\"machine\":\"door\",\"id\":\"d-1\",\"sequence\":" sequence          \
    ",\"at\":\"2026-01-01T00:00:00Z\",\"event\":" event ",\"from\":\"" from "\",\"to\":\"" to \
    "\",\"outcome\":\"" outcome "\",\"timeout\":false,\"payload\":{\"n\":1}}\n"

static void instance_history_is_read_as_a_run(void **state)
{
    static const char start[] =
        "{\"type\":\"start\",\"machine\":\"door\",\"id\":\"d-1\",\"sequence\":0,"
        "\"at\":\"2026-01-01T00:00:00Z\",\"state\":\"shut\"}\n";
    struct fixture *fixture = *state;
    const struct det_machine *machine = fixture->machine;
    char text[2048], move[512];
    struct det_error error = { 0 };
    struct cli_trace trace;

    snprintf(
        move, sizeof move, EVENT("1", "%s", "\"%s\"", "%s", "goto"), machine->events[0].name,
        machine->states[0].name, machine->states[1].name);
    snprintf(text, sizeof text, "%s%s%s", start, move, EVENT("2", "shut", "null", "shut", "stop"));
    assert_int_equal(cli_trace_read(machine, det_view_text(text), NULL, NULL, &trace, &error), 0);
    assert_string_equal(trace.trace.instance, "d-1");
    assert_int_equal(trace.trace.step_count, 1);
    assert_string_equal(trace.trace.steps[0].detail, "{\"n\":1}");
    cli_trace_deinit(&trace);
    /* The start is not among what was kept. */
    assert_int_equal(cli_trace_read(machine, det_view_text(move), NULL, NULL, &trace, &error), 0);
    assert_int_equal(trace.trace.initial, 0);
    assert_int_equal(trace.trace.step_count, 1);
    cli_trace_deinit(&trace);
}

static void wrong_traces_are_refused_with_their_line(void **state)
{
    struct fixture *f = *state;

    refused(f, "", DET_ERR_NOT_FOUND, "there is no run in the trace");
    refused(f, "\n \t\n", DET_ERR_NOT_FOUND, "there is no run in the trace");
    refused(f, "{\"type\":\"other\"}\n", DET_ERR_NOT_FOUND, "there is no run");
    refused(f, RUN "nonsense\n", DET_ERR_MALFORMED, "line 2: not a JSON object");
    refused(f, "{\"type\":\"run\"}\n", DET_ERR_MALFORMED, "line 1: a run needs the texts");
    refused(
        f, "{\"type\":\"run\",\"machine\":\"window\",\"run\":\"a\",\"initial\":\"shut\"}",
        DET_ERR_INVALID, "line 1: the trace is of another machine: window");
    refused(
        f, "{\"type\":\"run\",\"machine\":\"door\",\"run\":\"a\",\"initial\":\"off\"}",
        DET_ERR_INVALID, "line 1: this machine has no such state or event: off");
    refused(
        f, "{\"type\":\"run\",\"machine\":\"door\",\"run\":\"a\"}", DET_ERR_MALFORMED,
        "line 1: a step needs a text: initial");
    refused(
        f, RUN STEP("shut", "push", "ajar", "ignored", "2026-01-01T00:00:00Z"), DET_ERR_MALFORMED,
        "line 2: the outcome of a step is goto, stay or stop");
    refused(
        f, RUN STEP("shut", "kick", "ajar", "goto", "2026-01-01T00:00:00Z"), DET_ERR_INVALID,
        "line 2: this machine has no such state or event: kick");
    refused(
        f, RUN STEP("shut", "push", "ajar", "goto", "noon"), DET_ERR_MALFORMED,
        "line 2: 'at' is a time");
    refused(f, RUN "{\"a\":1,\"a\":2}\n", DET_ERR_MALFORMED, "line 2: not a JSON object");
}

static void a_line_has_a_limit(void **state)
{
    struct fixture *fixture = *state;
    char *text = malloc(CLI_TRACE_LINE_MAX + 2);

    assert_non_null(text);
    memset(text, ' ', CLI_TRACE_LINE_MAX + 1);
    text[CLI_TRACE_LINE_MAX + 1] = '\0';
    refused(fixture, text, DET_ERR_LIMIT, "line 1: longer than 1 MiB");
    free(text);
}

static int read_scenario(struct det_test_memory *memory, void *argument)
{
    static const char given_text[] = RUN STEP(
        "shut", "push", "ajar", "goto",
        "2026-01-01T00:00:00Z") "{\"type\":\"step\",\"from\":\"ajar\",\"event\":\"pull\",\"to\":"
                                "\"shut\",\"outcome\":"
                                "\"goto\",\"at\":\"2026-01-01T00:00:00Z\",\"detail\":\"x\"}\n";
    struct fixture *fixture = argument;
    struct det_error error = { 0 };
    struct cli_trace trace;
    int r;

    r = cli_trace_read(
        fixture->machine, det_view_text(given_text), NULL, &memory->allocator, &trace, &error);
    if (r == 0) {
        assert_int_equal(trace.trace.step_count, 2);
        cli_trace_deinit(&trace);
    }
    return r;
}

static void reading_survives_every_failed_allocation(void **state)
{
    det_test_each_failure(read_scenario, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(written_trace_is_read_back),
        TEST(records_that_are_not_steps_are_not_written),
        TEST(many_steps_are_read),
        TEST(wrong_traces_are_refused_with_their_line),
        TEST(instance_history_is_read_as_a_run),
        TEST(a_line_has_a_limit),
        TEST(reading_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
