/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan_test.c - no statement reads all rows of a table that grows, or all those of a
 * machine, but those listed here with the reason. The plans do not depend on what is in the file,
 * since a store keeps no statistics for the planner. */
#include "lib/test.h"

#include <sqlite3.h>

#include "store/jobs.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

static const struct {
    const char *name, *text;
} statements[] = {
#define SQLITE_STATEMENT(name, text) { #name, text },
#include "store/sqlite/statements.def"
#undef SQLITE_STATEMENT
};

/* Not tables that grow with instances, events, jobs or documents. "used" has a row for each machine
 * that has instances. */
static const char *const small_tables[] = { "store",  "definitions", "renames",
                                            "leases", "schedules",   "CONSTANT ROW",
                                            "used",   "(subquery-",  "16 CONSTANT ROWS" };

static const struct exception {
    const char *statement; /* how its name begins */
    const char *rows;      /* is in the line of the plan */
    const char *reason;
} exceptions[] = {
    { "INSTANCE_COUNT", "instances", "verify reads every instance anyway" },
    { "EVENT_COUNT", "events", "verify reads every event anyway" },
    { "INSTANCE_LIST", "dead", "few are dead, and only a list of those asks" },
    { "INSTANCE_PROBE", "dead", "few are dead, and only a list of those asks" },
    { "INSTANCE_DEAD", "dead", "few are dead" },
    { "INSTANCE_LOCKED", "dead", "few are dead, and only a list of those asks" },
    { "INSTANCE_SCAN", "", "for a list of nearly all; sqlite/list.c chooses it after a probe" },
    { "ANSWER_DISOWN_ALL", "", "a prune forgets the old event ids of all instances" },
    { "ANSWER_FORGET_ALL", "answers", "a prune forgets the old event ids of all instances" },
    { "DELTA_OLD", "deltas", "deltas are limited in number" },
    { "DEFINITION_KEEP", "SCAN d", "one row of constants" },
    { "DEFINITION_LIST", "SEARCH i USING",
      "of machines without a definition, which no serve leaves" },
    { "USED_", "", "a machine is served with another definition than the last time" },
    { "COUNT_", "", "counts of all instances, for metrics and the console" },
    { "RENAME_DAMAGED", "", "once in a migration" },
    { "RENAME_TIMER", "timers", "once in a migration" },
    { "RENAME_OUTBOX", "outbox", "once in a migration" },
    { "RENAME_DE", "instances", "once in a migration" },
    { "RENAME_ANSWER", "instances", "once in a migration" },
    { "RENAME_SUM_", "", "once in a migration" },
    { "ORPHAN_", "", "verify reads every row" },
    { "DAMAGED_", "", "verify reads every row" },
    { "MISCOUNTED", "instances", "verify reads every row" },
    { "MISSING_", "", "verify reads every row" },
};
#define EXCEPTION_COUNT (sizeof exceptions / sizeof exceptions[0])

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* "SCAN events", or "SEARCH instances USING INDEX ... (machine=?)". */
static bool reads_all(const char *detail)
{
    const char *space = strchr(detail, ' '), *table = space ? space + 1 : detail;
    bool is_scan = begins_with(detail, "SCAN ");

    if (!is_scan && !(begins_with(detail, "SEARCH ") && strstr(detail, "(machine=?)")))
        return false;
    for (size_t i = 0; i < sizeof small_tables / sizeof small_tables[0]; i++) {
        if (begins_with(table, small_tables[i]))
            return false;
    }
    return true;
}

static void assert_listed(const char *name, const char *detail, bool *used)
{
    bool is_listed = false;

    for (size_t i = 0; i < EXCEPTION_COUNT; i++) {
        if (!begins_with(name, exceptions[i].statement) || !strstr(detail, exceptions[i].rows))
            continue;
        used[i] = is_listed = true;
    }
    if (!is_listed)
        fail_msg("%s reads all rows: %s", name, detail);
}

static void check_plan(sqlite3 *database, const char *name, const char *text, bool *used)
{
    sqlite3_stmt *statement;
    char explain[8000];

    assert_true(snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", text) < 8000);
    if (sqlite3_prepare_v2(database, explain, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", name, sqlite3_errmsg(database));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(statement, 3);

        if (reads_all(detail))
            assert_listed(name, detail, used);
    }
    sqlite3_finalize(statement);
}

static void no_statement_reads_a_table_that_grows_but_those_listed(void **state)
{
    struct det_error error = { 0 };
    char *folder = det_test_folder(), url[1100];
    bool used[EXCEPTION_COUNT] = { false };
    struct det_store *store;
    sqlite3 *database;

    (void)state;
    snprintf(url, sizeof url, "sqlite:%s/plan.db", folder);
    if (det_store_open_with(url, &(struct det_store_options){ 0 }, &store, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(sqlite3_open(url + strlen("sqlite:"), &database), SQLITE_OK);
    assert_int_equal(det_sqlite_checksum_open(database), SQLITE_OK);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        /* The plan of a PRAGMA is none. */
        if (!begins_with(statements[i].text, "PRAGMA"))
            check_plan(database, statements[i].name, statements[i].text, used);
    }
    for (size_t i = 0; i < EXCEPTION_COUNT; i++) {
        if (!used[i])
            fail_msg("%s needs no exception any more", exceptions[i].statement);
    }
    sqlite3_close(database);
    det_store_close(store);
    det_test_folder_remove(folder);
}

/* The statement that made `detent get` slow in a file of a million instances. */
static void a_scan_of_all_instances_is_recognized(void **state)
{
    (void)state;
    assert_true(reads_all("SCAN instances"));
    assert_true(reads_all("SCAN i USING COVERING INDEX sqlite_autoindex_instances_1"));
    assert_true(reads_all("SEARCH instances USING INDEX sqlite_autoindex_instances_1 (machine=?)"));
    assert_false(reads_all("SEARCH instances USING INDEX x (machine=? AND id=?)"));
    assert_false(reads_all("SEARCH definitions USING PRIMARY KEY (machine=?)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_statement_reads_a_table_that_grows_but_those_listed),
        cmocka_unit_test(a_scan_of_all_instances_is_recognized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
