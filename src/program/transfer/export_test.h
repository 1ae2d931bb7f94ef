/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_test.h - a folder for each test, with the path of an export in it, and shops whose stores
 * are files there. */
#ifndef DET_TRANSFER_EXPORT_TEST_H
#define DET_TRANSFER_EXPORT_TEST_H

#include "inspect/store_test.h"
#include "transfer/export.h"

static char *folder;
static char path[1024];

static inline int open_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    snprintf(path, sizeof path, "%s/export.jsonl", folder);
    return 0;
}

static inline int close_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

/* A shop whose store is a file. */
static inline void open_file(struct shop *shop, const char *name)
{
    char url[1100];

    shop_open_with(shop, NULL);
    det_store_close(shop->store.store);
    /* The worlds have one seed; an identity is random. */
    for (const char *c = name; *c; c++)
        (void)det_world_random_u64(shop->cli.world);
    snprintf(url, sizeof url, "sqlite:%s/%s.db", folder, name);
    assert_int_equal(
        det_store_open_with(
            url, &(struct det_store_options){ .world = shop->cli.world }, &shop->store.store, NULL),
        0);
    shop->store.ops = shop->store.store->ops;
    shop->order = shop_define(shop, "order", ORDER_SPEC);
}

static inline unsigned count_in(const char *text, const char *words)
{
    unsigned count = 0;

    while ((text = strstr(text, words))) {
        count++;
        text++;
    }
    return count;
}

static inline char *export_text(struct shop *shop)
{
    size_t size;

    (void)remove(path);
    assert_int_equal(store_export(&shop->store, path), CLI_OK);
    (void)shop_printed(shop);
    return det_test_read_file(path, &size);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

#endif
