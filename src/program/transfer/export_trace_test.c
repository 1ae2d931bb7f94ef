/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_trace_test.c - the traces of senders go through an export, between stores that keep them.
 */
#include <detent/tool/machine.h>

#include "transfer/import.h"

#include "transfer/export_test.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* "pay" asks for an effect. */
static void fill(struct shop *shop)
{
    struct det_trace_context trace;
    struct det_send_options options = { .trace = &trace };
    int kind = det_machine_find_event(shop->order, "pay");
    char *event = calloc(1, shop->order->event_size);

    assert_non_null(event);
    memcpy(event, &(unsigned){ (unsigned)kind }, sizeof(unsigned));
    assert_int_equal(det_trace_parse(PARENT, strlen(PARENT), &trace), 0);
    shop_run(shop);
    shop_start(shop, shop->order, "o-1");
    assert_int_equal(
        det_runtime_send(shop->runtime, shop->order, "o-1", event, &options, NULL, NULL), 0);
    shop_start(shop, shop->order, "o-2");
    shop_send(shop, "o-2", "pay");
    det_runtime_close(shop->runtime);
    shop->runtime = NULL;
    free(event);
}

static void traces_of_events_and_effects_go_through_an_export(void **state)
{
    struct shop shop, target;
    char *text;

    (void)state;
    open_file(&shop, "here");
    fill(&shop);
    for (int i = 0; i < 2; i++) {
        text = export_text(i ? &target : &shop);
        assert_int_equal(count_in(text, "\"kind\":\"event\""), 2);
        assert_int_equal(count_in(text, "\"trace\":\"" PARENT "\""), 2);
        assert_int_equal(count_in(text, "\"trace\""), 2);
        free(text);
        if (i)
            break;
        open_file(&target, "there");
        assert_int_equal(store_import(&target.store, path), CLI_OK);
    }
    shop_close(&target);
    shop_close(&shop);
}

static void malformed_trace_context_is_refused(void **state)
{
    static const char line[] =
        "{\"kind\":\"event\",\"sequence\":1,\"visit\":2,\"from\":\"pending\",\"to\":\"pending\","
        "\"event\":null,\"outcome\":\"stop\",\"choice\":0,\"timeout\":false,"
        "\"at\":\"2026-01-01T00:00:00Z\",\"event_id\":null,\"cause\":null,\"trace\":\"00-1-2-3\"}";
    struct import_event event;
    struct incoming incoming = { .id = "o-1" };
    struct import *import = calloc(1, sizeof *import);
    struct shop shop;

    (void)state;
    assert_non_null(import);
    open_file(&shop, "here");
    import_init(import, &shop.store);
    incoming.machine = shop.order;
    det_arena_init(&incoming.events_arena, NULL);
    assert_int_equal(
        import_read_event(import, &incoming, det_view_text(line), &event), DET_ERR_MALFORMED);
    assert_string_equal(import->wrong, "'trace' is missing or invalid");
    det_arena_deinit(&incoming.events_arena);
    import_deinit(import);
    free(import);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(traces_of_events_and_effects_go_through_an_export),
        TEST(malformed_trace_context_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
