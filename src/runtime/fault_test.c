/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fault_test.c - a store that fails: what is in memory never differs from what is in the store.
 * Every test runs over a quick store and over one that blocks. */
#include "runtime/faulty_test.h"

static void in_faulty(void (*test)(struct fixture *f, struct faulty *faulty))
{
    for (int is_quick = 0; is_quick < 2; is_quick++) {
        struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
        struct faulty faulty;

        faulty_wrap(&faulty, f, is_quick);
        test(f, &faulty);
        fixture_close(f);
    }
}

static void before(struct fixture *f, struct faulty *faulty)
{
    static const unsigned kinds[] = { PING, TOUCH, PAY, CANCEL };
    struct det_instance was, is;
    struct listed_timers armed;
    unsigned loads;

    assert_int_equal(start(f, "o-1"), 0);
    was = get(f, "o-1");
    armed = *timers(f, "o-1");
    for (size_t i = 0; i < 4; i++) {
        loads = faulty->loads;
        faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
        assert_int_equal(send_kind(f, "o-1", kinds[i]), DET_ERR_IO);
        assert_int_equal(f->error.code, DET_ERR_IO);
        is = get(f, "o-1");
        assert_memory_equal(&was, &is, sizeof was);
        assert_memory_equal(&armed, timers(f, "o-1"), sizeof armed);
        assert_int_equal(effects(f, "o-1")->count, 0);
        assert_int_equal(faulty->loads, loads + 1);
    }
    settle(f);
    assert_int_equal(f->control.effects, 0);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-1").sequence, 1);
}

static void a_commit_that_did_not_happen_leaves_state_timer_and_effects(void **state)
{
    (void)state;
    in_faulty(before);
}

static void after(struct fixture *f, struct faulty *faulty)
{
    struct det_instance order;

    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", TOUCH), DET_ERR_IO);
    order = get(f, "o-1");
    assert_int_equal(order.sequence, 1);
    assert_int_equal(order.visit, 2);
    assert_int_equal(order.history_count, 1);
    assert_int_equal(timers(f, "o-1")->rows[0].visit, 2);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_IO);
    /* The effect is in the store: it runs, at once or after the span for which an attempt is
     * postponed while the store fails. */
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-1").sequence, 3);
}

static void commit_reported_as_failed_is_found_by_loading(void **state)
{
    (void)state;
    in_faulty(after);
}

static void by_id(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e" }), 0);
    assert_false(f->sent.is_duplicate);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_GOTO);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(
        send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e2" }), DET_ERR_IO);
    assert_int_equal(send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e2" }), 0);
    assert_false(f->sent.is_duplicate);
    assert_int_equal(get(f, "o-1").sequence, 2);
}

static void an_event_id_resolves_an_unknown_outcome(void **state)
{
    (void)state;
    in_faulty(by_id);
}

static void of_call(struct fixture *f, struct faulty *faulty)
{
    faulty->is_of_call = true;
    before(f, faulty);
    assert_int_equal(start(f, "o-2"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-2", TOUCH), DET_ERR_IO);
    assert_int_equal(get(f, "o-2").sequence, 1);
}

static void error_of_a_store_call_applies_to_its_commit(void **state)
{
    (void)state;
    in_faulty(of_call);
}

static void certain(struct fixture *f, struct faulty *faulty)
{
    static const int codes[] = { DET_ERR_NO_MEMORY, DET_ERR_LIMIT, DET_ERR_NO_SPACE };
    unsigned loads;

    assert_int_equal(start(f, "o-1"), 0);
    loads = faulty->loads;
    for (size_t i = 0; i < 3; i++) {
        faulty_set(faulty, FAULT_BEFORE, codes[i], 0);
        assert_int_equal(send_kind(f, "o-1", PAY), codes[i]);
        faulty_set(faulty, FAULT_BEFORE, codes[i], 0);
        assert_int_equal(send_kind(f, "o-1", TOUCH), codes[i]);
    }
    assert_int_equal(faulty->loads, loads);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->sent.sequence, 1);
}

static void certain_commit_failure_is_not_verified(void **state)
{
    (void)state;
    in_faulty(certain);
}

static void conflict(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_CONFLICT, 0);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->sent.sequence, 1);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_CONFLICT, 0);
    faulty->times = 100;
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_CONTENTION);
    assert_non_null(strstr(f->error.text, "order o-1: other processes changed it"));
    assert_true(faulty->faults < 10);
    faulty->times = 0;
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.sequence, 2);
}

