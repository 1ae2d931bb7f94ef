/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_calls_test.c - the communicator against a relay over real HTTP and in virtual time:
 * what arrives, what is tried when, and that nothing is lost. */
#include "kinds/communicator_bench_test.h"

static void test_communicator_logs_in_pulls_and_pushes(void **state)
{
    struct channel_message *message;
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_string_equal(bench_check(&bench)->uuid, "u-0");
    for (int i = 0; i < 3; i++)
        assert_int_equal(relay_mock_queue(bench.mock, &(struct det_message){ .content = "in" }), 0);
    bench_send(&bench, "a");
    bench_send(&bench, "b");
    bench_seconds(&bench, 3);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_string_equal(bench_pushed(&bench), "a b");
    assert_string_equal(
        relay_mock_pushed(bench.mock, 0)->text.instance, "11111111-2222-3333-4444-555555555555");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(channel_receive(bench.channel, 0, &message), 0);
        assert_string_equal(message->text.content, "in");
        channel_message_close(message);
    }
    bench_check(&bench);
    assert_true(bench.observed.has_token);
    assert_string_equal(bench.observed.uuid, "11111111-2222-3333-4444-555555555555");
    assert_string_equal(bench.observed.name, "mock");
    assert_int_equal(bench.observed.token_expiry, bench.observed.last_auth_attempt + 23 * DET_HOUR);
    assert_int_equal(bench.observed.messages_pulled, 3);
    assert_int_equal(bench.observed.messages_pushed, 2);
    assert_int_equal(bench.observed.logins, 1);
    assert_int_equal(metric_of(&bench, "pull_ops")->total, 2);
    assert_int_equal(metric_of(&bench, "pull_success")->total, 2);
    assert_int_equal(metric_of(&bench, "messages_pulled")->total, 3);
    assert_int_equal(metric_of(&bench, "push_ops")->total, 1);
    assert_int_equal(metric_of(&bench, "messages_pushed")->total, 2);
    assert_true(metric_of(&bench, "bytes_pulled")->total > 0);
    assert_true(metric_of(&bench, "bytes_pushed")->total > 0);
    bench_close(&bench);
}

/* The observation is unchanged while nothing happens, so nothing is recorded. */
static void test_an_idle_sync_changes_nothing(void **state)
{
    struct communicator_observed before;
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 3);
    before = *bench_check(&bench);
    bench_seconds(&bench, 10);
    assert_true(det_record_equal(communicator_observed_record(), &before, bench_check(&bench)));
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_CONNECTIONS), 1);
    bench_close(&bench);
}

/* Each second of an outage that has a sync in it; resets come right before one. */
static void test_an_outage_is_tried_at_exact_times(void **state)
{
    static const unsigned expected[] = { 0,   1,   2,   3,   4,   36,  96,  156,
                                         216, 276, 336, 396, 456, 516, 576, 636 };
    struct bench bench;
    unsigned found = 0;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 3);
    relay_mock_stop(bench.mock);
    for (unsigned second = 0; second < 640; second++) {
        uint64_t syncs = bench.actions[COMMUNICATOR_SYNC];
        uint64_t resets = bench.actions[COMMUNICATOR_RESET_TRANSPORT];

        bench_second(&bench);
        if (bench.actions[COMMUNICATOR_SYNC] > syncs)
            assert_int_equal(second, expected[found++]);
        assert_int_equal(
            bench.actions[COMMUNICATOR_RESET_TRANSPORT] - resets,
            second == 36 || second == 336 || second == 636);
    }
    assert_int_equal(found, sizeof expected / sizeof expected[0]);
    assert_int_equal(bench.state, COMMUNICATOR_DEGRADED);
    assert_int_equal(bench_check(&bench)->consecutive_errors, 16);
    assert_int_equal(bench.observed.last_error, RELAY_NETWORK);
    assert_int_equal(bench.observed.resets, 3);
    assert_int_equal(bench.actions[COMMUNICATOR_RESET_TRANSPORT], 3);
    assert_int_equal(metric_of(&bench, "network_errors_total")->total, 16);
    assert_int_equal((int)metric_of(&bench, "consecutive_errors")->value, 16);
    bench_close(&bench);
}

