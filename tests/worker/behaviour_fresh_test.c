/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_fresh_test.c - what old observations do to a worker, to the millisecond: paused at 10
 * s, its collector restarted at 20 s, given up when that was in vain; and collectors that hang. */
#include "worker/behaviour_test.h"

#define ERROR_FOR_EVER DET_ERR_IO

/* When the last observation of the link began, monotonic. */
static det_time observed_at(struct lab *lab, const char *id)
{
    det_time wall = lab->world->ops->now(lab->world, DET_CLOCK_WALL);

    return lab_now(lab) - (wall - lab_status(lab, id).observed);
}

static det_time last_transition(struct lab *lab, const char *id)
{
    uint32_t count = reported_times(DET_WORKER_EVENT_TRANSITION, id);

    return reported_nth(lab, DET_WORKER_EVENT_TRANSITION, id, count)->at;
}

SENTENCE(next_is_not_called_before_the_first_observation)
{
    struct lab lab;

    lab_open(&lab, behaviour_options(seed));
    lab.plant.collect_error = DET_ERR_IO;
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 9 * DET_SECOND);
    assert_true(lab.plant.collects > 3);
    assert_int_equal(lab.plant.nexts, 0);
    assert_string_equal(lab_status(&lab, "lab/a").reason, "initial");
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_NEVER);
    lab.plant.collect_error = 0;
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    lab_close(&lab);
}

SENTENCE(old_observations_pause_the_worker_at_ten_seconds)
{
    struct lab lab;
    det_time began;
    uint32_t nexts;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab.plant.collect_error = ERROR_FOR_EVER;
    began = observed_at(&lab, "lab/a");
    lab_run(&lab, began + 9900 * DET_MILLISECOND - lab_now(&lab));
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/a"), 0);
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    nexts = lab.plant.nexts;
    lab_run(&lab, 2 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_STALE, "lab/a", 1)->at - began, 10 * DET_SECOND);
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_STALE, "lab/a", 1)->number, 10000);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/a"), 1);
    assert_in_range(lab.plant.nexts - nexts, 0, 1);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_STALE);
    assert_int_equal(lab_status(&lab, "lab/a").counts.collector_restarts, 0);
    lab_assert_state(&lab, "lab", "degraded");
    lab_close(&lab);
}

SENTENCE(change_during_a_pause_is_noticed_afterwards)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    lab.plant.is_up = false;
    lab.plant.connect_error = DET_ERR_IO;
    lab_run(&lab, 12 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab.plant.collect_error = 0;
    lab_run(&lab, 1100 * DET_MILLISECOND);
    lab_assert_state(&lab, "lab/a", "lost");
    lab_assert_no_log(&lab, "collector_recovered");
    lab_assert_state(&lab, "lab", "running");
    lab_close(&lab);
}

SENTENCE(a_collector_is_restarted_at_twenty_seconds_and_then_after_growing_delays)
{
    struct lab lab;
    det_time began, at;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    began = observed_at(&lab, "lab/a");
    lab_run(&lab, 40 * DET_SECOND);
    at = reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 1)->at;
    ASSERT_SPAN(at - began, 20 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 2)->at - at,
        2 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 3)->at - at,
        6 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a"), 3);
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 3)->number, 3);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a", 1)->at - at,
        14 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a"), 1);
    assert_non_null(strstr(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a", 1)->reason,
        "unresponsive"));
    lab_close(&lab);
}

SENTENCE(a_restarted_collector_collects_at_once)
{
    struct lab lab;
    det_time began;
    uint32_t collects;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    began = observed_at(&lab, "lab/a");
    lab.plant.collect_hangs = 1000 * DET_SECOND;
    lab_run(&lab, began + 19900 * DET_MILLISECOND - lab_now(&lab));
    collects = lab.plant.collects;
    lab.plant.collect_hangs = 0;
    lab_run(&lab, 300 * DET_MILLISECOND);
    assert_int_equal(lab.plant.collects, collects + 1);
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RECOVERED, "lab/a", 1)->number, 1);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    lab_run(&lab, 1000 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/a").counts.collector_restarts, 0);
    lab_close(&lab);
}

