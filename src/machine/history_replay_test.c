/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history_replay_test.c - all differences between recorded events and a definition that are
 * reported, and those that are not. */
#include "machine/history_replay.h"

#include "machine/builder_test.h"

/* The last argument is the outcome, perhaps with the choice after it. */
#define EVENT_OF(n, f, e, t, ...)                                                     \
    &(struct det_replay_event)                                                        \
    {                                                                                 \
        .sequence = (n), .from = (f), .event = (e), .to = (t), .outcome = __VA_ARGS__ \
    }

static struct det_machine *machine;
static struct det_replay replay;
static struct det_replay_drift found;

/* a -go-> b, or by the second alternative c; b -back-> a; c stays on back. */
static int set_up(void **state)
{
    struct det_machine_builder *b = open_builder("trip", NULL);
    struct det_diagnostics findings;

    (void)state;
    STATE(b, "a", .flags = DET_STATE_INITIAL);
    STATE(b, "b");
    STATE(b, "c");
    EVENT(b, "go");
    EVENT(b, "back");
    EVENT(b, "later", .unhandled = DET_UNHANDLED_DEFER);
    EVENT(b, "letter", .unhandled = DET_UNHANDLED_DEAD_LETTER);
    EVENT(b, "noise", .unhandled = DET_UNHANDLED_IGNORE);
    det_machine_builder_guard(b, "may", NULL);
    ON(b, "a", "go", "b", .guard = "may");
    ON(b, "a", "go", "c", .is_else = true);
    ON(b, "b", "back", "a");
    STAY(b, "c", DET_LIST("back", "later", "letter", "noise"));
    STOP(b, "b", DET_LIST("letter"));
    assert_int_equal(det_machine_builder_build(b, &machine, &findings), 0);
    det_machine_builder_close(b);
    det_replay_init(&replay, machine);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    det_machine_close(machine);
    return 0;
}

static void check_drift(const struct det_replay_event *event, const char *derived, const char *text)
{
    assert_false(det_replay_step(&replay, event, &found));
    assert_string_equal(found.text, text);
    assert_int_equal(found.sequence, event->sequence);
    assert_ptr_equal(found.event, event->event);
    assert_ptr_equal(found.from, event->from);
    assert_ptr_equal(found.recorded, event->to);
    if (derived == NULL)
        assert_null(found.derived);
    else
        assert_string_equal(found.derived, derived);
}

static bool step(const struct det_replay_event *event)
{
    return det_replay_step(&replay, event, &found);
}

static void recorded_events_match_the_definition(void **state)
{
    (void)state;
    assert_true(step(EVENT_OF(1, "a", "go", "b", DET_OUTCOME_GOTO)));
    assert_true(step(EVENT_OF(2, "b", "later", "b", DET_OUTCOME_DEFERRED)));
    assert_true(step(EVENT_OF(3, "b", "back", "a", DET_OUTCOME_GOTO)));
    assert_true(step(EVENT_OF(4, "a", "letter", "a", DET_OUTCOME_DEAD_LETTER)));
    assert_true(step(EVENT_OF(5, "a", "go", "c", DET_OUTCOME_GOTO, .choice = 1)));
    assert_true(step(EVENT_OF(6, "c", "later", "c", DET_OUTCOME_STAY)));
    assert_true(step(EVENT_OF(7, "c", NULL, "c", DET_OUTCOME_STOP)));
    assert_true(det_replay_end(&replay, 7, "c", &found));
    assert_int_equal(replay.steps, 7);
}

static void deferred_event_may_be_recorded_as_a_dead_letter(void **state)
{
    (void)state;
    assert_true(step(EVENT_OF(1, "a", "later", "a", DET_OUTCOME_DEFERRED)));
    assert_true(step(EVENT_OF(2, "a", "later", "a", DET_OUTCOME_DEAD_LETTER)));
}

static void different_target_is_reported_with_both_states(void **state)
{
    (void)state;
    check_drift(
        EVENT_OF(1, "a", "go", "c", DET_OUTCOME_GOTO), "b",
        "a on go leads to b; recorded: it leads to c");
    /* The next is judged on its own. */
    assert_true(step(EVENT_OF(2, "c", "back", "c", DET_OUTCOME_STAY)));
}

