/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_test.c - opening stores by URL, and the list of drivers. */
#include "store/store.h"

#include "lib/test.h"

static void a_memory_store_opens_and_closes(void **state)
{
    struct det_error error = { .code = 77 };
    struct det_store *store = NULL;

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, &error), 0);
    assert_non_null(store);
    assert_ptr_equal(store->world, det_world_real());
    assert_int_equal(error.code, 77);
    det_store_close(store);
    det_store_close(NULL);
}

static void invalid_url_and_unknown_driver_are_refused(void **state)
{
    static const struct {
        const char *url;
        int code;
    } cases[] = {
        { NULL, DET_ERR_INVALID },       { "", DET_ERR_INVALID },
        { "memory", DET_ERR_INVALID },   { "memory:x", DET_ERR_INVALID },
        { "mem:", DET_ERR_UNSUPPORTED }, { "memory2:", DET_ERR_UNSUPPORTED },
        { ":", DET_ERR_UNSUPPORTED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_error error = { 0 };
        struct det_store *store = NULL;

        assert_int_equal(det_store_open(cases[i].url, &store, &error), cases[i].code);
        assert_int_equal(error.code, cases[i].code);
        assert_true(error.text[0]);
        /* The text after the colon of a memory store is checked by opening it. */
        if (!cases[i].url || strcmp(cases[i].url, "memory:x") != 0)
            assert_int_equal(det_store_check_url(cases[i].url, NULL), cases[i].code);
        assert_null(store);
        assert_int_equal(det_store_open(cases[i].url, &store, NULL), cases[i].code);
    }
}

static void limits_have_a_maximum(void **state)
{
    struct det_store_options events = { .events_kept = 65537 }, ids = { .event_ids_kept = 65537 };
    struct det_store_options most = { .events_kept = 65536, .event_ids_kept = 65536 };
    struct det_store *store = NULL;

    (void)state;
    assert_int_equal(det_store_open_with("memory:", &events, &store, NULL), DET_ERR_INVALID);
    assert_int_equal(det_store_open_with("memory:", &ids, &store, NULL), DET_ERR_INVALID);
    assert_int_equal(det_store_open_with("memory:", &most, &store, NULL), 0);
    det_store_close(store);
}

static void every_driver_has_a_scheme_and_a_summary(void **state)
{
    const struct det_store_driver *driver;
    size_t count = 0;

    (void)state;
    for (; (driver = det_store_driver_at(count)); count++) {
        assert_true(driver->scheme[0] && !strchr(driver->scheme, ':'));
        assert_true(driver->summary[0]);
        assert_non_null(driver->open);
    }
    assert_true(count >= 1);
    assert_string_equal(det_store_driver_at(0)->scheme, "memory");
}

static void a_driver_of_another_version_is_refused(void **state)
{
    struct det_store_driver driver = *det_store_driver_at(0);
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(det_store_driver_check(&driver, &error), 0);
    assert_int_equal(error.code, 0);
    driver.version++;
    assert_int_equal(det_store_driver_check(&driver, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "the driver of 'memory:' stores was built for version 2"));
}

static void an_option_of_a_newer_version_is_refused(void **state)
{
    struct det_store_options options = { 0 };
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    (void)state;
    options.reserved[0] = 1;
    assert_int_equal(det_store_open_with("memory:", &options, &store, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "a store: an option is set"));
    assert_null(store);
}

static int open_one(struct det_test_memory *memory, void *argument)
{
    struct det_store *store = NULL;
    int r;

    (void)argument;
    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .allocator = &memory->allocator }, &store, NULL);
    det_store_close(store);
    return r;
}

static void store_open_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(open_one, NULL);
}

static void close_used(void *argument)
{
    struct det_store *store = argument;

    store->is_used = true;
    det_store_close(store);
}

static void a_store_in_use_must_not_be_closed(void **state)
{
    struct det_store *store = NULL;

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    assert_true(det_test_aborts(close_used, store, "is_used"));
    store->is_used = false;
    det_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_store_opens_and_closes),
        cmocka_unit_test(invalid_url_and_unknown_driver_are_refused),
        cmocka_unit_test(limits_have_a_maximum),
        cmocka_unit_test(every_driver_has_a_scheme_and_a_summary),
        cmocka_unit_test(a_driver_of_another_version_is_refused),
        cmocka_unit_test(an_option_of_a_newer_version_is_refused),
        cmocka_unit_test(store_open_survives_every_failed_allocation),
        cmocka_unit_test(a_store_in_use_must_not_be_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