SENTENCE(successful_observation_resets_the_attempts)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    for (int i = 0; i < 4; i++) {
        lab.plant.collect_error = ERROR_FOR_EVER;
        lab_run(&lab, 28 * DET_SECOND);
        assert_int_equal(lab_status(&lab, "lab/a").counts.collector_restarts, 3);
        lab.plant.collect_error = 0;
        lab_run(&lab, 2 * DET_SECOND);
        assert_int_equal(lab_status(&lab, "lab/a").counts.collector_restarts, 0);
        lab_assert_state(&lab, "lab/a", "up");
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_RECOVERED, "lab/a"), 4);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a"), 0);
    lab_close(&lab);
}

SENTENCE(unobservable_worker_is_shut_down_with_a_reason)
{
    struct lab lab;
    struct det_worker_status status;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    lab_run(&lab, 60 * DET_SECOND);
    lab_assert_log(&lab, "shutdown_requested lab/a");
    assert_in_range(lab.plant.closes, 1, 6);
    lab_assert_log(&lab, "graceful_shutdown_timeout lab/a");
    assert_int_equal(lab.plant.closed, 1);
    status = lab_status(&lab, "lab/a");
    assert_string_equal(status.life, "down");
    assert_string_equal(status.state, "stopped");
    if (!strstr(status.reason, "unresponsive"))
        fail_msg("reason: %s", status.reason);
    lab_run(&lab, 600 * DET_SECOND);
    assert_int_equal(lab.plant.opened, 1);
    lab.plant.collect_error = 0;
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab_close(&lab);
}

SENTENCE(worker_that_is_down_restarts_when_its_config_changes)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    lab_run(&lab, 60 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    lab.plant.collect_error = 0;
    lab_apply(&lab, "children: [{name: a, kind: link, config: {host: h, port: 2}}]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.port, 2);
    lab_close(&lab);
}

SENTENCE(a_worker_that_was_never_seen_is_paused_restarted_and_given_up_all_the_same)
{
    struct lab lab;
    det_time began;

    lab_open(&lab, behaviour_options(seed));
    lab.plant.collect_hangs = 1000 * DET_SECOND;
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 60 * DET_SECOND);
    began = reported_nth(&lab, DET_WORKER_EVENT_ADDED, "lab/a", 1)->at;
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_STALE, "lab/a", 1)->at - began, 10 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_DATA_TIMEOUT, "lab/a", 1)->at - began, 20 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 1)->at - began,
        20 * DET_SECOND);
    /* A collect that was just begun has its own time before it is begun anew. */
    assert_in_range(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a", 1)->at - began,
        34 * DET_SECOND, 34 * DET_SECOND + 2200 * DET_MILLISECOND);
    assert_int_equal(lab.plant.nexts, 0);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    lab_close(&lab);
}

SENTENCE(a_collect_that_hangs_is_told_at_twice_and_left_behind_at_three_times_its_timeout)
{
    struct lab lab;
    det_time began;
    uint32_t collects;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    collects = lab.plant.collects;
    lab.plant.collect_hangs = 30 * DET_SECOND;
    while (lab.plant.collects == collects)
        lab_run(&lab, 10 * DET_MILLISECOND);
    lab.plant.collect_hangs = 0;
    lab_run(&lab, 8 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_STUCK, "lab/a"), 1);
    began = reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_STUCK, "lab/a", 1)->at -
            4400 * DET_MILLISECOND;
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_STUCK, "lab/a", 1)->number, 4400);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_QUARANTINED, "lab/a", 1)->at - began,
        6600 * DET_MILLISECOND);
    assert_true(lab.plant.collects >= collects + 2);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/a"), 0);
    lab_assert_state(&lab, "lab/a", "up");
    lab_close(&lab);
}

SENTENCE(late_result_of_an_abandoned_collect_is_ignored)
{
    struct lab lab;
    uint32_t collects;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    collects = lab.plant.collects;
    lab.plant.is_up = false; /* It sees this, and comes back with it when it is long not true. */
    lab.plant.collect_hangs = 30 * DET_SECOND;
    while (lab.plant.collects == collects)
        lab_run(&lab, 10 * DET_MILLISECOND);
    lab.plant.collect_hangs = 0;
    lab.plant.is_up = true;
    lab_run(&lab, 60 * DET_SECOND);
    lab_assert_no_log(&lab, "up lost");
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_LATE, "lab/a"), 1);
    lab_close(&lab);
}

SENTENCE(slow_collect_is_cancelled_at_its_timeout)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_takes = 5 * DET_SECOND;
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_log(&lab, "collector_observation_failed lab/a");
    lab_assert_no_log(&lab, "collector_stuck");
    lab.plant.collect_takes = 2 * DET_SECOND;
    lab_run(&lab, 60 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/a"), 0);
    lab_close(&lab);
}

