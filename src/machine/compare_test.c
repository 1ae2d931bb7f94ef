/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compare_test.c - the reported changes, and the hazards among them. */
#include "machine/compare.h"

#include <detent/tool/spec.h>

#include "lib/test.h"

/* The definition that the others are compared with. */
#define WORDS "#define FSM_NAME order\n#define FSM_PREFIX ORDER\n"
#define RECORDS                                                   \
    "RECORD(payment) FIELD(cents, u64) FIELD(card, str(8)) END\n" \
    "RECORD(keep) FIELD(cents, u64) END\n"
#define STATES                                                     \
    "STATE(PENDING, pending, INITIAL) STATE(CHARGING, charging)\n" \
    "STATE(PAID, paid, FINAL)\n"
#define EVENTS                                              \
    "EVENT(PAY, pay, payment) INTERNAL(CHARGED, charged)\n" \
    "INTERNAL(LATE, late) EVENT(NAG, nag)\n"
#define REST                                                                       \
    "EFFECT(charge, CHARGED) EFFECT(mail) GUARD(may) TIMER(bell, HOURS(1), NAG)\n" \
    "AFTER(CHARGING, MINUTES(5), LATE)\n"
#define WAYS                                                                    \
    "ON(PENDING, PAY, CHARGING, IF(may), KEEP(cents), DO(charge), ARM(bell))\n" \
    "ELSE(PENDING, PAY, PAID, DO(mail))\n"                                      \
    "ON(CHARGING, CHARGED, PAID) ON(CHARGING, LATE, PENDING)\n"                 \
    "STAY(ANY(PENDING, CHARGING), NAG)\n"
#define OLD WORDS "#define FSM_DATA keep\n" RECORDS STATES EVENTS REST WAYS

struct reported {
    char changes[4096], hazards[4096];
};

static void add(char *target, const char *a, const char *b, const char *c)
{
    size_t length = strlen(target);

    (void)snprintf(target + length, 4096 - length, "%s %s %s\n", a, b, c);
}

static void add_change(void *context, const struct det_change *change)
{
    static const char *const kinds[] = { "+", "-", "~", ">" };
    struct reported *reported = context;

    add(reported->changes, kinds[change->kind], change->subject, change->text);
}

static void add_hazard(void *context, const struct det_hazard *hazard)
{
    static const char *const kinds[] = { "state", "event", "effect", "timer", "data" };
    struct reported *reported = context;

    add(reported->hazards, kinds[hazard->kind], hazard->name, hazard->text);
}

static struct det_spec *read(const char *text)
{
    struct det_spec_options options = { 0 };
    struct det_spec *spec;

    assert_int_equal(det_spec_read("x.fsm", text, strlen(text), &options, &spec), 0);
    if (det_spec_machine(spec) == NULL)
        fail_msg("%s", det_spec_diagnostics(spec)->items[0].text);
    return spec;
}

static struct reported compare_with(
    const char *old_text, const char *new_text, const struct det_rename *renames, size_t count)
{
    struct det_spec *old = read(old_text), *new = read(new_text);
    struct reported reported = { "", "" };
    struct det_compare compare = {
        .old = det_spec_machine(old),
        .new = det_spec_machine(new),
        .renames = renames,
        .rename_count = count,
        .change = add_change,
        .hazard = add_hazard,
        .context = &reported,
    };

    assert_int_equal(det_compare_machines(&compare, NULL), 0);
    det_spec_close(old);
    det_spec_close(new);
    return reported;
}

static struct reported compare(const char *new_text)
{
    return compare_with(OLD, new_text, NULL, 0);
}

static void equal_definitions_have_no_change(void **state)
{
    struct reported reported = compare(OLD);

    (void)state;
    assert_string_equal(reported.changes, "");
    assert_string_equal(reported.hazards, "");
}

