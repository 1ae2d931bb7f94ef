/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_act_test.c - actions: they block nobody, exclude themselves by name, end in time or are
 * left behind, and are followed by an observation before anything else is decided. */
#include "worker/behaviour_test.h"

static struct det_next do_it(int action)
{
    return (struct det_next){ DET_NEXT_DO, (uint16_t)action, "is wanted" };
}

/* While it works it always wants `one`; what it decides by is newer than what it did. */
static struct det_next want_one(const struct det_worker_view *view)
{
    if (view->last_action->action)
        assert_true(view->stop_wanted || view->observed_at >= view->last_action->at);
    return view->state == PUPPET_WORKING ? do_it(PUPPET_ONE) : puppet_walk(view);
}

static int slow_collect(struct det_worker_context *context, struct link_observed *observed)
{
    (void)observed;
    return lab_take(context, 1700 * DET_MILLISECOND, 0);
}

static void begin_with(
    struct lab *lab, uint64_t seed, struct det_next (*next)(const struct det_worker_view *view))
{
    lab_open(lab, behaviour_options(seed));
    puppet.next = next;
    lab_apply(lab, LAB_PUPPET);
}

SENTENCE(observation_begun_before_the_action_ended_is_not_used)
{
    struct lab lab;

    begin_with(&lab, seed, want_one);
    puppet.collect = slow_collect;
    puppet.waits = 1300 * DET_MILLISECOND;
    lab_run(&lab, 60 * DET_SECOND);
    assert_true(puppet.acts[PUPPET_ONE] > 10);
    assert_int_equal(puppet.most[PUPPET_ONE], 1);
    assert_int_equal(puppet.acts[PUPPET_TWO], 0);
    lab_close(&lab);
}

SENTENCE(next_is_not_asked_while_an_action_runs_but_the_worker_is_observed)
{
    struct lab lab;
    uint32_t nexts, collects;

    begin_with(&lab, seed, want_one);
    puppet.waits = 8 * DET_SECOND;
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(puppet.running[PUPPET_ONE], 1);
    nexts = puppet.nexts;
    collects = puppet.collects;
    assert_true(lab_status(&lab, "lab/p").is_action_pending);
    lab_run(&lab, 4 * DET_SECOND);
    assert_int_equal(puppet.nexts, nexts);
    assert_in_range(puppet.collects - collects, 3, 6);
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(puppet.nexts > nexts);
    lab_close(&lab);
}

SENTENCE(a_collect_that_fails_at_the_gate_is_not_tried_again_at_once)
{
    struct lab lab;
    uint32_t collects;

    lab_open(&lab, behaviour_options(seed));
    lab.plant.connect_takes = 3 * DET_SECOND;
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 2 * DET_SECOND);
    lab.plant.collect_error = DET_ERR_IO;
    collects = lab.plant.collects;
    lab_run(&lab, 7 * DET_SECOND);
    assert_in_range(lab.plant.collects - collects, 5, 10);
    lab_assert_state(&lab, "lab/a", "connecting");
    lab.plant.collect_error = 0;
    lab_run(&lab, 2 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab_close(&lab);
}

/* Stopping, it wants another action, then the same. */
static struct det_next end_with_two(const struct det_worker_view *view)
{
    if (view->state == PUPPET_WORKING)
        return do_it(PUPPET_ONE);
    if (view->state != PUPPET_ENDING)
        return puppet_walk(view);
    if (puppet.acts[PUPPET_TWO] == 0)
        return do_it(PUPPET_TWO);
    return puppet.acts[PUPPET_ONE] < 2 ? do_it(PUPPET_ONE) : puppet_walk(view);
}

