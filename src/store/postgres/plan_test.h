/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan_test.h - how the server would execute a statement of the driver. */
#ifndef DET_STORE_POSTGRES_PLAN_TEST_H
#define DET_STORE_POSTGRES_PLAN_TEST_H

#include "store/postgres/postgres_test.h"

/* The plan of a statement that is prepared now and kept, whatever its parameters. `settings` are
 * those of its transaction, each as "SET name = value; ". free() the plan. */
static inline char *plan_of(
    struct det_store *store, enum postgres_statement_id id, const char *settings,
    const char *arguments)
{
    char *text = NULL, *plan;

    assert_true(
        asprintf(
            &text,
            "DEALLOCATE ALL; %sSET plan_cache_mode = force_generic_plan; PREPARE planned AS %s; "
            "EXPLAIN (FORMAT JSON) EXECUTE planned (%s)",
            settings, postgres_store_of(store)->statements[id].text, arguments) > 0);
    plan = det_test_postgres_execute(server, text);
    free(text);
    assert_non_null(plan);
    return plan;
}

/* The next scan of the table (NULL: of any) in the rest of a plan, which is cut into its nodes;
 * NULL: no more. It has a condition that it looks for. The attributes of a node come before its
 * children. */
static inline char *next_scan(char **rest, enum postgres_statement_id id, const char *table)
{
    static const char node_key[] = "\"Node Type\"";
    char relation[80] = "\"Relation Name\"";

    if (table)
        snprintf(relation, sizeof relation, "\"Relation Name\": \"%s\"", table);
    for (char *node = strstr(*rest, node_key), *next; node; node = next) {
        next = strstr(node + 1, node_key);
        if (next)
            next[-1] = '\0';
        *rest = next ? next : node + strlen(node);
        if (!strstr(node, "Scan\"") || !strstr(node, relation))
            continue;
        if (!strstr(node, "\"Index Cond\"") && !strstr(node, "\"TID Cond\"") &&
            !strstr(node, "\"Recheck Cond\""))
            fail_msg("statement %d reads all rows: %s", (int)id, node);
        return node;
    }
    return NULL;
}

#endif
