/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_next_test.c - what next() sees and answers, and functions that are left in a panic. */
#include <detent/tool/workers.h>
#include <stdlib.h>

#include "worker/behaviour_test.h"

static struct det_next wrong;

static struct det_next answer_wrong(const struct det_worker_view *view)
{
    return view->state == PUPPET_WORKING ? wrong : puppet_walk(view);
}

static void begin_with(
    struct lab *lab, uint64_t seed, struct det_next (*next)(const struct det_worker_view *view))
{
    lab_open(lab, behaviour_options(seed));
    puppet.next = next;
    lab_apply(lab, LAB_PUPPET);
}

static void invalid_answer_of_next_is_reported_and_ignored(void **state)
{
    static const struct {
        struct det_next next;
        const char *text;
    } cases[] = {
        { { DET_NEXT_HOLD, 0, NULL }, "no reason" },
        { { DET_NEXT_HOLD, 0, "" }, "no reason" },
        { { DET_NEXT_GOTO, PUPPET_ILL, NULL }, "no reason" },
        { { DET_NEXT_GOTO, PUPPET_WORKING, "to itself" }, "the current state" },
        { { DET_NEXT_GOTO, 5, "to nowhere" }, "an unknown state" },
        { { DET_NEXT_GOTO, UINT16_MAX, "to nowhere" }, "an unknown state" },
        { { DET_NEXT_DO, 3, "nothing" }, "an unknown action" },
        { { (enum det_next_kind)77, 0, "what?" }, "an invalid decision" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab lab;

        wrong = cases[i].next;
        begin_with(&lab, i + 1, answer_wrong);
        lab_run(&lab, 3 * DET_SECOND);
        lab_assert_state(&lab, "lab/p", "working");
        if (!strstr(
                reported_nth(&lab, DET_WORKER_EVENT_NEXT_INVALID, "lab/p", 1)->reason,
                cases[i].text))
            fail_msg("%s", reported_nth(&lab, DET_WORKER_EVENT_NEXT_INVALID, "lab/p", 1)->reason);
        assert_int_equal(reported_times(DET_WORKER_EVENT_NEXT_INVALID, "lab/p"), 3);
        assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/p"), 1);
        assert_int_equal(reported_times(DET_WORKER_EVENT_TRANSITION, "lab/p"), 1);
        assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_ENQUEUED, "lab/p"), 0);
        assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
        lab_close(&lab);
    }
}

SENTENCE(three_wrong_answers_pause_the_worker_for_five_minutes_and_no_other)
{
    struct lab lab;
    struct det_workers_summary summary;
    uint32_t nexts, collects;
    det_time third;

    wrong = (struct det_next){ DET_NEXT_HOLD, 0, NULL };
    begin_with(&lab, seed, answer_wrong);
    lab_apply(
        &lab, "children: [{name: p, kind: puppet}, "
              "{name: a, kind: link, config: {host: h, port: 1}}]");
    lab_run(&lab, 5 * DET_SECOND);
    third = reported_nth(&lab, DET_WORKER_EVENT_NEXT_INVALID, "lab/p", 3)->at;
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_NEXT_INVALID, "lab/p", 3)->number, 3);
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/p", 1)->at, third);
    assert_true(lab_status(&lab, "lab/p").is_circuit_open);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.circuits_open, 1);
    nexts = puppet.nexts;
    collects = puppet.collects;
    wrong.reason = "well again";
    lab_run(&lab, third + 299900 * DET_MILLISECOND - lab_now(&lab));
    assert_int_equal(puppet.nexts, nexts);
    assert_true(puppet.collects > collects + 250);
    lab_assert_state(&lab, "lab/a", "up");
    lab_assert_state(&lab, "lab", "degraded");
    lab_run(&lab, DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_PANIC_CIRCUIT_CLOSED, "lab/p", 1)->at - third,
        5 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab/p").reason, "well again");
    assert_false(lab_status(&lab, "lab/p").is_circuit_open);
    lab_assert_state(&lab, "lab", "running");
    lab_close(&lab);
}

