/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_test.c - the exact text of the drawings, at every capacity; drawing allocates nothing. The
 * test draw.parsers runs the parsers on them. */
#include "lib/test.h"

#include "machine/draw.h"
#include "machine/draw_test_expected.h"
#include "machine/draw_test_order.h"

#define DRAWINGS 5

/* A machine with hooks, a timeout and a reason, for the texts of a drawing. */
enum { IDLE, BUSY, FAILED, JOB_STATES };
enum { START, PROBE, FINISH, JOB_EVENTS };

static const struct det_transition_more job_done = { .reason = "done" };
static const struct det_hook_def job_hook = { .name = "watch" };
static const struct det_state_def job_states[] = {
    [IDLE] = { .name = "Idle", .flags = DET_STATE_INITIAL },
    [BUSY] = { .name = "Busy",
               .timeout = { .after = 30 * DET_SECOND, .event = FINISH },
               .entry = &job_hook,
               .exit = &job_hook },
    [FAILED] = { .name = "Failed" },
};
static const struct det_event_def job_events[] = {
    [START] = { .name = "Start" },
    [PROBE] = { .name = "Ping" },
    [FINISH] = { .name = "Halt" },
};
static const struct det_transition job_table[] = {
    [IDLE * JOB_EVENTS + START] = { .outcome = DET_OUTCOME_GOTO, .to = BUSY },
    [IDLE * JOB_EVENTS + FINISH] = { .outcome = DET_OUTCOME_STOP, .to = IDLE },
    [BUSY * JOB_EVENTS + PROBE] = { .outcome = DET_OUTCOME_STAY, .to = BUSY },
    [BUSY * JOB_EVENTS + FINISH] = { .outcome = DET_OUTCOME_STOP, .to = BUSY, .more = &job_done },
    [BUSY * JOB_EVENTS + START] = { .outcome = DET_OUTCOME_GOTO, .to = BUSY },
    [FAILED * JOB_EVENTS + FINISH] = { .outcome = DET_OUTCOME_UNHANDLED },
};
static const struct det_machine job_machine = {
    .name = "job",
    .state_count = JOB_STATES,
    .event_count = JOB_EVENTS,
    .table = job_table,
    .states = job_states,
    .events = job_events,
};
static const struct det_draw_trace empty_trace = { .instance = "job-7" };

static char drawn[65536];

static const char *draw(const struct det_machine *machine, struct det_draw_options options)
{
    int64_t length = det_draw(machine, &options, drawn, sizeof drawn, NULL);

    assert_in_range(length, 1, sizeof drawn - 1);
    assert_int_equal(length, strlen(drawn));
    return drawn;
}

static const char *draw_plain(const struct det_machine *machine, enum det_drawing drawing)
{
    return draw(machine, (struct det_draw_options){ .drawing = drawing });
}

static const char *draw_trace(
    const struct det_machine *machine, enum det_drawing drawing, const struct det_draw_trace *trace)
{
    return draw(machine, (struct det_draw_options){ .drawing = drawing, .trace = trace });
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in:\n%s", part, text);
}

static void order_drawings_match_byte_for_byte(void **unused)
{
    static const char *const expected[DRAWINGS] = {
        order_state, order_flowchart, order_sequence, order_dot, order_timeline,
    };

    (void)unused;
    for (int i = 0; i < DRAWINGS; i++) {
        assert_string_equal(
            draw_trace(&order_machine, (enum det_drawing)i, &order_trace), expected[i]);
        /* Draws again: the order is the same in every run. */
        assert_string_equal(
            draw_trace(&order_machine, (enum det_drawing)i, &order_trace), expected[i]);
    }
}

static void the_state_diagram_has_the_lines_of_the_reference(void **unused)
{
    const char *text = draw_plain(&job_machine, DET_DRAW_MERMAID_STATE);

    (void)unused;
    assert_has(text, "stateDiagram-v2\n");
    assert_has(text, "    [*] --> Idle\n    Idle --> Busy: Start\n");
    assert_has(text, "    Idle --> [*]: Halt [stop]\n");
    assert_has(text, "    Busy --> Busy: Ping (stay)\n");
    assert_has(text, "    Busy --> [*]: Halt [stop#58; done]\n");
    assert_has(text, "    note right of Busy\n        timeout: 30s -> Halt\n    end note\n");
    assert_has(text, "    note left of Busy\n        entry: watch, exit: watch\n    end note\n");
}