static void test_outage_loses_no_message(void **state)
{
    struct bench bench;
    det_time began;

    (void)state;
    bench_open(&bench);
    bench_send(&bench, "a");
    bench_seconds(&bench, 2);
    relay_mock_stop(bench.mock);
    began = bench_wall(&bench);
    for (int i = 0; i < 20; i++) {
        char content[16];

        snprintf(content, sizeof content, "m%d", i);
        bench_send(&bench, content);
        bench_seconds(&bench, 15);
    }
    assert_int_equal(bench.state, COMMUNICATOR_DEGRADED);
    /* From the first error of the outage, not from the fifth. */
    assert_in_range(bench_check(&bench)->degraded_since, began, began + 2 * DET_SECOND);
    assert_int_equal(bench.observed.pending + bench.observed.outbound, 20);
    /* The worker restarts in the middle of it. */
    bench_end(&bench);
    bench_begin(&bench);
    bench_seconds(&bench, 10);
    assert_int_equal(bench.state, COMMUNICATOR_AUTHENTICATING);
    assert_int_equal(relay_mock_start(bench.mock), 0);
    bench_seconds(&bench, 70);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_string_equal(
        bench_pushed(&bench),
        "a m0 m1 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19");
    assert_int_equal(bench_check(&bench)->consecutive_errors, 0);
    assert_int_equal(bench.observed.pending + bench.observed.outbound, 0);
    assert_int_equal(bench.observed.degraded_since, 0);
    assert_int_equal(bench.observed.last_error, RELAY_NONE);
    bench_close(&bench);
}

/* From degraded back, without a new login. */
static void test_sync_resumes_when_the_relay_recovers(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_fault(&bench, RELAY_MOCK_PULL, (struct relay_mock_fault){ .status = 503 }, 6);
    bench_seconds(&bench, 5);
    bench_step(&bench);
    assert_int_equal(bench.state, COMMUNICATOR_DEGRADED);
    assert_int_equal(bench.observed.consecutive_errors, 5);
    bench_seconds(&bench, 100);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_LOGINS), 1);
    assert_int_equal(bench.actions[COMMUNICATOR_RESET_TRANSPORT], 0);
    assert_int_equal(metric_of(&bench, "server_errors_total")->total, 6);
    bench_close(&bench);
}

static void test_a_failed_push_keeps_what_was_drained(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_fault(&bench, RELAY_MOCK_PUSH, (struct relay_mock_fault){ .status = 500 }, 2);
    bench_send(&bench, "a");
    bench_send(&bench, "b");
    bench_send(&bench, "c");
    bench_second(&bench);
    assert_string_equal(bench_check(&bench)->last_error_text, "push: server_error, status 500");
    assert_int_equal(bench.observed.pending, 3);
    bench_end(&bench);
    bench_begin(&bench);
    bench_seconds(&bench, 10);
    assert_string_equal(bench_pushed(&bench), "a b c");
    assert_int_equal(bench_check(&bench)->pending, 0);
    assert_int_equal(metric_of(&bench, "push_failures")->total, 2);
    bench_close(&bench);
}

/* If the relay has got it but its answer is lost, it gets it again: at least once. */
static void test_lost_answer_repeats_the_push(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_fault(&bench, RELAY_MOCK_PUSH, (struct relay_mock_fault){ .is_cut_after = true }, 2);
    bench_send(&bench, "a");
    bench_seconds(&bench, 5);
    assert_string_equal(bench_pushed(&bench), "a a a");
    assert_int_equal(bench_check(&bench)->messages_pushed, 1);
    bench_close(&bench);
}

static void test_poisoned_message_does_not_block_the_others(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    relay_mock_poison(bench.mock, "poison");
    bench_seconds(&bench, 2);
    bench_send(&bench, "a");
    bench_send(&bench, "poison-1");
    bench_send(&bench, "b");
    bench_send(&bench, "c");
    bench_send(&bench, "poison-2");
    bench_second(&bench);
    assert_int_equal(bench.result, 0);
    assert_string_equal(bench_pushed(&bench), "a b c");
    assert_int_equal(bench_check(&bench)->messages_dropped, 2);
    assert_string_equal(bench.observed.dropped_because, "push: unknown, status 422");
    assert_int_equal(bench.observed.messages_pushed, 3);
    assert_int_equal(bench.observed.consecutive_errors, 0);
    assert_int_equal(metric_of(&bench, "messages_dropped")->total, 2);
    bench_close(&bench);
}

