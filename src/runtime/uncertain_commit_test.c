/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* uncertain_commit_test.c - a commit that happened although the store reported a failure: it is
 * counted and reported once, as what it is. Every test runs over a quick store and over one that
 * blocks. */
#include <limits.h>

#include "runtime/faulty_test.h"

static void in_doubt_on(bool is_quick, void (*test)(struct fixture *f, struct faulty *faulty))
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    faulty_wrap(&faulty, f, is_quick);
    fixture_reopen(f, (struct det_runtime_options){ .observe = order_observe });
    test(f, &faulty);
    fixture_close(f);
}

static void in_doubt(void (*test)(struct fixture *f, struct faulty *faulty))
{
    in_doubt_on(false, test);
    in_doubt_on(true, test);
}

static void timer(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    advance(f, 40 * DET_MINUTE);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(counts(f).timeouts_rejected, 0);
    assert_int_equal(counts(f).transitions, 1);
    assert_int_equal(f->control.incidents, 0);
    assert_int_equal(f->control.notes, 2);
    assert_true(f->control.note.is_timeout);
}

static void timer_with_an_unknown_commit_result_fires_once(void **state)
{
    (void)state;
    in_doubt(timer);
}

/* The hook fails each time; with the last attempt the timer is a dead letter. */
static void timer_rejected(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.exit_result = -1;
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    advance(f, 2 * DET_HOUR);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_true(f->control.incident.is_dead);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(counts(f).timeouts_fired, 0);
    assert_int_equal(counts(f).timeouts_rejected, 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], 8);
    assert_int_equal(f->control.incident.code, DET_ERR_ACTION_FAILED);
}

static void rejected_timer_with_an_unknown_commit_stays_rejected(void **state)
{
    (void)state;
    in_doubt(timer_rejected);
}

static void product(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 1);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(counts(f).effects_done, 1);
    assert_int_equal(counts(f).products_rejected, 0);
    assert_int_equal(counts(f).transitions, 2);
    assert_int_equal(f->control.incidents, 0);
    assert_int_equal(f->control.notes, 3);
    assert_key(f->control.cause, "order/o-1/1/0");
}

static void product_with_an_unknown_commit_result_is_applied(void **state)
{
    (void)state;
    in_doubt(product);
}

static void leave_first(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
}

static void product_rejected(struct fixture *f, struct faulty *faulty)
{
    f->control.in_effect = leave_first;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 2);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(effects(f, "o-1")->count, 1);
    assert_int_equal(counts(f).products_rejected, 1);
    assert_int_equal(counts(f).effects_dead, 1);
    assert_int_equal(counts(f).effects_done, 0);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_UNHANDLED);
    assert_key(f->control.incident_key, "order/o-1/1/0");
}

static void rejected_product_with_an_unknown_commit_counts_once(void **state)
{
    (void)state;
    in_doubt(product_rejected);
}

static void dead(struct fixture *f, struct faulty *faulty)
{
    f->control.effect_failures = 99;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    /* The first attempt ends when the clock moves; the eighth is the last. */
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 7);
    advance(f, 5 * DET_MINUTE);
    assert_int_equal(faulty->faults, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(effects(f, "o-1")->count, 1);
    assert_int_equal(counts(f).effects_failed, 8);
    assert_int_equal(counts(f).effects_dead, 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EFFECT_FAILED], 7);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EFFECT_DEAD], 1);
    assert_int_equal(f->control.incident.attempt, 8);
    assert_int_equal(f->control.incident.code, DET_ERR_IO);
}

static void a_dead_effect_of_an_uncertain_commit_is_reported(void **state)
{
    (void)state;
    in_doubt(dead);
}

static void sends(struct fixture *f, struct faulty *faulty)
{
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_with(f, "o-1", TOUCH, (struct det_send_options){ .event_id = "e" }), 0);
    assert_false(f->sent.is_duplicate);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(f->control.note.sequence, 1);
    assert_int_equal(f->control.note.event, TOUCH);
    assert_int_equal(counts(f).transitions, 1);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_IO);
    assert_int_equal(f->control.notes, 3);
    assert_int_equal(f->control.note.event, PING);
    assert_int_equal(counts(f).transitions, 2);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_IO);
    assert_int_equal(f->control.notes, 3);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", JUNK), DET_ERR_IO);
    assert_int_equal(f->control.notes, 4);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 1);
    assert_int_equal(counts(f).transitions, 2);
}

static void an_event_that_was_committed_in_doubt_is_reported_and_counted(void **state)
{
    (void)state;
    in_doubt(sends);
}

static void starts(struct fixture *f, struct faulty *faulty)
{
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(start(f, "o-1"), DET_ERR_IO);
    assert_int_equal(f->control.notes, 1);
    assert_int_equal(f->control.note.event, UINT16_MAX);
    assert_int_equal(f->control.note.visit, 1);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    faulty->loads_failing = 1;
    assert_int_equal(send_kind(f, "o-1", TOUCH), DET_ERR_IO);
    assert_int_equal(f->control.notes, 1);
    /* The next load finds the commit; then it is known. */
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(counts(f).transitions, 1);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->control.notes, 3);
}