SENTENCE(rare_panics_do_not_pause_the_worker)
{
    struct lab lab;

    begin_with(&lab, seed, answer_wrong);
    wrong = (struct det_next){ DET_NEXT_HOLD, 0, "well" };
    for (uint32_t i = 1; i <= 6; i++) {
        lab_run(&lab, 151 * DET_SECOND);
        wrong.reason = NULL;
        while (reported_times(DET_WORKER_EVENT_NEXT_INVALID, "lab/p") < i)
            lab_run(&lab, 50 * DET_MILLISECOND);
        wrong.reason = "well";
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_NEXT_INVALID, "lab/p"), 6);
    assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/p"), 0);
    lab_close(&lab);
}

static struct det_next want_one(const struct det_worker_view *view)
{
    return view->state == PUPPET_WORKING ? (struct det_next){ DET_NEXT_DO, PUPPET_ONE, "is wanted" }
                                         : puppet_walk(view);
}

static int panics_left;
static int panic_at_first(struct det_worker_context *context, int action)
{
    (void)action;
    det_worker_count(context, "tries", 1);
    if (panics_left-- > 0)
        det_worker_panic(context, "cannot be: %d", panics_left);
    return 0;
}

static void assert_history(struct lab *lab, const char *id, const char *text)
{
    char *history;
    size_t size;

    assert_int_equal(det_workers_history(lab->workers, id, &history, &size), 0);
    if (!strstr(history, text))
        fail_msg("no %s in:\n%s", text, history);
    det_free(NULL, history, size + 1);
}

SENTENCE(an_action_that_panics_has_failed_and_can_be_done_again)
{
    struct lab lab;
    const struct reported *it;

    begin_with(&lab, seed, want_one);
    puppet.act = panic_at_first;
    panics_left = 2;
    lab_run(&lab, 10 * DET_SECOND);
    it = reported_nth(&lab, DET_WORKER_EVENT_ACTION_PANIC, "lab/p", 1);
    assert_string_equal(it->action, "one");
    assert_string_equal(it->reason, "cannot be: 1");
    assert_true(it->code < 0);
    assert_int_equal(it->number, 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_PANIC, "lab/p"), 2);
    assert_true(reported_times(DET_WORKER_EVENT_ACTION_COMPLETED, "lab/p") > 1);
    assert_int_equal(lab_status(&lab, "lab/p").counts.actions_failed, 2);
    assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/p"), 0);
    lab_close(&lab);
}

SENTENCE(actions_that_panic_three_times_pause_the_worker_until_they_are_old)
{
    struct lab lab;
    det_time third;
    uint32_t acts;

    begin_with(&lab, seed, want_one);
    puppet.act = panic_at_first;
    panics_left = 3;
    lab_run(&lab, 20 * DET_SECOND);
    third = reported_nth(&lab, DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/p", 1)->at;
    assert_int_equal(third, reported_nth(&lab, DET_WORKER_EVENT_ACTION_PANIC, "lab/p", 3)->at);
    acts = puppet.acts[PUPPET_ONE];
    assert_int_equal(acts, 3);
    assert_history(&lab, "lab/p", "cannot be: 0");
    lab_run(&lab, third + 299900 * DET_MILLISECOND - lab_now(&lab));
    assert_int_equal(puppet.acts[PUPPET_ONE], 3);
    lab_run(&lab, 10 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_PANIC_CIRCUIT_CLOSED, "lab/p", 1)->at - third,
        5 * DET_MINUTE);
    assert_true(lab_status(&lab, "lab/p").counts.actions_done > 0);
    lab_close(&lab);
}