static void comparison_reports_additions_and_removals(void **state)
{
    struct reported reported =
        compare(WORDS "#define FSM_VERSION 2\n#define FSM_DATA keep\n" RECORDS
                      "STATE(PENDING, pending) STATE(SETTLING, settling, INITIAL)\n"
                      "STATE(PAID, paid, GOOD)\n"
                      "EVENT(PAY, pay, payment) EVENT(CHARGED, charged)\n"
                      "EVENT(NAG, nag) UNHANDLED(NAG, IGNORE)\n"
                      "EFFECT(charge) HOOK(greet) TIMER(bell, HOURS(2), NAG) ENTRY(PAID, greet)\n"
                      "TIMER(gong, HOURS(2), NAG)\n"
                      "ON(PENDING, PAY, PENDING, KEEP(cents), DO(charge), ARM(bell, gong))\n"
                      "ON(SETTLING, CHARGED, PAID) ON(SETTLING, NAG, PENDING)\n");

    (void)state;
    assert_string_equal(
        reported.changes,
        "~ machine version 2 (before: 1)\n"
        "~ machine new instances begin in settling (before: pending)\n"
        "- state state charging was removed\n"
        "+ state state settling is new\n"
        "- event event late was removed\n"
        "- effect effect mail was removed\n"
        "+ timer timer gong is new\n"
        "~ event event charged is no longer internal\n"
        "~ event event nag, if not accepted, is ignored (before: an error)\n"
        "~ effect effect charge produces other events\n"
        "~ timer timer bell: HOURS(2), nag (before: HOURS(1), nag)\n"
        "~ transition pending on pay: it goes to pending, KEEP(cents), DO(charge), "
        "ARM(bell, gong) (before: it goes to charging, IF(may), KEEP(cents), DO(charge), "
        "ARM(bell); else it goes to paid, DO(mail))\n"
        "- transition pending no longer accepts nag (before: it stays)\n"
        "~ state state paid is no longer final\n"
        "~ state state paid: its health is good (before: unspecified)\n"
        "~ state state paid: its entry hook is greet (before: none)\n");
    assert_string_equal(
        reported.hazards,
        "state charging was removed\nevent late was removed\neffect mail was removed\n"
        "state pending no longer has an exit\n");
}

static void comparison_reports_unhandled_timeout_events(void **state)
{
    struct reported reported = compare_with(
        WORDS STATES EVENTS
        "EFFECT(charge, CHARGED) ON(PENDING, PAY, CHARGING, WITHIN(SECONDS(1), LATE), DO(charge))\n"
        "ON(PENDING, NAG, CHARGING, WITHIN(SECONDS(2), LATE))\n"
        "ON(CHARGING, LATE, PENDING) ON(CHARGING, CHARGED, PAID)\n" RECORDS,
        WORDS STATES EVENTS "EFFECT(charge, CHARGED, LATE) ON(PENDING, PAY, CHARGING, DO(charge))\n"
                            "ON(PENDING, NAG, CHARGING)\n"
                            "ON(PENDING, LATE, PENDING) ON(CHARGING, CHARGED, PAID)\n" RECORDS,
        NULL, 0);

    (void)state;
    assert_string_equal(
        reported.hazards,
        "state charging no longer accepts late, which an armed timeout may send there\n");
    assert_non_null(strstr(reported.changes, "charging no longer accepts late"));
    assert_non_null(strstr(reported.changes, "+ transition pending now accepts late"));
}

static void comparison_follows_renames(void **state)
{
    static const struct det_rename renames[] = {
        { DET_NAME_STATE, "charging", "settling" }, { DET_NAME_EVENT, "late", "overdue" },
        { DET_NAME_EFFECT, "charge", "take" },      { DET_NAME_TIMER, "bell", "gong" },
        { DET_NAME_STATE, "paid", "pending" },      { DET_NAME_STATE, "pending", "paid" },
    };
    struct reported reported = compare_with(
        OLD,
        WORDS "#define FSM_DATA keep\n" RECORDS
              "STATE(PENDING, paid, INITIAL) STATE(CHARGING, settling)\n"
              "STATE(PAID, pending, FINAL)\n"
              "EVENT(PAY, pay, payment) INTERNAL(CHARGED, charged)\n"
              "INTERNAL(LATE, overdue) EVENT(NAG, nag)\n"
              "EFFECT(take, CHARGED) EFFECT(mail) GUARD(may) TIMER(gong, HOURS(1), NAG)\n"
              "AFTER(CHARGING, MINUTES(5), LATE)\n"
              "ON(PENDING, PAY, CHARGING, IF(may), KEEP(cents), DO(take), ARM(gong))\n"
              "ELSE(PENDING, PAY, PAID, DO(mail))\n"
              "ON(CHARGING, CHARGED, PAID) ON(CHARGING, LATE, PENDING)\n"
              "STAY(ANY(PENDING, CHARGING), NAG)\n",
        renames, 6);

    (void)state;
    assert_string_equal(
        reported.changes, "> state state pending is called paid\n"
                          "> state state charging is called settling\n"
                          "> state state paid is called pending\n"
                          "> event event late is called overdue\n"
                          "> effect effect charge is called take\n"
                          "> timer timer bell is called gong\n");
    assert_string_equal(reported.hazards, "");
}

