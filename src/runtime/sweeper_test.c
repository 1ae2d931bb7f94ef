/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sweeper_test.c - takeover of the timers and effects of nodes that are gone. */
#include "runtime/nodes_test.h"

/* The longest until what a dead node has left is another one's: its lease, that of the leader if
 * that was it too, the next asking, the next sweep. */
#define TAKEOVER (30 * DET_SECOND)

static unsigned state_of(struct nodes *n, unsigned i, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(n->runtime[i], n->order, id, &instance, NULL, NULL), 0);
    return instance.state;
}

static uint64_t sequence_of(struct nodes *n, unsigned i, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(n->runtime[i], n->order, id, &instance, NULL, NULL), 0);
    return instance.sequence;
}

static void pay(struct nodes *n, unsigned i, const char *id)
{
    struct order_event event = { .kind = PAY, .as.pay = { .cents = 100, .card = "4242" } };

    assert_int_equal(
        det_runtime_send(n->runtime[i], n->order, id, &event, NULL, &n->sent, NULL), 0);
}

static void a_timer_of_a_dead_node_is_fired_by_another_when_it_is_due(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(det_shared_rows(n->shared, n->store[0]), 1);
    node_kill(n, 0);
    pass(n, TAKEOVER);
    assert_int_equal(det_shared_rows(n->shared, n->store[1]), 1);
    assert_int_equal(node_counts(n, 1).adopted, 1);
    assert_int_equal(state_of(n, 1, "o-1"), PENDING);
    pass(n, 30 * DET_MINUTE - TAKEOVER - 1);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 0);
    pass(n, 1);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 1);
    assert_int_equal(state_of(n, 1, "o-1"), CANCELLED);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    nodes_close(n);
}

static void an_overdue_timer_of_a_dead_node_is_fired_once_it_is_adopted(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    node_kill(n, 0);
    pass(n, DET_HOUR);
    assert_int_equal(det_shared_rows(n->shared, NULL), 1);
    node_open(n, 1);
    pass(n, TAKEOVER);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 1);
    assert_int_equal(state_of(n, 1, "o-1"), CANCELLED);
    nodes_close(n);
}

static void an_effect_of_a_dead_node_is_run_by_another(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    n->control.effect_failures = 3;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pay(n, 0, "o-1");
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(n->control.effects, 1);
    node_kill(n, 0);
    n->control.effect_failures = 0;
    pass(n, TAKEOVER);
    assert_int_equal(n->control.effects, 2);
    assert_key(n->control.key, "order/o-1/1/0");
    assert_int_equal(state_of(n, 1, "o-1"), PAID);
    assert_int_equal(node_counts(n, 1).effects_done, 1);
    nodes_close(n);
}

/* The other node has the instance in memory, and with it the timer and the effect. */
static void rows_of_a_live_node_are_not_taken_over(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    n->control.effect_failures = 3;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_start(n, 0, "o-2"), 0);
    pay(n, 0, "o-1");
    assert_int_equal(state_of(n, 1, "o-1"), CHARGING);
    assert_int_equal(state_of(n, 1, "o-2"), PENDING);
    pass(n, DET_HOUR);
    assert_int_equal(n->control.effects, 4);
    assert_int_equal(node_counts(n, 1).timeouts_fired + node_counts(n, 1).effects_done, 0);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    assert_int_equal(node_counts(n, 0).effects_done, 1);
    nodes_close(n);
}

/* A transition on one node ends the timer of another. */
static void a_timer_of_another_node_is_cleared_when_the_state_is_left(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_send(n, 1, "o-1", TOUCH), 0);
    assert_int_equal(det_shared_rows(n->shared, n->store[0]), 0);
    assert_int_equal(det_shared_rows(n->shared, n->store[1]), 1);
    assert_int_equal(node_send(n, 1, "o-1", CANCEL), 0);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    pass(n, DET_HOUR);
    assert_int_equal(node_counts(n, 0).timeouts_fired + node_counts(n, 1).timeouts_fired, 0);
    assert_int_equal(sequence_of(n, 1, "o-1"), 2);
    nodes_close(n);
}

static void adopted_things_that_are_in_memory_already_continue(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    n->control.effect_failures = 1;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pay(n, 0, "o-1");
    assert_int_equal(node_start(n, 0, "o-2"), 0);
    assert_int_equal(state_of(n, 1, "o-1"), CHARGING);
    assert_int_equal(state_of(n, 1, "o-2"), PENDING);
    node_kill(n, 0);
    pass(n, TAKEOVER);
    assert_int_equal(state_of(n, 1, "o-1"), PAID);
    pass(n, DET_HOUR);
    assert_int_equal(state_of(n, 1, "o-2"), CANCELLED);
    assert_int_equal(sequence_of(n, 1, "o-2"), 1);
    nodes_close(n);
}

