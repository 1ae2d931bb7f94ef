/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_text_test.c - names and texts in drawings: escapes, cuts, ids, groups. */
#include "lib/test.h"

#include "machine/draw.h"
#include "machine/draw_test_order.h"

static char drawn[65536];

static const char *draw(
    const struct det_machine *machine, enum det_drawing drawing, const struct det_draw_trace *trace)
{
    struct det_draw_options options = { .drawing = drawing, .trace = trace };

    assert_in_range(det_draw(machine, &options, drawn, sizeof drawn, NULL), 1, sizeof drawn - 1);
    return drawn;
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

static void assert_written(enum det_pen_dialect dialect, const char *text, const char *expected)
{
    char target[256];
    struct det_pen pen = { .dialect = dialect, .target = target, .capacity = sizeof target };

    det_pen_text(&pen, text);
    assert_int_equal(det_pen_finish(&pen), strlen(expected));
    assert_string_equal(target, expected);
}

static void mermaid_syntax_is_escaped_as_numbers(void **unused)
{
    static const char *const rows[][2] = {
        { "plain words (x) [y] {z} a_b 10 o'clock", "plain words (x) [y] {z} a_b 10 o'clock" },
        { "#35;", "#35;35#59;" },
        { "a:b", "a#58;b" },
        { "\"<&>%\\", "#34;#60;#38;#62;#37;#92;" },
        { "`*~$@", "#96;#42;#126;#36;#64;" },
        { "one\ntwo", "one<br/>two" },
        { "_a_b_", "#95;a_b#95;" },
        { "(_a_)", "(#95;a#95;)" },
        { "a__b", "a__b" },
        { "1. x", "#49;. x" },
        { "12) x", "#49;2) x" },
        { "12 x", "12 x" },
        { "- x", "#45; x" },
        { "+ x", "#43; x" },
        { "a - x", "a - x" },
        { "Redirection LR", "Re#100;irection LR" },
        { "DIRECTION", "#68;IRECTION" },
        { "directions LR", "directions LR" },
        { "see www.x", "see #119;ww.x" },
        { "\xEF\xAC\x82\xC2\xB0\xC2\xB6\xC3\x9F", "#64258;\xC2\xB0#182;\xC3\x9F" },
        { "\xE2\x80\xAEx\xE2\x80\xAC", "#8238;x#8236;" },
        { "\xE2\x81\xA6y\xE2\x81\xA9", "#8294;y#8297;" },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_written(DET_PEN_MERMAID, rows[i][0], rows[i][1]);
}

static void dot_labels_are_escaped(void **unused)
{
    static const char *const rows[][2] = {
        { "a:b;c#d<e>_f_ %", "a:b;c#d<e>_f_ %" },
        { "say \"x\"", "say \\\"x\\\"" },
        { "\\N", "\\\\N" },
        { "&amp;", "&amp;amp;" },
        { "one\ntwo", "one\\ntwo" },
        { "\xE2\x80\xAEx\xE2\x80\xAC", "&#8238;x&#8236;" },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_written(DET_PEN_DOT, rows[i][0], rows[i][1]);
}

static void undrawable_characters_are_replaced(void **unused)
{
    static const char *const rows[][2] = {
        { "a\tb", "a b" },
        { "\x1B[0m", "\xE2\x90\x9B[0m" },
        { "\x01", "\xE2\x90\x81" },
        { "\x7F", "\xEF\xBF\xBD" },
        { "\xC2\x9B", "\xEF\xBF\xBD" },
        { "\xEF\xBF\xBF", "\xEF\xBF\xBD" },
        { "\xFF\x80x", "\xEF\xBF\xBD\xEF\xBF\xBDx" },
        { "\xC3", "\xEF\xBF\xBD" },
        { "\xE2\x82x", "\xEF\xBF\xBD\xEF\xBF\xBDx" },
        { "\xF0\x9F\x8E", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\x89", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\x89" },
        { "\xD7\xA9\xD7\x9C", "\xD7\xA9\xD7\x9C" },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_written(DET_PEN_MERMAID, rows[i][0], rows[i][1]);
        assert_written(DET_PEN_DOT, rows[i][0], rows[i][1]);
    }
    assert_written(
        DET_PEN_MERMAID,
        "a\xE2\x80\xA8"
        "b\xC2\x85"
        "c",
        "a<br/>b<br/>c");
    assert_written(
        DET_PEN_DOT,
        "a\xE2\x80\xA9"
        "b",
        "a\\nb");
}

/* Draws one step whose detail is `count` times `unit`. */
static const char *draw_detail(enum det_drawing drawing, const char *unit, size_t count)
{
    static char detail[1024];
    struct det_draw_step step = {
        .from = PENDING, .to = CHARGING, .event = PAY, .outcome = DET_OUTCOME_GOTO, .detail = detail
    };
    struct det_draw_trace trace = { .current = CHARGING, .steps = &step, .step_count = 1 };
    size_t size = strlen(unit);

    for (size_t i = 0; i < count; i++)
        memcpy(detail + i * size, unit, size);
    detail[count * size] = '\0';
    return draw(&order_machine, drawing, &trace);
}

/* "pay(" and ")" are five characters. */
static void a_long_label_is_cut_between_characters(void **unused)
{
    (void)unused;
    assert_has(
        draw_detail(DET_DRAW_MERMAID_SEQUENCE, "\xF0\x9F\x8E\x89", 55), "\xF0\x9F\x8E\x89)\n");
    assert_lacks(draw_detail(DET_DRAW_MERMAID_SEQUENCE, "\xF0\x9F\x8E\x89", 56), ")\n");
    assert_has(drawn, "\xF0\x9F\x8E\x89...\n");
    assert_int_equal(strstr(drawn, "...\n") - strstr(drawn, "pay("), 4 + 53 * 4);
    assert_has(draw_detail(DET_DRAW_DOT_TIMELINE, "x", 45), "x)\"];\n");
    assert_has(draw_detail(DET_DRAW_DOT_TIMELINE, "x", 46), "x...\"];\n");
    assert_int_equal(strstr(drawn, "...\"") - strstr(drawn, "pay("), 47);
}

static void truncated_label_never_splits_an_escape(void **unused)
{
    (void)unused;
    (void)draw_detail(DET_DRAW_MERMAID_SEQUENCE, ";", 100);
    assert_int_equal(strstr(drawn, "...\n") - strstr(drawn, "pay("), 4 + 53 * 4);
    assert_has(drawn, "pay(#59;#59;");
    (void)draw_detail(DET_DRAW_DOT_TIMELINE, "\"", 100);
    assert_int_equal(strstr(drawn, "...\"") - strstr(drawn, "pay("), 4 + 43 * 2);
}

static void timeout_label_and_its_mark_share_the_width(void **unused)
{
    struct det_draw_step step = {
        .event = EXPIRE,
        .outcome = DET_OUTCOME_STAY,
        .is_timeout = true,
        .detail = "0123456789012345678901234567890123456789012345678901234567890123456789"
    };
    struct det_draw_trace trace = { .steps = &step, .step_count = 1 };

    (void)unused;
    assert_has(
        draw(&order_machine, DET_DRAW_MERMAID_SEQUENCE, &trace),
        ": Timeout: expire(01234567890123456789012345678901234567890... (stay)\n");
}

/* A machine whose states have these names and one event `go` from each to the next. */
struct ring {
    struct det_state_def states[16];
    struct det_transition table[16];
    struct det_event_def event;
    struct det_machine machine;
};

static void ring_init(struct ring *ring, const char *const *names, uint16_t count)
{
    *ring = (struct ring){ .event = { .name = "go" } };
    for (uint16_t i = 0; i < count; i++) {
        ring->states[i].name = names[i];
        ring->table[i] =
            (struct det_transition){ DET_OUTCOME_GOTO, (uint16_t)((i + 1) % count), 0, NULL };
    }
    ring->machine = (struct det_machine){
        .name = "ring",
        .state_count = count,
        .event_count = 1,
        .states = ring->states,
        .events = &ring->event,
        .table = ring->table,
    };
}

static void reserved_words_get_generated_ids(void **unused)
{
    static const char *const names[] = { "end", "Class", "a-b",  "state_0", "redirection",
                                         "_x",  "2",     "fine", "ending" };
    struct ring ring;
    const char *text;

    (void)unused;
    ring_init(&ring, names, 9);
    text = draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL);
    assert_has(text, "    state \"end\" as state_0\n    state \"Class\" as state_1\n");
    assert_has(text, "    state \"a-b\" as state_2\n    state \"state_0\" as state_3\n");
    assert_has(text, "    state \"re#100;irection\" as state_4\n    state \"#95;x\" as state_5\n");
    assert_has(text, "    state \"2\" as state_6\n    [*] --> state_0\n");
    assert_has(text, "    state_6 --> fine: go\n    fine --> ending: go\n");
    text = draw(&ring.machine, DET_DRAW_MERMAID_FLOWCHART, NULL);
    assert_has(text, "    state_0((\"end\"))\n");
    assert_has(text, "    fine((fine))\n");
    text = draw(&ring.machine, DET_DRAW_DOT, NULL);
    assert_has(text, "    \"end\" -> \"Class\" [label=\"go\"];\n");
}

static void a_state_without_edges_is_not_forgotten(void **unused)
{
    static const char *const names[] = { "first", "lonely", "last" };
    struct ring ring;

    (void)unused;
    ring_init(&ring, names, 3);
    for (int i = 0; i < 3; i++)
        ring.table[i].outcome = DET_OUTCOME_UNHANDLED;
    ring.states[2].flags = DET_STATE_FINAL;
    assert_string_equal(
        draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL),
        "stateDiagram-v2\n    direction LR\n    lonely\n    [*] --> first\n    last --> [*]\n");
    assert_has(draw(&ring.machine, DET_DRAW_MERMAID_FLOWCHART, NULL), "    last(((last)))\n");
    assert_lacks(drawn, "END");
    assert_lacks(draw(&ring.machine, DET_DRAW_DOT, NULL), "[end]");
}

static void entry_or_exit_hook_may_be_alone(void **unused)
{
    static const char *const names[] = { "first", "second" };
    static const struct det_hook_def hook = { .name = "h" };
    struct ring ring;

    (void)unused;
    ring_init(&ring, names, 2);
    ring.states[0].entry = &hook;
    ring.states[1].exit = &hook;
    assert_has(
        draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL),
        "    note left of first\n        entry: h\n    end note\n"
        "    note left of second\n        exit: h\n    end note\n");
    assert_has(draw(&ring.machine, DET_DRAW_DOT, NULL), "[label=\"first\\nentry: h\"];\n");
}

