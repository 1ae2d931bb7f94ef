/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_test.c - two processes on one store: a stale cache never decides an event and is never
 * shown; a conflict refreshes it. */
#include "runtime/nodes_test.h"

static struct det_instance get_at(struct nodes *n, unsigned i, const char *id)
{
    struct det_instance at;

    assert_int_equal(det_runtime_get(n->runtime[i], n->order, id, &at, NULL, NULL), 0);
    return at;
}

static int send_to(struct nodes *n, unsigned i, unsigned kind, struct det_send_options options)
{
    struct order_event event = { .kind = kind };

    return det_runtime_send(n->runtime[i], n->order, "o-1", &event, &options, &n->sent, &n->error);
}

/* Both know it as PENDING; the first one has paid, or more. */
static struct nodes *behind_open(void)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    n->control.product = CHARGED;
    n->control.effect_result = DET_EFFECT_PRODUCED;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), 0);
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    assert_int_equal(det_sim_settle(n->sim), 0);
    return n;
}

static void a_conflict_reloads_the_instance_and_decides_again(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(send_to(n, i % 2, PING, (struct det_send_options){ 0 }), 0);
        assert_int_equal(n->sent.sequence, i);
    }
    assert_true(node_counts(n, 0).conflicts + node_counts(n, 1).conflicts >= 18);
    nodes_close(n);
}

static void glance_on_a_shared_store_is_busy(void **unused)
{
    struct nodes *n = behind_open();
    struct det_glance seen;

    (void)unused;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(
            det_runtime_glance(n->runtime[i], n->order, "o-1", &seen, NULL, NULL), DET_ERR_BUSY);
    nodes_close(n);
}

static void stale_cache_does_not_refuse_an_event(void **unused)
{
    struct nodes *n = behind_open();

    (void)unused;
    /* PENDING does not take SHIP, but it is PAID by now. */
    assert_int_equal(send_to(n, 1, SHIP, (struct det_send_options){ 0 }), 0);
    assert_int_equal(n->sent.state, SHIPPED);
    nodes_close(n);
}

static void stale_cache_does_not_ignore_an_event(void **unused)
{
    struct nodes *n = behind_open();

    (void)unused;
    /* PENDING ignores NOISE, PAID stays with it. */
    assert_int_equal(send_to(n, 1, NOISE, (struct det_send_options){ 0 }), 0);
    assert_int_equal(n->sent.outcome, DET_OUTCOME_STAY);
    nodes_close(n);
}

static void guard_is_called_again_with_the_fresh_state(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    unsigned guards;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), 0);
    assert_int_equal(send_to(n, 0, PING, (struct det_send_options){ 0 }), 0);
    n->control.guard_refuses = true;
    guards = n->control.guards;
    assert_int_equal(send_to(n, 1, PAY, (struct det_send_options){ 0 }), DET_ERR_REFUSED);
    assert_int_equal(n->control.guards - guards, 2);
    assert_int_equal(n->control.data.updates, 2);
    nodes_close(n);
}

static void a_hook_that_fails_runs_once_for_an_unchanged_instance(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), 0);
    n->control.hook_result = DET_ERR_IO;
    assert_int_equal(send_to(n, 1, PAY, (struct det_send_options){ 0 }), DET_ERR_ACTION_FAILED);
    assert_string_equal(n->error.action, "check");
    assert_int_equal(n->control.guards, 1);
    assert_int_equal(n->control.hooks, 1);
    n->control.guard_refuses = true;
    assert_int_equal(send_to(n, 1, PAY, (struct det_send_options){ 0 }), DET_ERR_REFUSED);
    assert_int_equal(n->control.guards, 2);
    nodes_close(n);
}

static void send_conditions_are_checked_against_the_store(void **unused)
{
    struct nodes *n = behind_open();

    (void)unused;
    assert_int_equal(send_to(n, 1, NOISE, (struct det_send_options){ .expected = 3 }), 0);
    assert_int_equal(
        send_to(n, 0, NOISE, (struct det_send_options){ .expected = 3 }), DET_ERR_CONFLICT);
    assert_int_equal(n->error.actual, 4);
    assert_int_equal(
        send_to(n, 1, NOISE, (struct det_send_options){ .visit = 2 }), DET_ERR_CONFLICT);
    assert_int_equal(n->error.actual, 4);
    nodes_close(n);
}

static void a_reader_sees_the_commits_of_other_processes(void **unused)
{
    struct nodes *n = behind_open();
    struct det_runtime_counts before = node_counts(n, 1);

    (void)unused;
    assert_int_equal(get_at(n, 1, "o-1").state, PAID);
    assert_int_equal(node_counts(n, 1).loads, before.loads + 1);
    assert_int_equal(send_to(n, 0, HALT, (struct det_send_options){ 0 }), 0);
    assert_true(get_at(n, 1, "o-1").is_stopped);
    assert_string_equal(get_at(n, 1, "o-1").reason, "done");
    assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), DET_ERR_STOPPED);
    nodes_close(n);
}

static int count_row(void *context, const struct det_event_record *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 0;
}

static void event_walk_shows_changes_of_other_processes(void **unused)
{
    struct nodes *n = behind_open();
    unsigned count = 0;

    (void)unused;
    assert_int_equal(
        det_runtime_events(n->runtime[1], n->order, "o-1", 0, count_row, &count, NULL), 0);
    assert_int_equal(count, 3);
    nodes_close(n);
}