SENTENCE(unobservable_worker_does_not_affect_others)
{
    struct lab lab;
    uint32_t nexts;

    behaviour_begin(
        &lab, behaviour_options(seed),
        "children: [{name: a, kind: link, config: {host: h, port: 1}}, {name: p, kind: puppet}]",
        5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    lab_run(&lab, 60 * DET_SECOND);
    nexts = puppet.nexts;
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    assert_int_equal(puppet.nexts, nexts + 100);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/p"), 0);
    lab_close(&lab);
}

static void begin_hanging(struct lab *lab, uint64_t seed, unsigned count)
{
    struct lab_options options = behaviour_options(seed);
    struct det_buffer yaml;

    options.limits.collector_threads = 4;
    options.limits.hung_max = 32;
    lab_open(lab, options);
    lab->plant.collect_hangs = 200 * DET_SECOND;
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children: [{name: p, kind: puppet}");
    for (unsigned i = 0; i < count; i++)
        det_buffer_format(&yaml, ", {name: a%u, kind: link, config: {host: h, port: 1}}", i);
    det_buffer_append_text(&yaml, "]");
    lab_apply(lab, det_buffer_text(&yaml));
    det_buffer_deinit(&yaml);
}

SENTENCE(hung_collectors_do_not_make_other_workers_stale)
{
    struct lab lab;

    begin_hanging(&lab, seed, 4);
    lab_run(&lab, 60 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/p"), 0);
    assert_string_equal(lab_status(&lab, "lab/a0").life, "down");
    lab_close(&lab);
}

SENTENCE(worker_waiting_for_a_collector_is_paused_but_not_down)
{
    struct lab lab;
    struct det_workers_summary summary;

    if (seed > 5) /* They are long. */
        return;
    begin_hanging(&lab, seed, 30);
    lab_run(&lab, 150 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.hung, 32);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/p"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab"), 0);
    lab.plant.collect_hangs = 0;
    lab_run(&lab, 200 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    assert_int_equal(lab_status(&lab, "lab/p").freshness, DET_FRESHNESS_FRESH);
    assert_int_equal(lab_status(&lab, "lab").freshness, DET_FRESHNESS_FRESH);
    lab_close(&lab);
}

SENTENCE(a_stop_does_not_wait_for_fresh_observations)
{
    struct lab lab;
    det_time began;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    lab_run(&lab, 15 * DET_SECOND);
    began = lab_now(&lab);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 2 * DET_SECOND);
    assert_true(last_transition(&lab, "lab/a") >= began);
    lab_assert_log(&lab, "state_transition lab/a up closing");
    lab.plant.collect_error = 0;
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    lab_close(&lab);
}

static struct det_worker_kind witness_kind;
static char seen_error[DET_WORKER_REASON_MAX + 1];

static struct det_next see_error(const struct det_worker_view *view)
{
    if (view->state != PUPPET_WORKING && view->state != PUPPET_ILL)
        return puppet_walk(view);
    snprintf(
        seen_error, sizeof seen_error, "%s", view->collect_error ? view->collect_error : "none");
    if ((view->collect_error != NULL) == (view->state == PUPPET_ILL))
        return (struct det_next){ DET_NEXT_HOLD, 0, "as seen" };
    return (struct det_next){ DET_NEXT_GOTO, view->collect_error ? PUPPET_ILL : PUPPET_WORKING,
                              "as seen" };
}

static int short_of; /* DET_ERR_LIMIT, DET_ERR_NO_MEMORY; 0: of nothing */
static int inspect_if_rich(struct det_worker_context *context, struct link_observed *observed)
{
    observed->noise = 1;
    return short_of ? det_worker_fail(context, short_of, "too many open files") : 0;
}

SENTENCE(local_shortage_pauses_a_worker_and_never_takes_it_down)
{
    static const int codes[] = { DET_ERR_LIMIT, DET_ERR_NO_MEMORY };
    struct lab lab;

    short_of = 0;
    lab_open(&lab, behaviour_options(seed));
    puppet.collect = inspect_if_rich;
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 3 * DET_SECOND);
    for (int i = 0; i < 2; i++) {
        short_of = codes[i];
        lab_run(&lab, 5 * DET_MINUTE);
        assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/p"), i + 1);
        assert_non_null(strstr(lab_status(&lab, "lab/p").reason, "too many open files"));
        short_of = 0;
        lab_run(&lab, 3 * DET_SECOND);
        assert_null(strstr(lab_status(&lab, "lab/p").reason, "paused"));
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/p"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/p"), 0);
    lab_close(&lab);
}