static const char *const letters[] = { "a", "b", "c", "d", "e", "f" };

static void groups_nest_as_their_members_do(void **unused)
{
    static const uint16_t all[] = { 0, 1, 2, 3, 4, 5 };
    const struct det_group_def groups[] = {
        { "same", all + 1, 3 }, { "inner", all + 2, 1 }, { "outer", all, 5 },
        { "twin", all + 1, 3 }, { "none", all, 0 },      { "b", all + 5, 1 },
    };
    struct ring ring;

    (void)unused;
    ring_init(&ring, letters, 6);
    ring.machine.groups = groups;
    ring.machine.group_count = 6;
    assert_has(
        draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL),
        "    direction LR\n"
        "    state outer {\n        direction LR\n        a\n        e\n"
        "        state same {\n            direction LR\n"
        "            state twin {\n                direction LR\n"
        "                b\n                d\n"
        "                state inner {\n                    direction LR\n"
        "                    c\n                }\n            }\n        }\n    }\n"
        "    state \"b\" as group_5 {\n        direction LR\n        f\n    }\n"
        "    [*] --> a\n");
    assert_has(
        draw(&ring.machine, DET_DRAW_MERMAID_FLOWCHART, NULL),
        "    subgraph group_5[\"b\"]\n        f((f))\n    end\n");
    assert_lacks(drawn, "none");
}

