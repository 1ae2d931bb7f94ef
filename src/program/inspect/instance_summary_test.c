/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_summary_test.c - how an instance, its events and what is pending look. */
#include <detent/tool/store.h>

#include "inspect/instance_summary.h"

#include "base/text.h"
#include "inspect/event_print.h"
#include "inspect/store_test.h"

static void print_all(struct shop *shop, const char *id)
{
    struct instance instance;

    assert_int_equal(instance_find(&shop->store, id, &instance), CLI_OK);
    facts_head(&shop->cli, &instance);
    facts_timers(&shop->cli, &instance);
    facts_effects(&shop->cli, &instance);
    facts_deferred(&shop->cli, &instance);
    instance_close(&instance);
}

static void pending_work_is_printed_in_words(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "ping");
    shop_advance(&shop, 90 * DET_SECOND);
    print_all(&shop, "o-1");
    assert_string_equal(
        shop_printed(&shop), "order o-1 is pending, for 1m30s (since 2026-01-01T00:00:00Z)\n"
                             "timers     expired, in 28m (2026-01-01T00:30:00Z)\n");
    shop_send(&shop, "o-1", "pay");
    shop_send(&shop, "o-1", "ship");
    shop_advance(&shop, 2 * DET_HOUR);
    print_all(&shop, "o-1");
    assert_string_equal(
        shop_printed(&shop),
        "order o-1 is charging, for 2h (since 2026-01-01T00:01:30Z)\n"
        "timers     remind by reminder is due, 1h ago (2026-01-01T01:01:30Z)\n"
        "effects    charge_card was requested 2h ago, and no attempt has ended\n"
        "deferred   ship, kept since event 3\n");
    shop_close(&shop);
}

static void stopped_instance_is_printed_with_its_reason(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    shop_send(&shop, "o-1", "halt");
    print_all(&shop, "o-1");
    assert_string_equal(
        shop_printed(&shop),
        "order o-1 has stopped in charging, for 0s (since 2026-01-01T00:00:00Z)\n"
        "reason     halted\n"
        "effects    charge_card was requested 0s ago, and no attempt has ended\n");
    shop_close(&shop);
}

static void running_effects_are_told_apart_from_waiting_ones(void **state)
{
    struct instance instance;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    shop_advance(&shop, DET_MINUTE);
    assert_int_equal(instance_find(&shop.store, "o-1", &instance), CLI_OK);
    instance.threads_used = instance.threads_max = 16;
    instance.effects->activity = INSTANCE_QUEUED;
    facts_effects(&shop.cli, &instance);
    assert_string_equal(
        shop_printed(&shop), "effects    charge_card waits for a free thread (16 of 16 in use:\n"
                             "           limits.effects), requested 1m ago\n");
    instance.effects->activity = INSTANCE_RUNNING;
    instance.effects->attempt = 3;
    instance.effects->began = instance.now - 5 * DET_SECOND;
    instance.effects->row.attempts = 2;
    instance.effects->row.last_error = DET_ERR_IO;
    facts_effects(&shop.cli, &instance);
    assert_string_equal(
        shop_printed(&shop), "effects    charge_card is running: attempt 3 began 5s ago\n"
                             "           attempt 2 failed: IO\n");
    facts_json(&shop.cli, &instance, NULL);
    assert_non_null(strstr(shop_printed(&shop), "\"activity\":\"running\",\"began_at\":\"2026-"));
    instance_close(&instance);
    shop_close(&shop);
}

/* Returns the output, with STORE in place of the store's part of a key. */
static const char *printed_of_store(struct shop *shop)
{
    static char text[65536];
    const char *printed = shop_printed(shop), *identity = det_store_identity(shop->store.store),
               *found;
    char part[17];

    snprintf(part, sizeof part, "%s", identity);
    found = strstr(printed, part);
    assert_non_null(found);
    snprintf(
        text, sizeof text, "%.*sSTORE%s", (int)(found - printed), printed, found + sizeof part - 1);
    return text;
}

static void effects_print_their_failures(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    det_runtime_close(shop.runtime);
    shop.runtime = NULL;
    shop_fail_effect(&shop, "o-1", 1, DET_ERR_IO, NULL, false);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop), "effects    charge_card is tried again in 4s, after attempt 1 failed: "
                             "IO\n"));
    shop_fail_effect(&shop, "o-1", 3, -503, NULL, false);
    shop_advance(&shop, 4 * DET_SECOND);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop), "effects    charge_card is due, after attempt 3 failed: -503\n"));
    shop_fail_effect(&shop, "o-1", 8, -503, "status 503", true);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        printed_of_store(&shop),
        "dead       charge_card is a dead letter after 8 attempts: -503: status 503\n"
        "           detent retry o-1 STORE/order/o-1/1/0\n"));
    shop_close(&shop);
}