static void the_flowchart_has_the_lines_of_the_reference(void **unused)
{
    static const struct det_draw_step steps[] = {
        { .from = IDLE, .to = BUSY, .event = START, .outcome = DET_OUTCOME_GOTO },
    };
    struct det_draw_trace trace = { .current = BUSY, .steps = steps, .step_count = 1 };
    const char *text = draw_trace(&job_machine, DET_DRAW_MERMAID_FLOWCHART, &trace);

    (void)unused;
    assert_has(text, "flowchart LR\n");
    assert_has(
        text, "    Idle((Idle))\n    Busy((Busy))\n    Failed((Failed))\n    END([End])\n\n");
    assert_has(text, "    Idle -->|Start| Busy\n    Idle -->|Halt| END\n");
    assert_has(text, "    style Idle fill:#ADD8E6,color:#000\n    style Busy fill:#ADD8E6");
    assert_has(text, "    style Busy fill:#90EE90,color:#000\n    linkStyle 1 stroke:blue");
    assert_lacks(draw_plain(&job_machine, DET_DRAW_MERMAID_FLOWCHART), "linkStyle");
}

static void the_sequence_has_the_lines_of_the_reference(void **unused)
{
    static const struct det_draw_step steps[] = {
        { .from = IDLE, .to = BUSY, .event = START, .outcome = DET_OUTCOME_GOTO, .detail = "5" },
        { .from = BUSY, .to = BUSY, .event = PROBE, .outcome = DET_OUTCOME_STAY, .detail = "" },
        { .from = BUSY, .to = BUSY, .event = START, .outcome = DET_OUTCOME_GOTO },
        { .from = BUSY,
          .to = BUSY,
          .event = FINISH,
          .outcome = DET_OUTCOME_STOP,
          .is_timeout = true },
    };
    struct det_draw_trace trace = {
        .instance = "job-7", .current = BUSY, .steps = steps, .step_count = 4
    };

    (void)unused;
    assert_string_equal(
        draw_trace(&job_machine, DET_DRAW_MERMAID_SEQUENCE, &trace),
        "sequenceDiagram\n"
        "    participant FSM as job-7\n"
        "    Note over FSM: Idle\n"
        "    FSM->>FSM: Start(5)\n"
        "    Note over FSM: Busy\n"
        "    FSM->>FSM: Ping (stay)\n"
        "    FSM->>FSM: Start\n"
        "    Note over FSM: Busy\n"
        "    FSM->>FSM: Timeout: Halt (stop)\n"
        "    Note over FSM: Current: Busy (stopped)\n");
    assert_has(
        draw_trace(&job_machine, DET_DRAW_DOT_TIMELINE, &trace),
        "s4 [label=\"Busy\", fillcolor=\"#90EE90\", peripheries=2];");
}

static void the_digraph_has_the_lines_of_the_reference(void **unused)
{
    const char *text = draw_plain(&job_machine, DET_DRAW_DOT);

    (void)unused;
    assert_has(text, "digraph \"job\" {\n    rankdir=LR;\n");
    assert_has(text, "    \"Idle\" [label=\"Idle\"];\n");
    assert_has(
        text, "    \"Busy\" [label=\"Busy\\ntimeout: 30s -> Halt\\nentry: watch, exit: watch\", "
              "fillcolor=\"#FFB6C1\"];\n");
    assert_has(text, "    \"[start]\" -> \"Idle\";\n");
    assert_has(text, "    \"Idle\" -> \"Busy\" [label=\"Start\"];\n");
    assert_has(text, "    \"Idle\" -> \"[end]\" [label=\"Halt\"];\n");
    assert_has(text, "[label=\"Halt [stop: done]\", style=dashed];\n");
}

