/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_workers_test.c - the communicator under a supervisor, against a relay over real
 * HTTP. The supervisor is in virtual time: while a call is under way no time passes for it, and an
 * outage of hours takes no time. */
#include "kinds/communicator_fixture_test.h"

/* All that was sent has come, once and in order. */
static void assert_all_pushed(struct plant *plant)
{
    assert_int_equal(relay_mock_count(plant->mock, RELAY_MOCK_PUSHED), plant->sent);
    for (unsigned i = 0; i < plant->sent; i++)
        assert_int_equal(strtoul(relay_mock_pushed(plant->mock, i)->text.content, NULL, 10), i);
}

static void test_communicator_logs_in_pulls_and_pushes(void **state)
{
    struct channel_message *message;
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(relay_mock_queue(plant.mock, &(struct det_message){ .content = "in" }), 0);
    send_next(&plant);
    send_next(&plant);
    advance(&plant, 10 * DET_SECOND);
    assert_string_equal(inspect(&plant), "syncing");
    assert_int_equal(plant.status.phase, DET_PHASE_RUNNING);
    assert_all_pushed(&plant);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(channel_receive(plant.channel, 0, &message), 0);
        channel_message_close(message);
    }
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 1);
    /* About once a second. */
    assert_in_range(relay_mock_count(plant.mock, RELAY_MOCK_PULLS), 6, 11);
    assert_int_equal(plant.status.counts.actions_failed, 0);
    plant_close(&plant);
}

static void test_killed_relay_loses_no_message(void **state)
{
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    advance(&plant, 5 * DET_SECOND);
    for (int round = 0; round < 2; round++) {
        send_next(&plant);
        relay_mock_stop(plant.mock);
        for (int i = 0; i < 30; i++) {
            send_next(&plant);
            advance(&plant, 20 * DET_SECOND);
        }
        assert_string_equal(inspect(&plant), "degraded");
        assert_int_equal(plant.status.phase, DET_PHASE_DEGRADED);
        assert_int_equal(plant.observed.last_error, RELAY_NETWORK);
        assert_in_range(plant.observed.consecutive_errors, 13, 15);
        assert_true(plant.observed.resets >= 2);
        /* The second time it restarts in the middle of it. */
        if (round == 1) {
            assert_int_equal(
                det_workers_order(plant.workers, ID, DET_WORKER_ORDER_RESTART, NULL), 0);
            advance(&plant, 10 * DET_SECOND);
            assert_string_equal(inspect(&plant), "authenticating");
        }
        assert_int_equal(relay_mock_start(plant.mock), 0);
        advance(&plant, 62 * DET_SECOND);
        assert_string_equal(inspect(&plant), "syncing");
        assert_int_equal(plant.observed.consecutive_errors, 0);
    }
    assert_all_pushed(&plant);
    plant_close(&plant);
}

/* The delays of the table, to the second, in the degraded state. */
static void test_backoff_delays_match_the_table(void **state)
{
    struct plant plant;
    det_time last = 0;
    uint64_t pulls;

    (void)state;
    plant_open(&plant, false);
    advance(&plant, 5 * DET_SECOND);
    for (int i = 0; i < 12; i++)
        assert_int_equal(
            relay_mock_fail(
                plant.mock, RELAY_MOCK_PULL, &(struct relay_mock_fault){ .status = 503 }),
            0);
    pulls = relay_mock_count(plant.mock, RELAY_MOCK_PULLS);
    for (uint64_t found = 0; found < 12;) {
        det_time now = det_world_now(plant.world, DET_CLOCK_MONOTONIC);

        advance(&plant, 100 * DET_MILLISECOND);
        if (relay_mock_count(plant.mock, RELAY_MOCK_PULLS) == pulls + found)
            continue;
        found++;
        if (found == 6)
            assert_in_range(now - last, 32 * DET_SECOND - DET_SECOND / 5, 34 * DET_SECOND);
        if (found > 6)
            assert_in_range(now - last, 60 * DET_SECOND - DET_SECOND / 5, 63 * DET_SECOND);
        last = now;
    }
    inspect(&plant);
    assert_int_equal(plant.observed.consecutive_errors, 12);
    assert_int_equal(plant.observed.resets, 1);
    advance(&plant, 62 * DET_SECOND);
    assert_string_equal(inspect(&plant), "syncing");
    plant_close(&plant);
}

static void test_retry_after_is_not_made_longer_by_the_supervisor(void **state)
{
    struct plant plant;
    uint64_t pulls;

    (void)state;
    plant_open(&plant, false);
    advance(&plant, 5 * DET_SECOND);
    for (int i = 0; i < 8; i++)
        assert_int_equal(
            relay_mock_fail(
                plant.mock, RELAY_MOCK_PULL,
                &(struct relay_mock_fault){ .status = 429, .headers = "Retry-After: 5\r\n" }),
            0);
    pulls = relay_mock_count(plant.mock, RELAY_MOCK_PULLS);
    advance(&plant, 4 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_PULLS), pulls + 1);
    advance(&plant, 56 * DET_SECOND);
    assert_string_equal(inspect(&plant), "syncing");
    plant_close(&plant);
}

static void test_corrected_config_is_tried_at_once(void **state)
{
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    assert_int_equal(apply(&plant, "wrong"), 0);
    advance(&plant, 10 * DET_SECOND);
    assert_string_equal(inspect(&plant), "authenticating");
    assert_int_equal(plant.observed.last_error, RELAY_INVALID_TOKEN);
    assert_non_null(strstr(plant.status.reason, "1 error in a row, the last is invalid_token"));
    assert_int_equal(apply(&plant, SECRET), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_string_equal(inspect(&plant), "syncing");
    plant_close(&plant);
}

static void test_tokens_are_renewed_for_days(void **state)
{
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    relay_mock_stop(plant.mock);
    assert_int_equal(det_workers_order(plant.workers, ID, DET_WORKER_ORDER_DISABLE, NULL), 0);
    assert_int_equal(relay_mock_start(plant.mock), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_string_equal(inspect(&plant), "stopped");
    assert_int_equal(det_workers_order(plant.workers, ID, DET_WORKER_ORDER_ENABLE, NULL), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 1);
    det_sim_jump_wall(plant.sim, 22 * DET_HOUR + 49 * DET_MINUTE);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 1);
    relay_mock_set_uuid(plant.mock, "u-2");
    det_sim_jump_wall(plant.sim, DET_MINUTE);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 2);
    assert_string_equal(inspect(&plant), "syncing");
    assert_string_equal(plant.observed.uuid, "u-2");
    plant_close(&plant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communicator_logs_in_pulls_and_pushes),
        cmocka_unit_test(test_killed_relay_loses_no_message),
        cmocka_unit_test(test_backoff_delays_match_the_table),
        cmocka_unit_test(test_retry_after_is_not_made_longer_by_the_supervisor),
        cmocka_unit_test(test_corrected_config_is_tried_at_once),
        cmocka_unit_test(test_tokens_are_renewed_for_days),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
