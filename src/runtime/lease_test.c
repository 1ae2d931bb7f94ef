/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease_test.c - leases by name: one holder among many candidates. */
#include "runtime/nodes_test.h"

#define CANDIDATES 10

struct candidate {
    struct det_lease *lease;
    unsigned got, lost;
    uint64_t token;
};

static void report(void *user, bool is_held, uint64_t token)
{
    struct candidate *candidate = user;

    assert_true(candidate->got == candidate->lost + !is_held);
    candidate->got += is_held;
    candidate->lost += !is_held;
    candidate->token = token;
}

static void apply(struct nodes *n, unsigned i, struct candidate *candidate)
{
    struct det_lease_options options = {
        .span = 9 * DET_SECOND, .owner = "candidate", .changed = report, .user = candidate
    };

    assert_int_equal(
        det_lease_open(n->runtime[i], "leader", &options, &candidate->lease, &n->error), 0);
}

/* Index of the holder; CANDIDATES: none. Fails the test if two hold the lease. */
static unsigned holder_of(struct candidate *candidates)
{
    unsigned found = CANDIDATES;

    for (unsigned i = 0; i < CANDIDATES; i++) {
        if (!candidates[i].lease || !det_lease_is_held(candidates[i].lease, NULL))
            continue;
        assert_int_equal(found, CANDIDATES);
        found = i;
    }
    return found;
}

static void one_of_ten_candidates_gets_and_keeps_the_lease(void **unused)
{
    struct nodes *n = nodes_open(CANDIDATES, (struct det_runtime_options){ 0 });
    struct candidate candidates[CANDIDATES] = { 0 };
    unsigned first;

    (void)unused;
    for (unsigned i = 0; i < CANDIDATES; i++)
        apply(n, i, &candidates[i]);
    pass(n, DET_SECOND);
    first = holder_of(candidates);
    assert_true(first < CANDIDATES);
    for (int i = 0; i < 100; i++) {
        pass(n, DET_SECOND);
        assert_int_equal(holder_of(candidates), first);
    }
    assert_int_equal(candidates[first].got, 1);
    assert_int_equal(candidates[first].token, 1);
    for (unsigned i = 0; i < CANDIDATES; i++)
        det_lease_close(candidates[i].lease);
    nodes_close(n);
}

static void a_lease_that_lapses_is_taken_over_and_a_released_one_at_once(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };

    (void)unused;
    apply(n, 0, &candidates[0]);
    pass(n, DET_SECOND);
    apply(n, 1, &candidates[1]);
    pass(n, DET_SECOND);
    assert_int_equal(holder_of(candidates), 0);
    det_shared_pause(n->store[0], true);
    /* The longest: a span since the last renewal, and the other asks once in a renewal. */
    pass(n, 9 * DET_SECOND + 4 * DET_SECOND);
    assert_int_equal(holder_of(candidates), 1);
    assert_int_equal(candidates[1].token, 2);
    assert_int_equal(candidates[0].lost, 1);
    det_shared_pause(n->store[0], false);
    pass(n, DET_MINUTE);
    assert_int_equal(holder_of(candidates), 1);
    det_lease_close(candidates[1].lease);
    candidates[1].lease = NULL;
    assert_int_equal(det_sim_settle(n->sim), 0);
    assert_int_equal(holder_of(candidates), 0);
    assert_int_equal(candidates[0].token, 3);
    det_lease_close(candidates[0].lease);
    nodes_close(n);
}

/* A lease ends by the clock of its holder before it ends in the store. */
static void a_holder_that_was_suspended_reports_its_lease_as_lost(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };
    uint64_t token = 0;

    (void)unused;
    apply(n, 0, &candidates[0]);
    pass(n, DET_SECOND);
    assert_true(det_lease_is_held(candidates[0].lease, &token));
    assert_int_equal(token, 1);
    det_sim_suspend(n->sim, 9 * DET_SECOND - 9 * DET_SECOND / 10);
    /* Nothing has run since, and no callback was called. */
    assert_false(det_lease_is_held(candidates[0].lease, NULL));
    /* A renewal that is under way when its end comes brings it back, with the same number. */
    pass(n, DET_MINUTE);
    assert_int_equal(holder_of(candidates), 0);
    det_lease_close(candidates[0].lease);
    nodes_close(n);
}

static void a_released_lease_is_not_requested_again(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };
    struct det_store_lease lease;

    (void)unused;
    apply(n, 0, &candidates[0]);
    /* While it is asked for, while it is held, while it is renewed. */
    for (det_time i = 0; i < 60; i++) {
        det_lease_close(candidates[0].lease);
        candidates[0] = (struct candidate){ 0 };
        pass(n, DET_MINUTE);
        assert_true(!det_shared_lease(n->shared, "leader", &lease) || !*lease.owner);
        assert_int_equal(candidates[0].got, 0);
        apply(n, 0, &candidates[0]);
        pass(n, i * 100 * DET_MILLISECOND);
    }
    det_lease_close(candidates[0].lease);
    nodes_close(n);
}

static void late_lease_renewal_is_a_loss_and_a_new_grant(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };

    (void)unused;
    apply(n, 0, &candidates[0]);
    pass(n, DET_SECOND);
    det_shared_pause(n->store[0], true);
    pass(n, 7500 * DET_MILLISECOND);
    assert_int_equal(candidates[0].lost, 1);
    det_shared_pause(n->store[0], false);
    pass(n, DET_SECOND);
    assert_int_equal(candidates[0].got, 2);
    assert_int_equal(candidates[0].token, 1);
    det_lease_close(candidates[0].lease);
    nodes_close(n);
}

