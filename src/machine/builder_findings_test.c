/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_findings_test.c - the order of findings, their places, and the limit of
 * findings. */
#include "machine/builder_test.h"

/* A front end with names as "file:line:column:name"; it passes the pointer of the name, and finds
 * the place before it. */
struct token {
    const char *text, *file;
    uint32_t line, column;
};

struct text {
    struct token tokens[64];
    size_t count;
};

static const char *at(
    struct text *text, const char *name, const char *file, uint32_t line, uint32_t column)
{
    struct token *token = &text->tokens[text->count++];

    assert_true(text->count <= 64);
    /* The same letters at two places are two pointers. */
    *token = (struct token){ strdup(name), file, line, column };
    return token->text;
}

static void locate(void *context, const char *name, struct det_place *ret)
{
    const struct text *text = context;

    for (size_t i = 0; i < text->count; i++) {
        if (text->tokens[i].text == name) {
            *ret = (struct det_place){ .file = text->tokens[i].file,
                                       .line = text->tokens[i].line,
                                       .column = text->tokens[i].column,
                                       .width = (uint32_t)strlen(name) };
            return;
        }
    }
}

static void forget(struct text *text)
{
    for (size_t i = 0; i < text->count; i++) {
        union {
            const char *given;
            char *owned;
        } token = { text->tokens[i].text };

        free(token.owned);
    }
}

static void places_come_from_the_locate_callback(void **context)
{
    struct text text = { .count = 0 };
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    det_machine_builder_locate(b, locate, &text);
    STATE(b, at(&text, "PAID", "order.fsm", 30, 7));
    ON(b, at(&text, "PAID", "order.fsm", 31, 4), at(&text, "EXPIRED", "order.fsm", 31, 10),
       at(&text, "PAYED", "order.fsm", 31, 19));
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].rule, DET_RULE_DUPLICATE_NAME);
    assert_int_equal(found.items[0].place.column, 7);
    assert_int_equal(found.items[1].rule, DET_RULE_UNKNOWN_STATE);
    assert_string_equal(found.items[1].place.file, "order.fsm");
    assert_int_equal(found.items[1].place.line, 31);
    assert_int_equal(found.items[1].place.column, 19);
    assert_int_equal(found.items[1].place.width, 5);
    det_machine_builder_close(b);
    forget(&text);
}

static void findings_are_ordered_by_file_as_first_seen_then_line_then_column(void **context)
{
    static const struct det_place early = { .file = "z.fsm", .line = 1, .column = 1 };
    struct text text = { .count = 0 };
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;
    const char *expected[] = { "bad at z",
                               "n1 is not an event of order",
                               "n2 is not a state of order",
                               "n3 is not a state of order",
                               "n4 is not an event of order",
                               "bad at b" };

    (void)context;
    det_machine_builder_locate(b, locate, &text);
    det_machine_builder_report(b, DET_RULE_BAD_DURATION, &early, "bad at %c", 'z');
    STAY(b, at(&text, "n2", "b.fsm", 9, 5), DET_LIST(at(&text, "n4", "b.fsm", 10, 3)));
    STAY(b, at(&text, "PAID", "b.fsm", 8, 5), DET_LIST(at(&text, "n1", "b.fsm", 8, 9)));
    STAY(b, at(&text, "n3", "b.fsm", 9, 6), DET_LIST(at(&text, "EXPIRED", "a.fsm", 1, 1)));
    det_machine_builder_report(
        b, DET_RULE_BAD_DURATION, &(struct det_place){ .file = "b.fsm", .line = 11 }, "bad at b");
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(found.items[i].text, expected[i]);
    det_machine_builder_close(b);
    forget(&text);
}

static void finding_about_a_pair_has_both_places(void **context)
{
    struct text text = { .count = 0 };
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    det_machine_builder_locate(b, locate, &text);
    ON_LISTS(
        b,
        .from =
            DET_LIST(at(&text, "SHIPPED", "a.fsm", 3, 8), at(&text, "CANCELLED", "a.fsm", 3, 17)),
        .events = DET_LIST("PAY"), .outcome = DET_OUTCOME_STAY);
    STAY(b, at(&text, "CANCELLED", "b.fsm", 6, 6), DET_LIST("PAY"));
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.items[0].place.file, "b.fsm");
    assert_int_equal(found.items[0].place.column, 6);
    assert_string_equal(found.items[0].other.file, "a.fsm");
    assert_int_equal(found.items[0].other.column, 17);
    det_machine_builder_close(b);
    forget(&text);
}