static void unreachable_store_is_an_error_and_not_a_refusal(void **unused)
{
    struct nodes *n = behind_open();
    struct det_instance at;

    (void)unused;
    det_shared_fail(n->store[1], 1, true);
    assert_int_equal(send_to(n, 1, SHIP, (struct det_send_options){ 0 }), DET_ERR_IO);
    assert_int_equal(send_to(n, 1, SHIP, (struct det_send_options){ 0 }), 0);
    det_shared_fail(n->store[0], 1, true);
    assert_int_equal(det_runtime_get(n->runtime[0], n->order, "o-1", &at, NULL, NULL), DET_ERR_IO);
    assert_int_equal(get_at(n, 0, "o-1").state, SHIPPED);
    nodes_close(n);
}

/* The event of the other process is reported there. */
static void observer_is_called_only_for_its_own_process(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .observe = order_observe });
    uint64_t first, second;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(send_to(n, i % 2, PING, (struct det_send_options){ 0 }), 0);
    first = node_counts(n, 0).transitions;
    second = node_counts(n, 1).transitions;
    assert_int_equal(first, 5);
    assert_int_equal(second, 5);
    assert_int_equal(n->control.notes, 11);
    nodes_close(n);
}

/* A store whose walk through events finds that another process was there since the load. */
struct overtaken {
    struct nodes *nodes;
    const struct det_store_ops *inner;
    struct det_store_ops ops;
    unsigned reported;
    uint64_t last; /* the reported sequence */
};
static struct overtaken overtaken;

static int overtaken_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    assert_int_equal(send_to(overtaken.nodes, 0, PING, (struct det_send_options){ 0 }), 0);
    return overtaken.inner->events(store, instance, after, visit, context);
}

static void observe_in_order(void *user, const struct det_note *note)
{
    (void)user;
    assert_true(!overtaken.reported || note->sequence > overtaken.last);
    overtaken.reported++;
    overtaken.last = note->sequence;
}

static void overtake(struct nodes *n)
{
    struct det_runtime_options options = { .world = det_sim_world(n->sim),
                                           .user = &n->control,
                                           .observe = observe_in_order };

    det_runtime_close(n->runtime[1]);
    overtaken = (struct overtaken){ n, n->store[1]->ops, *n->store[1]->ops, 0, 0 };
    overtaken.ops.events = overtaken_events;
    n->store[1]->ops = &overtaken.ops;
    assert_int_equal(det_runtime_open(n->store[1], &options, &n->runtime[1], &n->error), 0);
    assert_int_equal(det_runtime_serve(n->runtime[1], n->order, &n->error), 0);
}

static void nothing_is_reported_again_when_others_continue_after_an_uncertain_commit(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    overtake(n);
    assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), 0);
    for (unsigned i = 0; i < 3; i++) {
        det_shared_fail(n->store[1], 1, false);
        assert_int_equal(send_to(n, 1, PING, (struct det_send_options){ 0 }), DET_ERR_IO);
    }
    assert_true(overtaken.reported >= 2);
    nodes_close(n);
}

static void submitted(struct det_send *send)
{
    ++*(unsigned *)send->user;
}

/* Both submit to the same instances: each event counts once, in some order. */
static void concurrent_batches_of_two_processes_all_commit(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct order_event event = { .kind = PING };
    struct det_send sends[100];
    char names[10][8];
    unsigned done = 0;

    (void)unused;
    for (unsigned i = 0; i < 10; i++) {
        snprintf(names[i], sizeof names[i], "o-%u", i);
        assert_int_equal(node_start(n, i % 2, names[i]), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        sends[i] = (struct det_send){ .machine = n->order,
                                      .instance = names[i / 2 % 10],
                                      .event = &event,
                                      .done = submitted,
                                      .user = &done };
        assert_int_equal(det_runtime_submit(n->runtime[i % 2], &sends[i]), 0);
    }
    /* A writer with repeated conflicts pauses for a moment. */
    assert_int_equal(det_sim_settle(n->sim), 0);
    pass(n, DET_SECOND);
    assert_int_equal(done, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(sends[i].result, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(get_at(n, 0, names[i]).sequence, 10);
    nodes_close(n);
}

/* The server's clock counts, not that of the machine: a jump of the latter neither fires a timer
 * too early nor holds it up. */
static void jump(det_time by)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pass(n, DET_MINUTE);
    det_sim_jump_wall(n->sim, by);
    pass(n, 29 * DET_MINUTE - 1);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    pass(n, 1 + DET_MILLISECOND);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    assert_int_equal(get_at(n, 1, "o-1").state, CANCELLED);
    nodes_close(n);
}

static void timers_follow_the_clock_of_the_store(void **unused)
{
    (void)unused;
    jump(DET_HOUR);
    jump(-DET_HOUR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_reloads_the_instance_and_decides_again),
        cmocka_unit_test(glance_on_a_shared_store_is_busy),
        cmocka_unit_test(stale_cache_does_not_refuse_an_event),
        cmocka_unit_test(stale_cache_does_not_ignore_an_event),
        cmocka_unit_test(guard_is_called_again_with_the_fresh_state),
        cmocka_unit_test(a_hook_that_fails_runs_once_for_an_unchanged_instance),
        cmocka_unit_test(send_conditions_are_checked_against_the_store),
        cmocka_unit_test(a_reader_sees_the_commits_of_other_processes),
        cmocka_unit_test(event_walk_shows_changes_of_other_processes),
        cmocka_unit_test(unreachable_store_is_an_error_and_not_a_refusal),
        cmocka_unit_test(observer_is_called_only_for_its_own_process),
        cmocka_unit_test(nothing_is_reported_again_when_others_continue_after_an_uncertain_commit),
        cmocka_unit_test(concurrent_batches_of_two_processes_all_commit),
        cmocka_unit_test(timers_follow_the_clock_of_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