/* The instance came into memory here before another node set the timer, and nothing has said so. */
static void what_was_set_elsewhere_after_it_came_into_memory_continues_too(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pay(n, 0, "o-1");
    pass(n, DET_SECOND);
    assert_int_equal(state_of(n, 1, "o-1"), PAID);
    assert_int_equal(node_send(n, 0, "o-1", SHIP), 0);
    node_kill(n, 0);
    pass(n, DET_HOUR + TAKEOVER);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 1);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    nodes_close(n);
}

/* N sweepers, M instances: each timer fires once. */
static void exactly_one_of_many_nodes_fires_a_timer(void **unused)
{
    enum { COUNT = 5, INSTANCES = 40 };
    struct nodes *n = nodes_open(COUNT, (struct det_runtime_options){ 0 });
    uint64_t fired = 0;
    char id[8];

    (void)unused;
    for (unsigned i = 0; i < INSTANCES; i++) {
        snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(node_start(n, i % COUNT, id), 0);
        for (unsigned k = 0; k < COUNT; k++)
            assert_int_equal(state_of(n, k, id), PENDING);
    }
    node_kill(n, 1);
    node_kill(n, 3);
    pass(n, DET_HOUR);
    for (unsigned k = 0; k < COUNT; k += 2)
        fired += node_counts(n, k).timeouts_fired;
    assert_int_equal(fired, INSTANCES);
    node_open(n, COUNT);
    for (unsigned i = 0; i < INSTANCES; i++) {
        snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(state_of(n, COUNT, id), CANCELLED);
        assert_int_equal(sequence_of(n, COUNT, id), 1);
    }
    assert_int_equal(n->control.incidents, 0);
    nodes_close(n);
}

static void sweep_batches_are_limited_and_follow_at_once(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .node = { .sweep_batch = 4 } });
    char id[8];

    (void)unused;
    for (unsigned i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(node_start(n, 0, id), 0);
    }
    node_kill(n, 0);
    pass(n, TAKEOVER);
    assert_int_equal(node_counts(n, 1).adopted, 10);
    assert_int_equal(det_shared_rows(n->shared, n->store[1]), 10);
    nodes_close(n);
}

static void failed_sweep_changes_nothing(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    node_kill(n, 0);
    for (int i = 0; i < 20; i++) {
        det_shared_fail(n->store[1], 3, i % 2);
        pass(n, 3 * DET_SECOND);
    }
    pass(n, TAKEOVER);
    assert_int_equal(det_shared_rows(n->shared, n->store[1]), 1);
    pass(n, DET_HOUR);
    assert_int_equal(state_of(n, 1, "o-1"), CANCELLED);
    assert_int_equal(sequence_of(n, 1, "o-1"), 1);
    nodes_close(n);
}

/* The answer to a sweep is lost: the work it took over is this node's nevertheless. */
static void what_was_adopted_without_an_answer_continues_too(void **unused)
{
    struct nodes *n =
        nodes_open(1, (struct det_runtime_options){ .node = { .sweep_interval = DET_SECOND } });

    (void)unused;
    pass(n, DET_SECOND);
    node_open(n, 1);
    assert_int_equal(node_start(n, 1, "o-1"), 0);
    node_kill(n, 1);
    pass(n, 9 * DET_SECOND);
    det_shared_fail(n->store[0], 1000, false);
    for (int i = 0; i < 80 && !det_shared_rows(n->shared, n->store[0]); i++)
        pass(n, 100 * DET_MILLISECOND);
    assert_int_equal(det_shared_rows(n->shared, n->store[0]), 1);
    assert_int_equal(node_counts(n, 0).adopted, 0);
    det_shared_fail(n->store[0], 0, false);
    pass(n, 30 * DET_MINUTE);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    nodes_close(n);
}

/* The owner comes back: what it believes to be its own is another one's, and was done. */
static void work_that_was_taken_over_is_not_repeated_by_the_returning_node(void **unused)
{
    struct nodes *n = nodes_open(
        2, (struct det_runtime_options){
               .effects = { .backoff_first = DET_MINUTE, .backoff_max = DET_MINUTE } });

    (void)unused;
    n->control.effect_failures = 1;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_start(n, 0, "o-2"), 0);
    pay(n, 0, "o-2");
    assert_int_equal(det_sim_settle(n->sim), 0);
    det_shared_pause(n->store[0], true);
    pass(n, DET_HOUR);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 1);
    assert_int_equal(state_of(n, 1, "o-1"), CANCELLED);
    assert_int_equal(state_of(n, 1, "o-2"), PAID);
    det_shared_pause(n->store[0], false);
    pass(n, DET_HOUR);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    assert_int_equal(sequence_of(n, 0, "o-1"), 1);
    assert_int_equal(state_of(n, 0, "o-1"), CANCELLED);
    assert_int_equal(sequence_of(n, 0, "o-2"), 2);
    assert_int_equal(n->control.effects, 2);
    nodes_close(n);
}

