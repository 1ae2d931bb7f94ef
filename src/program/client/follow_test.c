/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow_test.c - what is shown of an instance while it is followed. */
#include "client/follow.h"

#include "inspect/store_test.h"

/* One look at it, without waiting. */
static const char *inspect(struct shop *shop, struct follow *follow)
{
    assert_int_equal(instance_refresh(follow->instance), 0);
    assert_int_equal(follow_until_end(follow, 0), CLI_TIMEOUT);
    return shop_printed(shop);
}

/* An order with a timer and an effect, followed from where it is. */
static void begin(struct shop *shop, struct instance *instance, struct follow *follow)
{
    shop_open(shop);
    shop_start(shop, shop->order, "o-1");
    shop_send(shop, "o-1", "pay");
    det_runtime_close(shop->runtime);
    shop->runtime = NULL;
    assert_int_equal(instance_find(&shop->store, "o-1", instance), CLI_OK);
    *follow = (struct follow){ .instance = instance, .after = 1, .is_shown = true };
}

static void attempts_of_timers_are_shown_once(void **state)
{
    struct shop shop;
    struct instance instance;
    struct follow follow;

    (void)state;
    begin(&shop, &instance, &follow);
    assert_string_equal(inspect(&shop, &follow), "");
    shop_fail_timer(&shop, "o-1", 1, DET_ERR_ACTION_FAILED, "ask failed", false);
    assert_string_equal(
        inspect(&shop, &follow),
        "attempt    remind by reminder is tried again in 4s, after attempt 1 failed:\n"
        "           ACTION_FAILED: ask failed\n");
    assert_string_equal(inspect(&shop, &follow), "");
    shop_fail_effect(&shop, "o-1", 1, DET_ERR_IO, NULL, false);
    assert_non_null(strstr(inspect(&shop, &follow), "charge_card is tried again in 4s"));
    shop_fail_timer(&shop, "o-1", 8, DET_ERR_ACTION_FAILED, "ask failed", true);
    assert_string_equal(
        inspect(&shop, &follow), "attempt    remind by reminder is a dead letter after 8 attempts: "
                                 "ACTION_FAILED:\n"
                                 "           ask failed\n"
                                 "           detent retry o-1 order/o-1/timer/reminder\n");
    assert_string_equal(inspect(&shop, &follow), "");
    instance_close(&instance);
    shop_close(&shop);
}

static void timer_attempts_are_printed_as_json(void **state)
{
    struct shop shop;
    struct instance instance;
    struct follow follow;

    (void)state;
    begin(&shop, &instance, &follow);
    shop.cli.is_json = true;
    shop_fail_timer(&shop, "o-1", 2, DET_ERR_ACTION_FAILED, "ask failed", false);
    assert_string_equal(
        inspect(&shop, &follow),
        "{\"type\":\"attempt\",\"machine\":\"order\",\"id\":\"o-1\",\"timer\":\"reminder\","
        "\"event\":\"remind\",\"due\":\"2026-01-01T01:00:00Z\",\"visit\":2,\"dead\":false,"
        "\"attempts\":2,\"last_error\":\"ACTION_FAILED\",\"reason\":\"ask failed\","
        "\"next_at\":\"2026-01-01T00:00:04Z\"}\n");
    instance_close(&instance);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_of_timers_are_shown_once),
        cmocka_unit_test(timer_attempts_are_printed_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
