/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_choice_test.c - events that choose: which alternative is taken, in which order guards
 * are asked, and that nothing of the others happens. */
#include <detent/tool/builder.h>

#include "runtime/choice_test.h"

static void first_matching_alternative_is_taken_without_asking_others(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one is_two is_three", go());
    assert_string_equal(lab.log, "is_one>left exit_idle on_left enter_left job_left");
    assert_int_equal(get(&lab, &data).state, PICK_LEFT);
    assert_int_equal(data.count, 1);
    assert_int_equal(data.amount, 1);
    assert_timers(&lab, "[][bell]");
    close_lab(&lab);
}

static void later_alternative_has_its_own_hooks_effects_and_timers(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_two is_three", go());
    assert_string_equal(
        lab.log, "is_one>left is_two>right exit_idle on_right enter_right job_right");
    assert_int_equal(get(&lab, &data).state, PICK_RIGHT);
    assert_int_equal(data.count, 0);
    assert_int_equal(data.amount, 7);
    assert_timers(&lab, "[]");
    assert_int_equal(det_sim_advance(lab.sim, 5 * DET_SECOND), 0);
    assert_int_equal(get(&lab, &data).state, PICK_IDLE);
    close_lab(&lab);
}

static void alternative_without_a_guard_is_tried_last(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "", go());
    assert_string_equal(lab.log, "is_one>left is_two>right is_three>idle exit_idle");
    assert_int_equal(get(&lab, &data).state, PICK_MIDDLE);
    assert_int_equal(data.count, 100);
    assert_timers(&lab, "");
    close_lab(&lab);
}

static void alternative_may_be_a_stay(void **unused)
{
    struct pick_data data;
    struct det_instance at;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_three", go());
    assert_string_equal(lab.log, "is_one>left is_two>right is_three>idle");
    at = get(&lab, &data);
    assert_int_equal(at.state, PICK_IDLE);
    assert_int_equal(at.visit, 1);
    assert_int_equal(at.sequence, 1);
    assert_int_equal(data.count, 0);
    assert_timers(&lab, "[gong]");
    close_lab(&lab);
}

static void an_alternative_may_stop(void **unused)
{
    struct pick_data data;
    struct det_instance at;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one", go());
    send(&lab, "is_two", go());
    assert_string_equal(lab.log, "is_one>left is_two>left");
    at = get(&lab, &data);
    assert_true(at.is_stopped);
    assert_string_equal(at.reason, "two");
    assert_int_equal(data.count, 2);
    assert_timers(&lab, "");
    close_lab(&lab);
}

static void choice_without_a_match_is_refused_by_its_first_guard(void **unused)
{
    struct det_runtime_counts counts;
    struct pick_data data;
    struct det_error error = { 0 };
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one", go());
    lab.yes = "is_three";
    lab.log[0] = '\0';
    assert_int_equal(pick_send_with(lab.runtime, "a", go(), NULL, NULL, &error), DET_ERR_REFUSED);
    assert_string_equal(lab.log, "is_one>left is_two>left");
    assert_string_equal(error.action, "is_one");
    assert_string_equal(error.state, "left");
    assert_string_equal(error.event, "go");
    assert_string_equal(error.text, "pick a: guard is_one refused, and no alternative fits");
    assert_int_equal(get(&lab, &data).sequence, 1);
    assert_int_equal(data.count, 1);
    det_runtime_counts(lab.runtime, &counts);
    assert_int_equal(counts.refused, 1);
    close_lab(&lab);
}

static void all_guards_of_a_choice_have_one_deadline(void **unused)
{
    struct pick_data data;
    struct det_error error = { 0 };
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    lab.nap = 3 * DET_SECOND;
    lab.yes = "is_two";
    assert_int_equal(pick_send_with(lab.runtime, "a", go(), NULL, NULL, &error), DET_ERR_TIMEOUT);
    assert_string_equal(error.action, "is_two");
    assert_int_equal(get(&lab, &data).sequence, 0);
    lab.nap = 2 * DET_SECOND;
    send(&lab, "is_two", go());
    assert_int_equal(get(&lab, &data).state, PICK_RIGHT);
    close_lab(&lab);
}

static void a_deferred_event_chooses_when_its_time_has_come(void **unused)
{
    struct pick_data data;
    struct det_instance at;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "", pick_later());
    assert_int_equal(get(&lab, &data).deferred_count, 1);
    send(&lab, "", go());
    assert_string_equal(lab.log, "is_one>left is_two>right is_three>idle exit_idle is_one>done");
    at = get(&lab, &data);
    assert_int_equal(at.state, PICK_MIDDLE);
    assert_int_equal(at.deferred_count, 0);
    assert_int_equal(at.sequence, 3);
    assert_int_equal(data.count, 101);
    close_lab(&lab);
}