static void different_outcome_is_reported_with_both_outcomes(void **state)
{
    (void)state;
    check_drift(
        EVENT_OF(4, "c", "back", "a", DET_OUTCOME_GOTO), "c",
        "c on back stays; recorded: it leads to a");
    check_drift(
        EVENT_OF(5, "a", "back", "a", DET_OUTCOME_STAY), NULL,
        "a on back is not accepted; recorded: it stays");
    check_drift(
        EVENT_OF(6, "a", "noise", "a", DET_OUTCOME_STAY), NULL,
        "a on noise is ignored; recorded: it stays");
    check_drift(
        EVENT_OF(7, "a", "later", "a", DET_OUTCOME_STOP), "a",
        "a on later is deferred; recorded: it stops it");
    check_drift(
        EVENT_OF(8, "a", "letter", "a", DET_OUTCOME_DEFERRED), "a",
        "a on letter is a dead letter; recorded: it is deferred");
    check_drift(
        EVENT_OF(9, "a", "go", "b", 99), "b", "a on go leads to b; recorded: it is unknown");
}

static void names_missing_in_the_definition_are_reported(void **state)
{
    (void)state;
    check_drift(EVENT_OF(3, "x", "go", "b", DET_OUTCOME_GOTO), NULL, "trip has no state x");
    check_drift(EVENT_OF(4, "b", "fly", "b", DET_OUTCOME_STAY), NULL, "trip has no event fly");
    check_drift(
        EVENT_OF(5, "b", "back", "a", DET_OUTCOME_GOTO, .choice = 1), NULL,
        "b on back no longer has an alternative 2");
    check_drift(
        EVENT_OF(6, "a", "go", "b", DET_OUTCOME_GOTO, .choice = 2), NULL,
        "a on go no longer has an alternative 3");
}

static void inconsistent_history_is_reported(void **state)
{
    (void)state;
    check_drift(
        EVENT_OF(1, "b", "back", "a", DET_OUTCOME_GOTO), NULL,
        "event 1 was accepted in b, but trip begins in a");
    check_drift(
        EVENT_OF(3, "a", "go", "b", DET_OUTCOME_GOTO), NULL,
        "event 3 follows event 1: events between them are missing");
    check_drift(
        EVENT_OF(4, "a", "go", "b", DET_OUTCOME_GOTO), NULL,
        "event 4 was accepted in a, but the one before it led to b");
}

static void history_may_begin_after_a_snapshot(void **state)
{
    (void)state;
    det_replay_begin(&replay, 8, "b");
    assert_true(step(EVENT_OF(9, "b", "back", "a", DET_OUTCOME_GOTO)));
    det_replay_init(&replay, machine);
    det_replay_begin(&replay, 8, "c");
    assert_false(step(EVENT_OF(9, "b", "back", "a", DET_OUTCOME_GOTO)));
}

static void a_history_begins_where_the_instance_did(void **state)
{
    (void)state;
    det_replay_begin(&replay, 0, "a");
    assert_true(det_replay_end(&replay, 0, "a", &found));
    assert_false(det_replay_end(&replay, 0, "b", &found));
    assert_string_equal(
        found.text, "the instance is in b, but it began in a and has accepted no event");
    assert_true(step(EVENT_OF(1, "a", "go", "b", DET_OUTCOME_GOTO)));
    det_replay_init(&replay, machine);
    det_replay_begin(&replay, 0, "b");
    check_drift(
        EVENT_OF(1, "a", "go", "b", DET_OUTCOME_GOTO), NULL,
        "event 1 was accepted in a, but the instance began in b");
}

static void replay_ends_in_the_state_of_the_instance(void **state)
{
    (void)state;
    assert_true(det_replay_end(&replay, 12, "b", &found));
    assert_false(det_replay_end(&replay, 12, "x", &found));
    assert_string_equal(found.text, "trip has no state x");
    assert_true(step(EVENT_OF(9, "b", "back", "a", DET_OUTCOME_GOTO)));
    assert_false(det_replay_end(&replay, 9, "b", &found));
    assert_string_equal(found.text, "the instance is in b, but its last event led to a");
    assert_string_equal(found.recorded, "b");
    assert_null(found.event);
    assert_false(det_replay_end(&replay, 10, "a", &found));
    assert_string_equal(found.text, "the instance is at event 10, but the last stored one is 9");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(recorded_events_match_the_definition),
        TEST(deferred_event_may_be_recorded_as_a_dead_letter),
        TEST(different_target_is_reported_with_both_states),
        TEST(different_outcome_is_reported_with_both_outcomes),
        TEST(names_missing_in_the_definition_are_reported),
        TEST(inconsistent_history_is_reported),
        TEST(history_may_begin_after_a_snapshot),
        TEST(a_history_begins_where_the_instance_did),
        TEST(replay_ends_in_the_state_of_the_instance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
