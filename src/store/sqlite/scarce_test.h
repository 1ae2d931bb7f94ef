/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scarce_test.h - the memory of SQLite: the chosen request fails, or it and all later ones. */
#ifndef DET_STORE_SQLITE_SCARCE_TEST_H
#define DET_STORE_SQLITE_SCARCE_TEST_H

#include "lib/test.h"

#include <sqlite3.h>

static sqlite3_mem_methods scarce_below;
static struct {
    uint64_t calls, fail_at; /* this request, from 1; 0: none */
    bool is_sticky;
    bool has_failed;
} scarce;

static inline bool is_scarce(void)
{
    bool fails = scarce.fail_at && (++scarce.calls == scarce.fail_at ||
                                    (scarce.is_sticky && scarce.calls > scarce.fail_at));

    scarce.has_failed = scarce.has_failed || fails;
    return fails;
}

static inline void *scarce_malloc(int size)
{
    return is_scarce() ? NULL : scarce_below.xMalloc(size);
}

static inline void *scarce_realloc(void *block, int size)
{
    return is_scarce() ? NULL : scarce_below.xRealloc(block, size);
}

/* Before anything of SQLite is used. Small requests are requests too: no lookaside. */
static inline void make_scarce(void)
{
    sqlite3_mem_methods methods;

    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &scarce_below), SQLITE_OK);
    methods = scarce_below;
    methods.xMalloc = scarce_malloc;
    methods.xRealloc = scarce_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
}

#endif