SENTENCE(stop_waits_half_its_grace_for_a_running_action)
{
    struct lab lab;
    det_time began;

    begin_with(&lab, seed, end_with_two);
    puppet.hangs = 5 * DET_SECOND;
    lab_run(&lab, 2050 * DET_MILLISECOND);
    while (!puppet.running[PUPPET_ONE])
        lab_run(&lab, 10 * DET_MILLISECOND);
    puppet.hangs = 200 * DET_MILLISECOND;
    began = lab_now(&lab);
    puppet.acts[PUPPET_ONE] = 1;
    lab_apply(&lab, "children: []");
    lab_run(&lab, 2400 * DET_MILLISECOND);
    lab_assert_state(&lab, "lab/p", "ending");
    assert_int_equal(puppet.running[PUPPET_ONE], 1);
    assert_int_equal(puppet.running[PUPPET_TWO], 0);
    lab_run(&lab, 250 * DET_MILLISECOND);
    assert_int_equal(puppet.running[PUPPET_TWO], 1);
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/p"));
    assert_int_equal(puppet.most[PUPPET_ONE], 1);
    assert_int_equal(puppet.running_most, 2);
    assert_int_equal(puppet.acts[PUPPET_ONE], 2);
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/p", 1)->at - began < 6 * DET_SECOND);
    lab_close(&lab);
}

SENTENCE(stop_cancels_a_running_action)
{
    struct lab lab;

    begin_with(&lab, seed, want_one);
    puppet.waits = 20 * DET_SECOND;
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(puppet.running[PUPPET_ONE], 1);
    lab_apply(&lab, "children: []");
    lab_run(&lab, DET_SECOND);
    assert_int_equal(puppet.running[PUPPET_ONE], 0);
    assert_false(lab_has(&lab, "lab/p"));
    lab_assert_no_log(&lab, "graceful_shutdown_timeout");
    lab_close(&lab);
}

static void apply_puppets(struct lab *lab, unsigned count)
{
    struct det_buffer yaml;

    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    for (unsigned i = 0; i < count; i++)
        det_buffer_format(&yaml, "- {name: p%u, kind: puppet}\n", i);
    lab_apply(lab, det_buffer_text(&yaml));
    det_buffer_deinit(&yaml);
}

static struct det_next act_once(const struct det_worker_view *view)
{
    if (view->state == PUPPET_WORKING && !view->counts->actions_done)
        return do_it(PUPPET_ONE);
    return puppet_walk(view);
}

/* Not over seeds: it is large. */
static void many_slow_actions_block_neither_the_tick_nor_each_other(void **state)
{
    struct lab lab;
    struct det_workers_summary before, summary;

    (void)state;
    lab_open(&lab, behaviour_options(7));
    puppet.next = act_once;
    puppet.waits = 10 * DET_SECOND;
    apply_puppets(&lab, 200);
    lab_run(&lab, 5 * DET_SECOND);
    det_workers_summary(lab.workers, &before);
    lab_run(&lab, 10 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.ticks - before.ticks, 100);
    assert_int_equal(summary.actions_running, 10);
    assert_int_equal(puppet.running_most, 10);
    assert_true(summary.actions_queued > 150);
    assert_true(summary.threads <= 10 + 16);
    lab_run(&lab, 200 * DET_SECOND);
    assert_int_equal(puppet.acts[PUPPET_ONE], 200);
    assert_int_equal(lab_status(&lab, "lab/p199").counts.actions_done, 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_TIMEOUT, "lab/p199"), 0);
    lab_close(&lab);
}

static void full_action_queue_is_reported_and_retried(void **state)
{
    struct lab_options options = behaviour_options(3);
    struct lab lab;

    (void)state;
    options.limits.action_queue = 5;
    options.limits.action_threads = 2;
    lab_open(&lab, options);
    puppet.next = act_once;
    puppet.waits = DET_SECOND;
    apply_puppets(&lab, 40);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_log(&lab, "action_queue_full");
    lab_run(&lab, 60 * DET_SECOND);
    assert_int_equal(puppet.acts[PUPPET_ONE], 40);
    assert_int_equal(puppet.running_most, 2);
    lab_close(&lab);
}

