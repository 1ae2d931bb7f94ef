/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver_sqlite.c - the suite over files in a folder of the test's own. */
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

static void sqlite_damage(struct box *box, const char *id)
{
    sqlite3 *db = NULL;
    char sql[256];

    assert_int_equal(sqlite3_open(strchr(box->url, ':') + 1, &db), SQLITE_OK);
    snprintf(
        sql, sizeof sql,
        "UPDATE snapshots SET visit = visit + 1 WHERE instance ="
        " (SELECT key FROM instances WHERE id = '%s')",
        id);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
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
    .damage_snapshot = sqlite_damage,
};