static void a_commit_found_by_a_later_load_is_reported_then(void **state)
{
    (void)state;
    in_doubt(starts);
}

struct sender {
    struct fixture *f;
    struct faulty *faulty;
    int result;
    char key[300];
};

static void cancel(void *argument)
{
    struct sender *sender = argument;
    struct order_event event = { .kind = CANCEL };

    sender->result =
        det_runtime_send(sender->f->runtime, sender->f->order, "o-1", &event, NULL, NULL, NULL);
}

/* Another thread has the instance loaded again while the end of its effect is reported. */
static void send_in_doubt(void *user, const struct det_incident *incident)
{
    struct sender *sender = user;
    struct det_world *world = det_sim_world(sender->f->sim);
    struct det_thread *thread;

    if (sender->result || incident->kind != DET_INCIDENT_EFFECT_FAILED)
        return;
    faulty_set(sender->faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(det_thread_start(world, "cancel", cancel, sender, &thread), 0);
    det_thread_join(world, thread);
    snprintf(sender->key, sizeof sender->key, "%s", incident->key);
}

static void reload_while_telling(struct fixture *f, struct faulty *faulty)
{
    struct sender sender = { .f = f, .faulty = faulty };
    struct det_runtime_options options = { .world = det_sim_world(f->sim),
                                           .user = &f->control,
                                           .observer = &sender,
                                           .incident = send_in_doubt };

    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, &f->error), 0);
    f->control.effect_failures = 3;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(sender.result, DET_ERR_IO);
    assert_key(sender.key, "order/o-1/1/0");
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(counts(f).effects_failed, 3);
    assert_int_equal(counts(f).effects_dead, 1);
}

static void an_effect_may_be_loaded_again_while_its_failure_is_reported(void **state)
{
    (void)state;
    in_doubt(reload_while_telling);
}

static void start_three(struct fixture *f)
{
    char id[8];

    for (int i = 1; i <= 3; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(start(f, id), 0);
    }
    fixture_reopen(f, (struct det_runtime_options){ 0 });
}

/* On a store that does not block the first call that serves the machine does all of it; on any
 * other one by the loop: recover_test.c. */
static void resumes(struct fixture *f, struct faulty *faulty)
{
    start_three(f);
    faulty->listings = 0;
    faulty->listings_failing = 1;
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), DET_ERR_IO);
    faulty->loads_skipped = 1;
    faulty->loads_failing = 2;
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), DET_ERR_IO);
    assert_int_equal(counts(f).instances, 1);
    /* Instances in memory continue, and commit. */
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), DET_ERR_IO);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    assert_int_equal(faulty->listings, 2);
    assert_int_equal(counts(f).instances, 3);
    settle(f);
    assert_int_equal(counts(f).timeouts_fired, 3);
}

static void recovery_continues_where_it_failed_and_lists_once(void **state)
{
    (void)state;
    in_doubt_on(true, resumes);
}

static void closes(struct fixture *f, struct faulty *faulty)
{
    start_three(f);
    faulty->loads_skipped = 1;
    faulty->loads_failing = 1;
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), DET_ERR_IO);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    assert_int_equal(counts(f).instances, 3);
}

static void a_runtime_may_be_closed_in_the_middle_of_recovery(void **state)
{
    (void)state;
    in_doubt_on(true, closes);
}

/* A reload after each failure does not reset the attempts. */
static void a_timer_that_cannot_be_recorded_waits_longer_each_time(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, false);
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    faulty.times = INT_MAX;
    advance(f, 31 * DET_MINUTE);
    assert_in_range(faulty.faults, 5, 20);
    faulty.times = 0;
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(counts(f).timeouts_fired, 1);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_cannot_be_recorded_waits_longer_each_time),
        cmocka_unit_test(timer_with_an_unknown_commit_result_fires_once),
        cmocka_unit_test(rejected_timer_with_an_unknown_commit_stays_rejected),
        cmocka_unit_test(product_with_an_unknown_commit_result_is_applied),
        cmocka_unit_test(rejected_product_with_an_unknown_commit_counts_once),
        cmocka_unit_test(a_dead_effect_of_an_uncertain_commit_is_reported),
        cmocka_unit_test(an_event_that_was_committed_in_doubt_is_reported_and_counted),
        cmocka_unit_test(a_commit_found_by_a_later_load_is_reported_then),
        cmocka_unit_test(an_effect_may_be_loaded_again_while_its_failure_is_reported),
        cmocka_unit_test(recovery_continues_where_it_failed_and_lists_once),
        cmocka_unit_test(a_runtime_may_be_closed_in_the_middle_of_recovery),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