static void a_conflict_is_decided_again_and_after_a_few_times_reported(void **state)
{
    (void)state;
    in_faulty(conflict);
}

static void starting(struct fixture *f, struct faulty *faulty)
{
    struct det_send_options options = { .event_id = "s" };

    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(start(f, "o-1"), DET_ERR_IO);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_NOT_FOUND);
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(start(f, "o-2"), DET_ERR_IO);
    assert_int_equal(get(f, "o-2").state, PENDING);
    assert_int_equal(timers(f, "o-2")->count, 1);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-3", NULL, &options, &f->sent, &f->error), 0);
    assert_false(f->sent.is_duplicate);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_EXISTS, 0);
    assert_int_equal(start(f, "o-4"), DET_ERR_EXISTS);
    assert_int_equal(counts(f).instances, 3);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
}

static void a_start_of_unknown_outcome_is_resolved(void **state)
{
    (void)state;
    in_faulty(starting);
}

static void loads_fail(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    faulty->loads_failing = 3;
    assert_int_equal(send_kind(f, "o-1", TOUCH), DET_ERR_IO);
    /* Nothing is decided on what may be wrong. */
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_IO);
    faulty->loads_failing = 2;
    advance(f, 10 * DET_SECOND);
    assert_int_equal(faulty->loads_failing, 0);
    assert_int_equal(get(f, "o-1").visit, 2);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-1").sequence, 2);
}

static void an_instance_that_cannot_be_loaded_is_tried_again_by_itself(void **state)
{
    (void)state;
    in_faulty(loads_fail);
}

/* The first load finds no instance, the commit fails, and so does the load that would find out
 * whether it happened. */
static void start_in_the_dark(struct fixture *f, struct faulty *faulty, enum fault fault)
{
    faulty_set(faulty, fault, DET_ERR_IO, 0);
    faulty->loads_skipped = 1;
    faulty->loads_failing = 1;
    assert_int_equal(start(f, "o-1"), DET_ERR_IO);
    assert_int_equal(faulty->loads_failing, 0);
}

static void start_lost(struct fixture *f, struct faulty *faulty)
{
    start_in_the_dark(f, faulty, FAULT_BEFORE);
    assert_int_equal(counts(f).instances, 1);
    advance(f, 2 * DET_SECOND);
    assert_int_equal(counts(f).instances, 0);
    start_in_the_dark(f, faulty, FAULT_BEFORE);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_NOT_FOUND);
    start_in_the_dark(f, faulty, FAULT_BEFORE);
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(counts(f).instances, 1);
}

static void lost_start_leaves_no_instance(void **state)
{
    (void)state;
    in_faulty(start_lost);
}

static void start_happened(struct fixture *f, struct faulty *faulty)
{
    start_in_the_dark(f, faulty, FAULT_AFTER);
    advance(f, 30 * DET_MINUTE + 2 * DET_SECOND);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void start_with_an_unknown_commit_result_fires_its_timer(void **state)
{
    (void)state;
    in_faulty(start_happened);
}

static void timer_faults(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    faulty->times = 2;
    advance(f, 40 * DET_MINUTE);
    assert_int_equal(faulty->faults, 2);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(get(f, "o-2").sequence, 1);
    assert_int_equal(start(f, "o-3"), 0);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    faulty->times = 5;
    advance(f, 40 * DET_MINUTE);
    assert_int_equal(get(f, "o-3").state, CANCELLED);
    assert_int_equal(get(f, "o-3").sequence, 1);
    assert_int_equal(faulty->faults, 7);
}

static void timer_fires_once_despite_store_errors(void **state)
{
    (void)state;
    in_faulty(timer_faults);
}

static void end_faults(struct fixture *f, struct faulty *faulty)
{
    static const enum fault kinds[] = { FAULT_BEFORE, FAULT_AFTER };
    char id[8];

    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        f->control.effect_result = i % 3 == 0 ? DET_EFFECT_DONE : DET_EFFECT_PRODUCED;
        f->control.effect_failures = i % 3 == 2;
        assert_int_equal(start(f, id), 0);
        f->control.effects = 0;
        faulty_set(faulty, kinds[i / 3], DET_ERR_IO, 1);
        assert_int_equal(send_kind(f, id, PAY), 0);
        advance(f, DET_MINUTE);
        assert_int_equal(faulty->times, 0);
        assert_int_equal(get(f, id).effects_pending, 0);
        assert_int_equal(get(f, id).state, i % 3 == 0 ? CHARGING : PAID);
        assert_int_equal(get(f, id).sequence, i % 3 == 0 ? 1 : 2);
        assert_int_equal(f->control.effects, 1 + f->control.effect_failures);
    }
}