SENTENCE(a_worker_that_is_paused_by_panics_can_be_stopped)
{
    struct lab lab;

    begin_with(&lab, seed, want_one);
    puppet.act = panic_at_first;
    panics_left = 1000;
    lab_run(&lab, 20 * DET_SECOND);
    assert_true(lab_status(&lab, "lab/p").is_circuit_open);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 500 * DET_MILLISECOND);
    assert_false(lab_has(&lab, "lab/p"));
    lab_assert_log(&lab, "state_transition lab/p working ending");
    lab_assert_log(&lab, "state_transition lab/p ending stopped");
    lab_assert_no_log(&lab, "graceful_shutdown_timeout");
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    lab_close(&lab);
}

SENTENCE(collect_panic_is_counted_and_the_collector_continues)
{
    struct lab lab;
    uint32_t collects;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.collect_panics = true;
    collects = lab.plant.collects;
    while (lab.plant.collects < collects + 2)
        lab_run(&lab, 100 * DET_MILLISECOND);
    lab.plant.collect_panics = false;
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_OBSERVE_PANIC, "lab/a"), 2);
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_OBSERVE_PANIC, "lab/a", 1)->reason, "cannot look");
    assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/a"), 0);
    lab_assert_state(&lab, "lab/a", "up");
    lab.plant.collect_panics = true;
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, "lab/a"), 1);
    lab.plant.collect_panics = false;
    lab_run(&lab, 6 * DET_MINUTE);
    assert_int_equal(reported_times(DET_WORKER_EVENT_PANIC_CIRCUIT_CLOSED, "lab/a"), 1);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/a"), 0);
    lab_close(&lab);
}

static struct det_next report_time(const struct det_worker_view *view)
{
    if (view->state != PUPPET_WORKING)
        return puppet_walk(view);
    return (struct det_next){ DET_NEXT_HOLD, 0,
                              det_reason(
                                  view, "works for %lld ms",
                                  (long long)((view->now - view->since) / DET_MILLISECOND)) };
}

SENTENCE(the_reason_is_refreshed_in_every_tick)
{
    struct lab lab;
    long long before = -1, now;

    begin_with(&lab, seed, report_time);
    lab_run(&lab, 3 * DET_SECOND);
    for (int i = 0; i < 20; i++) {
        struct det_worker_status status = lab_status(&lab, "lab/p");

        assert_int_equal(strncmp(status.reason, "works for ", 10), 0);
        now = strtoll(status.reason + 10, NULL, 10);
        if (before >= 0)
            assert_int_equal(now - before, 100);
        before = now;
        lab_run(&lab, 100 * DET_MILLISECOND);
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_TRANSITION, "lab/p"), 1);
    lab_close(&lab);
}

static struct det_next talk_long(const struct det_worker_view *view)
{
    static char text[1000];

    if (view->state != PUPPET_WORKING)
        return puppet_walk(view);
    memset(text, 'x', 159);
    /* Two bytes that would be the 160th and the 161st. */
    snprintf(text + 159, sizeof text - 159, "\xc3\xa4 and so on");
    return (struct det_next){ DET_NEXT_HOLD, 0, text };
}

static void a_long_reason_is_cut_at_a_character(void **state)
{
    struct lab lab;

    (void)state;
    begin_with(&lab, 1, talk_long);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(strlen(lab_status(&lab, "lab/p").reason), 159);
    lab_close(&lab);
}

static int scribble(struct det_worker_context *context, struct link_observed *observed)
{
    observed->noise = 1000 + puppet.collects;
    observed->port = 9;
    if (puppet.collects % 2)
        return 0;
    observed->noise = 666;
    return det_worker_fail(context, DET_ERR_IO, "half way");
}

static struct det_next read_twice(const struct det_worker_view *view)
{
    const struct link_observed *observed = view->observed;

    assert_int_not_equal(observed->noise, 666);
    assert_int_equal(observed->port, 9);
    return puppet_walk(view);
}

SENTENCE(output_of_a_failed_collect_is_discarded)
{
    struct lab lab;
    struct link_observed observed;
    struct det_worker_status status;

    lab_open(&lab, behaviour_options(seed));
    puppet.next = read_twice;
    puppet.collect = scribble;
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/p", link_observed_record(), &status, &observed, NULL), 0);
    assert_in_range(observed.noise, 1001, 1100);
    lab_close(&lab);
}