static void timers_print_their_failures(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    det_runtime_close(shop.runtime);
    shop.runtime = NULL;
    shop_fail_timer(&shop, "o-1", 1, DET_ERR_ACTION_FAILED, "ask failed", false);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop), "timers     remind by reminder, in 4s (2026-01-01T00:00:04Z)\n"
                             "           attempt 1 was rejected: ACTION_FAILED: ask failed\n"));
    shop_fail_timer(&shop, "o-1", 8, DET_ERR_ACTION_FAILED, "ask failed", true);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop), "dead       remind by reminder is a dead letter after 8 attempts: "
                             "ACTION_FAILED:\n"
                             "           ask failed\n"
                             "           detent retry o-1 order/o-1/timer/reminder\n"));
    shop_close(&shop);
}

/* A part of it, pasted, would be another command. */
static void a_command_is_one_line_however_long_it_is(void **state)
{
    static const char id[] = "0b5f8f0e-53a4-4be4-9a51-0f5f9fd0c1aa";
    char line[256];
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, id);
    shop_send(&shop, id, "pay");
    det_runtime_close(shop.runtime);
    shop.runtime = NULL;
    shop_fail_timer(&shop, id, 8, DET_ERR_ACTION_FAILED, NULL, true);
    print_all(&shop, id);
    snprintf(line, sizeof line, "\n           detent retry %s order/%s/timer/reminder\n", id, id);
    assert_non_null(strstr(shop_printed(&shop), line));
    shop_fail_effect(&shop, id, 8, -503, NULL, true);
    print_all(&shop, id);
    snprintf(line, sizeof line, "\n           detent retry %s STORE/order/%s/1/0\n", id, id);
    assert_non_null(strstr(printed_of_store(&shop), line));
    shop_close(&shop);
}

/* It may be running, or its process is gone. */
static void unfinished_attempt_is_not_printed_as_failed(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    det_runtime_close(shop.runtime);
    shop.runtime = NULL;
    shop_fail_effect(&shop, "o-1", 2, DET_ERR_UNFINISHED, NULL, false);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop),
        "effects    charge_card: attempt 2 has begun, and no end of it is recorded;\n"
        "           without one it is tried again in 4s\n"));
    shop_advance(&shop, 4 * DET_SECOND);
    print_all(&shop, "o-1");
    assert_non_null(strstr(
        shop_printed(&shop),
        "effects    charge_card: attempt 2 has begun, and no end of it is recorded;\n"
        "           without one it is due again\n"));
    shop_close(&shop);
}

static void an_instance_is_one_object(void **state)
{
    struct instance instance;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    shop_send(&shop, "o-1", "ship");
    assert_int_equal(instance_find(&shop.store, "o-1", &instance), CLI_OK);
    facts_json(&shop.cli, &instance, NULL);
    assert_string_equal(
        printed_of_store(&shop),
        "{\"type\":\"instance\",\"machine\":\"order\",\"id\":\"o-1\",\"state\":\"charging\","
        "\"final\":false,"
        "\"stopped\":false,\"reason\":null,\"sequence\":2,\"visit\":2,\"transitions\":1,"
        "\"started_at\":\"2026-01-01T00:00:00Z\",\"moved_at\":\"2026-01-01T00:00:00Z\","
        "\"history\":[\"pending\"],\"data\":{\"cents\":1999},"
        "\"timers\":[{\"timer\":\"reminder\",\"event\":\"remind\","
        "\"due\":\"2026-01-01T01:00:00Z\",\"visit\":2}],"
        "\"effects\":[{\"effect\":\"charge_card\",\"key\":\"STORE/order/o-1/1/0\",\"dead\":false,"
        "\"attempts\":0,\"last_error\":null,\"reason\":null,"
        "\"asked_at\":\"2026-01-01T00:00:00Z\","
        "\"next_at\":\"2026-01-01T00:00:00Z\"}],"
        "\"deferred\":[{\"event\":\"ship\",\"sequence\":2}]}\n");
    instance_close(&instance);
    shop_close(&shop);
}

struct printing {
    struct shop *shop;
    struct instance instance;
};

static int print_event(void *context, const struct det_store_event *row)
{
    struct printing *printing = context;

    event_print_line(&printing->shop->cli, &printing->instance, row);
    if (row->sequence == 2)
        event_print_object(&printing->shop->cli, &printing->instance, row);
    return 0;
}

