/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* events_source_test.c - the log of a store of SQLite as rows, while a runtime writes it. */
#include <detent/runtime.h>
#include <detent/store.h>

#include "connectors/harness_test.h"

#define REC_SPEC "connectors/events_test.rec"
#include <detent/rec/declare.h>

#define FSM_LOCAL
#define FSM_SPEC "connectors/events_test.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "connectors/events_test.fsm"
#include <detent/fsm/define.h>

static const struct det_stage stage = { .out = { .get = logged_record } };
static char *folder;
static char settings[600];
static struct det_store *store;
static struct det_runtime *runtime;

static int open_store(void **state)
{
    char url[512];

    (void)state;
    folder = det_test_folder();
    (void)snprintf(url, sizeof url, "sqlite:%s/tickets.db", folder);
    (void)snprintf(settings, sizeof settings, "{url: '%s'}", url);
    assert_int_equal(det_store_open(url, &store, NULL), 0);
    assert_int_equal(
        det_runtime_open(store, &(struct det_runtime_options){ 0 }, &runtime, NULL), 0);
    return 0;
}

static int close_store(void **state)
{
    (void)state;
    det_runtime_close(runtime);
    det_store_close(store);
    det_test_folder_remove(folder);
    return 0;
}

static void pay(const char *id, uint64_t cents)
{
    struct det_sent sent;

    assert_int_equal(det_runtime_start(runtime, &ticket_machine, id, NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        ticket_send(runtime, id, ticket_pay((struct ticket_price){ .cents = cents }), &sent), 0);
}

static const struct logged *row_of(const struct harness *harness, size_t index)
{
    return harness_row(harness, index);
}

static void starts_and_events_are_rows(void **state)
{
    struct harness harness;

    (void)state;
    pay("t1", 500);
    harness_open(&harness, &events_source, stage, settings);
    (void)harness_run_until(&harness, 2);
    assert_true(row_of(&harness, 0)->is_start);
    assert_string_equal(row_of(&harness, 0)->machine, "ticket");
    assert_string_equal(row_of(&harness, 0)->to, "open");
    assert_false(row_of(&harness, 0)->has_event);
    assert_string_equal(row_of(&harness, 1)->id, "t1");
    assert_string_equal(row_of(&harness, 1)->from, "open");
    assert_string_equal(row_of(&harness, 1)->to, "paid");
    assert_string_equal(row_of(&harness, 1)->event, "pay");
    assert_int_equal(row_of(&harness, 1)->sequence, 1);
    assert_true(row_of(&harness, 1)->at > 0);
    /* What is written meanwhile, and while the source is stopped. */
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    pay("t2", 600);
    (void)harness_run_until(&harness, 4);
    harness_stop(&harness);
    pay("t3", 700);
    assert_int_equal(harness_start(&harness), 0);
    (void)harness_run_until(&harness, 6);
    assert_int_equal(harness.row_count, 6);
    assert_string_equal(row_of(&harness, 5)->id, "t3");
    assert_true(row_of(&harness, 5)->position > row_of(&harness, 4)->position);
    harness_deinit(&harness);
}

static void selected_events_have_their_payload(void **state)
{
    static const struct det_stage with_payload = { .out = { .get = paid_record } };
    struct harness harness;
    char more[700];

    (void)state;
    pay("t1", 500);
    pay("t2", 600);
    (void)snprintf(
        more, sizeof more, "{url: 'sqlite:%s/tickets.db', event: pay, once: true}", folder);
    harness_open(&harness, &events_source, with_payload, more);
    harness.room = 1;
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(((const struct paid *)harness_row(&harness, 1))->payload.cents, 600);
    harness_deinit(&harness);
}

static void a_new_run_may_begin_at_the_end(void **state)
{
    struct harness harness;
    char more[700];

    (void)state;
    pay("t1", 500);
    (void)snprintf(more, sizeof more, "{url: 'sqlite:%s/tickets.db', from_end: true}", folder);
    harness_open(&harness, &events_source, stage, more);
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    pay("t2", 500);
    (void)harness_run_until(&harness, 2);
    assert_string_equal(row_of(&harness, 0)->id, "t2");
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    static const struct det_stage other = { .out = { .get = sale_record } };
    struct harness harness;

    (void)state;
    harness_refuses(&events_source, stage, "{}", "url is missing");
    harness_refuses(&events_source, stage, "{url secret}", "unknown setting; the settings are url");
    harness_refuses(&events_source, stage, "secret", "not text; the settings are url");
    harness_refuses(&events_source, stage, "{url: 'mysql://x'}", "url must be sqlite:FILE or");
    harness_refuses(
        &events_source, other, "{url: 'sqlite:a'}", "no member for the field 'number' of sale");
    harness_init(&harness, &events_source, stage, "{url: 'sqlite:/none/such.db'}");
    assert_true(harness_start(&harness) < 0);
    assert_true(*harness.failure.text != 0);
    harness_deinit(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(starts_and_events_are_rows, open_store, close_store),
        cmocka_unit_test_setup_teardown(
            selected_events_have_their_payload, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_new_run_may_begin_at_the_end, open_store, close_store),
        cmocka_unit_test(wrong_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