/* It may not: but what is lost then is its own view, not what the supervisor knows. */
static struct det_next change_the_view(const struct det_worker_view *view)
{
    union {
        const struct det_worker_view *given;
        struct det_worker_view *taken;
    } it = { view };
    bool is_first = view->state == PUPPET_STOPPED;

    assert_non_null(view->observed);
    assert_true(view->now > 0);
    it.taken->state = PUPPET_ILL;
    it.taken->observed = NULL;
    it.taken->now = 0;
    return (struct det_next){ is_first ? DET_NEXT_GOTO : DET_NEXT_HOLD, PUPPET_WORKING,
                              "was here" };
}

SENTENCE(a_view_that_was_changed_is_as_before_in_the_next_tick)
{
    struct lab lab;

    begin_with(&lab, seed, change_the_view);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    puppet.next = NULL;
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "working");
    lab_close(&lab);
}

static bool was_asked_to_stop_elsewhere;
static struct det_next see_stops(const struct det_worker_view *view)
{
    if (view->stop_wanted && view->state != PUPPET_ENDING)
        was_asked_to_stop_elsewhere = true;
    switch (view->state) {
    case PUPPET_STOPPED:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_STARTING, "a" };
    case PUPPET_STARTING:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_ILL, "b" };
    case PUPPET_ILL:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_WORKING, "c" };
    case PUPPET_WORKING:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_ILL, "d" };
    default:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_STOPPED, "e" };
    }
}

SENTENCE(next_is_not_called_in_running_states_when_stopping)
{
    struct lab lab;

    was_asked_to_stop_elsewhere = false;
    begin_with(&lab, seed, see_stops);
    lab_run(&lab, 2 * DET_SECOND + (det_time)seed * 100 * DET_MILLISECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/p", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/p", "stopped");
    assert_true(lab_status(&lab, "lab/p").stop_wanted);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "stopped");
    assert_int_equal(det_workers_order(lab.workers, "lab/p", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, DET_SECOND);
    assert_string_not_equal(lab_status(&lab, "lab/p").state, "stopped");
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_false(was_asked_to_stop_elsewhere);
    lab_close(&lab);
}

static struct det_next refuse_to_end(const struct det_worker_view *view)
{
    return view->state == PUPPET_ENDING
               ? (struct det_next){ DET_NEXT_GOTO, PUPPET_WORKING, "never" }
               : puppet_walk(view);
}

SENTENCE(state_that_refuses_to_stop_is_invalid)
{
    struct lab lab;

    begin_with(&lab, seed, refuse_to_end);
    lab_run(&lab, 2 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/p", "ending");
    lab_assert_log(&lab, "next_invalid lab/p");
    lab_assert_log(&lab, "does not stop the worker");
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/p"));
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_answer_of_next_is_reported_and_ignored),
        cmocka_unit_test(three_wrong_answers_pause_the_worker_for_five_minutes_and_no_other),
        cmocka_unit_test(rare_panics_do_not_pause_the_worker),
        cmocka_unit_test(an_action_that_panics_has_failed_and_can_be_done_again),
        cmocka_unit_test(actions_that_panic_three_times_pause_the_worker_until_they_are_old),
        cmocka_unit_test(a_worker_that_is_paused_by_panics_can_be_stopped),
        cmocka_unit_test(collect_panic_is_counted_and_the_collector_continues),
        cmocka_unit_test(the_reason_is_refreshed_in_every_tick),
        cmocka_unit_test(a_long_reason_is_cut_at_a_character),
        cmocka_unit_test(output_of_a_failed_collect_is_discarded),
        cmocka_unit_test(a_view_that_was_changed_is_as_before_in_the_next_tick),
        cmocka_unit_test(next_is_not_called_in_running_states_when_stopping),
        cmocka_unit_test(state_that_refuses_to_stop_is_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
