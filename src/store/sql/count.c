/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.c - counts of one snapshot, over all nodes. Reads every instance, on SQLite 0.7 s for a
 * million, since an index of states would make every transition more expensive. */
#include <detent/tool/store.h>

#include "store/sql/count.h"

#include "store/count.h"
#include "store/sql/sql.h"

/* Columns of COUNT_ALL. Several rows may have the same machine and state. */
enum { OF_MACHINE, OF_STATE, OF_RUNNING, OF_STOPPED, OF_TIMERS, OF_EFFECTS, OF_DEAD };

static int add_row(void *context, const struct det_sql_row *row)
{
    const struct det_store_counted counted = {
        .machine = det_sql_text(row, OF_MACHINE),
        .state = det_sql_text_or_null(row, OF_STATE),
        .running = det_sql_count(row, OF_RUNNING),
        .stopped = det_sql_count(row, OF_STOPPED),
        .timers = det_sql_count(row, OF_TIMERS),
        .effects = det_sql_count(row, OF_EFFECTS),
        .dead = det_sql_count(row, OF_DEAD),
    };
    int r;

    r = det_sql_status(row);
    return r < 0 ? r : det_count_add(context, &counted);
}

int det_sql_count_all(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes)
{
    struct det_count count;
    const struct det_sql_question question = {
        .statement = DET_SQL_COUNT_ALL, .read = add_row, .context = &count, .is_scan = true
    };
    uint64_t bytes = 0;
    int r;

    det_count_init(&count, store->allocator);
    r = det_sql_ask(store, &question, 1, NULL);
    if (r == 0)
        r = det_sql_ops_of(store)->measure(store, &bytes);
    if (r == 0)
        r = det_count_report(&count, visit, context);
    det_count_deinit(&count);
    if (r == 0)
        *ret_bytes = bytes;
    return r;
}