static void a_deferred_event_that_nothing_fits_is_a_dead_letter(void **unused)
{
    struct pick_data data;
    struct det_instance at;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one", go());
    send(&lab, "", pick_later());
    /* TICK leads to RIGHT, and is_two is asked there for LATER alone. */
    lab.yes = "is_one";
    lab.forgets = "is_one";
    lab.log[0] = '\0';
    assert_int_equal(det_sim_advance(lab.sim, 10 * DET_SECOND), 0);
    assert_string_equal(lab.log, "is_one>right enter_right is_one>right is_two>middle");
    assert_int_equal(lab.incident_code, DET_ERR_REFUSED);
    at = get(&lab, &data);
    assert_int_equal(at.state, PICK_RIGHT);
    assert_int_equal(at.deferred_count, 0);
    close_lab(&lab);
}

static void timeout_may_choose_an_alternative(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one", go());
    lab.yes = "is_three";
    lab.log[0] = '\0';
    assert_int_equal(det_sim_advance(lab.sim, 10 * DET_SECOND), 0);
    assert_string_equal(lab.log, "is_one>right is_three>done");
    assert_int_equal(get(&lab, &data).state, PICK_DONE);
    assert_timers(&lab, "[bell]");
    close_lab(&lab);
}

static void a_timeout_without_a_fitting_alternative_is_reported_as_a_dead_letter(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    send(&lab, "is_one", go());
    lab.yes = "";
    assert_int_equal(det_sim_advance(lab.sim, 10 * DET_SECOND), 0);
    assert_int_equal(lab.incident_code, DET_ERR_REFUSED);
    assert_int_equal(get(&lab, &data).state, PICK_LEFT);
    assert_timers(&lab, "[][bell]");
    lab.yes = "is_one";
    assert_int_equal(det_runtime_retry(lab.runtime, &pick_machine, "a", "timer/", NULL), 0);
    assert_int_equal(det_sim_settle(lab.sim), 0);
    assert_int_not_equal(get(&lab, &data).state, PICK_LEFT);
    close_lab(&lab);
}

static void product_of_an_effect_may_choose_an_alternative(void **unused)
{
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    lab.is_producing = true;
    send(&lab, "is_two", go());
    assert_string_equal(
        lab.log, "is_one>left is_two>right exit_idle on_right enter_right job_right is_one>done");
    assert_int_equal(get(&lab, &data).state, PICK_RIGHT);
    assert_int_equal(data.count, 1);
    close_lab(&lab);
}

static void every_event_of_a_batch_chooses(void **unused)
{
    struct pick_event events[] = { go(), pick_back(), go() };
    const void *pointers[] = { &events[0], &events[1], &events[2] };
    struct pick_data data;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    lab.yes = "is_two";
    assert_int_equal(
        det_runtime_send_all(lab.runtime, &pick_machine, "a", pointers, 3, NULL, NULL, NULL), 0);
    assert_int_equal(det_sim_settle(lab.sim), 0);
    assert_string_equal(
        lab.log, "is_one>left is_two>right exit_idle on_right enter_right "
                 "is_one>left is_two>right exit_idle on_right enter_right job_right job_right");
    assert_int_equal(get(&lab, &data).state, PICK_RIGHT);
    close_lab(&lab);
}

static bool refuse(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return false;
}

static bool allow(const struct det_move *move, const void *data, const void *event)
{
    return !refuse(move, data, event);
}

/* Two states, and an event that goes from one to the other by `first`, or stays by `second`. */
static struct det_machine *build_pair(det_guard_fn *first, det_guard_fn *second)
{
    struct det_machine_builder *b;
    struct det_diagnostics found;
    struct det_machine *machine;
    struct det_on_row on = { .from = DET_LIST("a"),
                             .events = DET_LIST("go"),
                             .outcome = DET_OUTCOME_GOTO,
                             .to = "b",
                             .guard = "first" };
    struct det_on_row other = { .from = DET_LIST("a"),
                                .events = DET_LIST("go"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "a",
                                .is_else = true,
                                .guard = "second",
                                .within = { DET_SECOND, "go", NULL } };

    assert_int_equal(det_machine_builder_open("pair", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "a", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "b", .flags = DET_STATE_FINAL });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "go" });
    det_machine_builder_guard(b, "first", first);
    det_machine_builder_guard(b, "second", second);
    det_machine_builder_on(b, &on);
    det_machine_builder_on(b, &other);
    assert_int_equal(det_machine_builder_build(b, &machine, &found), 0);
    det_machine_builder_close(b);
    return machine;
}

static int send_pair(struct lab *lab, const struct det_machine *machine, struct det_error *error)
{
    unsigned event = 0;

    assert_int_equal(det_runtime_start(lab->runtime, machine, "p", NULL, NULL, NULL, NULL), 0);
    return det_runtime_send(lab->runtime, machine, "p", &event, NULL, NULL, error);
}