/* Rows 21 to 20 + count, each an override of the same pair, then one error. */
static void excess_findings_are_cut_and_errors_kept(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    for (int i = 0; i < 2 * DET_DIAGNOSTICS_MAX; i++)
        OVERRIDE(b, "PAID", "CANCEL", i % 2 == 0 ? "PENDING" : "CANCELLED");
    STAY(b, "PAID", DET_LIST("NOTHING_LIKE_IT"));
    STAY(b, "PAID", DET_LIST("NOTHING_EITHER"));
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, DET_DIAGNOSTICS_MAX);
    assert_true(found.is_cut);
    assert_int_equal(found.error_count, 2);
    assert_int_equal(found.warning_count, 0);
    assert_int_equal(found.items[0].place.line, 21);
    assert_int_equal(found.items[DET_DIAGNOSTICS_MAX - 3].place.line, 18 + DET_DIAGNOSTICS_MAX);
    assert_int_equal(found.items[DET_DIAGNOSTICS_MAX - 1].severity, DET_SEVERITY_BROKEN);
    assert_int_equal(found.items[DET_DIAGNOSTICS_MAX - 2].severity, DET_SEVERITY_BROKEN);
    det_machine_builder_close(b);
}

static void findings_up_to_the_limit_are_kept(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    for (int i = 0; i < DET_DIAGNOSTICS_MAX; i++)
        STAY(b, "PAID", DET_LIST("NOTHING_LIKE_IT"));
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, DET_DIAGNOSTICS_MAX);
    assert_false(found.is_cut);
    det_machine_builder_close(b);
}

/* A later finding at an earlier line displaces findings that were reported before it. */
static void findings_first_in_the_file_are_kept(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    for (uint32_t i = 0; i < 3 * DET_DIAGNOSTICS_MAX; i++)
        det_machine_builder_report(
            b, DET_RULE_BAD_DURATION,
            &(struct det_place){ .file = "a.fsm", .line = 3 * DET_DIAGNOSTICS_MAX - i }, "%u", i);
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.error_count, 3 * DET_DIAGNOSTICS_MAX);
    for (uint32_t i = 0; i < DET_DIAGNOSTICS_MAX; i++)
        assert_int_equal(found.items[i].place.line, i + 1);
    det_machine_builder_close(b);
}

/* 250 rows of 64 states, all of them duplicates: more than are considered one by one. */
static void a_flood_of_findings_is_counted_to_the_last(void **context)
{
    static const char *const states[] = { "PENDING", "CHARGING", "PAID", "SHIPPED" };
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;
    const char *list[DET_LIST_MAX + 1] = { NULL };

    (void)context;
    for (size_t i = 0; i < DET_LIST_MAX; i++)
        list[i] = states[i % 4];
    STAY(b, "SHIPPED", DET_LIST("PAY"));
    STAY(b, "CHARGING", DET_LIST("PAY"));
    for (int i = 0; i < 250; i++)
        ON_LISTS(b, .from = list, .events = DET_LIST("PAY"), .outcome = DET_OUTCOME_STAY);
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.error_count, 250 * DET_LIST_MAX);
    assert_int_equal(found.count, DET_DIAGNOSTICS_MAX);
    det_machine_builder_close(b);
}

static void a_flood_of_complaints_is_counted_to_the_last(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    for (uint32_t i = 1; i <= 10050; i++)
        det_machine_builder_report(
            b, DET_RULE_BAD_DURATION, &(struct det_place){ .line = i }, "no");
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.error_count, 10050);
    assert_true(found.is_cut);
    det_machine_builder_close(b);
}

static void a_long_complaint_is_cut_between_characters(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;
    char text[1000];

    (void)context;
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA4", 3);
    det_machine_builder_report(
        b, DET_RULE_BAD_DURATION, &(struct det_place){ .line = 1 }, "x%s", text);
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(strlen(found.items[0].text), DET_ERROR_TEXT_MAX - 1);
    det_machine_builder_close(b);
}

static void front_end_warning_does_not_fail_the_build(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_report(
        b, DET_RULE_GROUP_NAME, &(struct det_place){ .line = 5 }, "OPEN has no prefix");
    expect(b, "group-name@5", "OPEN has no prefix", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_come_from_the_locate_callback),
        cmocka_unit_test(findings_are_ordered_by_file_as_first_seen_then_line_then_column),
        cmocka_unit_test(finding_about_a_pair_has_both_places),
        cmocka_unit_test(excess_findings_are_cut_and_errors_kept),
        cmocka_unit_test(findings_up_to_the_limit_are_kept),
        cmocka_unit_test(findings_first_in_the_file_are_kept),
        cmocka_unit_test(a_flood_of_findings_is_counted_to_the_last),
        cmocka_unit_test(a_flood_of_complaints_is_counted_to_the_last),
        cmocka_unit_test(a_long_complaint_is_cut_between_characters),
        cmocka_unit_test(front_end_warning_does_not_fail_the_build),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