static void test_malformed_message_is_reported(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_fault(
        &bench, RELAY_MOCK_PULL,
        (struct relay_mock_fault){ .status = 200,
                                   .body = "{\"messages\":[{\"content\":\"a\"},7]}" },
        1);
    bench_seconds(&bench, 2);
    assert_int_equal(bench_check(&bench)->messages_pulled, 1);
    assert_int_equal(bench.observed.messages_dropped, 1);
    assert_string_equal(
        bench.observed.dropped_because, "pull: 1 of 2 messages is invalid or too large");
    bench_close(&bench);
}

/* A failure unrelated to the message is no reason to drop it. */
static void test_no_other_status_drops_a_message(void **state)
{
    static const int statuses[] = { 401, 403, 404, 405, 408, 429, 500, 503, 302 };
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_send(&bench, "a");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bench_fault(&bench, RELAY_MOCK_PUSH, (struct relay_mock_fault){ .status = statuses[i] }, 1);
        bench_seconds(&bench, 400);
        assert_int_equal(bench_check(&bench)->messages_dropped, 0);
        assert_int_equal(bench.observed.pending, 0);
        bench_send(&bench, "a");
    }
    bench_close(&bench);
}

static void test_full_inbound_queue_pauses_the_pull(void **state)
{
    struct channel_message *message;
    struct bench bench;
    uint64_t pulls;

    (void)state;
    bench_open(&bench);
    relay_mock_set_most(bench.mock, 3);
    for (int i = 0; i < 12; i++) {
        char content[16];

        snprintf(content, sizeof content, "%d", i);
        assert_int_equal(
            relay_mock_queue(bench.mock, &(struct det_message){ .content = content }), 0);
    }
    bench_seconds(&bench, 4);
    assert_int_equal(bench_check(&bench)->inbound, 6);
    assert_true(bench.observed.is_inbound_full);
    pulls = relay_mock_count(bench.mock, RELAY_MOCK_PULLS);
    bench_send(&bench, "a");
    bench_seconds(&bench, 10);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_PULLS), pulls);
    /* Pushing continues. */
    assert_string_equal(bench_pushed(&bench), "a");
    for (int i = 0; i < 12; i++) {
        assert_int_equal(channel_receive(bench.channel, 0, &message), 0);
        assert_int_equal(strtol(message->text.content, NULL, 10), i);
        channel_message_close(message);
        bench_second(&bench);
    }
    assert_int_equal(bench_check(&bench)->messages_pulled, 12);
    bench_close(&bench);
}

static void test_a_refused_token_and_an_old_one_are_replaced(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 100);
    relay_mock_expire(bench.mock);
    relay_mock_set_uuid(bench.mock, "u-2");
    bench_second(&bench);
    assert_false(bench_check(&bench)->has_token);
    assert_int_equal(bench.observed.last_error, RELAY_INVALID_TOKEN);
    bench_seconds(&bench, 2);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_string_equal(bench_check(&bench)->uuid, "u-2");
    assert_int_equal(bench.observed.consecutive_errors, 0);
    assert_int_equal(metric_of(&bench, "auth_failures_total")->total, 1);

    relay_mock_set_uuid(bench.mock, "u-3");
    assert_int_equal(det_sim_advance(bench.sim, 22 * DET_HOUR + 45 * DET_MINUTE), 0);
    bench_seconds(&bench, 60);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_LOGINS), 2);
    assert_int_equal(det_sim_advance(bench.sim, 5 * DET_MINUTE), 0);
    bench_seconds(&bench, 2);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_LOGINS), 3);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_string_equal(bench_check(&bench)->uuid, "u-3");
    bench_close(&bench);
}

