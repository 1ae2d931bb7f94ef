/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due_conflict_test.c - the loop of one process has decided about a timer or an effect, and another
 * process changes the instance before the commit: the loop decides again on the new state, and the
 * work happens once or not at all. */
#include "runtime/nodes_test.h"

/* The store of node 0: before the next end of a timer or an effect, or before some, node 1 does
 * something. Or it does so after the end, and node 0 gets no answer. */
struct overtaken {
    struct nodes *nodes;
    const struct det_store_ops *inner;
    struct det_store_ops ops;
    void (*overtake)(struct nodes *n);
    unsigned times; /* 0: once */
    bool is_answer_lost;
};
static struct overtaken overtaken;

/* A retry of an effect is not its end. */
static bool is_end(const struct det_store_commit *commit)
{
    return commit->event_count || commit->timer_count ||
           (commit->effect_count &&
            (commit->effects[0].kind == DET_STORE_TAKE || commit->effects[0].effect.is_dead));
}

static int overtaken_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    void (*overtake)(struct nodes * n) = overtaken.overtake;
    int r = 0;

    if (!overtake || !is_end(commits[0]))
        return overtaken.inner->commit(store, commits, count);
    if (overtaken.times)
        overtaken.times--;
    if (!overtaken.times)
        overtaken.overtake = NULL;
    if (overtaken.is_answer_lost) {
        r = overtaken.inner->commit(store, commits, count);
        assert_int_equal(r, 0);
    }
    overtake(overtaken.nodes);
    return overtaken.is_answer_lost ? DET_ERR_IO : overtaken.inner->commit(store, commits, count);
}

/* The order, but a manual event can enter CHARGING again. */
static struct det_machine *touchy_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    order_names(b, true);
    order_rows(b);
    order_on(b, "CHARGING", "TOUCH", "CHARGING");
    return built(b);
}

static struct nodes *overtaken_open(struct det_runtime_options options)
{
    struct nodes *n = nodes_open(0, options);

    det_machine_close(n->order);
    n->order = touchy_machine();
    n->store[0] = det_shared_node(n->shared);
    overtaken =
        (struct overtaken){ .nodes = n, .inner = n->store[0]->ops, .ops = *n->store[0]->ops };
    overtaken.ops.commit = overtaken_commit;
    n->store[0]->ops = &overtaken.ops;
    node_open_on(n, 0);
    node_open(n, 1);
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    return n;
}

static struct det_instance get_at(struct nodes *n, unsigned i)
{
    struct det_instance at;

    assert_int_equal(det_runtime_get(n->runtime[i], n->order, "o-1", &at, NULL, NULL), 0);
    return at;
}

static void by_cancel(struct nodes *n)
{
    assert_int_equal(node_send(n, 1, "o-1", CANCEL), 0);
}

static void by_ping(struct nodes *n)
{
    assert_int_equal(node_send(n, 1, "o-1", PING), 0);
}

static void by_touch(struct nodes *n)
{
    assert_int_equal(node_send(n, 1, "o-1", TOUCH), 0);
}

/* The effect produces nothing. */
static void by_pay(struct nodes *n)
{
    n->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(node_send(n, 1, "o-1", PAY), 0);
}

/* It is paid, and its product comes when node 1 has done something. */
static struct nodes *pay_overtaken(
    struct det_runtime_options options, void (*overtake)(struct nodes *n))
{
    struct nodes *n = overtaken_open(options);

    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    overtaken.overtake = overtake;
    pass(n, DET_SECOND);
    assert_null(overtaken.overtake);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(get_at(n, 0).effects_pending, 0);
    assert_int_equal(node_counts(n, 0).conflicts, 1);
    return n;
}

static void overtaken_product_is_applied_once(void **unused)
{
    struct nodes *n = pay_overtaken((struct det_runtime_options){ 0 }, by_touch);

    (void)unused;
    assert_int_equal(get_at(n, 1).state, PAID);
    assert_int_equal(get_at(n, 1).sequence, 3);
    assert_int_equal(node_counts(n, 0).effects_done, 1);
    assert_int_equal(n->control.incidents, 0);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    nodes_close(n);
}