static void events_are_lines_without_what_is_sensitive(void **state)
{
    struct printing printing;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    printing.shop = &shop;
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "ping");
    shop_send_with(&shop, "o-1", "pay", "{\"card\":\"4242\",\"cents\":7}", "pay-1");
    shop_send(&shop, "o-1", "junk");
    shop_send(&shop, "o-1", "ship");
    assert_int_equal(
        det_runtime_cancel(shop.runtime, shop.order, "o-1", "enough", NULL, NULL, NULL), 0);
    assert_int_equal(instance_find(&shop.store, "o-1", &printing.instance), CLI_OK);
    assert_int_equal(
        shop.store.ops->events(
            shop.store.store, printing.instance.loaded.instance, 0, print_event, &printing),
        0);
    instance_close(&printing.instance);
    assert_string_equal(
        shop_printed(&shop),
        "2026-01-01T00:00:00Z     1  ping: pending -> (stays)\n"
        "2026-01-01T00:00:00Z     2  pay: pending -> charging  by pay-1  "
        "payment{card={redacted}, cents=7}\n"
        "{\"type\":\"event\",\"machine\":\"order\",\"id\":\"o-1\",\"sequence\":2,\"at\":\"2026-01-"
        "01T00:00:00Z\","
        "\"event\":\"pay\",\"from\":\"pending\",\"to\":\"charging\",\"outcome\":\"goto\","
        "\"choice\":0,\"visit\":3,\"timeout\":false,\"event_id\":\"pay-1\",\"cause\":null,"
        "\"payload\":{\"card\":\"{redacted}\",\"cents\":7}}\n"
        "2026-01-01T00:00:00Z     3  junk: charging -> (dead letter)\n"
        "2026-01-01T00:00:00Z     4  ship: charging -> (deferred)\n"
        "2026-01-01T00:00:00Z     5  (stopped manually): charging -> (stops)\n");
    shop_close(&shop);
}

static void long_records_are_cut_between_characters(void **state)
{
    static const struct det_field fields[] = {
        { .name = "t", .kind = DET_KIND_TEXT, .size = 2001, .capacity = 2000 },
    };
    static const struct det_record record = {
        .name = "r", .size = 2001, .fields = fields, .field_count = 1
    };
    static const char euro[] = { '\xe2', '\x82', '\xac' };
    char text[INSTANCE_RECORD_TEXT], value[2001];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        size_t size = shift;

        memset(value, 0, sizeof value);
        memset(value, 'a', shift);
        for (; size + sizeof euro <= 1998; size += sizeof euro)
            memcpy(value + size, euro, sizeof euro);
        instance_record(&record, value, text);
        assert_int_equal(det_utf8_check(text, strlen(text)), strlen(text));
        assert_string_equal(text + strlen(text) - 3, "...");
    }
    assert_string_equal(instance_record(det_empty_record(), value, text), "");
}

static int load_in(struct det_test_memory *memory, void *argument)
{
    struct instance instance;
    struct shop shop;
    int code;

    (void)argument;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    shop_send(&shop, "o-1", "ship");
    shop.cli.allocator = &memory->allocator;
    code = instance_open(&shop.store, shop.order, "o-1", &instance);
    if (code == CLI_OK) {
        code = instance_refresh(&instance) < 0 ? CLI_FAILURE : CLI_OK;
        facts_json(&shop.cli, &instance, NULL);
        instance_close(&instance);
    }
    shop.cli.allocator = NULL;
    if (shop.cli.has_failed)
        code = CLI_FAILURE;
    shop_close(&shop);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void reading_an_instance_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(load_in, NULL);
}

static void missing_instance_is_reported(void **state)
{
    struct instance instance;
    struct shop shop;

    (void)state;
    shop_open(&shop);
    assert_int_equal(instance_open(&shop.store, shop.order, "o-1", &instance), CLI_NOT_FOUND);
    assert_string_equal(shop_printed(&shop), "detent: there is no order 'o-1' in test:\n");
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pending_work_is_printed_in_words),
        cmocka_unit_test(stopped_instance_is_printed_with_its_reason),
        cmocka_unit_test(running_effects_are_told_apart_from_waiting_ones),
        cmocka_unit_test(effects_print_their_failures),
        cmocka_unit_test(timers_print_their_failures),
        cmocka_unit_test(a_command_is_one_line_however_long_it_is),
        cmocka_unit_test(unfinished_attempt_is_not_printed_as_failed),
        cmocka_unit_test(an_instance_is_one_object),
        cmocka_unit_test(events_are_lines_without_what_is_sensitive),
        cmocka_unit_test(long_records_are_cut_between_characters),
        cmocka_unit_test(reading_an_instance_survives_every_failed_allocation),
        cmocka_unit_test(missing_instance_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