/* A relay that refuses every login is asked once a minute, and never left. */
static void test_a_wrong_secret_is_tried_once_a_minute(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    snprintf(bench.desired.auth_token, sizeof bench.desired.auth_token, "wrong");
    bench_seconds(&bench, 301);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_LOGINS), 6);
    assert_int_equal(bench.state, COMMUNICATOR_AUTHENTICATING);
    /* A config that was put right is tried at once. */
    snprintf(bench.desired.auth_token, sizeof bench.desired.auth_token, SECRET);
    bench_seconds(&bench, 2);
    assert_int_equal(bench.state, COMMUNICATOR_SYNCING);
    assert_int_equal(bench_check(&bench)->consecutive_errors, 0);
    bench_close(&bench);
}

static void test_retry_after_is_respected(void **state)
{
    struct bench bench;
    uint64_t pulls;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_fault(
        &bench, RELAY_MOCK_PULL,
        (struct relay_mock_fault){ .status = 429, .headers = "Retry-After: 7\r\n" }, 1);
    bench_second(&bench);
    assert_int_equal(bench_check(&bench)->retry_after_ms, 7000);
    assert_int_equal(bench.observed.last_error, RELAY_RATE_LIMIT);
    pulls = relay_mock_count(bench.mock, RELAY_MOCK_PULLS);
    bench_seconds(&bench, 6);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_PULLS), pulls);
    bench_second(&bench);
    assert_int_equal(relay_mock_count(bench.mock, RELAY_MOCK_PULLS), pulls + 1);
    assert_int_equal(bench_check(&bench)->consecutive_errors, 0);
    bench_close(&bench);
}

static void test_cancelled_sync_is_not_an_error(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench_send(&bench, "a");
    bench.is_cancelled = true;
    bench_second(&bench);
    assert_int_equal(bench.result, DET_ERR_CANCELLED);
    assert_int_equal(bench_check(&bench)->consecutive_errors, 0);
    bench.is_cancelled = false;
    bench_second(&bench);
    assert_int_equal(bench.result, 0);
    assert_string_equal(bench_pushed(&bench), "a");
    bench_close(&bench);
}

/* An abandoned attempt may still run. */
static void test_one_call_at_a_time(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_seconds(&bench, 2);
    bench.deps.is_busy = true;
    bench_second(&bench);
    assert_int_equal(bench.result, DET_ERR_BUSY);
    bench.deps.is_busy = false;
    bench_second(&bench);
    assert_int_equal(bench.result, 0);
    bench_close(&bench);
}

static void test_open_needs_a_channel(void **state)
{
    struct communicator_deps deps = { 0 };
    struct bench bench;

    (void)state;
    bench_open(&bench);
    bench_end(&bench);
    channel_close(bench.channel);
    bench.channel = NULL;
    assert_int_equal(communicator_kind.open(&bench.context, &deps), DET_ERR_UNBOUND);
    assert_non_null(strstr(bench.failure, "no ancestor provides a \"channel\""));
    bench.deps = deps;
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communicator_logs_in_pulls_and_pushes),
        cmocka_unit_test(test_an_idle_sync_changes_nothing),
        cmocka_unit_test(test_an_outage_is_tried_at_exact_times),
        cmocka_unit_test(test_outage_loses_no_message),
        cmocka_unit_test(test_sync_resumes_when_the_relay_recovers),
        cmocka_unit_test(test_a_failed_push_keeps_what_was_drained),
        cmocka_unit_test(test_lost_answer_repeats_the_push),
        cmocka_unit_test(test_poisoned_message_does_not_block_the_others),
        cmocka_unit_test(test_malformed_message_is_reported),
        cmocka_unit_test(test_no_other_status_drops_a_message),
        cmocka_unit_test(test_full_inbound_queue_pauses_the_pull),
        cmocka_unit_test(test_a_refused_token_and_an_old_one_are_replaced),
        cmocka_unit_test(test_a_wrong_secret_is_tried_once_a_minute),
        cmocka_unit_test(test_retry_after_is_respected),
        cmocka_unit_test(test_cancelled_sync_is_not_an_error),
        cmocka_unit_test(test_one_call_at_a_time),
        cmocka_unit_test(test_open_needs_a_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
