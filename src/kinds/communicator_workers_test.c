/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_workers_test.c - the communicator under a supervisor, against a relay over real
 * HTTP. The supervisor is in virtual time: while a call is under way no time passes for it, and an
 * outage of hours takes no time. One test is in real time, as only there a call can be broken off.
 */
#include "lib/test.h"

#include <detent/sim.h>

#include "kinds/communicator.h"
#include "kinds/kinds.h"
#include "kinds/relay_mock.h"
#include "os/os.h"

#define SECRET "user-secret"
#define ID     "plant/relay"

struct plant {
    struct det_sim *sim; /* NULL: in real time */
    struct det_world *world;
    struct relay_mock *mock;
    struct channel *channel;
    struct det_workers *workers;
    struct det_worker_status status;
    struct communicator_observed observed;
    unsigned sent;
};

static int apply(struct plant *plant, const char *token)
{
    char yaml[512];
    struct det_error error = { 0 };
    int r;

    snprintf(
        yaml, sizeof yaml,
        "children:\n"
        "  - name: relay\n"
        "    kind: communicator\n"
        "    config: { relay_url: \"%s\", auth_token: %s }\n",
        relay_mock_url(plant->mock), token);
    r = det_workers_apply(plant->workers, yaml, &error);
    if (r < 0)
        print_message("%s\n", error.text);
    return r;
}

static void plant_open(struct plant *plant, bool is_real)
{
    static const struct det_worker_kind *const kinds[] = { &communicator_kind, NULL };
    struct det_worker_limits limits = { 0 };
    struct det_error error = { 0 };

    *plant = (struct plant){ .world = det_world_real() };
    if (!is_real) {
        assert_int_equal(det_sim_open(NULL, &plant->sim, NULL), 0);
        plant->world = det_sim_world(plant->sim);
    } else {
        limits.tick = 5 * DET_MILLISECOND;
        limits.observe_every = 10 * DET_MILLISECOND;
    }
    assert_int_equal(relay_mock_open(SECRET, &plant->mock), 0);
    assert_int_equal(
        channel_open(&(struct channel_options){ .world = plant->world }, &plant->channel), 0);
    assert_int_equal(
        det_workers_open(
            &(struct det_workers_options){
                .world = plant->world,
                .name = "plant",
                .kinds = kinds,
                .provided =
                    (struct det_provided[]){ { CHANNEL_NAME, plant->channel }, { NULL, NULL } },
                .limits = limits,
            },
            &plant->workers, &error),
        0);
    assert_int_equal(apply(plant, SECRET), 0);
}

static void plant_close(struct plant *plant)
{
    struct det_error error = { 0 };

    assert_int_equal(det_workers_stop(plant->workers, &error), 0);
    det_workers_close(plant->workers);
    channel_close(plant->channel);
    relay_mock_close(plant->mock);
    if (plant->sim)
        det_sim_close(plant->sim);
}

static void advance(struct plant *plant, det_time span)
{
    assert_int_equal(det_sim_advance(plant->sim, span), 0);
}

static const char *look(struct plant *plant)
{
    assert_int_equal(communicator_get(plant->workers, ID, &plant->status, &plant->observed), 0);
    return plant->status.state;
}

static void send_next(struct plant *plant)
{
    char content[32];

    snprintf(content, sizeof content, "%u", plant->sent++);
    assert_int_equal(
        channel_send(plant->channel, &(struct channel_text){ .content = content }, 0), 0);
}

/* All that was sent has come, once and in order. */
static void assert_all_pushed(struct plant *plant)
{
    assert_int_equal(relay_mock_count(plant->mock, RELAY_MOCK_PUSHED), plant->sent);
    for (unsigned i = 0; i < plant->sent; i++)
        assert_int_equal(strtoul(relay_mock_pushed(plant->mock, i)->text.content, NULL, 10), i);
}

static void test_it_logs_in_pulls_and_pushes(void **state)
{
    struct channel_message *message;
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            relay_mock_queue(plant.mock, &(struct channel_text){ .content = "in" }), 0);
    send_next(&plant);
    send_next(&plant);
    advance(&plant, 10 * DET_SECOND);
    assert_string_equal(look(&plant), "syncing");
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