static void groups_that_overlap_are_noted_and_not_drawn(void **unused)
{
    static const uint16_t all[] = { 0, 1, 2, 3, 4, 5 };
    const struct det_group_def groups[] = { { "left", all, 3 }, { "right", all + 2, 2 } };
    struct ring ring;

    (void)unused;
    ring_init(&ring, letters, 6);
    ring.machine.groups = groups;
    ring.machine.group_count = 2;
    assert_has(
        draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL),
        "    %% group right overlaps another one and is not drawn\n    state left {\n");
    assert_lacks(drawn, "state right");
    assert_has(draw(&ring.machine, DET_DRAW_DOT, NULL), "    // group right overlaps another one");
}

static void too_many_groups_are_noted_and_not_drawn(void **unused)
{
    static const uint16_t first[] = { 0 };
    static struct det_group_def groups[DET_DRAW_GROUPS_MAX + 1];
    struct ring ring;

    (void)unused;
    for (size_t i = 0; i < DET_DRAW_GROUPS_MAX + 1; i++)
        groups[i] = (struct det_group_def){ "g", first, 1 };
    ring_init(&ring, letters, 6);
    ring.machine.groups = groups;
    ring.machine.group_count = DET_DRAW_GROUPS_MAX + 1;
    assert_has(
        draw(&ring.machine, DET_DRAW_MERMAID_STATE, NULL), "    %% too many groups to draw\n");
    assert_lacks(drawn, "state g");
    ring.machine.group_count = DET_DRAW_GROUPS_MAX;
    assert_in_range(
        det_draw(&ring.machine, &(struct det_draw_options){ 0 }, NULL, 0, NULL), 256 * 256,
        1 << 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mermaid_syntax_is_escaped_as_numbers),
        cmocka_unit_test(dot_labels_are_escaped),
        cmocka_unit_test(undrawable_characters_are_replaced),
        cmocka_unit_test(a_long_label_is_cut_between_characters),
        cmocka_unit_test(truncated_label_never_splits_an_escape),
        cmocka_unit_test(timeout_label_and_its_mark_share_the_width),
        cmocka_unit_test(reserved_words_get_generated_ids),
        cmocka_unit_test(a_state_without_edges_is_not_forgotten),
        cmocka_unit_test(entry_or_exit_hook_may_be_alone),
        cmocka_unit_test(groups_nest_as_their_members_do),
        cmocka_unit_test(groups_that_overlap_are_noted_and_not_drawn),
        cmocka_unit_test(too_many_groups_are_noted_and_not_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
