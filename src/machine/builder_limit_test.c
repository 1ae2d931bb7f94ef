/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_limit_test.c - the largest definitions are built, larger ones are refused, and both in
 * good time. */
#include "base/text.h"
#include "machine/builder_test.h"

/* A machine of `states` states in a ring and `events` events, all accepted in the first state. */
static struct det_machine_builder *open_ring(unsigned states, unsigned events)
{
    struct det_machine_builder *b = open_builder("ring", NULL);
    char name[16], next[16];

    for (unsigned i = 0; i < states; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        STATE(b, name, .flags = i == 0 ? DET_STATE_INITIAL : 0);
    }
    for (unsigned i = 0; i < events; i++) {
        (void)snprintf(name, sizeof name, "e%u", i);
        EVENT(b, name);
        if (i > 0)
            STAY(b, "s0", DET_LIST(name));
    }
    for (unsigned i = 0; i < states; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        (void)snprintf(next, sizeof next, "s%u", (i + 1) % states);
        ON(b, name, "e0", next);
    }
    return b;
}

static void the_largest_machine_is_built(void **context)
{
    struct det_machine *machine = expect_machine(open_ring(4096, 64), "", NULL, NULL);

    (void)context;
    assert_int_equal(machine->state_count, 4096);
    assert_int_equal(det_machine_step(machine, 4095, 0)->to, 0);
    assert_int_equal(det_machine_step(machine, 0, 63)->outcome, DET_OUTCOME_STAY);
    det_machine_close(machine);
}

static void a_machine_beyond_the_limits_is_too_large(void **context)
{
    (void)context;
    expect(open_ring(4097, 1), "too-large@4097", "ring has more than 4096 states", NULL);
    expect(open_ring(1, 4100), "too-large@8193", "ring has more than 4096 events", NULL);
    expect(
        open_ring(4096, 65), "too-large@0",
        "ring has 4096 states times 65 events, which is more than 262144 pairs", NULL);
}

static void too_many_effects_timers_and_groups_are_too_large(void **context)
{
    char name[16];

    (void)context;
    for (int kind = 0; kind < 3; kind++) {
        static const unsigned most[] = { DET_EFFECTS_MAX, DET_TIMERS_MAX, DET_GROUPS_MAX };
        struct det_machine_builder *b = open_order();

        for (unsigned i = 0; i <= most[kind]; i++) {
            (void)snprintf(name, sizeof name, "x%u", i);
            if (kind == 0)
                EFFECT(b, name);
            else if (kind == 1)
                TIMER(b, name, DET_SECOND, "EXPIRED");
            else
                GROUP(b, name, "PAID");
        }
        (void)snprintf(name, sizeof name, "too-large@%u", 20 + most[kind] + (kind == 0 ? 0 : 1));
        expect(b, name, NULL, NULL);
    }
}

static void a_list_has_at_most_64_members(void **context)
{
    const char *list[DET_LIST_MAX + 2] = { NULL };
    struct det_machine_builder *b = open_order();

    (void)context;
    for (size_t i = 0; i < DET_LIST_MAX + 1; i++)
        list[i] = "PAID";
    det_machine_builder_group(b, &(struct det_group_row){ .name = "g", .members = list });
    expect(b, "too-large@21", "a row of order lists more than 64 states", NULL);
    b = open_order();
    list[DET_LIST_MAX] = NULL;
    det_machine_builder_group(b, &(struct det_group_row){ .name = "g", .members = list });
    expect(b, "", NULL, NULL);
    b = open_order();
    for (size_t i = 0; i < DET_LIST_MAX + 1; i++)
        list[i] = "cents";
    det_machine_builder_data(b, &payment_record);
    STAY(b, "CHARGING", DET_LIST("PAY"), .keeps = list);
    expect(b, "too-large@21", "a row of order keeps more than 64 fields", NULL);
}

static void rows_say_a_bounded_number_of_pairs(void **context)
{
    const char *states[DET_LIST_MAX + 1] = { NULL }, *events[DET_LIST_MAX + 1] = { NULL };
    struct det_machine_builder *b = open_order();

    (void)context;
    for (size_t i = 0; i < DET_LIST_MAX; i++) {
        states[i] = "PAID";
        events[i] = "PAY";
    }
    for (int i = 0; i < 129; i++)
        ON_LISTS(
            b, .from = states, .events = events, .outcome = DET_OUTCOME_STAY, .is_override = true);
    expect(b, "too-large@148", "the rows of order list more than 524288 pairs", NULL);
}

static void a_transition_has_at_most_8_effects(void **context)
{
    const char *list[DET_EXTRAS_MAX + 2] = { NULL };

    (void)context;
    for (size_t count = DET_EXTRAS_MAX; count <= DET_EXTRAS_MAX + 1; count++) {
        struct det_machine_builder *b = open_order();

        for (size_t i = 0; i < count; i++)
            list[i] = "mail";
        EFFECT(b, "mail");
        STAY(b, "SHIPPED", DET_LIST("PAY"), .effects = list);
        expect(b, count == DET_EXTRAS_MAX ? "" : "too-large@22", NULL, NULL);
    }
}

/* Every name is wrong and similar to all others: the search for the nearest is bounded. */
static void many_unknown_names_among_many_are_answered_in_bounded_time(void **context)
{
    struct det_machine_builder *b = open_ring(4000, 2);
    struct det_diagnostics found;
    struct det_machine *machine;
    char name[DET_NAME_MAX + 1];

    (void)context;
    for (unsigned i = 0; i < 4000; i++) {
        (void)snprintf(name, sizeof name, "t%0100u", i);
        ON(b, name, name, name);
    }
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.error_count, 12000);
    det_machine_builder_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_machine_is_built),
        cmocka_unit_test(a_machine_beyond_the_limits_is_too_large),
        cmocka_unit_test(too_many_effects_timers_and_groups_are_too_large),
        cmocka_unit_test(a_list_has_at_most_64_members),
        cmocka_unit_test(rows_say_a_bounded_number_of_pairs),
        cmocka_unit_test(a_transition_has_at_most_8_effects),
        cmocka_unit_test(many_unknown_names_among_many_are_answered_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
