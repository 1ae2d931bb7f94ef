/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_test.c - exports of a store that others work with: what is sealed can be imported. */
#include "cli/race_test.h"
#include "cli/store_verbs.h"

static char *folder;
static char path[1024];
static struct shop *shop_of_all;

static int open_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    snprintf(path, sizeof path, "%s/export.jsonl", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

/* "a" and "z" are there so that something is before and behind. */
static void open_shop(struct shop *shop, int events)
{
    shop_open(shop);
    shop_start(shop, shop->order, "a");
    shop_send(shop, "a", "pay");
    shop_start(shop, shop->order, "long");
    for (int i = 0; i < events; i++)
        shop_send(shop, "long", i % 4 == 0 ? "pay" : "ping");
    shop_start(shop, shop->order, "z");
    shop_of_all = shop;
    race_begin(shop);
}

static void close_shop(struct shop *shop)
{
    race_end(shop);
    shop_close(shop);
}

/* What it says, and how many transitions "long" had had before the first event that is kept. */
static uint64_t import_into_another(const char *said)
{
    struct det_store_snapshot snapshot = { .taken_at = 0 };
    struct instance instance;
    struct shop target;
    char data[64];

    shop_open_with(&target, NULL);
    shop_advance(&target, DET_DAY);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(shop_said(&target), said);
    assert_int_equal(instance_find(&target.store, "long", &instance), CLI_OK);
    snapshot.loaded.data = data;
    assert_int_equal(
        target.store.ops->snapshot(target.store.store, instance.loaded.instance, &snapshot), 0);
    instance_close(&instance);
    shop_close(&target);
    return snapshot.loaded.head.transition_count;
}

static void what_is_deleted_meanwhile_is_not_in_an_export_and_leaves_no_hole(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    /* Each has two walks; those of "long" are the third and the fourth. */
    race.at = 4;
    race.between = 5;
    race.and = 15;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_said(&shop), "3 instances and 7 events exported\n");
    assert_int_equal(import_into_another("3 instances and 7 events imported\n"), 8);
    close_shop(&shop);
}

static void what_is_deleted_behind_all_that_was_seen_leaves_no_end_out(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race.at = 4;
    race.between = 5;
    race.and = 21;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_said(&shop), "3 instances and 1 event exported\n");
    assert_int_equal(import_into_another("3 instances and 1 event imported\n"), 10);
    close_shop(&shop);
}

static void an_export_that_has_holes_fails_and_says_where(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race.at = 4;
    race.between = 5;
    race.and = 15;
    race.is_lasting = true;
    assert_int_equal(store_export(&shop.store, path), CLI_FAILURE);
    assert_non_null(strstr(shop_said(&shop), "order 'long': events are missing"));
    assert_false(cli_is_there(path));
    close_shop(&shop);
}

/* What was printed cannot be taken back. */
static void an_export_that_cannot_be_written_again_fails_at_once(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race.at = 4;
    race.between = 5;
    race.and = 15;
    assert_int_equal(store_export(&shop.store, NULL), CLI_FAILURE);
    assert_non_null(strstr(shop_said(&shop), "export it to a file"));
    close_shop(&shop);
}

static void send_more(unsigned walk)
{
    if (walk == 3)
        for (int i = 0; i < 8; i++)
            shop_send(shop_of_all, "long", i % 4 == 0 ? "pay" : "ping");
}

/* Stores in memory keep 64 events, so what is added takes the first ones away. */
static void what_is_added_meanwhile_is_not_part_of_an_export(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 100);
    race.before = send_more;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_said(&shop), "3 instances and 57 events exported\n");
    assert_int_equal(import_into_another("3 instances and 57 events imported\n"), 22);
    close_shop(&shop);
}

static void send_very_many(unsigned walk)
{
    if (walk == 3)
        for (int i = 0; i < 80; i++)
            shop_send(shop_of_all, "long", i % 4 == 0 ? "pay" : "ping");
}

static void an_instance_that_went_on_past_all_its_events_is_loaded_again(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 100);
    race.before = send_very_many;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_said(&shop), "3 instances and 65 events exported\n");
    assert_int_equal(import_into_another("3 instances and 65 events imported\n"), 58);
    close_shop(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_deleted_meanwhile_is_not_in_an_export_and_leaves_no_hole),
        TEST(what_is_deleted_behind_all_that_was_seen_leaves_no_end_out),
        TEST(an_export_that_has_holes_fails_and_says_where),
        TEST(an_export_that_cannot_be_written_again_fails_at_once),
        TEST(what_is_added_meanwhile_is_not_part_of_an_export),
        TEST(an_instance_that_went_on_past_all_its_events_is_loaded_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
