/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_line_test.c - lines of an export as an import takes them: which fit, in which order, and
 * how many. */
#include "transfer/import.h"

#include "inspect/store_test.h"

/* A store that no process uses. */
static void open_shop(struct shop *shop)
{
    shop_open(shop);
    det_runtime_close(shop->runtime);
    shop->runtime = NULL;
}

/* Lines that are sealed and wrong all the same. */
static int import_line(struct shop *target, const char *line, bool is_event)
{
    struct import *import = calloc(1, sizeof *import);
    int r;

    assert_non_null(import);
    import_init(import, &target->store);
    import->machine = target->order;
    r = is_event ? import_event(import, det_view_text(line))
                 : import_instance(import, det_view_text(line));
    if (r == 0)
        r = import_flush(import);
    if (r < 0)
        cli_print_error(&target->cli, "%s\n", import->wrong);
    import_deinit(import);
    free(import);
    return r;
}

#define HEAD                                                                                  \
    "{\"kind\":\"instance\",\"id\":\"i\",\"state\":\"pending\",\"stopped\":false,\"reason\":" \
    "null,\"sequence\":0,\"visit\":1,\"transitions\":0,\"started_at\":"                       \
    "\"2026-01-01T00:00:00Z\",\"moved_at\":\"2026-01-01T00:00:00Z\","
#define REST "\"data\":{\"cents\":1},\"timers\":[],\"effects\":[],\"deferred\":[],"
#define TAIL "\"first\":0,\"moves\":0}"

static void lines_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        { HEAD "\"history\":[]," REST TAIL, NULL },
        { "[]", "not a JSON object\n" },
        { "{\"kind\":\"instance\"}", "'id' is missing or invalid\n" },
        { HEAD "\"history\":[\"nowhere\"]," REST TAIL, "'history' is not one of this machine\n" },
        { HEAD "\"history\":[1]," REST TAIL, "'history' is not one of this machine\n" },
        { HEAD "\"history\":[]," REST "\"first\":1,\"moves\":0}",
          "the values of the instance contradict each other\n" },
        { HEAD "\"history\":[],\"data\":{},\"timers\":[],\"effects\":[],\"deferred\":[]," TAIL,
          "'data' is missing or invalid\n" },
        { HEAD "\"history\":[],\"data\":{\"cents\":1},\"timers\":[{\"timer\":\"x\"}],\"effects\":"
               "[],\"deferred\":[]," TAIL,
          "'timer' is missing or invalid\n" },
        { HEAD "\"history\":[],\"data\":{\"cents\":1},\"timers\":[3],\"effects\":[],\"deferred\":"
               "[]," TAIL,
          "not a JSON object\n" },
        { HEAD "\"history\":[],\"data\":{\"cents\":1},\"timers\":[],\"effects\":[{\"event\":"
               "\"pay\"}],\"deferred\":[]," TAIL,
          "'sequence' is missing or invalid\n" },
        { HEAD "\"history\":[],\"data\":{\"cents\":1},\"timers\":[],\"effects\":[],\"deferred\":"
               "[{\"event\":\"x\"}]," TAIL,
          "'event' is missing or invalid\n" },
    };
    struct shop shop;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_shop(&shop);
        assert_int_equal(
            import_line(&shop, cases[i].line, false), cases[i].text ? DET_ERR_MALFORMED : 0);
        assert_string_equal(shop_printed(&shop), cases[i].text ? cases[i].text : "");
        shop_close(&shop);
    }
    open_shop(&shop);
    assert_int_equal(import_line(&shop, "{}", true), DET_ERR_MALFORMED);
    assert_string_equal(shop_printed(&shop), "an event has no instance\n");
    shop_close(&shop);
}

#define EVENT(n)                                                                                  \
    "{\"kind\":\"event\",\"sequence\":" n ",\"visit\":1,\"from\":\"pending\",\"to\":\"pending\"," \
    "\"event\":\"ping\",\"outcome\":\"stay\",\"choice\":0,\"timeout\":false,\"at\":"              \
    "\"2026-01-01T00:00:00Z\",\"payload\":{}}"

