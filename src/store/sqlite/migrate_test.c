/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate_test.c - the suite of migrating, over a file. */
#include "store/migrate_cases.h"

#include <sqlite3.h>

static char *folder;

static void place(char url[URL_MAX])
{
    folder = det_test_folder();
    (void)snprintf(url, URL_MAX, "sqlite:%s/order.db", folder);
}

static void leave(void)
{
    det_test_folder_remove(folder);
}

static void spoil(const char *url, const char *table)
{
    char text[100];
    sqlite3 *database;

    (void)snprintf(text, sizeof text, "UPDATE %s SET checksum = checksum + 1", table);
    assert_int_equal(sqlite3_open(url + strlen("sqlite:"), &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

int main(void)
{
    return cmocka_run_group_tests(migrate_cases, NULL, NULL);
}
