/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server_away_test.c - closing a runtime while its PostgreSQL server does not answer: pending sends
 * end at the deadline with a sentence, and a second request ends them at once. */
/* test: threads */
#include "lib/patience.h"
#include "lib/postgres.h"
#include "lib/proxy.h"
#include "os/os.h"
#include "runtime/order_test.h"

#define SENDS 40
/* Longer than any test may take: what waits for it has failed. */
#define STORE_TIMEOUT (10 * DET_MINUTE)

struct desk {
    struct det_world *world;
    struct det_test_proxy *proxy;
    struct det_machine *order;
    struct det_store *store;
    struct det_runtime *runtime;
    struct order_control control;
    struct det_error error;
    struct det_mutex *mutex;
    struct det_condition *changed;
    unsigned ended;
    struct det_send sends[SENDS];
    struct det_error errors[SENDS];
    struct order_event event;
    char ids[SENDS][8];
    struct det_thread *thread;
};

static struct desk *desk_open(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    struct det_store_options store_options = { .timeout = STORE_TIMEOUT };
    struct det_runtime_options options = { .user = &desk->control };
    char *url = det_test_postgres_url(det_test_server, NULL), *through;

    assert_non_null(desk);
    desk->world = det_world_real();
    desk->proxy = det_test_proxy_open(det_test_server);
    desk->order = order_machine(true);
    through = det_test_proxy_url(desk->proxy, url);
    assert_int_equal(det_mutex_open(desk->world, &desk->mutex), 0);
    assert_int_equal(det_condition_open(desk->world, &desk->changed), 0);
    if (det_store_open_with(through, &store_options, &desk->store, &desk->error) < 0)
        fail_msg("%s", desk->error.text);
    if (det_runtime_open(desk->store, &options, &desk->runtime, &desk->error) < 0)
        fail_msg("%s", desk->error.text);
    for (unsigned i = 0; i < SENDS; i++) {
        snprintf(desk->ids[i], sizeof desk->ids[i], "o-%u", i);
        assert_int_equal(
            det_runtime_start(desk->runtime, desk->order, desk->ids[i], NULL, NULL, NULL, NULL), 0);
    }
    free(through);
    free(url);
    return desk;
}

static void desk_close(struct desk *desk)
{
    det_runtime_close_within(desk->runtime, 0);
    det_store_close(desk->store);
    det_test_proxy_close(desk->proxy);
    det_machine_close(desk->order);
    det_condition_close(desk->world, desk->changed);
    det_mutex_close(desk->world, desk->mutex);
    free(desk);
}

static void note_end(struct det_send *send)
{
    struct desk *desk = send->user;

    det_mutex_lock(desk->world, desk->mutex);
    desk->ended++;
    det_condition_broadcast(desk->world, desk->changed);
    det_mutex_unlock(desk->world, desk->mutex);
}

static void submit_all(struct desk *desk)
{
    desk->event.kind = PING;
    for (unsigned i = 0; i < SENDS; i++) {
        desk->sends[i] = (struct det_send){ .machine = desk->order,
                                            .instance = desk->ids[i],
                                            .event = &desk->event,
                                            .error = &desk->errors[i],
                                            .done = note_end,
                                            .user = desk };
        assert_int_equal(det_runtime_submit(desk->runtime, &desk->sends[i]), 0);
    }
}

static void close_for_an_hour(void *argument)
{
    struct desk *desk = argument;

    det_runtime_close_within(desk->runtime, DET_HOUR);
    det_mutex_lock(desk->world, desk->mutex);
    desk->runtime = NULL;
    det_condition_broadcast(desk->world, desk->changed);
    det_mutex_unlock(desk->world, desk->mutex);
}

static void await_mute(struct desk *desk)
{
    while (!det_test_proxy_was_mute(desk->proxy))
        assert_int_equal(det_world_sleep(desk->world, DET_MILLISECOND), 0);
}