static void imported_events_must_be_consecutive(void **state)
{
    struct shop shop;
    struct import *import = calloc(1, sizeof *import);

    (void)state;
    assert_non_null(import);
    open_shop(&shop);
    import_init(import, &shop.store);
    import->machine = shop.order;
    assert_int_equal(
        import_instance(
            import, det_view_text("{\"kind\":\"instance\",\"id\":\"i\",\"state\":\"pending\","
                                  "\"stopped\":false,\"reason\":null,\"sequence\":3,\"visit\":1,"
                                  "\"transitions\":0,\"started_at\":\"2026-01-01T00:00:00Z\","
                                  "\"moved_at\":\"2026-01-01T00:00:00Z\",\"history\":[]," REST
                                  "\"first\":1,\"moves\":0}")),
        0);
    assert_int_equal(import_event(import, det_view_text(EVENT("1"))), 0);
    assert_int_equal(import_event(import, det_view_text(EVENT("3"))), DET_ERR_MALFORMED);
    assert_string_equal(import->wrong, "the events are not consecutive");
    assert_int_equal(
        import_event(import, det_view_text("{\"sequence\":2,\"outcome\":\"fell\"}")),
        DET_ERR_MALFORMED);
    assert_int_equal(import_finish(import), DET_ERR_MALFORMED);
    assert_string_equal(import->wrong, "events are missing");
    assert_int_equal(import_event(import, det_view_text(EVENT("2"))), 0);
    assert_int_equal(import_event(import, det_view_text(EVENT("3"))), 0);
    assert_int_equal(import_finish(import), 0);
    assert_int_equal(import_flush(import), 0);
    assert_int_equal(import->events, 3);
    import_deinit(import);
    free(import);
    shop_close(&shop);
}

static void an_instance_may_have_more_events_than_fit_into_memory(void **state)
{
    struct import *import = calloc(1, sizeof *import);
    struct instance instance;
    struct shop shop;
    char line[512];

    (void)state;
    assert_non_null(import);
    open_shop(&shop);
    import_init(import, &shop.store);
    import->machine = shop.order;
    snprintf(
        line, sizeof line, "%s",
        "{\"kind\":\"instance\",\"id\":\"i\",\"state\":\"pending\",\"stopped\":false,\"reason\":"
        "null,"
        "\"sequence\":9000,\"visit\":1,\"transitions\":0,\"started_at\":\"2026-01-01T00:00:00Z\","
        "\"moved_at\":\"2026-01-01T00:00:00Z\",\"history\":[]," REST "\"first\":1,\"moves\":0}");
    assert_int_equal(import_instance(import, det_view_text(line)), 0);
    for (int i = 1; i <= 9000; i++) {
        snprintf(
            line, sizeof line,
            "{\"sequence\":%d,\"visit\":1,\"from\":\"pending\",\"to\":\"pending\",\"event\":"
            "\"ping\",\"outcome\":\"stay\",\"choice\":0,\"timeout\":false,\"at\":"
            "\"2026-01-01T00:00:00Z\",\"payload\":{}}",
            i);
        assert_int_equal(import_event(import, det_view_text(line)), 0);
        assert_true(import->waiting < IMPORT_EVENTS_MAX);
    }
    assert_int_equal(import_finish(import), 0);
    assert_int_equal(import_flush(import), 0);
    assert_int_equal(import->events, 9000);
    assert_int_equal(import->instances, 1);
    assert_int_equal(instance_find(&shop.store, "i", &instance), CLI_OK);
    assert_int_equal(instance.loaded.head.sequence, 9000);
    instance_close(&instance);
    import_deinit(import);
    free(import);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_do_not_fit_are_refused),
        cmocka_unit_test(imported_events_must_be_consecutive),
        cmocka_unit_test(an_instance_may_have_more_events_than_fit_into_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