static void an_unbound_guard_fails_only_when_it_is_called(void **unused)
{
    struct det_machine *machine = build_pair(allow, NULL);
    struct det_error error;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    assert_int_equal(send_pair(&lab, machine, &error), 0);
    close_lab(&lab);
    det_machine_close(machine);
    machine = build_pair(refuse, NULL);
    open_lab(&lab);
    assert_int_equal(send_pair(&lab, machine, &error), DET_ERR_UNBOUND);
    assert_string_equal(error.text, "guard second of pair is only a name; bind it");
    close_lab(&lab);
    det_machine_close(machine);
}

/* The only timeout of this machine is the WITHIN of an ELSE. */
static void the_timeout_of_an_alternative_is_armed(void **unused)
{
    struct det_machine *machine = build_pair(refuse, allow);
    struct det_instance at;
    struct det_error error;
    struct lab lab;

    (void)unused;
    open_lab(&lab);
    assert_int_equal(send_pair(&lab, machine, &error), 0);
    assert_int_equal(det_sim_advance(lab.sim, 3 * DET_SECOND), 0);
    assert_int_equal(det_runtime_get(lab.runtime, machine, "p", &at, NULL, NULL), 0);
    assert_int_equal(at.sequence, 4);
    close_lab(&lab);
    det_machine_close(machine);
}

static int send_or_nothing(struct lab *lab, const char *yes, struct pick_event event)
{
    int r = DET_ERR_NO_MEMORY;

    lab->yes = yes;
    for (unsigned i = 0; i < 2 && r < 0; i++) {
        r = pick_send(lab->runtime, "a", event, NULL);
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
    }
    return r;
}

static int choose_all_transitions(struct det_test_memory *memory, void *argument)
{
    struct lab lab;
    int r;

    (void)argument;
    r = open_in(&lab, &memory->allocator);
    if (r == 0)
        r = det_runtime_start(lab.runtime, &pick_machine, "a", NULL, NULL, NULL, NULL);
    if (r == 0)
        r = send_or_nothing(&lab, "is_three", go());
    if (r == 0)
        r = send_or_nothing(&lab, "is_two", go());
    if (r == 0)
        r = send_or_nothing(&lab, "", pick_back());
    if (r == 0)
        r = send_or_nothing(&lab, "", go());
    if (lab.runtime)
        assert_int_equal(det_sim_advance(lab.sim, DET_MINUTE), 0);
    if (r == 0 && !(memory->failed && memory->fail_sticky)) {
        struct pick_data data;

        assert_int_equal(get(&lab, &data).state, PICK_MIDDLE);
        assert_int_equal(data.count, 100);
        assert_int_equal(data.amount, 7);
    }
    close_lab(&lab);
    return r;
}

static void choice_survives_every_failed_allocation(void **unused)
{
    (void)unused;
    det_test_each_failure(choose_all_transitions, NULL);
}

static int see_choice(void *context, const struct det_event_record *row)
{
    size_t length = strlen(context);

    snprintf((char *)context + length, 64 - length, "%u ", row->choice);
    return 0;
}

static void alternative_that_was_taken_is_recorded(void **unused)
{
    static const char *const yes[] = { "is_one", "is_two", "is_three", "" };

    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        char seen[64] = "", expected[8];
        struct lab lab;

        open_lab(&lab);
        send(&lab, yes[i], go());
        snprintf(expected, sizeof expected, "%u ", i);
        assert_int_equal(
            det_runtime_events(lab.runtime, &pick_machine, "a", 0, see_choice, seen, NULL), 0);
        assert_string_equal(seen, expected);
        close_lab(&lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_matching_alternative_is_taken_without_asking_others),
        cmocka_unit_test(later_alternative_has_its_own_hooks_effects_and_timers),
        cmocka_unit_test(alternative_without_a_guard_is_tried_last),
        cmocka_unit_test(alternative_may_be_a_stay),
        cmocka_unit_test(an_alternative_may_stop),
        cmocka_unit_test(choice_without_a_match_is_refused_by_its_first_guard),
        cmocka_unit_test(all_guards_of_a_choice_have_one_deadline),
        cmocka_unit_test(a_deferred_event_chooses_when_its_time_has_come),
        cmocka_unit_test(a_deferred_event_that_nothing_fits_is_a_dead_letter),
        cmocka_unit_test(timeout_may_choose_an_alternative),
        cmocka_unit_test(a_timeout_without_a_fitting_alternative_is_reported_as_a_dead_letter),
        cmocka_unit_test(product_of_an_effect_may_choose_an_alternative),
        cmocka_unit_test(every_event_of_a_batch_chooses),
        cmocka_unit_test(an_unbound_guard_fails_only_when_it_is_called),
        cmocka_unit_test(the_timeout_of_an_alternative_is_armed),
        cmocka_unit_test(choice_survives_every_failed_allocation),
        cmocka_unit_test(alternative_that_was_taken_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
