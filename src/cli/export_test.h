/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_test.h - a folder for each test, with the path of an export in it. */
#ifndef DET_CLI_EXPORT_TEST_H
#define DET_CLI_EXPORT_TEST_H

#include "cli/store_test.h"

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

#endif
