/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_key_test.c - an effect keeps its key in the store that it is imported into: an attempt may
 * have reached the other side under it. */
#include <detent/tool/store.h>

#include "transfer/export_test.h"
#include "transfer/import.h"

/* The key of the only effect of an order; good until the next call but one. */
static const char *key_of(struct shop *shop, const char *id)
{
    static char keys[2][INSTANCE_KEY_TEXT];
    static unsigned turn;
    struct instance instance;

    turn = !turn;
    assert_int_equal(instance_find(&shop->store, id, &instance), CLI_OK);
    assert_non_null(instance.effects);
    assert_null(instance.effects->next);
    instance_key(shop->store.store, shop->order, id, &instance.effects->row, keys[turn]);
    instance_close(&instance);
    return keys[turn];
}

static void open_paid(struct shop *shop)
{
    open_file(shop, "here");
    shop_run(shop);
    shop_start(shop, shop->order, "o-1");
    shop_send(shop, "o-1", "pay");
    shop_fail_effect(shop, "o-1", 1, DET_ERR_TIMEOUT, NULL, false);
}

static void open_imported(struct shop *shop, const char *name)
{
    open_file(shop, name);
    assert_int_equal(store_import(&shop->store, path), CLI_OK);
}

static void an_effect_that_has_not_ended_keeps_its_key(void **state)
{
    struct shop shop, target;
    char *text;

    (void)state;
    open_paid(&shop);
    text = export_text(&shop);
    /* The first line says it for all. */
    assert_null(strstr(text, "\"origin\""));
    free(text);
    open_imported(&target, "there");
    assert_string_not_equal(
        det_store_identity(shop.store.store), det_store_identity(target.store.store));
    assert_memory_equal(key_of(&target, "o-1"), det_store_identity(shop.store.store), 16);
    assert_string_equal(key_of(&target, "o-1"), key_of(&shop, "o-1"));
    /* The key of an effect that is requested after the import names the new store. */
    shop_run(&target);
    shop_start(&target, target.order, "o-2");
    shop_send(&target, "o-2", "pay");
    assert_memory_equal(key_of(&target, "o-2"), det_store_identity(target.store.store), 16);
    shop_close(&target);
    shop_close(&shop);
}

static void a_dead_effect_keeps_its_key_and_has_it_when_it_is_retried(void **state)
{
    struct shop shop, target;

    (void)state;
    open_paid(&shop);
    shop_fail_effect(&shop, "o-1", 8, DET_ERR_TIMEOUT, NULL, true);
    free(export_text(&shop));
    open_imported(&target, "there");
    assert_string_equal(key_of(&target, "o-1"), key_of(&shop, "o-1"));
    shop_fail_effect(&target, "o-1", 0, 0, NULL, false);
    assert_string_equal(key_of(&target, "o-1"), key_of(&shop, "o-1"));
    shop_fail_effect(&target, "o-1", 8, DET_ERR_TIMEOUT, NULL, true);
    assert_string_equal(key_of(&target, "o-1"), key_of(&shop, "o-1"));
    shop_close(&target);
    shop_close(&shop);
}

static void an_effect_keeps_its_key_through_a_second_export(void **state)
{
    struct shop shop, middle, target;
    char *text;

    (void)state;
    open_paid(&shop);
    free(export_text(&shop));
    open_imported(&middle, "between");
    text = export_text(&middle);
    assert_int_equal(count_in(text, "\"origin\""), 1);
    free(text);
    open_imported(&target, "there");
    assert_string_equal(key_of(&target, "o-1"), key_of(&shop, "o-1"));
    shop_close(&target);
    shop_close(&middle);
    shop_close(&shop);
}

static void reimported_effect_keeps_the_key_of_its_store(void **state)
{
    struct shop shop, middle;
    struct instance instance;
    char *backup, place[1100], key[INSTANCE_KEY_TEXT];
    size_t size;

    (void)state;
    open_file(&shop, "here");
    shop_close(&shop);
    snprintf(place, sizeof place, "%s/here.db", folder);
    backup = det_test_read_file(place, &size);
    open_paid(&shop);
    snprintf(key, sizeof key, "%s", key_of(&shop, "o-1"));
    free(export_text(&shop));
    shop_close(&shop);
    open_imported(&middle, "between");
    free(export_text(&middle));
    shop_close(&middle);
    /* The store before it had the order. */
    det_test_write_file(place, backup, size);
    free(backup);
    open_imported(&shop, "here");
    assert_string_equal(key_of(&shop, "o-1"), key);
    assert_int_equal(instance_find(&shop.store, "o-1", &instance), CLI_OK);
    assert_string_equal(instance.effects->row.origin, "");
    instance_close(&instance);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_effect_that_has_not_ended_keeps_its_key),
        TEST(a_dead_effect_keeps_its_key_and_has_it_when_it_is_retried),
        TEST(an_effect_keeps_its_key_through_a_second_export),
        TEST(reimported_effect_keeps_the_key_of_its_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