static void an_empty_trace_has_visited_the_initial_state(void **unused)
{
    const char *text = draw_trace(&job_machine, DET_DRAW_MERMAID_STATE, &empty_trace);
    struct det_draw_trace moved = { .current = BUSY };

    (void)unused;
    assert_has(text, "    class Idle current\n");
    assert_lacks(text, "    class Idle visited");
    assert_has(
        draw_trace(&job_machine, DET_DRAW_MERMAID_STATE, &moved),
        "    class Idle visited\n    class Busy current\n");
    text = draw_trace(&job_machine, DET_DRAW_MERMAID_FLOWCHART, &empty_trace);
    assert_has(text, "    style Idle fill:#ADD8E6,color:#000\n    style Idle fill:#90EE90");
    assert_lacks(text, "linkStyle");
    text = draw_trace(&job_machine, DET_DRAW_DOT, &empty_trace);
    assert_has(text, "    \"Idle\" [label=\"Idle\", fillcolor=\"#90EE90\"];\n");
    assert_lacks(text, "color=blue");
    assert_string_equal(
        draw_trace(&job_machine, DET_DRAW_MERMAID_SEQUENCE, &empty_trace),
        "sequenceDiagram\n    participant FSM as job-7\n    Note over FSM: Idle\n"
        "    Note over FSM: Current: Idle\n");
    text = draw_trace(&job_machine, DET_DRAW_DOT_TIMELINE, &empty_trace);
    assert_has(text, "    s0 [label=\"Idle\", fillcolor=\"#90EE90\"];\n");
    assert_lacks(text, "->");
}

struct secret {
    char card[17];
    uint64_t cents;
};

static const struct det_field secret_fields[] = {
    {
        .name = "card",
        .kind = DET_KIND_TEXT,
        .flags = DET_FIELD_SENSITIVE,
        .offset = offsetof(struct secret, card),
        .size = sizeof((struct secret *)NULL)->card,
        .capacity = 16,
    },
    {
        .name = "cents",
        .kind = DET_KIND_UNSIGNED,
        .offset = offsetof(struct secret, cents),
        .size = 8,
    },
};

static const struct det_record secret_record = {
    .name = "payment",
    .size = sizeof(struct secret),
    .fields = secret_fields,
    .field_count = 2,
};

static void a_sensitive_field_is_redacted_in_every_drawing(void **unused)
{
    static const struct secret secret = { .card = "4242424242424242", .cents = 1999 };
    char detail[128];
    struct det_draw_step step = {
        .from = PENDING, .to = CHARGING, .event = PAY, .outcome = DET_OUTCOME_GOTO, .detail = detail
    };
    struct det_draw_trace trace = { .current = CHARGING, .steps = &step, .step_count = 1 };

    (void)unused;
    assert_in_range(
        det_record_print(&secret_record, &secret, 0, detail, sizeof detail), 1, sizeof detail - 1);
    for (int i = 0; i < DRAWINGS; i++)
        assert_lacks(draw_trace(&order_machine, (enum det_drawing)i, &trace), "4242");
    assert_has(
        draw_trace(&order_machine, DET_DRAW_MERMAID_SEQUENCE, &trace),
        "    FSM->>FSM: pay(payment{card={redacted}, cents=1999})\n");
    assert_has(
        draw_trace(&order_machine, DET_DRAW_DOT_TIMELINE, &trace),
        "    s0 -> s1 [label=\"pay(payment{card={redacted}, cents=1999})\"];\n");
}

static void a_trace_without_a_name_has_that_of_the_machine(void **unused)
{
    struct det_draw_trace trace = { .current = IDLE };

    (void)unused;
    assert_has(
        draw_trace(&job_machine, DET_DRAW_MERMAID_SEQUENCE, &trace), "participant FSM as job\n");
    assert_has(draw_trace(&job_machine, DET_DRAW_DOT_TIMELINE, &trace), "digraph \"job\" {\n");
}

