/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_life_test.c - workers come, go and begin anew. */
#include <detent/tool/documents.h>
#include <detent/tool/workers.h>

#include <stdlib.h>

#include "worker/behaviour_test.h"

#define TWO_LINKS                                                    \
    "children: [{name: a, kind: link, config: {host: h, port: 1}}, " \
    "{name: p, kind: puppet}]"

static void before_the_first_tick_a_worker_is_in_its_initial_state(void **state)
{
    struct lab_options options = behaviour_options(1);
    struct lab lab;
    struct det_worker_status status;

    (void)state;
    options.is_paused = true;
    lab_open(&lab, options);
    status = lab_status(&lab, "lab");
    assert_string_equal(status.state, "stopped");
    assert_string_equal(status.reason, "initial");
    assert_int_equal(status.phase, DET_PHASE_STOPPED);
    lab_run(&lab, DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab").reason, "initial");
    lab.plant.collect_error = DET_ERR_IO; /* So that it is not asked. */
    lab_apply(&lab, LAB_LINK);
    for (int i = 0; i < 10; i++) {
        det_workers_tick(lab.workers);
        lab_run(&lab, DET_MILLISECOND);
    }
    status = lab_status(&lab, "lab/a");
    assert_string_equal(status.state, "stopped");
    assert_string_equal(status.reason, "initial");
    assert_int_equal(status.freshness, DET_FRESHNESS_NEVER);
    assert_int_equal(status.counts.transitions, 0);
    lab_close(&lab);
}

SENTENCE(two_workers_of_one_name_are_refused_and_the_first_stays)
{
    struct lab lab;
    struct det_error error = { 0 };
    struct det_child_spec again = { .name = "a", .kind = "link", .config = "{port: 2}" };
    int r;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    r = det_workers_apply(
        lab.workers,
        "children: [{name: a, kind: link, config: {port: 2}}, {name: a, kind: puppet}]", &error);
    assert_true(r == DET_ERR_INVALID || r == DET_ERR_MALFORMED);
    assert_non_null(strstr(error.text, "a"));
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &again, &error), DET_ERR_EXISTS);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.port, 1);
    assert_int_equal(lab.plant.opened, 1);
    lab_close(&lab);
}

SENTENCE(removed_worker_is_not_observed_and_others_continue)
{
    struct lab lab;
    uint32_t collects, others;
    struct det_error error = { 0 };
    struct det_worker_status status;

    behaviour_begin(&lab, behaviour_options(seed), TWO_LINKS, 3 * DET_SECOND);
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    collects = lab.plant.collects;
    others = puppet.collects;
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(lab.plant.collects, collects);
    assert_true(puppet.collects > others + 8);
    lab_assert_state(&lab, "lab/p", "working");
    assert_int_equal(reported_times(DET_WORKER_EVENT_ADDED, "lab/p"), 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_TRANSITION, "lab/p"), 1);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/a", NULL, &status, NULL, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(det_workers_delete(lab.workers, "lab/a", &error), DET_ERR_NOT_FOUND);
    assert_int_equal(det_workers_delete(lab.workers, "lab/p", &error), DET_ERR_INVALID);
    assert_true(error.text[0]);
    assert_int_equal(
        det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), DET_ERR_NOT_FOUND);
    lab_close(&lab);
}

SENTENCE(removed_worker_is_gone_in_the_tick_that_sees_it_stopped)
{
    struct lab lab;
    uint32_t transitions;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    transitions = reported_times(DET_WORKER_EVENT_TRANSITION, "lab/a");
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_TRANSITION, "lab/a", transitions)->to, "stopped");
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/a", 1)->at -
            reported_nth(&lab, DET_WORKER_EVENT_TRANSITION, "lab/a", transitions)->at <=
        100 * DET_MILLISECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 1);
    assert_int_equal(lab.plant.closed, 1);
    lab_close(&lab);
}

SENTENCE(restarting_worker_stops_before_it_is_opened_again)
{
    struct lab lab;
    struct det_worker_status status;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    while (!reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a"))
        lab_run(&lab, 50 * DET_MILLISECOND);
    lab.plant.wants_restart = false;
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a", 1)->reason, "all is lost");
    assert_true(lab_status(&lab, "lab/a").shutdown_wanted);
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_log(&lab, "shutdown_requested lab/a");
    lab_assert_log(&lab, "state_transition lab/a up closing");
    lab_assert_log(&lab, "state_transition lab/a closing stopped");
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_RESTART_DONE, "lab/a", 1)->number, 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 0);
    assert_int_equal(lab.plant.opened, 2);
    assert_int_equal(lab.plant.closed, 1);
    status = lab_status(&lab, "lab/a");
    assert_string_equal(status.state, "up");
    assert_false(status.shutdown_wanted);
    assert_int_equal(status.counts.restarts, 1);
    assert_int_equal(status.counts.startups, 2);
    lab_close(&lab);
}