static void an_effect_ends_once_despite_store_errors(void **state)
{
    (void)state;
    in_faulty(end_faults);
}

static void mistaken(struct fixture *f, struct faulty *faulty)
{
    /* The exit hook fails, the entry hook fails, the commit fails: each time the next event is
     * judged from the state that is recorded. */
    assert_int_equal(start(f, "o-1"), 0);
    f->control.exit_result = -1;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    f->control.exit_result = 0;
    f->control.entry_result = -1;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    f->control.entry_result = 0;
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_IO);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", CANCEL), DET_ERR_IO);
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_UNHANDLED);
    assert_string_equal(f->error.state, "CANCELLED");
    assert_int_equal(events_after(f, "o-1", 0)->count, 1);
    assert_int_equal(f->control.effects, 0);
}

static void memory_matches_the_log_after_every_failure(void **state)
{
    (void)state;
    in_faulty(mistaken);
}

static void deferral_faults(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    /* The commit that takes the deferred event is the fourth from here: pay, charged, note. */
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 2);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(faulty->times, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(events_after(f, "o-1", 3)->rows[0].event, NOTE);
}

static void a_deferred_event_that_the_store_failed_is_delivered_soon(void **state)
{
    (void)state;
    in_faulty(deferral_faults);
}

static void answers(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty->answers_failing = 1;
    assert_int_equal(
        send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e" }), DET_ERR_IO);
    assert_int_equal(get(f, "o-1").sequence, 0);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_EXISTS, 0);
    assert_int_equal(send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e" }), 0);
    assert_int_equal(f->sent.sequence, 1);
}

static void an_event_id_that_cannot_be_read_refuses_the_send(void **state)
{
    (void)state;
    in_faulty(answers);
}

/* Its end is waiting for another attempt when it turns out that it was recorded. */
static void gone(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 1);
    faulty->loads_failing = 1;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, 10 * DET_MILLISECOND);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(faulty->loads_failing, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
}

static void close_releases_an_effect_that_has_ended(void **state)
{
    (void)state;
    in_faulty(gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_that_did_not_happen_leaves_state_timer_and_effects),
        cmocka_unit_test(commit_reported_as_failed_is_found_by_loading),
        cmocka_unit_test(an_event_id_resolves_an_unknown_outcome),
        cmocka_unit_test(error_of_a_store_call_applies_to_its_commit),
        cmocka_unit_test(certain_commit_failure_is_not_verified),
        cmocka_unit_test(a_conflict_is_decided_again_and_after_a_few_times_reported),
        cmocka_unit_test(a_start_of_unknown_outcome_is_resolved),
        cmocka_unit_test(an_instance_that_cannot_be_loaded_is_tried_again_by_itself),
        cmocka_unit_test(lost_start_leaves_no_instance),
        cmocka_unit_test(start_with_an_unknown_commit_result_fires_its_timer),
        cmocka_unit_test(timer_fires_once_despite_store_errors),
        cmocka_unit_test(an_effect_ends_once_despite_store_errors),
        cmocka_unit_test(memory_matches_the_log_after_every_failure),
        cmocka_unit_test(a_deferred_event_that_the_store_failed_is_delivered_soon),
        cmocka_unit_test(an_event_id_that_cannot_be_read_refuses_the_send),
        cmocka_unit_test(close_releases_an_effect_that_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