/* Two events lead from pending to cancelled, and one of them is in the trace. */
static void an_edge_is_taken_by_its_own_event_only(void **unused)
{
    static const struct det_draw_step steps[] = {
        { .from = PAID, .to = PAID, .event = PING, .outcome = DET_OUTCOME_GOTO },
        { .from = PAID, .to = PAID, .event = HALT, .outcome = DET_OUTCOME_GOTO },
        { .from = PENDING, .to = PENDING, .event = PAY, .outcome = DET_OUTCOME_GOTO },
    };
    struct det_draw_trace trace = { .current = PAID, .steps = steps, .step_count = 3 };
    const char *text = draw_trace(&order_machine, DET_DRAW_DOT, &trace);

    (void)unused;
    assert_has(text, "\"paid\" -> \"paid\" [label=\"ping\", penwidth=2, color=blue];\n");
    assert_has(text, "\"paid\" -> \"[end]\" [label=\"halt [stop: fraud]\"];\n");
    assert_has(text, "\"pending\" -> \"pending\" [label=\"ping (stay)\"];\n");
    assert_has(text, "charge_card,\\nsend_mail\"];\n");
    assert_has(
        draw_trace(&order_machine, DET_DRAW_MERMAID_FLOWCHART, &trace), "    linkStyle 10 stroke");
}

static const struct det_guard_def job_guards[] = { { .name = "may_ping" }, { .name = "is_hot" } };
static const struct det_transition_more job_more[] = {
    { .guard = &job_guards[0] },
    { .guard = &job_guards[1], .reason = "hot" },
};
/* The job with a choice of four: two with different guards, one that stays, and the rest. */
static struct det_machine choosing_job(struct det_transition *table)
{
    static const struct det_choice choices[] = {
        { IDLE, START, { .outcome = DET_OUTCOME_GOTO, .to = FAILED } },
        { IDLE, START, { .outcome = DET_OUTCOME_STOP, .to = IDLE, .more = &job_more[1] } },
        { BUSY, START, { .outcome = DET_OUTCOME_STAY, .to = BUSY } },
    };
    struct det_machine machine = job_machine;

    memcpy(table, job_table, sizeof job_table);
    table[IDLE * JOB_EVENTS + START].more = &job_more[0];
    table[BUSY * JOB_EVENTS + START].more = &job_more[0];
    machine.table = table;
    machine.choices = choices;
    machine.choice_count = 3;
    return machine;
}

static void every_alternative_is_an_edge_with_its_guard(void **unused)
{
    struct det_transition table[JOB_STATES * JOB_EVENTS];
    struct det_machine machine = choosing_job(table);
    const char *text = draw_plain(&machine, DET_DRAW_MERMAID_STATE);

    (void)unused;
    /* After the first of their pair, in the order in which they are tried. */
    assert_has(
        text, "    Idle --> Busy: Start [may_ping]\n"
              "    Idle --> [*]: Start [is_hot] [stop#58; hot]\n"
              "    Idle --> Failed: Start [else]\n");
    assert_has(
        text, "    Busy --> Busy: Start [may_ping]\n    Busy --> Busy: Start [else] (stay)\n");
    text = draw_plain(&machine, DET_DRAW_MERMAID_FLOWCHART);
    assert_has(text, "    Idle -->|\"Start [else]\"| Failed\n");
    assert_has(text, "    Idle -->|\"Start [is_hot] [stop#58; hot]\"| END\n");
    text = draw_plain(&machine, DET_DRAW_DOT);
    assert_has(text, "\"Idle\" -> \"Failed\" [label=\"Start [else]\"];\n");
    assert_has(text, "\"Busy\" -> \"Busy\" [label=\"Start [else] (stay)\"];\n");
    assert_lacks(draw_plain(&job_machine, DET_DRAW_DOT), "[else]");
}