static void sweep_interval_has_jitter_and_grows_when_idle(void **unused)
{
    struct nodes *n = nodes_open(
        1, (struct det_runtime_options){
               .node = { .sweep_interval = 10 * DET_SECOND, .sweep_jitter_percent = 50 } });
    uint64_t plain;

    (void)unused;
    pass(n, 1000 * DET_SECOND);
    /* On the average one and a quarter intervals. */
    plain = node_counts(n, 0).sweeps;
    assert_in_range(plain, 1000 / 15, 1000 / 10 + 1);
    assert_in_range(plain, 72, 90);
    node_close(n, 0);
    n->options.node.sweep_backoff = 30 * DET_SECOND;
    node_open(n, 0);
    pass(n, 1000 * DET_SECOND);
    assert_in_range(node_counts(n, 0).sweeps, 1000 / 45, 1000 / 40 + 1);
    nodes_close(n);
}

static void only_the_leader_sweeps(void **unused)
{
    struct nodes *n = nodes_open(3, (struct det_runtime_options){ 0 });
    unsigned leaders = 0, leader = 0;

    (void)unused;
    pass(n, 100 * DET_SECOND);
    for (unsigned i = 0; i < 3; i++) {
        leaders += node_counts(n, i).sweeps > 0;
        if (node_counts(n, i).sweeps)
            leader = i;
    }
    assert_int_equal(leaders, 1);
    /* A leader that stops releases its lease at once, and another node sweeps. */
    node_close(n, leader);
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(
        node_counts(n, (leader + 1) % 3).sweeps + node_counts(n, (leader + 2) % 3).sweeps, 1);
    nodes_close(n);
}

/* For a moment two nodes act as leader; this is harmless, and it ends. */
static void a_stopped_leader_does_not_sweep(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    uint64_t swept;

    (void)unused;
    pass(n, 10 * DET_SECOND);
    assert_int_equal(node_counts(n, 1).sweeps, 0);
    det_shared_pause(n->store[0], true);
    pass(n, TAKEOVER);
    assert_true(node_counts(n, 1).sweeps > 0);
    swept = node_counts(n, 0).sweeps;
    det_shared_pause(n->store[0], false);
    pass(n, 10 * DET_MINUTE);
    assert_in_range(node_counts(n, 0).sweeps, swept, swept + 1);
    nodes_close(n);
}

static void rows_of_a_closed_node_are_adopted_at_the_next_sweep(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    node_close(n, 0);
    /* It notified the others of its end. */
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(det_shared_rows(n->shared, n->store[1]), 1);
    nodes_close(n);
}

static void passive_runtime_leaves_its_timers_to_the_nodes(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_store_lease lease;
    char name[40];

    (void)unused;
    n->options.is_passive = true;
    node_open(n, 1);
    snprintf(name, sizeof name, "node/%s", n->store[1]->owner);
    assert_false(det_shared_lease(n->shared, name, &lease));
    assert_int_equal(node_start(n, 1, "o-1"), 0);
    pass(n, TAKEOVER);
    assert_int_equal(det_shared_rows(n->shared, n->store[0]), 1);
    pass(n, DET_HOUR);
    assert_int_equal(state_of(n, 0, "o-1"), CANCELLED);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_of_a_dead_node_is_fired_by_another_when_it_is_due),
        cmocka_unit_test(an_overdue_timer_of_a_dead_node_is_fired_once_it_is_adopted),
        cmocka_unit_test(an_effect_of_a_dead_node_is_run_by_another),
        cmocka_unit_test(rows_of_a_live_node_are_not_taken_over),
        cmocka_unit_test(a_timer_of_another_node_is_cleared_when_the_state_is_left),
        cmocka_unit_test(adopted_things_that_are_in_memory_already_continue),
        cmocka_unit_test(what_was_set_elsewhere_after_it_came_into_memory_continues_too),
        cmocka_unit_test(exactly_one_of_many_nodes_fires_a_timer),
        cmocka_unit_test(sweep_batches_are_limited_and_follow_at_once),
        cmocka_unit_test(failed_sweep_changes_nothing),
        cmocka_unit_test(what_was_adopted_without_an_answer_continues_too),
        cmocka_unit_test(work_that_was_taken_over_is_not_repeated_by_the_returning_node),
        cmocka_unit_test(sweep_interval_has_jitter_and_grows_when_idle),
        cmocka_unit_test(only_the_leader_sweeps),
        cmocka_unit_test(a_stopped_leader_does_not_sweep),
        cmocka_unit_test(rows_of_a_closed_node_are_adopted_at_the_next_sweep),
        cmocka_unit_test(passive_runtime_leaves_its_timers_to_the_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