/* The delays from a life to the one after it. */
static void restart_delays(uint64_t seed, det_time *delays, unsigned count)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    lab_run(&lab, 100 * DET_SECOND);
    for (unsigned i = 0; i < count; i++) {
        det_time done = reported_nth(&lab, DET_WORKER_EVENT_RESTART_DONE, "lab/a", i + 1)->at;
        det_time stopped = 0;

        for (size_t k = 0; k < reported_count && reported[k].at <= done; k++)
            if (reported[k].kind == DET_WORKER_EVENT_TRANSITION &&
                !strcmp(reported[k].id, "lab/a") && !strcmp(reported[k].to, "stopped"))
                stopped = reported[k].at;
        delays[i] = done - stopped;
    }
    lab_close(&lab);
}

static void restarts_come_after_growing_delays(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        det_time delays[5];

        restart_delays(seed, delays, 5);
        for (unsigned i = 0; i < 5; i++)
            assert_in_range(delays[i] / DET_MILLISECOND, 500 << i, (1000 << i) + 200);
    }
}

SENTENCE(worker_that_restarts_too_often_stays_down)
{
    struct lab lab;
    struct det_worker_status status;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    lab_run(&lab, 200 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_RESTART_DONE, "lab/a"), 5);
    assert_int_equal(reported_times(DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a"), 1);
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a", 1)->number, 5);
    status = lab_status(&lab, "lab/a");
    assert_string_equal(status.life, "down");
    assert_non_null(strstr(status.reason, "too often"));
    assert_non_null(strstr(status.reason, "all is lost"));
    assert_int_equal(lab.plant.opened, lab.plant.closed);
    lab.plant.wants_restart = false;
    lab_run(&lab, 20 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab_close(&lab);
}

SENTENCE(manual_restarts_are_not_counted_as_failures)
{
    struct lab lab;

    behaviour_begin(
        &lab, behaviour_options(seed),
        "children: [{name: a, kind: link, config: {host: h, port: 7, children: 1}}]",
        6 * DET_SECOND);
    for (uint32_t i = 1; i <= 8; i++) {
        assert_int_equal(
            det_workers_order(lab.workers, "lab/a/c0", DET_WORKER_ORDER_RESTART, NULL), 0);
        lab_run(&lab, 4 * DET_SECOND);
        lab_assert_state(&lab, "lab/a/c0", "up");
        assert_int_equal(reported_times(DET_WORKER_EVENT_RESTART_DONE, "lab/a/c0"), i);
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a/c0"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a"), 0);
    lab_close(&lab);
}

SENTENCE(rare_restarts_do_not_accumulate)
{
    struct lab lab;

    if (seed > 5) /* They are long. */
        return;
    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    for (uint32_t i = 1; i <= 8; i++) {
        det_time requested;

        lab.plant.wants_restart = true;
        while (reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a") < i)
            lab_run(&lab, 100 * DET_MILLISECOND);
        lab.plant.wants_restart = false;
        requested = lab_now(&lab);
        lab_run(&lab, 301 * DET_SECOND);
        lab_assert_state(&lab, "lab/a", "up");
        assert_true(
            reported_nth(&lab, DET_WORKER_EVENT_RESTART_DONE, "lab/a", i)->at - requested <
            4 * DET_SECOND);
    }
    lab_close(&lab);
}

SENTENCE(one_that_does_not_get_to_stopped_is_taken_down_after_thirty_seconds_and_made_anew)
{
    struct lab lab;
    det_time requested;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    lab.plant.is_stuck = true;
    while (!reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a"))
        lab_run(&lab, 50 * DET_MILLISECOND);
    lab.plant.wants_restart = false;
    requested = reported_nth(&lab, DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a", 1)->at;
    lab_run(&lab, 29 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "closing");
    lab_run(&lab, 5 * DET_SECOND);
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_RESTART_FORCED, "lab/a", 1)->at - requested,
        30 * DET_SECOND);
    lab.plant.is_stuck = false;
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.opened, 2);
    lab_close(&lab);
}

SENTENCE(worker_removed_while_restarting_is_removed)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    while (!reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a"))
        lab_run(&lab, 50 * DET_MILLISECOND);
    if (seed % 2)
        lab_run(&lab, (det_time)seed * 100 * DET_MILLISECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 1);
    lab_close(&lab);
}

SENTENCE(stopping_supervisor_restarts_no_worker)
{
    struct lab lab;
    struct det_error error = { 0 };
    det_time began;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    while (!reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a"))
        lab_run(&lab, 50 * DET_MILLISECOND);
    lab_run(&lab, (det_time)seed * 100 * DET_MILLISECOND);
    began = lab_now(&lab);
    if (det_workers_stop(lab.workers, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(lab_now(&lab) - began < 2 * DET_SECOND);
    for (size_t i = 0; i < reported_count; i++)
        assert_false(reported[i].kind == DET_WORKER_EVENT_ADDED && reported[i].at > began);
    lab_close(&lab);
}

SENTENCE(children_of_one_that_begins_anew_stop_before_it_and_are_made_anew_after_it)
{
    struct lab lab;

    behaviour_begin(
        &lab, behaviour_options(seed),
        "children: [{name: a, kind: link, config: {host: h, port: 7, children: 2}}]",
        6 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/c0", "up");
    assert_int_equal(lab.plant.opened, 3);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab_assert_state(&lab, "lab/a/c0", "up");
    lab_assert_state(&lab, "lab/a/c1", "up");
    assert_int_equal(lab.plant.opened, 6);
    assert_int_equal(lab.plant.closed, 3);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ADDED, "lab/a/c0"), 2);
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_ADDED, "lab/a/c0", 2)->at >=
        reported_nth(&lab, DET_WORKER_EVENT_RESTART_DONE, "lab/a", 1)->at);
    lab_close(&lab);
}

SENTENCE(manual_worker_can_be_deleted_while_its_kind_changes)
{
    struct det_child_spec link = { .name = "d", .kind = "link", .config = "{host: h, port: 1}" };
    struct det_child_spec other = { .name = "d", .kind = "puppet" };
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), "children: []", DET_SECOND);
    lab.plant.is_stuck = true;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &link, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/d", "up");
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &other, NULL), 0);
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/d", "closing");
    assert_int_equal(det_workers_delete(lab.workers, "lab/d", NULL), 0);
    assert_int_equal(det_workers_delete(lab.workers, "lab/d", NULL), DET_ERR_NOT_FOUND);
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/d"));
    assert_int_equal(reported_times(DET_WORKER_EVENT_ADDED, "lab/d"), 1);
    lab_close(&lab);
}