static void test_nothing_is_lost_when_the_relay_is_killed(void **state)
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
        assert_string_equal(look(&plant), "degraded");
        assert_int_equal(plant.status.phase, DET_PHASE_DEGRADED);
        assert_int_equal(plant.observed.last_error, RELAY_NETWORK);
        assert_in_range(plant.observed.consecutive_errors, 13, 15);
        assert_true(plant.observed.resets >= 2);
        /* The second time it begins anew in the middle of it. */
        if (round == 1) {
            assert_int_equal(det_workers_order(plant.workers, ID, DET_WORKER_ORDER_RESTART), 0);
            advance(&plant, 10 * DET_SECOND);
            assert_string_equal(look(&plant), "authenticating");
        }
        assert_int_equal(relay_mock_start(plant.mock), 0);
        advance(&plant, 62 * DET_SECOND);
        assert_string_equal(look(&plant), "syncing");
        assert_int_equal(plant.observed.consecutive_errors, 0);
    }
    assert_all_pushed(&plant);
    plant_close(&plant);
}

/* The delays of the table, to the second, in the degraded state. */
static void test_the_delays_are_kept_to(void **state)
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
    look(&plant);
    assert_int_equal(plant.observed.consecutive_errors, 12);
    assert_int_equal(plant.observed.resets, 1);
    advance(&plant, 62 * DET_SECOND);
    assert_string_equal(look(&plant), "syncing");
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
    advance(&plant, 8 * 7 * DET_SECOND);
    assert_string_equal(look(&plant), "syncing");
    plant_close(&plant);
}

static void test_a_config_that_was_put_right_is_tried_at_once(void **state)
{
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    assert_int_equal(apply(&plant, "wrong"), 0);
    advance(&plant, 10 * DET_SECOND);
    assert_string_equal(look(&plant), "authenticating");
    assert_int_equal(plant.observed.last_error, RELAY_INVALID_TOKEN);
    assert_non_null(strstr(plant.status.reason, "1 errors in a row, the last is invalid_token"));
    assert_int_equal(apply(&plant, SECRET), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_string_equal(look(&plant), "syncing");
    plant_close(&plant);
}

static void test_tokens_are_replaced_for_days(void **state)
{
    struct plant plant;

    (void)state;
    plant_open(&plant, false);
    relay_mock_stop(plant.mock);
    assert_int_equal(det_workers_order(plant.workers, ID, DET_WORKER_ORDER_DISABLE), 0);
    assert_int_equal(relay_mock_start(plant.mock), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_string_equal(look(&plant), "stopped");
    assert_int_equal(det_workers_order(plant.workers, ID, DET_WORKER_ORDER_ENABLE), 0);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 1);
    det_sim_jump_wall(plant.sim, 22 * DET_HOUR + 49 * DET_MINUTE);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 1);
    relay_mock_set_uuid(plant.mock, "u-2");
    det_sim_jump_wall(plant.sim, DET_MINUTE);
    advance(&plant, 5 * DET_SECOND);
    assert_int_equal(relay_mock_count(plant.mock, RELAY_MOCK_LOGINS), 2);
    assert_string_equal(look(&plant), "syncing");
    assert_string_equal(plant.observed.uuid, "u-2");
    plant_close(&plant);
}

/* In real time: a stop does not wait for a relay that does not answer. */
static void test_a_stop_breaks_off_a_call(void **state)
{
    struct plant plant;
    det_time begin;

    (void)state;
    plant_open(&plant, true);
    begin = det_world_now(plant.world, DET_CLOCK_MONOTONIC);
    assert_int_equal(relay_mock_wait(plant.mock, RELAY_MOCK_PULLS, 1, begin + 60 * DET_SECOND), 0);
    assert_int_equal(
        relay_mock_fail(
            plant.mock, RELAY_MOCK_PUSH, &(struct relay_mock_fault){ .delay = DET_HOUR }),
        0);
    send_next(&plant);
    assert_int_equal(relay_mock_wait(plant.mock, RELAY_MOCK_PUSHES, 1, begin + 60 * DET_SECOND), 0);
    begin = det_world_now(plant.world, DET_CLOCK_MONOTONIC);
    plant_close(&plant);
    assert_true(det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) - begin < 4 * DET_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_logs_in_pulls_and_pushes),
        cmocka_unit_test(test_nothing_is_lost_when_the_relay_is_killed),
        cmocka_unit_test(test_the_delays_are_kept_to),
        cmocka_unit_test(test_retry_after_is_not_made_longer_by_the_supervisor),
        cmocka_unit_test(test_a_config_that_was_put_right_is_tried_at_once),
        cmocka_unit_test(test_tokens_are_replaced_for_days),
        cmocka_unit_test(test_a_stop_breaks_off_a_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