/* Waits a little for it. */
static bool is_closed(struct desk *desk)
{
    det_time until = det_world_now(desk->world, DET_CLOCK_MONOTONIC) + 10 * DET_MILLISECOND;
    bool is;

    det_mutex_lock(desk->world, desk->mutex);
    if (desk->runtime)
        (void)det_condition_wait(desk->world, desk->changed, desk->mutex, until);
    is = !desk->runtime;
    det_mutex_unlock(desk->world, desk->mutex);
    return is;
}

static void assert_all_failed(struct desk *desk)
{
    assert_int_equal(desk->ended, SENDS);
    for (unsigned i = 0; i < SENDS; i++) {
        int result = desk->sends[i].result;

        if (result != DET_ERR_CANCELLED && result != DET_ERR_CLOSED)
            fail_msg("send %u: %s: %s", i, det_error_name(result), desk->errors[i].text);
        assert_int_equal(desk->errors[i].code, result);
        assert_non_null(
            strstr(desk->errors[i].text, result == DET_ERR_CANCELLED ? "not known" : "shutting"));
    }
}

static void a_server_that_does_not_answer_ends_no_close_later_than_its_deadline(void **state)
{
    struct desk *desk = desk_open();
    det_time begun;

    (void)state;
    det_test_proxy_mute(desk->proxy, "PING");
    submit_all(desk);
    await_mute(desk);
    begun = det_world_now(desk->world, DET_CLOCK_MONOTONIC);
    det_runtime_close_within(desk->runtime, 50 * DET_MILLISECOND);
    desk->runtime = NULL;
    assert_true(det_world_now(desk->world, DET_CLOCK_MONOTONIC) - begun < DET_TEST_HANG);
    assert_all_failed(desk);
    desk_close(desk);
}

static void a_second_request_ends_a_close_at_once(void **state)
{
    struct desk *desk = desk_open();

    (void)state;
    det_test_proxy_mute(desk->proxy, "PING");
    submit_all(desk);
    await_mute(desk);
    assert_int_equal(
        det_thread_start(desk->world, "close", close_for_an_hour, desk, &desk->thread), 0);
    /* The last limit counts, and the close may not have set its own yet. */
    while (!is_closed(desk))
        det_store_cancel(desk->store, 0);
    det_thread_join(desk->world, desk->thread);
    assert_all_failed(desk);
    desk_close(desk);
}

static void a_server_that_takes_no_connection_is_not_waited_for_either(void **state)
{
    struct desk *desk = desk_open();
    det_time begun;

    (void)state;
    det_test_proxy_cut(desk->proxy, 0);
    submit_all(desk);
    begun = det_world_now(desk->world, DET_CLOCK_MONOTONIC);
    det_runtime_close_within(desk->runtime, 20 * DET_MILLISECOND);
    desk->runtime = NULL;
    assert_true(det_world_now(desk->world, DET_CLOCK_MONOTONIC) - begun < DET_TEST_HANG);
    assert_int_equal(desk->ended, SENDS);
    for (unsigned i = 0; i < SENDS; i++)
        assert_true(desk->sends[i].result < 0 && desk->errors[i].text[0]);
    desk_close(desk);
}

static void a_store_whose_limit_is_removed_serves_again(void **state)
{
    struct desk *desk = desk_open();
    struct order_event event = { .kind = PING };

    (void)state;
    det_store_cancel(desk->store, 0);
    assert_int_equal(
        det_runtime_send(desk->runtime, desk->order, "o-1", &event, NULL, NULL, &desk->error),
        DET_ERR_CLOSED);
    assert_string_equal(
        desk->error.text, "order o-1: the commit failed: detent is shutting down; retry later");
    det_store_cancel(desk->store, DET_NEVER);
    assert_int_equal(
        det_runtime_send(desk->runtime, desk->order, "o-1", &event, NULL, NULL, &desk->error), 0);
    desk_close(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_does_not_answer_ends_no_close_later_than_its_deadline),
        cmocka_unit_test(a_second_request_ends_a_close_at_once),
        cmocka_unit_test(a_server_that_takes_no_connection_is_not_waited_for_either),
        cmocka_unit_test(a_store_whose_limit_is_removed_serves_again),
    };

    return cmocka_run_group_tests(tests, det_test_server_open, det_test_server_close);
}