SENTENCE(action_timeout_starts_when_the_action_does)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.limits.action_threads = 1;
    lab_open(&lab, options);
    puppet.next = act_once;
    puppet.waits = 20 * DET_SECOND;
    apply_puppets(&lab, 3);
    lab_run(&lab, 70 * DET_SECOND);
    assert_int_equal(puppet.acts[PUPPET_ONE], 3);
    lab_assert_no_log(&lab, "action_timeout");
    lab_assert_no_log(&lab, "action_failed");
    lab_close(&lab);
}

SENTENCE(an_action_without_a_timeout_of_its_own_is_told_to_end_after_thirty_seconds)
{
    struct lab lab;
    const struct reported *enqueued, *it;

    begin_with(&lab, seed, want_one);
    puppet.waits = 1000 * DET_SECOND;
    lab_run(&lab, 35 * DET_SECOND);
    enqueued = reported_nth(&lab, DET_WORKER_EVENT_ACTION_ENQUEUED, "lab/p", 1);
    it = reported_nth(&lab, DET_WORKER_EVENT_ACTION_TIMEOUT, "lab/p", 1);
    ASSERT_SPAN(it->at - enqueued->at, 30 * DET_SECOND);
    it = reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", 1);
    ASSERT_SPAN(it->took, 30 * DET_SECOND);
    assert_int_equal(it->code, DET_ERR_TIMEOUT);
    assert_string_equal(it->reason, "the action exceeded its timeout and was cancelled");
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_STUCK, "lab/p"), 0);
    lab_close(&lab);
}

static struct det_next want_short(const struct det_worker_view *view)
{
    return view->state == PUPPET_WORKING ? do_it(PUPPET_SHORT) : puppet_walk(view);
}

SENTENCE(action_is_cancelled_at_its_own_timeout)
{
    struct lab lab;
    const struct reported *enqueued;

    begin_with(&lab, seed, want_short);
    puppet.waits = 1000 * DET_SECOND;
    lab_run(&lab, 5 * DET_SECOND);
    enqueued = reported_nth(&lab, DET_WORKER_EVENT_ACTION_ENQUEUED, "lab/p", 1);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_TIMEOUT, "lab/p", 1)->at - enqueued->at,
        2 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", 1)->took, 2 * DET_SECOND);
    puppet.waits = 1900 * DET_MILLISECOND;
    lab_run(&lab, 8 * DET_SECOND);
    assert_true(reported_times(DET_WORKER_EVENT_ACTION_COMPLETED, "lab/p") > 0);
    lab_close(&lab);
}

SENTENCE(an_action_that_hangs_is_told_at_twice_and_left_behind_at_three_times_its_timeout)
{
    struct lab lab;
    det_time began;
    struct det_worker_status status;
    struct det_workers_summary summary;

    begin_with(&lab, seed, want_short);
    puppet.hangs = 20 * DET_SECOND;
    lab_run(&lab, 3 * DET_SECOND);
    puppet.hangs = 0;
    lab_run(&lab, 3500 * DET_MILLISECOND);
    began = reported_nth(&lab, DET_WORKER_EVENT_ACTION_ENQUEUED, "lab/p", 1)->at;
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_TIMEOUT, "lab/p", 1)->at - began,
        2 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_STUCK, "lab/p", 1)->at - began, 4 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_QUARANTINED, "lab/p", 1)->at - began,
        6 * DET_SECOND);
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_QUARANTINED, "lab/p", 1)->number, 1);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.hung, 1);
    status = lab_status(&lab, "lab/p");
    assert_int_equal(status.counts.actions_failed, 1);
    /* It is done again, on another thread, though the first one is still away. */
    lab_run(&lab, 5 * DET_SECOND);
    status = lab_status(&lab, "lab/p");
    assert_true(status.counts.actions_done > 0);
    assert_int_equal(puppet.running[PUPPET_SHORT], 1);
    /* And nobody listens when it comes. */
    puppet.next = NULL;
    lab_run(&lab, 3 * DET_SECOND);
    status = lab_status(&lab, "lab/p");
    lab_run(&lab, 20 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_LATE, "lab/p"), 1);
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_LATE, "lab/p", 1)->action, "short");
    assert_int_equal(lab_status(&lab, "lab/p").counts.actions_done, status.counts.actions_done);
    assert_int_equal(lab_status(&lab, "lab/p").counts.actions_failed, 1);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.hung, 0);
    lab_close(&lab);
}

