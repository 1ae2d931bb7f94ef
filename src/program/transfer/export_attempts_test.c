/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_attempts_test.c - what an export keeps of what has happened to timers and event ids: the
 * attempts of timers, which of them are dead letters, and what an event id was used for. */
#include <detent/tool/machine.h>

#include "transfer/export_test.h"
#include "transfer/import.h"

/* Sends without an assertion. */
static int send_again(
    struct shop *shop, const char *name, const char *json, const char *event_id,
    struct det_sent *ret, struct det_error *reterr)
{
    const struct det_machine *machine = shop->order;
    unsigned kind = (unsigned)det_machine_find_event(machine, name);
    char *event = calloc(1, machine->event_size);
    int r;

    assert_non_null(event);
    memcpy(event, &kind, sizeof kind);
    if (json)
        assert_int_equal(
            det_record_from_json(
                det_machine_payload(machine, kind), json, strlen(json), 0,
                event + machine->events[kind].payload_offset, NULL),
            0);
    r = det_runtime_send(
        shop->runtime, machine, "o-1", event, &(struct det_send_options){ .event_id = event_id },
        ret, reterr);
    free(event);
    return r;
}

/* From one file into another. */
static void open_pair(struct shop *shop, struct shop *target, void (*fill)(struct shop *shop))
{
    open_file(shop, "here");
    shop_run(shop);
    shop_start(shop, shop->order, "o-1");
    fill(shop);
    det_runtime_close(shop->runtime);
    shop->runtime = NULL;
    free(export_text(shop));
    open_file(target, "there");
    assert_int_equal(store_import(&target->store, path), CLI_OK);
}

static void close_pair(struct shop *shop, struct shop *target)
{
    shop_close(target);
    shop_close(shop);
}

static struct det_store_timer timer_of(struct shop *shop, char reason[DET_REASON_MAX + 1])
{
    struct instance instance;
    struct det_store_timer row;

    assert_int_equal(instance_find(&shop->store, "o-1", &instance), CLI_OK);
    assert_non_null(instance.timers);
    row = instance.timers->row;
    snprintf(reason, DET_REASON_MAX + 1, "%s", row.reason ? row.reason : "");
    instance_close(&instance);
    return row;
}

static void fail_once(struct shop *shop)
{
    shop_fail_timer(shop, "o-1", 3, DET_ERR_ACTION_FAILED, "ask failed", false);
}

static void fail_for_good(struct shop *shop)
{
    shop_fail_timer(shop, "o-1", 8, DET_ERR_ACTION_FAILED, NULL, true);
}

static void assert_same_timer(void (*fill)(struct shop *shop), bool is_dead)
{
    char reasons[2][DET_REASON_MAX + 1];
    struct det_store_timer first, second;
    struct shop shop, target;

    open_pair(&shop, &target, fill);
    first = timer_of(&shop, reasons[0]);
    second = timer_of(&target, reasons[1]);
    assert_int_equal(second.attempts, first.attempts);
    assert_int_equal(second.last_error, first.last_error);
    assert_string_equal(reasons[1], reasons[0]);
    assert_int_equal(second.due, first.due);
    assert_int_equal(second.next, first.next);
    assert_int_equal(second.is_dead, is_dead);
    close_pair(&shop, &target);
}

static void attempts_of_a_timer_go_through_an_export(void **state)
{
    (void)state;
    assert_same_timer(fail_once, false);
}

static void a_timer_that_is_a_dead_letter_goes_through_an_export(void **state)
{
    (void)state;
    assert_same_timer(fail_for_good, true);
}

static void a_dead_timer_can_be_retried_after_an_import(void **state)
{
    struct shop shop, target;

    (void)state;
    open_pair(&shop, &target, fail_for_good);
    shop_run(&target);
    shop_advance(&target, DET_DAY);
    assert_int_equal(det_runtime_retry(target.runtime, target.order, "o-1", "timer/", NULL), 0);
    shop_advance(&target, DET_SECOND);
    assert_int_equal(
        det_runtime_retry(target.runtime, target.order, "o-1", "timer/", NULL), DET_ERR_NOT_FOUND);
    close_pair(&shop, &target);
}

#define FIRST "{\"card\":\"4242\",\"cents\":1999}"

static void pay(struct shop *shop)
{
    shop_send_with(shop, "o-1", "pay", FIRST, "p-1");
}

static void an_event_id_with_another_request_is_a_conflict_after_an_import(void **state)
{
    struct det_error error = { 0 };
    struct det_sent sent = { 0 };
    struct shop shop, target;
    char *text;

    (void)state;
    open_pair(&shop, &target, pay);
    shop_run(&target);
    assert_int_equal(send_again(&target, "pay", FIRST, "p-1", &sent, &error), 0);
    assert_true(sent.is_duplicate);
    assert_int_equal(sent.sequence, 1);
    assert_int_equal(
        send_again(&target, "pay", "{\"card\":\"4242\",\"cents\":1}", "p-1", &sent, &error),
        DET_ERR_CONFLICT);
    assert_int_equal(send_again(&target, "ping", NULL, "p-1", &sent, &error), DET_ERR_CONFLICT);
    assert_non_null(strstr(error.text, "was used for another request: pay, event 1"));
    det_runtime_close(target.runtime);
    target.runtime = NULL;
    /* And through the next one. */
    text = export_text(&target);
    assert_int_equal(count_in(text, "\"request\":"), 1);
    assert_int_equal(count_in(text, "\"request_event\":\"pay\""), 1);
    free(text);
    close_pair(&shop, &target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(attempts_of_a_timer_go_through_an_export),
        TEST(a_timer_that_is_a_dead_letter_goes_through_an_export),
        TEST(a_dead_timer_can_be_retried_after_an_import),
        TEST(an_event_id_with_another_request_is_a_conflict_after_an_import),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