static void rename_onto_an_existing_name_removes_that_name(void **state)
{
    static const struct det_rename rename = { DET_NAME_STATE, "pending", "charging" };
    struct reported reported = compare_with(
        WORDS "STATE(PENDING, pending, INITIAL) STATE(CHARGING, charging) EVENT(GO, go)\n"
              "ON(PENDING, GO, CHARGING) ON(CHARGING, GO, PENDING)\n",
        WORDS "STATE(CHARGING, charging, INITIAL) EVENT(GO, go) STAY(CHARGING, GO)\n", &rename, 1);

    (void)state;
    assert_string_equal(
        reported.hazards, "state charging was removed\nstate pending no longer has an exit\n");
}

static void impossible_rename_is_refused(void **state)
{
    static const struct {
        struct det_rename renames[2];
        size_t count;
        const char *text;
    } cases[] = {
        { { { DET_NAME_STATE, "x", "paid" } }, 1, "the old definition has no state x" },
        { { { DET_NAME_TIMER, "bell", "x" } }, 1, "the new definition has no timer x" },
        { { { DET_NAME_EVENT, "pay", "nag" }, { DET_NAME_EVENT, "pay", "late" } },
          2,
          "duplicate rename: event pay" },
        { { { DET_NAME_EFFECT, "mail", "charge" }, { DET_NAME_EFFECT, "charge", "charge" } },
          2,
          "or two renames to charge" },
    };
    struct det_spec *spec = read(OLD);
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_compare wrong = { .old = det_spec_machine(spec),
                                     .new = det_spec_machine(spec),
                                     .renames = cases[i].renames,
                                     .rename_count = cases[i].count };

        assert_int_equal(det_compare_machines(&wrong, &error), DET_ERR_INVALID);
        assert_non_null(strstr(error.text, cases[i].text));
    }
    det_spec_close(spec);
}

/* The record of the data in two versions; `hazard` "": the old one can be read. */
static void check_data(const char *old, const char *new, const char *change, const char *hazard)
{
#define FORM WORDS "#define FSM_DATA keep\n%s STATE(A, a, INITIAL) EVENT(GO, go) STAY(A, GO)\n"
    char old_text[1024], new_text[1024];
    struct reported reported;

    (void)snprintf(old_text, sizeof old_text, FORM, old);
    (void)snprintf(new_text, sizeof new_text, FORM, new);
    reported = compare_with(old_text, new_text, NULL, 0);
    if (strstr(reported.changes, change) == NULL)
        fail_msg("%s", reported.changes);
    if (hazard[0] == '\0')
        assert_string_equal(reported.hazards, "");
    else if (strstr(reported.hazards, hazard) == NULL)
        fail_msg("%s", reported.hazards);
}

static void records_may_grow_but_not_change(void **state)
{
    (void)state;
    check_data(
        "RECORD(keep) FIELD(a, u8) END", "RECORD(keep, 2) FIELD(b, u8, SINCE(2)) FIELD(a, u8) END",
        "record keep: FIELD(b, u8, SINCE(2)) is new", "");
    check_data(
        "RECORD(keep) FIELD(a, str(4)) ARRAY(l, u8, 2) END",
        "RECORD(keep) FIELD(a, str(5), SENSITIVE) ARRAY(l, u8, 3) END",
        "record keep: FIELD(a, str(5), SENSITIVE) (before: FIELD(a, str(4)))", "");
    check_data(
        "RECORD(keep) FIELD(a, str(4)) END", "RECORD(keep) FIELD(a, str(3)) END", "str(3)",
        "data keep can no longer be read: the field a of keep became smaller");
    check_data(
        "RECORD(keep) ARRAY(a, u8, 4) END", "RECORD(keep) ARRAY(a, u8, 3) END", "u8, 3",
        "became smaller");
    check_data(
        "RECORD(keep) FIELD(a, u8) END", "RECORD(keep) FIELD(a, u16) END", "u16", "another type");
    check_data(
        "RECORD(keep) FIELD(a, u8) END", "RECORD(keep) OPTIONAL(a, u8) END", "OPTIONAL",
        "another type");
    check_data(
        "RECORD(keep) FIELD(a, u8) END", "RECORD(keep) FIELD(b, u8) END",
        "FIELD(a, u8) was removed", "keep has the field b where a was");
    check_data(
        "RECORD(keep) FIELD(a, u8) END", "RECORD(keep) FIELD(a, u8) FIELD(b, u8) END",
        "FIELD(b, u8) is new", "the field b of keep is new and has no SINCE(2)");
    check_data(
        "RECORD(keep) FIELD(a, u8) FIELD(b, u8) END", "RECORD(keep) FIELD(a, u8) END",
        "FIELD(b, u8) was removed", "the field b of keep was removed");
    check_data(
        "RECORD(keep, 3) FIELD(a, u8) END", "RECORD(keep, 2) FIELD(a, u8) END", "",
        "the version of keep decreases from 3 to 2");
    check_data(
        "RECORD(keep, 2) FIELD(a, u8) FIELD(b, u8, SINCE(2)) END",
        "RECORD(keep, 2) FIELD(a, u8) FIELD(b, u8) END",
        "FIELD(b, u8) (before:", "the field b of keep has another SINCE");
}