static void more_alternatives_than_can_be_looked_up_stand_at_the_end(void **unused)
{
    static struct det_choice choices[DET_DRAW_CHOICES_MAX + 1];
    struct det_transition table[JOB_STATES * JOB_EVENTS];
    struct det_machine machine = choosing_job(table);

    (void)unused;
    for (size_t i = 0; i <= DET_DRAW_CHOICES_MAX; i++)
        choices[i] = machine.choices[0];
    machine.choices = choices;
    machine.choice_count = DET_DRAW_CHOICES_MAX + 1;
    (void)draw_plain(&machine, DET_DRAW_MERMAID_STATE);
    assert_has(drawn, "    Idle --> Busy: Start [may_ping]\n    Idle --> [*]: Halt [stop]\n");
    assert_has(drawn, "    Idle --> Failed: Start [else]\n    Idle --> Failed: Start [else]\n");
}

static void an_alternative_that_was_taken_is_highlighted(void **unused)
{
    static const struct det_draw_step steps[] = {
        { .from = IDLE, .to = FAILED, .event = START, .outcome = DET_OUTCOME_GOTO },
    };
    struct det_draw_trace trace = { .current = FAILED, .steps = steps, .step_count = 1 };
    struct det_transition table[JOB_STATES * JOB_EVENTS];
    struct det_machine machine = choosing_job(table);
    const char *text = draw_trace(&machine, DET_DRAW_DOT, &trace);

    (void)unused;
    assert_has(text, "\"Idle\" -> \"Failed\" [label=\"Start [else]\", penwidth=2, color=blue];\n");
    assert_has(text, "\"Idle\" -> \"Busy\" [label=\"Start [may_ping]\"];\n");
    assert_has(draw_trace(&machine, DET_DRAW_MERMAID_FLOWCHART, &trace), "    linkStyle 3 stroke");
    assert_has(
        draw_trace(&machine, DET_DRAW_MERMAID_SEQUENCE, &trace),
        "    FSM->>FSM: Start\n    Note over FSM: Failed\n");
    assert_has(
        draw_trace(&machine, DET_DRAW_DOT_TIMELINE, &trace), "    s0 -> s1 [label=\"Start\"];\n");
}

static void draw_options_set_direction_and_detail(void **unused)
{
    static const char *const down[DRAWINGS] = {
        "    direction TB\n", "flowchart TD\n", "sequenceDiagram\n",
        "rankdir=TB;\n",      "rankdir=TB;\n",
    };
    static const char *const hidden[] = {
        "timeout", "30m", "1h30m", "reminder", "audit", "seal", "dashed", "#FFB6C1",
    };
    struct det_draw_step step = { .event = PING, .outcome = DET_OUTCOME_STAY };
    struct det_draw_trace trace = { .steps = &step, .step_count = 1 };

    (void)unused;
    for (int i = 0; i < DRAWINGS; i++) {
        const char *text = draw(
            &order_machine, (struct det_draw_options){ (enum det_drawing)i, &trace, true, true });

        assert_has(text, down[i]);
        for (size_t j = 0; j < sizeof hidden / sizeof hidden[0]; j++)
            assert_lacks(text, hidden[j]);
    }
}

static void draw_truncates_like_snprintf_at_every_capacity(void **unused)
{
    char whole[8192], part[8192];

    (void)unused;
    for (int i = 0; i < DRAWINGS; i++) {
        struct det_draw_options options = { .drawing = (enum det_drawing)i, .trace = &order_trace };
        int64_t length = det_draw(&order_machine, &options, whole, sizeof whole, NULL);

        assert_in_range(length, 1, sizeof whole - 1);
        assert_int_equal(det_draw(&order_machine, &options, NULL, 0, NULL), length);
        for (size_t capacity = 0; capacity <= (size_t)length + 1; capacity++) {
            memset(part, '?', sizeof part);
            assert_int_equal(det_draw(&order_machine, &options, part, capacity, NULL), length);
            assert_int_equal(part[capacity], '?');
            if (capacity == 0)
                continue;
            assert_int_equal(strlen(part), capacity - 1);
            assert_memory_equal(part, whole, capacity - 1);
        }
    }
}

