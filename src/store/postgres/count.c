/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.c - counts of one snapshot, over all nodes. */
#include <detent/tool/store.h>

#include "os/os.h"
#include "store/count.h"
#include "store/postgres/postgres.h"

/* Columns of COUNT. */
enum { OF_MACHINE, OF_STATE, OF_RUNNING, OF_STOPPED, OF_TIMERS, OF_EFFECTS, OF_DEAD };

static int ask_counts(struct postgres_session *session, PGresult **ret_rows, PGresult **ret_size)
{
    struct postgres_parameters name = { 0 };
    int r;

    det_postgres_add_text(&name, session->store->url.schema);
    r = det_postgres_session_ask(session, POSTGRES_BEGIN_READING, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_SCAN, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_COUNT, NULL, ret_rows);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_SIZE, &name, ret_size);
    if (r == 0)
        r = det_postgres_session_ask(session, POSTGRES_END_READING, NULL, NULL);
    return r;
}

static int add_row(struct det_count *count, const PGresult *rows, int row)
{
    const struct det_store_counted counted = {
        .machine = det_postgres_text(rows, row, OF_MACHINE),
        .state = det_postgres_text(rows, row, OF_STATE),
        .running = (uint64_t)det_postgres_number(rows, row, OF_RUNNING),
        .stopped = (uint64_t)det_postgres_number(rows, row, OF_STOPPED),
        .timers = (uint64_t)det_postgres_number(rows, row, OF_TIMERS),
        .effects = (uint64_t)det_postgres_number(rows, row, OF_EFFECTS),
        .dead = (uint64_t)det_postgres_number(rows, row, OF_DEAD),
    };

    return det_count_add(count, &counted);
}

static int report_counts(
    struct det_store *store, const PGresult *rows,
    int (*visit)(void *context, const struct det_store_counted *row), void *context)
{
    struct det_count count;
    int r = 0;

    det_count_init(&count, store->allocator);
    for (int i = 0; r == 0 && i < PQntuples(rows); i++)
        r = add_row(&count, rows, i);
    if (r == 0)
        r = det_count_report(&count, visit, context);
    det_count_deinit(&count);
    return r;
}

int det_postgres_count(
    struct det_store *base, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes)
{
    struct postgres_session session;
    PGresult *rows = NULL, *size = NULL;
    int r;

    r = det_postgres_session_open(&session, postgres_store_of(base));
    if (r < 0)
        return r;
    r = ask_counts(&session, &rows, &size);
    det_postgres_session_close(&session);
    if (r == 0)
        r = report_counts(base, rows, visit, context);
    if (r == 0)
        *ret_bytes = (uint64_t)det_postgres_number(size, 0, 0);
    PQclear(rows);
    PQclear(size);
    return r;
}