static void lease_is_held_although_the_answer_was_lost(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };

    (void)unused;
    pass(n, DET_SECOND);
    det_shared_fail(n->store[0], 1, false);
    apply(n, 0, &candidates[0]);
    pass(n, 4 * DET_SECOND);
    assert_int_equal(candidates[0].got, 1);
    assert_int_equal(candidates[0].token, 1);
    det_lease_close(candidates[0].lease);
    nodes_close(n);
}

/* Upstream two of the same name are one. */
static void two_candidates_with_one_name_have_different_owners(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct candidate candidates[CANDIDATES] = { 0 };
    struct det_store_lease lease;

    (void)unused;
    apply(n, 0, &candidates[0]);
    apply(n, 0, &candidates[1]);
    pass(n, DET_MINUTE);
    assert_true(holder_of(candidates) < 2);
    assert_true(det_shared_lease(n->shared, "leader", &lease));
    assert_int_equal(strncmp(lease.owner, "candidate/", 10), 0);
    det_lease_close(candidates[0].lease);
    det_lease_close(candidates[1].lease);
    nodes_close(n);
}

static void invalid_lease_name_and_options_are_refused(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    static const struct det_lease_options bad[] = {
        { .span = -1 },
        { .renewal = -1 },
        { .span = DET_SECOND, .renewal = DET_SECOND },
        { .owner = "" },
        { .owner = "123456789-123456789-123456789-123456789-12345678" },
    };
    char name[DET_ID_MAX + 2];
    struct det_lease *lease;

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            det_lease_open(n->runtime[0], "leader", &bad[i], &lease, &n->error), DET_ERR_INVALID);
    memset(name, 'n', sizeof name);
    name[DET_ID_MAX + 1] = 0;
    assert_int_equal(det_lease_open(n->runtime[0], name, NULL, &lease, &n->error), DET_ERR_INVALID);
    assert_int_equal(det_lease_open(n->runtime[0], "", NULL, &lease, &n->error), DET_ERR_INVALID);
    name[DET_ID_MAX] = 0;
    assert_int_equal(det_lease_open(n->runtime[0], name, NULL, &lease, &n->error), 0);
    det_lease_close(lease);
    det_lease_close(NULL);
    nodes_close(n);
}

/* The node's own. */

static void a_node_that_gets_no_lease_is_not_opened(void **unused)
{
    struct nodes *n = nodes_open(0, (struct det_runtime_options){ 0 });
    struct det_runtime_options options = { .world = det_sim_world(n->sim) };
    struct det_runtime *runtime;

    (void)unused;
    n->store[0] = det_shared_node(n->shared);
    det_shared_fail(n->store[0], 1, true);
    assert_int_equal(det_runtime_open(n->store[0], &options, &runtime, &n->error), DET_ERR_IO);
    assert_non_null(strstr(n->error.text, "refuses this node its lease"));
    options.node.lease = options.node.renewal = DET_SECOND;
    assert_int_equal(det_runtime_open(n->store[0], &options, &runtime, &n->error), DET_ERR_INVALID);
    options.node.renewal = -1;
    assert_int_equal(det_runtime_open(n->store[0], &options, &runtime, &n->error), DET_ERR_INVALID);
    options.node = (struct det_node_options){ .sweep_jitter_percent = 1001 };
    assert_int_equal(det_runtime_open(n->store[0], &options, &runtime, &n->error), DET_ERR_INVALID);
    nodes_close(n);
}

static void a_node_keeps_its_lease_and_gives_it_up_when_it_closes(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_store_lease lease;
    char name[40];

    (void)unused;
    snprintf(name, sizeof name, "node/%s", n->store[0]->owner);
    for (int i = 0; i < 100; i++) {
        pass(n, DET_SECOND);
        assert_true(det_shared_lease(n->shared, name, &lease));
        assert_string_equal(lease.owner, n->store[0]->owner);
    }
    assert_int_equal(lease.token, 1);
    node_close(n, 0);
    assert_true(det_shared_lease(n->shared, name, &lease));
    assert_string_equal(lease.owner, "");
    nodes_close(n);
}

static void node_without_its_lease_fires_no_timers(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_instance instance;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pass(n, 29 * DET_MINUTE + 55 * DET_SECOND);
    /* Its lease cannot be renewed, but commits would pass. */
    det_shared_pause(n->store[0], true);
    pass(n, DET_MINUTE);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    det_shared_pause(n->store[0], false);
    pass(n, DET_SECOND);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    assert_int_equal(det_runtime_get(n->runtime[0], n->order, "o-1", &instance, NULL, NULL), 0);
    assert_int_equal(instance.state, CANCELLED);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_ten_candidates_gets_and_keeps_the_lease),
        cmocka_unit_test(a_lease_that_lapses_is_taken_over_and_a_released_one_at_once),
        cmocka_unit_test(a_holder_that_was_suspended_reports_its_lease_as_lost),
        cmocka_unit_test(a_released_lease_is_not_requested_again),
        cmocka_unit_test(late_lease_renewal_is_a_loss_and_a_new_grant),
        cmocka_unit_test(lease_is_held_although_the_answer_was_lost),
        cmocka_unit_test(two_candidates_with_one_name_have_different_owners),
        cmocka_unit_test(invalid_lease_name_and_options_are_refused),
        cmocka_unit_test(a_node_that_gets_no_lease_is_not_opened),
        cmocka_unit_test(a_node_keeps_its_lease_and_gives_it_up_when_it_closes),
        cmocka_unit_test(node_without_its_lease_fires_no_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