static void comparison_descends_into_records(void **state)
{
    (void)state;
    check_data(
        "ENUM(e) VALUE(X, x) VALUE(Y, y) END RECORD(keep) FIELD(a, one_of(e)) END",
        "ENUM(e) VALUE(X, x) VALUE(Z, z) END RECORD(keep) FIELD(a, one_of(e)) END", "",
        "the value y of the enum e was removed");
    check_data(
        "ENUM(e) VALUE(X, x) END RECORD(keep) FIELD(a, one_of(e)) END",
        "ENUM(e) VALUE(X, x) VALUE(Z, z) END RECORD(keep) FIELD(a, one_of(e)) END", "", "");
    check_data(
        "RECORD(in) FIELD(a, u8) END RECORD(keep) FIELD(i, nested(in)) FIELD(z, u8) END",
        "RECORD(in) FIELD(a, u16) END RECORD(keep) FIELD(i, nested(in)) FIELD(z, u8) END", "",
        "the field a of in has another type");
    check_data(
        "RECORD(in, 2) FIELD(a, u8) END RECORD(keep) FIELD(i, nested(in)) END",
        "RECORD(in) FIELD(a, u8) END RECORD(keep) FIELD(i, nested(in)) END", "",
        "the version of in decreases");
    check_data(
        "RECORD(in) FIELD(a, u8) END RECORD(keep) FIELD(i, nested(in)) FIELD(z, u8) END",
        "RECORD(in, 2) FIELD(a, u8) FIELD(b, u8, SINCE(2)) END RECORD(keep) FIELD(i, nested(in)) "
        "FIELD(z, u8) END",
        "", "");
}

static void comparison_names_a_replaced_record(void **state)
{
    struct reported reported = compare_with(
        WORDS "RECORD(p) FIELD(a, u8) END STATE(A, a, INITIAL)\n"
              "EVENT(GO, go, p) EVENT(ON_, on, p) EVENT(OFF, off) STAY(A, ANY(GO, ON_, OFF))\n",
        WORDS "RECORD(q) FIELD(a, u16) END STATE(A, a, INITIAL)\n"
              "EVENT(GO, go, q) EVENT(ON_, on) EVENT(OFF, off, q) STAY(A, ANY(GO, ON_, OFF))\n",
        NULL, 0);

    (void)state;
    assert_string_equal(
        reported.changes, "~ record payload of go: q (before: p)\n"
                          "~ record record p: FIELD(a, u16) (before: FIELD(a, u8))\n"
                          "~ record payload of on: none (before: p)\n"
                          "~ record payload of off: q (before: none)\n");
    assert_string_equal(
        reported.hazards,
        "event go has a payload that can no longer be read: the field a of q has another type\n"
        "event on has a payload that can no longer be read: the field a of p was removed\n");
}

struct two {
    struct det_spec *old, *new;
};

static int compare_poorly(struct det_test_memory *memory, void *argument)
{
    const struct two *two = argument;
    static struct reported reported;
    struct det_compare poor = { .old = det_spec_machine(two->old),
                                .new = det_spec_machine(two->new),
                                .allocator = &memory->allocator,
                                .change = add_change,
                                .hazard = add_hazard,
                                .context = &reported };
    int r;

    reported = (struct reported){ "", "" };
    r = det_compare_machines(&poor, NULL);
    if (r == 0)
        assert_non_null(strstr(reported.hazards, "late"));
    return r;
}

static void comparison_survives_every_failed_allocation(void **state)
{
    struct two two = {
        read(OLD),
        read(WORDS STATES "EVENT(PAY, pay) EVENT(CHARGED, charged) EVENT(NAG, nag)\n"
                          "ON(PENDING, PAY, CHARGING) ON(CHARGING, ANY(CHARGED, NAG), PAID)\n"),
    };

    (void)state;
    det_test_each_failure(compare_poorly, &two);
    det_spec_close(two.old);
    det_spec_close(two.new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_definitions_have_no_change),
        cmocka_unit_test(comparison_reports_additions_and_removals),
        cmocka_unit_test(comparison_reports_unhandled_timeout_events),
        cmocka_unit_test(comparison_follows_renames),
        cmocka_unit_test(rename_onto_an_existing_name_removes_that_name),
        cmocka_unit_test(impossible_rename_is_refused),
        cmocka_unit_test(records_may_grow_but_not_change),
        cmocka_unit_test(comparison_descends_into_records),
        cmocka_unit_test(comparison_names_a_replaced_record),
        cmocka_unit_test(comparison_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
