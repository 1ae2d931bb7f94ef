/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* communicator_real_test.c - the communicator under a supervisor in real time, with real threads:
 * what breaks off, and what goes on. */
#include "kinds/communicator_fixture_test.h"
#include "lib/patience.h"

#define KILLS 5
#define SENDS 100

/* A stop does not wait for a relay that does not answer. */
static void test_stop_cancels_a_pending_call(void **state)
{
    struct plant plant;
    det_time begin;
    int64_t load;

    (void)state;
    plant_open(&plant, true);
    begin = det_world_now(plant.world, DET_CLOCK_MONOTONIC);
    assert_int_equal(relay_mock_wait(plant.mock, RELAY_MOCK_PULLS, 1, begin + DET_TEST_HANG), 0);
    assert_int_equal(
        relay_mock_fail(
            plant.mock, RELAY_MOCK_PUSH, &(struct relay_mock_fault){ .delay = DET_HOUR }),
        0);
    send_next(&plant);
    assert_int_equal(relay_mock_wait(plant.mock, RELAY_MOCK_PUSHES, 1, begin + DET_TEST_HANG), 0);
    begin = det_world_now(plant.world, DET_CLOCK_MONOTONIC);
    load = det_test_load();
    plant_close(&plant);
    /* The call itself would have ended after COMMUNICATOR_TIMEOUT. */
    assert_true(
        det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) - begin <
        4 * DET_SECOND * det_test_load_since(load));
}

static det_time until_it_hangs(void)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_TEST_HANG;
}

static void send_all(void *argument)
{
    for (int i = 0; i < SENDS; i++) {
        char content[16];

        snprintf(content, sizeof content, "%d", i);
        assert_int_equal(
            channel_send(argument, &(struct det_message){ .content = content }, until_it_hangs()),
            0);
    }
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Each message has come; those whose acknowledgement was lost may have come twice. */
static void assert_all_have_come(struct plant *plant)
{
    uint64_t count = relay_mock_count(plant->mock, RELAY_MOCK_PUSHED);
    int *numbers = calloc(count, sizeof *numbers), next = 0;

    for (uint64_t i = 0; i < count; i++)
        numbers[i] = (int)strtol(relay_mock_pushed(plant->mock, i)->text.content, NULL, 10);
    qsort(numbers, count, sizeof *numbers, compare);
    for (uint64_t i = 0; i < count; i++)
        next += numbers[i] == next;
    assert_int_equal(next, SENDS);
    free(numbers);
}

static void test_relay_killed_during_sends_loses_nothing(void **state)
{
    struct channel_counts counts;
    struct det_thread *sender;
    struct plant plant;

    (void)state;
    plant_open(&plant, true);
    assert_int_equal(det_thread_start(plant.world, "sender", send_all, plant.channel, &sender), 0);
    for (uint64_t i = 0; i < KILLS; i++) {
        relay_mock_stop(plant.mock);
        assert_int_equal(relay_mock_start(plant.mock), 0);
        assert_int_equal(
            relay_mock_wait(
                plant.mock, RELAY_MOCK_PULLS, relay_mock_count(plant.mock, RELAY_MOCK_PULLS) + 2,
                until_it_hangs()),
            0);
    }
    det_thread_join(plant.world, sender);
    assert_int_equal(relay_mock_wait(plant.mock, RELAY_MOCK_PUSHED, SENDS, until_it_hangs()), 0);
    do {
        assert_int_equal(
            relay_mock_wait(
                plant.mock, RELAY_MOCK_PULLS, relay_mock_count(plant.mock, RELAY_MOCK_PULLS) + 1,
                until_it_hangs()),
            0);
        channel_check(plant.channel, &counts);
    } while (counts.pending + counts.outbound > 0);
    assert_all_have_come(&plant);
    assert_int_equal(counts.acknowledged, SENDS);
    plant_close(&plant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_cancels_a_pending_call),
        cmocka_unit_test(test_relay_killed_during_sends_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
