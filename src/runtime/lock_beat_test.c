/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_beat_test.c - renewal of locks: intervals, duration, and the report of a loss. */
#include "runtime/nodes_test.h"

#define NOT_AT_ALL (-1)

static const struct det_lock_options brief = { .span = 10 * DET_SECOND, .wait = 5 * DET_SECOND };

static void heartbeat_renews_the_lock_and_ends_with_it(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct det_lock_options options = { .span = 3 * DET_SECOND, .renewal = DET_SECOND };
    struct det_lock *lock;
    uint64_t renewed;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &options);
    renewed = det_shared_counts(n->shared).renewals;
    pass(n, 4 * DET_SECOND);
    assert_in_range(det_shared_counts(n->shared).renewals - renewed, 3, 4);
    pass(n, DET_MINUTE);
    assert_true(det_lock_is_held(lock));
    assert_int_equal(lock_kind(n, lock, PING), 0);
    det_lock_close(lock);
    pass(n, DET_SECOND);
    renewed = det_shared_counts(n->shared).renewals;
    pass(n, DET_MINUTE);
    assert_int_equal(det_shared_counts(n->shared).renewals, renewed);
    nodes_close(n);
}

static void heartbeat_intervals_are_jittered_around_the_renewal(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct det_lock_options options = { .span = 40 * DET_SECOND,
                                        .renewal = 10 * DET_SECOND,
                                        .jitter_percent = 50 };
    bool is_earlier = false, is_later = false;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (int i = 0; i < 20; i++) {
        struct det_lock *lock = node_lock(n, 0, "o-1", &options);
        uint64_t renewed = det_shared_counts(n->shared).renewals;
        det_time began = now_of(n), span;

        while (det_shared_counts(n->shared).renewals == renewed)
            pass(n, 100 * DET_MILLISECOND);
        span = now_of(n) - began;
        assert_in_range(span, 5 * DET_SECOND, 15 * DET_SECOND + 100 * DET_MILLISECOND);
        is_earlier = is_earlier || span < 9 * DET_SECOND;
        is_later = is_later || span > 11 * DET_SECOND;
        det_lock_close(lock);
    }
    assert_true(is_earlier && is_later);
    nodes_close(n);
}

static void count_lost(void *user)
{
    ++*(unsigned *)user;
}

static void fail_fast_refuses_sends_and_reads_and_reports_the_loss_once(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    unsigned lost = 0;
    struct det_lock_options options = brief;
    struct det_instance instance;
    struct det_lock *lock;

    (void)unused;
    options.lost = count_lost;
    options.user = &lost;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &options);
    det_shared_pause(n->store[0], true);
    pass(n, brief.span - brief.span / 10 - 1);
    assert_true(det_lock_is_held(lock));
    assert_int_equal(lost, 0);
    /* Before another holder is possible. */
    pass(n, 1);
    assert_false(det_lock_is_held(lock));
    assert_int_equal(try_lock(n, 1, "o-1", NOT_AT_ALL), DET_ERR_LOCKED);
    assert_int_equal(lost, 1);
    assert_int_equal(lock_kind(n, lock, PING), DET_ERR_LOCK_LOST);
    assert_string_equal(n->error.text, "order o-1: the lock with the number 1 was lost");
    assert_int_equal(det_lock_get(lock, &instance, NULL, NULL), DET_ERR_LOCK_LOST);
    det_shared_pause(n->store[0], false);
    pass(n, DET_HOUR);
    assert_false(det_lock_is_held(lock));
    assert_int_equal(lost, 1);
    det_lock_close(lock);
    nodes_close(n);
}

static void continue_calls_back_once_and_continues_without_a_lock(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ .lock = &det_lock_fast });
    unsigned lost = 0;
    struct det_lock_options options = brief;
    struct det_instance instance;
    struct det_lock *lock, *other;

    (void)unused;
    options.on_lost = DET_LOCK_LOST_CONTINUE;
    options.lost = count_lost;
    options.user = &lost;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &options);
    det_shared_pause(n->store[0], true);
    pass(n, brief.span);
    det_shared_pause(n->store[0], false);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    assert_int_equal(n->sent.sequence, 1);
    assert_int_equal(det_lock_get(lock, &instance, NULL, NULL), 0);
    assert_int_equal(instance.sequence, 1);
    /* It is one of the others now. */
    other = node_lock(n, 1, "o-1", &brief);
    assert_int_equal(lock_kind(n, lock, PING), DET_ERR_LOCKED);
    assert_string_not_equal(n->error.holder, "");
    det_lock_close(other);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    assert_int_equal(lost, 1);
    det_lock_close(lock);
    nodes_close(n);
}

static void a_lock_survives_a_temporary_store_failure(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    unsigned lost = 0;
    struct det_lock_options options = {
        .span = 30 * DET_SECOND, .lost = count_lost, .user = &lost, .jitter_percent = UINT32_MAX
    };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &options);
    /* The first beat and five more fail, either way. */
    for (int is_before = 0; is_before < 2; is_before++) {
        det_shared_fail(n->store[0], 6, is_before);
        pass(n, 26 * DET_SECOND);
        assert_true(det_lock_is_held(lock));
        pass(n, 30 * DET_SECOND);
    }
    assert_int_equal(lock_kind(n, lock, PING), 0);
    assert_int_equal(lost, 0);
    /* Until it is too late. */
    det_shared_fail(n->store[0], 1000, true);
    pass(n, 38 * DET_SECOND);
    assert_int_equal(lost, 1);
    det_shared_fail(n->store[0], 0, true);
    assert_int_equal(lock_kind(n, lock, PING), DET_ERR_LOCK_LOST);
    det_lock_close(lock);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heartbeat_renews_the_lock_and_ends_with_it),
        cmocka_unit_test(heartbeat_intervals_are_jittered_around_the_renewal),
        cmocka_unit_test(fail_fast_refuses_sends_and_reads_and_reports_the_loss_once),
        cmocka_unit_test(continue_calls_back_once_and_continues_without_a_lock),
        cmocka_unit_test(a_lock_survives_a_temporary_store_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