static bool is_blind;
static int inspect(struct det_worker_context *context, struct link_observed *observed)
{
    observed->noise = is_blind ? 666 : 1;
    return is_blind ? det_worker_fail(context, DET_ERR_IO, "nothing to see") : 0;
}

SENTENCE(observed_errors_are_passed_and_not_stale)
{
    const struct det_worker_kind *kinds[] = { &witness_kind, NULL };
    struct lab_options options = behaviour_options(seed);
    struct det_worker_status status;
    struct link_observed observed;
    struct lab lab;

    witness_kind = puppet_kind;
    witness_kind.errors_are_observed = true;
    options.kinds = kinds;
    is_blind = false;
    lab_open(&lab, options);
    puppet.next = see_error;
    puppet.collect = inspect;
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    is_blind = true;
    lab_run(&lab, 60 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "ill");
    assert_string_equal(seen_error, "nothing to see");
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/p"), 0);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/p", link_observed_record(), &status, &observed, NULL), 0);
    assert_int_equal(observed.noise, 1);
    is_blind = false;
    lab_run(&lab, 2 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    assert_string_equal(seen_error, "none");
    lab_close(&lab);
}

SENTENCE(kind_is_observed_at_its_own_interval)
{
    const struct det_worker_kind *kinds[] = { &witness_kind, NULL };
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    witness_kind = puppet_kind;
    witness_kind.observe_every = 5 * DET_SECOND;
    options.kinds = kinds;
    behaviour_begin(&lab, options, LAB_PUPPET, 100 * DET_SECOND);
    assert_in_range(puppet.collects, 20, 23);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/p"), 0);
    lab_close(&lab);
}

SENTENCE(custom_limits_are_respected)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;
    det_time began;

    options.limits = (struct det_worker_limits){ .observe_timeout = DET_SECOND,
                                                 .stale_after = 3 * DET_SECOND,
                                                 .collector_timeout = 7 * DET_SECOND,
                                                 .collector_restarts_max = 1 };
    behaviour_begin(&lab, options, LAB_LINK, 5 * DET_SECOND);
    lab.plant.collect_error = ERROR_FOR_EVER;
    began = observed_at(&lab, "lab/a");
    lab_run(&lab, 20 * DET_SECOND);
    ASSERT_SPAN(reported_nth(&lab, DET_WORKER_EVENT_STALE, "lab/a", 1)->at - began, 3 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_RESTARTING, "lab/a", 1)->at - began,
        7 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a", 1)->at - began,
        9 * DET_SECOND);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_is_not_called_before_the_first_observation),
        cmocka_unit_test(old_observations_pause_the_worker_at_ten_seconds),
        cmocka_unit_test(change_during_a_pause_is_noticed_afterwards),
        cmocka_unit_test(a_collector_is_restarted_at_twenty_seconds_and_then_after_growing_delays),
        cmocka_unit_test(a_restarted_collector_collects_at_once),
        cmocka_unit_test(successful_observation_resets_the_attempts),
        cmocka_unit_test(unobservable_worker_is_shut_down_with_a_reason),
        cmocka_unit_test(worker_that_is_down_restarts_when_its_config_changes),
        cmocka_unit_test(
            a_worker_that_was_never_seen_is_paused_restarted_and_given_up_all_the_same),
        cmocka_unit_test(
            a_collect_that_hangs_is_told_at_twice_and_left_behind_at_three_times_its_timeout),
        cmocka_unit_test(late_result_of_an_abandoned_collect_is_ignored),
        cmocka_unit_test(slow_collect_is_cancelled_at_its_timeout),
        cmocka_unit_test(unobservable_worker_does_not_affect_others),
        cmocka_unit_test(hung_collectors_do_not_make_other_workers_stale),
        cmocka_unit_test(worker_waiting_for_a_collector_is_paused_but_not_down),
        cmocka_unit_test(a_stop_does_not_wait_for_fresh_observations),
        cmocka_unit_test(local_shortage_pauses_a_worker_and_never_takes_it_down),
        cmocka_unit_test(observed_errors_are_passed_and_not_stale),
        cmocka_unit_test(kind_is_observed_at_its_own_interval),
        cmocka_unit_test(custom_limits_are_respected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