/* More often than a turn of the loop decides, and more often than an effect has attempts. */
static void a_product_that_met_others_many_times_is_taken_and_not_reported_as_refused(void **unused)
{
    struct nodes *n =
        overtaken_open((struct det_runtime_options){ .effects = { .attempts_max = 2 } });

    (void)unused;
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    overtaken.overtake = by_touch;
    overtaken.times = 20;
    pass(n, 5 * DET_MINUTE);
    assert_null(overtaken.overtake);
    assert_int_equal(get_at(n, 1).state, PAID);
    assert_int_equal(get_at(n, 1).sequence, 22);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(node_counts(n, 0).conflicts, 20);
    assert_int_equal(node_counts(n, 0).effects_done, 1);
    assert_int_equal(node_counts(n, 0).effects_dead, 0);
    assert_int_equal(node_counts(n, 0).products_rejected, 0);
    assert_int_equal(n->control.incidents, 0);
    assert_int_equal(get_at(n, 0).effects_pending, 0);
    nodes_close(n);
}

static void by_ship(struct nodes *n)
{
    assert_int_equal(node_send(n, 1, "o-1", SHIP), 0);
}

/* The new state would not accept it again. */
static void a_product_that_was_taken_without_an_answer_is_not_reported_as_refused(void **unused)
{
    struct nodes *n = overtaken_open((struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    overtaken.is_answer_lost = true;
    overtaken.overtake = by_ship;
    pass(n, DET_MINUTE);
    assert_null(overtaken.overtake);
    assert_int_equal(get_at(n, 1).state, SHIPPED);
    assert_int_equal(get_at(n, 1).sequence, 3);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(node_counts(n, 0).products_rejected, 0);
    assert_int_equal(n->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 0);
    assert_int_equal(get_at(n, 0).effects_pending, 0);
    nodes_close(n);
}

static void a_product_that_is_no_longer_accepted_is_a_dead_letter_once(void **unused)
{
    struct nodes *n = pay_overtaken((struct det_runtime_options){ 0 }, by_cancel);

    (void)unused;
    assert_int_equal(get_at(n, 0).state, CANCELLED);
    assert_int_equal(node_counts(n, 0).effects_done, 0);
    assert_int_equal(node_counts(n, 0).effects_dead, 1);
    assert_int_equal(node_counts(n, 0).products_rejected, 1);
    assert_int_equal(n->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    assert_int_equal(n->control.incident.code, DET_ERR_UNHANDLED);
    nodes_close(n);
}

static void an_effect_result_is_rejected_in_a_newer_visit(void **unused)
{
    struct nodes *n = pay_overtaken(
        (struct det_runtime_options){ .effects = { .same_visit_only = true } }, by_touch);

    (void)unused;
    assert_int_equal(get_at(n, 0).state, CHARGING);
    assert_int_equal(get_at(n, 0).sequence, 2);
    assert_int_equal(node_counts(n, 0).effects_done, 1);
    assert_int_equal(node_counts(n, 0).effects_dead, 0);
    assert_int_equal(node_counts(n, 0).products_rejected, 1);
    assert_int_equal(n->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    assert_int_equal(n->control.incident.code, DET_ERR_CONFLICT);
    assert_non_null(strstr(n->control.incident_text, "the visit that requested it has ended"));
    nodes_close(n);
}

/* It precedes the event of the other process; a sender that requires the later state sets
 * `expected` or `visit`. */
static void a_rejection_is_final_and_can_be_retried(void **unused)
{
    struct nodes *n = overtaken_open((struct det_runtime_options){
        .effects = { .backoff_first = 11 * DET_MINUTE, .backoff_max = 11 * DET_MINUTE } });

    (void)unused;
    n->control.effect_failures = 1;
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    pass(n, 10 * DET_MINUTE + DET_SECOND);
    assert_int_equal(get_at(n, 0).state, PENDING);
    overtaken.overtake = by_pay;
    pass(n, 4 * DET_MINUTE);
    assert_null(overtaken.overtake);
    assert_int_equal(get_at(n, 0).state, CHARGING);
    assert_int_equal(node_counts(n, 0).effects_dead, 1);
    assert_int_equal(n->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    n->control.effect_failures = 0;
    n->control.effect_result = DET_EFFECT_PRODUCED;
    assert_int_equal(
        det_runtime_retry(n->runtime[0], n->order, "o-1", "order/o-1/1/0", &n->error), 0);
    pass(n, DET_SECOND);
    assert_int_equal(get_at(n, 1).state, PAID);
    nodes_close(n);
}

/* The effect takes longer than any caller waits. */
static void be_slow(void *context)
{
    struct nodes *n = context;

    n->control.in_effect = NULL;
    wait_in(det_sim_world(n->sim), 12 * DET_MINUTE);
}

/* While node 0 decides, its effect ends. Then it is thought dead: node 1 has the effect, does it
 * once more, and moves the instance. */
static void be_thought_dead(void *context)
{
    struct nodes *n = context;

    n->control.in_guard = NULL;
    pass(n, 2 * DET_MINUTE);
    det_shared_pause(n->store[0], true);
    pass(n, DET_MINUTE);
    det_shared_pause(n->store[0], false);
    assert_int_equal(n->control.effects, 2);
    by_ping(n);
    n->control.effect_result = DET_EFFECT_DONE;
}

static void waiting_effect_end_yields_to_the_adopting_node(void **unused)
{
    struct nodes *n = overtaken_open((struct det_runtime_options){ 0 });

    (void)unused;
    n->control.in_effect = be_slow;
    n->control.context = n;
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    pass(n, 11 * DET_MINUTE);
    assert_int_equal(get_at(n, 0).state, PENDING);
    n->control.in_guard = be_thought_dead;
    assert_int_equal(node_send(n, 0, "o-1", PAY), 0);
    assert_int_equal(n->sent.sequence, 4);
    pass(n, DET_MINUTE);
    assert_int_equal(get_at(n, 1).state, CHARGING);
    assert_int_equal(get_at(n, 0).effects_pending, 0);
    assert_int_equal(n->control.effects, 3);
    assert_int_equal(node_counts(n, 0).effects_dead, 0);
    assert_int_equal(node_counts(n, 1).effects_dead, 1);
    assert_int_equal(n->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    nodes_close(n);
}

static struct nodes *expire_overtaken(void (*overtake)(struct nodes *n))
{
    struct nodes *n = overtaken_open((struct det_runtime_options){ 0 });

    overtaken.overtake = overtake;
    pass(n, 30 * DET_MINUTE + DET_SECOND);
    assert_null(overtaken.overtake);
    assert_int_equal(n->control.incidents, 0);
    return n;
}

static void timeout_overtaken_in_its_visit_fires_once(void **unused)
{
    struct nodes *n = expire_overtaken(by_ping);

    (void)unused;
    assert_int_equal(get_at(n, 1).state, CANCELLED);
    assert_int_equal(get_at(n, 1).sequence, 2);
    assert_int_equal(node_counts(n, 0).conflicts, 1);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    nodes_close(n);
}

static void timeout_with_many_conflicts_still_fires(void **unused)
{
    struct nodes *n = overtaken_open((struct det_runtime_options){ 0 });

    (void)unused;
    overtaken.overtake = by_ping;
    overtaken.times = 20;
    pass(n, 40 * DET_MINUTE);
    assert_null(overtaken.overtake);
    assert_int_equal(get_at(n, 1).state, CANCELLED);
    assert_int_equal(get_at(n, 1).sequence, 21);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    assert_int_equal(n->control.incidents, 0);
    nodes_close(n);
}

static void timeout_of_a_visit_that_ended_does_not_fire(void **unused)
{
    struct nodes *n = expire_overtaken(by_touch);

    (void)unused;
    assert_int_equal(get_at(n, 1).state, PENDING);
    assert_int_equal(get_at(n, 1).sequence, 1);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    pass(n, 30 * DET_MINUTE);
    assert_int_equal(get_at(n, 0).state, CANCELLED);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overtaken_product_is_applied_once),
        cmocka_unit_test(a_product_that_met_others_many_times_is_taken_and_not_reported_as_refused),
        cmocka_unit_test(a_product_that_was_taken_without_an_answer_is_not_reported_as_refused),
        cmocka_unit_test(a_product_that_is_no_longer_accepted_is_a_dead_letter_once),
        cmocka_unit_test(an_effect_result_is_rejected_in_a_newer_visit),
        cmocka_unit_test(a_rejection_is_final_and_can_be_retried),
        cmocka_unit_test(waiting_effect_end_yields_to_the_adopting_node),
        cmocka_unit_test(timeout_overtaken_in_its_visit_fires_once),
        cmocka_unit_test(timeout_with_many_conflicts_still_fires),
        cmocka_unit_test(timeout_of_a_visit_that_ended_does_not_fire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