SENTENCE(late_result_of_an_action_does_not_end_the_current_one)
{
    struct lab lab;
    uint32_t completed;

    begin_with(&lab, seed, want_short);
    puppet.hangs = 10 * DET_SECOND;
    lab_run(&lab, 8 * DET_SECOND); /* Given up at 6 s, again after the delay: both are away. */
    assert_int_equal(puppet.running[PUPPET_SHORT], 2);
    completed = reported_times(DET_WORKER_EVENT_ACTION_COMPLETED, "lab/p");
    while (!reported_times(DET_WORKER_EVENT_ACTION_LATE, "lab/p"))
        lab_run(&lab, 100 * DET_MILLISECOND);
    assert_true(lab_status(&lab, "lab/p").is_action_pending);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_COMPLETED, "lab/p"), completed);
    assert_int_equal(puppet.running[PUPPET_SHORT], 1);
    puppet.hangs = 0;
    lab_run(&lab, 30 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_LATE, "lab/p"), 2);
    assert_true(lab_status(&lab, "lab/p").counts.actions_done > 0);
    lab_close(&lab);
}

SENTENCE(number_of_hung_actions_is_limited_and_others_wait)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;
    struct det_workers_summary summary;

    options.limits.hung_max = 1;
    options.limits.action_threads = 2;
    lab_open(&lab, options);
    puppet.next = want_short;
    puppet.hangs = 20 * DET_SECOND;
    apply_puppets(&lab, 2);
    lab_run(&lab, 12 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.hung, 1);
    assert_int_equal(
        reported_times(DET_WORKER_EVENT_ACTION_QUARANTINED, "lab/p0") +
            reported_times(DET_WORKER_EVENT_ACTION_QUARANTINED, "lab/p1"),
        1);
    assert_int_equal(
        reported_times(DET_WORKER_EVENT_ACTION_STUCK, "lab/p0") +
            reported_times(DET_WORKER_EVENT_ACTION_STUCK, "lab/p1"),
        2 + (puppet.acts[PUPPET_SHORT] > 2));
    assert_true(summary.threads <= 4 + 3);
    puppet.hangs = 0;
    lab_run(&lab, 60 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.hung, 0);
    assert_true(lab_status(&lab, "lab/p0").counts.actions_done > 0);
    assert_true(lab_status(&lab, "lab/p1").counts.actions_done > 0);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(observation_begun_before_the_action_ended_is_not_used),
        cmocka_unit_test(next_is_not_asked_while_an_action_runs_but_the_worker_is_observed),
        cmocka_unit_test(a_collect_that_fails_at_the_gate_is_not_tried_again_at_once),
        cmocka_unit_test(stop_waits_half_its_grace_for_a_running_action),
        cmocka_unit_test(stop_cancels_a_running_action),
        cmocka_unit_test(many_slow_actions_block_neither_the_tick_nor_each_other),
        cmocka_unit_test(full_action_queue_is_reported_and_retried),
        cmocka_unit_test(action_timeout_starts_when_the_action_does),
        cmocka_unit_test(
            an_action_without_a_timeout_of_its_own_is_told_to_end_after_thirty_seconds),
        cmocka_unit_test(action_is_cancelled_at_its_own_timeout),
        cmocka_unit_test(
            an_action_that_hangs_is_told_at_twice_and_left_behind_at_three_times_its_timeout),
        cmocka_unit_test(late_result_of_an_action_does_not_end_the_current_one),
        cmocka_unit_test(number_of_hung_actions_is_limited_and_others_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
