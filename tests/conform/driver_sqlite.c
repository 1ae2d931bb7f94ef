/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver_sqlite.c - the suite over files in the folder of the test. */
#include <sqlite3.h>

#include "conform/conform.h"

static void sqlite_begin(struct box *box)
{
    if (!box->place)
        box->place = det_test_folder();
    snprintf(
        box->url, URL_MAX, "sqlite:%s/store-%u.db", (const char *)box->place, box->place_count++);
}

static void sqlite_end(struct box *box)
{
    det_test_folder_remove(box->place);
}

static void sqlite_execute(struct box *box, const char *sql)
{
    char text[512], *end = text;
    sqlite3 *db = NULL;

    for (; *sql && end < text + sizeof text - 1; sql++) {
        if (*sql != '@')
            *end++ = *sql;
    }
    *end = 0;
    assert_int_equal(sqlite3_open(strchr(box->url, ':') + 1, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    sqlite3_close(db);
}

const struct driver driver_sqlite = {
    .scheme = "sqlite",
    .is_kept = true,
    .is_simulated = true,
    .has_readers = true,
    .model_steps = 3000,
    .begin = sqlite_begin,
    .end = sqlite_end,
    .execute = sqlite_execute,
};
