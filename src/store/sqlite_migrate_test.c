/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_migrate_test.c - the suite of migrating, over a file. */
#include "store/migrate_cases.h"

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

int main(void)
{
    return cmocka_run_group_tests(migrate_cases, NULL, NULL);
}