static void assert_refused(struct det_draw_options options, const char *reason)
{
    struct det_error error;
    char target[] = "untouched";

    assert_int_equal(
        det_draw(&order_machine, &options, target, sizeof target, &error), DET_ERR_INVALID);
    assert_int_equal(error.code, DET_ERR_INVALID);
    assert_has(error.text, reason);
    assert_string_equal(target, "untouched");
    assert_int_equal(det_draw(&order_machine, &options, NULL, 0, NULL), DET_ERR_INVALID);
}

static void invalid_drawings_are_refused_with_a_reason(void **unused)
{
    struct det_draw_step step = { .outcome = DET_OUTCOME_GOTO };
    struct det_draw_trace trace = { .steps = &step, .step_count = 1 };
    struct det_draw_options options = { .trace = &trace };

    (void)unused;
    assert_refused((struct det_draw_options){ .drawing = (enum det_drawing)DRAWINGS }, "number 5");
    assert_refused((struct det_draw_options){ .drawing = DET_DRAW_MERMAID_SEQUENCE }, "a trace");
    assert_refused((struct det_draw_options){ .drawing = DET_DRAW_DOT_TIMELINE }, "a trace");
    trace.initial = ORDER_STATES;
    assert_refused(options, "starts or ends");
    trace = (struct det_draw_trace){ .current = ORDER_STATES };
    assert_refused(options, "starts or ends");
    trace = (struct det_draw_trace){ .step_count = 3 };
    assert_refused(options, "step_count 3");
    trace = (struct det_draw_trace){ .steps = &step, .step_count = 1 };
    step.from = ORDER_STATES;
    assert_refused(options, "step 1 of the trace names a state");
    step = (struct det_draw_step){ .to = ORDER_STATES, .outcome = DET_OUTCOME_GOTO };
    assert_refused(options, "step 1 of the trace names a state");
    step = (struct det_draw_step){ .event = ORDER_EVENTS, .outcome = DET_OUTCOME_GOTO };
    assert_refused(options, "step 1 of the trace names an event");
    step = (struct det_draw_step){ .outcome = DET_OUTCOME_UNHANDLED };
    assert_refused(options, "goto, stay or stop");
    step.outcome = DET_OUTCOME_IGNORED;
    assert_refused(options, "goto, stay or stop");
}

static void draw_nothing(void *machine)
{
    (void)!det_draw(machine, &(struct det_draw_options){ 0 }, NULL, 0, NULL);
}

static void draw_into_nothing(void *machine)
{
    (void)!det_draw(machine, &(struct det_draw_options){ 0 }, NULL, 1, NULL);
}

static void draw_aborts_on_invalid_arguments(void **unused)
{
    struct det_machine machine = { .name = "empty" };

    (void)unused;
    assert_true(det_test_aborts(draw_nothing, NULL, "machine && options"));
    assert_true(det_test_aborts(draw_nothing, &machine, "initial < machine->state_count"));
    assert_true(det_test_aborts(draw_into_nothing, &machine, "capacity == 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_drawings_match_byte_for_byte),
        cmocka_unit_test(the_state_diagram_has_the_lines_of_the_reference),
        cmocka_unit_test(the_flowchart_has_the_lines_of_the_reference),
        cmocka_unit_test(the_sequence_has_the_lines_of_the_reference),
        cmocka_unit_test(the_digraph_has_the_lines_of_the_reference),
        cmocka_unit_test(an_empty_trace_has_visited_the_initial_state),
        cmocka_unit_test(a_sensitive_field_is_redacted_in_every_drawing),
        cmocka_unit_test(a_trace_without_a_name_has_that_of_the_machine),
        cmocka_unit_test(an_edge_is_taken_by_its_own_event_only),
        cmocka_unit_test(every_alternative_is_an_edge_with_its_guard),
        cmocka_unit_test(more_alternatives_than_can_be_looked_up_stand_at_the_end),
        cmocka_unit_test(an_alternative_that_was_taken_is_highlighted),
        cmocka_unit_test(draw_options_set_direction_and_detail),
        cmocka_unit_test(draw_truncates_like_snprintf_at_every_capacity),
        cmocka_unit_test(invalid_drawings_are_refused_with_a_reason),
        cmocka_unit_test(draw_aborts_on_invalid_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