static int count_document(void *context, const struct det_document *document)
{
    (void)document;
    ++*(uint32_t *)context;
    return 0;
}

SENTENCE(changed_kind_leaves_one_recorded_spec)
{
    struct det_child_spec link = { .name = "d", .kind = "link", .config = "{host: h, port: 1}" };
    struct det_child_spec other = { .name = "d", .kind = "puppet" };
    struct det_document_query query = { .id = "lab/d" };
    struct lab_options options = behaviour_options(seed);
    struct lab lab;
    uint32_t count = 0;

    options.store = "memory:";
    behaviour_begin(&lab, options, "children: []", DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &link, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &other, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/d", "working");
    /* Identity, desired, observed, spec: nothing of the first one. */
    assert_int_equal(det_store_documents_list(lab.store, &query, count_document, &count, NULL), 0);
    assert_int_equal(count, 4);
    assert_int_equal(det_workers_delete(lab.workers, "lab/d", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    count = 0;
    assert_int_equal(det_store_documents_list(lab.store, &query, count_document, &count, NULL), 0);
    assert_int_equal(count, 0);
    lab_close(&lab);
}

SENTENCE(one_that_cannot_be_opened_is_tried_again_after_growing_delays_and_says_why)
{
    struct lab lab;
    struct det_worker_status status;

    lab_open(&lab, behaviour_options(seed));
    lab.plant.open_error = DET_ERR_IO;
    lab_apply(&lab, TWO_LINKS);
    lab_run(&lab, 12 * DET_SECOND);
    assert_in_range(reported_times(DET_WORKER_EVENT_ADD_FAILED, "lab/a"), 4, 6);
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_ADD_FAILED, "lab/a", 3)->number, 3);
    for (uint32_t i = 1; i < 4; i++)
        assert_in_range(
            (reported_nth(&lab, DET_WORKER_EVENT_ADD_FAILED, "lab/a", i + 1)->at -
             reported_nth(&lab, DET_WORKER_EVENT_ADD_FAILED, "lab/a", i)->at) /
                DET_MILLISECOND,
            250 << i, (500 << i) + 200);
    status = lab_status(&lab, "lab/a");
    assert_string_equal(status.reason, "cannot open");
    assert_string_not_equal(status.life, "live");
    assert_string_equal(status.state, "stopped");
    lab_assert_state(&lab, "lab/p", "working");
    lab.plant.open_error = 0;
    lab_run(&lab, 60 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab.plant.open_error = DET_ERR_IO;
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    lab_close(&lab);
}

/* Reads a history from its cursor, and says how many lines there were. */
static uint32_t drain(struct lab *lab, uint64_t *cursor, uint64_t *ret_lost)
{
    uint32_t count = 0;
    char *text;
    size_t size;

    assert_int_equal(
        det_workers_history_after(lab->workers, "lab/p", *cursor, &text, &size, ret_lost), 0);
    *cursor += *ret_lost;
    for (const char *at = text; (at = strstr(at, "\"sequence\":")); count++) {
        at += strlen("\"sequence\":");
        assert_int_equal(strtoull(at, NULL, 10), ++*cursor);
    }
    det_free(NULL, text, size + 1);
    return count;
}

static struct det_next swing(const struct det_worker_view *view)
{
    if (view->stop_wanted)
        return puppet_walk(view);
    return (struct det_next){ DET_NEXT_GOTO,
                              view->state == PUPPET_WORKING ? PUPPET_ILL : PUPPET_WORKING,
                              "to and fro" };
}

SENTENCE(history_is_read_without_gaps_and_losses_are_counted)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;
    uint64_t cursor = 0, lost;
    uint32_t drained = 0;
    char *text;
    size_t size;

    options.watch = NULL;
    lab_open(&lab, options);
    puppet.next = swing;
    lab_apply(&lab, LAB_PUPPET);
    for (int i = 0; i < 20; i++) {
        lab_run(&lab, 10 * DET_SECOND);
        drained += drain(&lab, &cursor, &lost);
        assert_int_equal(lost, 0);
    }
    assert_true(drained > 300);
    assert_int_equal(cursor, lab_status(&lab, "lab/p").counts.transitions);
    assert_int_equal(drain(&lab, &cursor, &lost), 0);
    lab_run(&lab, DET_MINUTE);
    assert_int_equal(drain(&lab, &cursor, &lost), 256);
    assert_int_equal(cursor, lab_status(&lab, "lab/p").counts.transitions);
    assert_true(lost > 200);
    /* A cursor of an earlier run. */
    cursor = 0;
    assert_int_equal(
        det_workers_history_after(lab.workers, "lab/p", 1000000, &text, &size, &lost), 0);
    assert_true(lost > 400);
    assert_non_null(strstr(text, "\"sequence\":"));
    det_free(NULL, text, size + 1);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_read_without_gaps_and_losses_are_counted),
        cmocka_unit_test(before_the_first_tick_a_worker_is_in_its_initial_state),
        cmocka_unit_test(two_workers_of_one_name_are_refused_and_the_first_stays),
        cmocka_unit_test(removed_worker_is_not_observed_and_others_continue),
        cmocka_unit_test(removed_worker_is_gone_in_the_tick_that_sees_it_stopped),
        cmocka_unit_test(restarting_worker_stops_before_it_is_opened_again),
        cmocka_unit_test(restarts_come_after_growing_delays),
        cmocka_unit_test(worker_that_restarts_too_often_stays_down),
        cmocka_unit_test(manual_restarts_are_not_counted_as_failures),
        cmocka_unit_test(rare_restarts_do_not_accumulate),
        cmocka_unit_test(
            one_that_does_not_get_to_stopped_is_taken_down_after_thirty_seconds_and_made_anew),
        cmocka_unit_test(worker_removed_while_restarting_is_removed),
        cmocka_unit_test(stopping_supervisor_restarts_no_worker),
        cmocka_unit_test(
            children_of_one_that_begins_anew_stop_before_it_and_are_made_anew_after_it),
        cmocka_unit_test(manual_worker_can_be_deleted_while_its_kind_changes),
        cmocka_unit_test(changed_kind_leaves_one_recorded_spec),
        cmocka_unit_test(
            one_that_cannot_be_opened_is_tried_again_after_growing_delays_and_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
