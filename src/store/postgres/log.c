/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - the log: events and starts by their positions, some of which may still be uncommitted.
 *
 *     positions   5  6  7  8  9 10 11        8: its transaction is under way, or was rolled back
 *                 x  x  x  .  x  x  .        the reader stops at 7, or, if 8 is final, at 10
 *
 * Positions come from a sequence, and transactions end in any order. A reader passes a gap only
 * when everything up to a later position is known to be final, see docs/formats/sql_schema.md:
 *
 *     the last visible position, `seen`         --> the current writers, `writers`
 *     ... none of them writes any longer        --> `final` = `seen`
 *
 * Invariants
 *   1. `final` only grows, and holds for rows read after it was determined: so it is determined
 *      before a page is read, never after.
 *   2. A writer holds a lock on the table from before it gets a position until its rows are
 *      visible. */
#include <detent/tool/store.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/session.h"
#include "store/sql/log.h"

/* A page is held in memory. It starts with few rows; later pages adapt to the length of rows. */
#define PAGE_ROWS  1024
#define PAGE_FIRST 64
#define PAGE_BYTES (256u << 10)
/* Number of checks whether a gap is final in one call, and the wait before the second check, which
 * doubles each time. The end of the log justifies a longer wait (half a second). */
#define CHECKS_MAX     6
#define END_CHECKS_MAX 10
#define FIRST_WAIT     DET_MILLISECOND

/* The check for final positions. */

struct looking {
    uint64_t seen; /* of the previous check; 0: none */
    char *writers;
    uint64_t last; /* of this check */
    bool is_standby, is_over;
    char *writing; /* NULL: no writers */
};

static void send_looking(struct postgres_exchange *exchange, void *context)
{
    const struct looking *looking = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, looking->writers ? looking->writers : "");
    det_postgres_ask(exchange, POSTGRES_LOG_LAST, NULL);
    det_postgres_ask(exchange, POSTGRES_LOG_WRITERS, &parameters);
}

static int take_looking(struct postgres_exchange *exchange, void *context)
{
    struct looking *looking = context;
    const PGresult *last = exchange->results[0], *writers = exchange->results[1];
    const char *names = det_postgres_text(writers, 0, 0);

    looking->last = (uint64_t)det_postgres_number(last, 0, 0);
    looking->is_standby = det_postgres_bool(last, 0, 1);
    looking->is_over = det_postgres_number(writers, 0, 1) == 0;
    if (!names)
        return 0;
    looking->writing = det_string_copy(exchange->connection->store->store.allocator, names);
    return looking->writing ? 0 : DET_ERR_NO_MEMORY;
}

/* Copies the previous check; other threads check, too. */
static int copy_last_check(struct postgres_store *store, struct looking *looking)
{
    const char *writers;
    int r = 0;

    det_mutex_lock(store->store.world, store->sql.mutex);
    writers = store->log.writers;
    if (writers) {
        looking->seen = store->log.seen;
        looking->writers = det_string_copy(store->store.allocator, writers);
        r = looking->writers ? 0 : DET_ERR_NO_MEMORY;
    }
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return r;
}

/* Combines the results of other threads: each is valid by itself. */
static void note_final(struct postgres_store *store, struct looking *looking)
{
    uint64_t final = 0;

    if (!looking->writing)
        final = looking->last;
    else if (looking->is_over)
        final = looking->seen;
    det_mutex_lock(store->store.world, store->sql.mutex);
    if (final > store->log.final)
        store->log.final = final;
    if (looking->is_over) {
        char *old = store->log.writers;

        store->log.seen = looking->last;
        store->log.writers = looking->writing;
        looking->writing = old;
    }
    det_mutex_unlock(store->store.world, store->sql.mutex);
}

/* One check; `ret` is the last visible position. */
static int search_end(struct postgres_store *store, uint64_t *ret)
{
    struct looking looking = { 0 };
    const struct postgres_job job = { send_looking, take_looking, &looking, true, 0 };
    int r;

    r = copy_last_check(store, &looking);
    if (r == 0)
        r = det_postgres_run(store, &job, NULL);
    if (r == 0 && looking.is_standby)
        r = DET_ERR_UNSUPPORTED;
    if (r == 0)
        note_final(store, &looking);
    if (r == 0)
        *ret = looking.last;
    det_free_string(store->store.allocator, looking.writers);
    det_free_string(store->store.allocator, looking.writing);
    return r;
}

static uint64_t final_now(struct postgres_store *store)
{
    uint64_t final;

    det_mutex_lock(store->store.world, store->sql.mutex);
    final = store->log.final;
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return final;
}

void det_postgres_log_close(struct postgres_store *store)
{
    det_free_string(store->store.allocator, store->log.writers);
}

/* Reading. */

struct reading {
    struct postgres_store *store;
    struct det_log_walk walk;
    int (*visit)(void *context, const struct det_store_logged *row);
    void *context;
    bool is_backward;
    int64_t event_at, start_at, start_key;
    uint64_t final; /* determined before the page was read */
    unsigned checks, checks_max;
    size_t page; /* number of requested rows */
    PGresult *rows;
};

/* One row more than requested shows where the last one ends, see det_log_ends(). */
static size_t page_of(const struct reading *reading)
{
    const struct det_store_log_query *query = reading->walk.query;
    size_t limit = query->limit && !query->machine && !query->id && !query->event &&
                           !query->state && !query->since && !query->until
                       ? query->limit
                       : query->budget;

    return limit && limit < PAGE_ROWS ? limit + 1 : PAGE_ROWS;
}

static size_t next_page(const struct reading *reading)
{
    size_t most = page_of(reading), page = reading->page, size;

    if (!reading->rows)
        return most < PAGE_FIRST ? most : PAGE_FIRST;
    size = PQresultMemorySize(reading->rows);
    if (size < PAGE_BYTES)
        page *= 4;
    else if (size > 4 * PAGE_BYTES && page >= 4)
        page /= 4;
    return most < page ? most : page;
}

static void send_page(struct postgres_exchange *exchange, void *context)
{
    const struct reading *reading = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_number(&parameters, reading->event_at);
    det_postgres_add_number(&parameters, reading->start_at);
    det_postgres_add_number(&parameters, reading->start_key);
    det_postgres_add_number(&parameters, (int64_t)reading->page);
    det_postgres_ask(exchange, POSTGRES_RENAME_LIST, NULL);
    det_postgres_ask(
        exchange, reading->is_backward ? POSTGRES_LOG_BACK : POSTGRES_LOG, &parameters);
}

/* Other processes may have migrated the store. */
static int publish_renames(struct postgres_store *store, const PGresult *rows)
{
    struct det_renames *renames;
    int r = 0;

    if ((size_t)PQntuples(rows) <= det_sql_renames_count(&store->store))
        return 0;
    renames = det_renames_open(store->store.allocator);
    if (!renames)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        const struct det_sql_row row = det_postgres_row(rows, i);

        r = det_sql_renames_add(renames, &row);
    }
    if (r < 0)
        det_renames_close(renames);
    else
        det_sql_renames_publish(&store->store, renames);
    return r;
}

static int take_page(struct postgres_exchange *exchange, void *context)
{
    struct reading *reading = context;

    reading->rows = exchange->results[1];
    exchange->results[1] = NULL;
    return publish_renames(reading->store, exchange->results[0]);
}

static int read_page(struct reading *reading)
{
    const struct postgres_job job = { send_page, take_page, reading, true, 0 };
    uint64_t final_before = reading->final;

    reading->page = next_page(reading);
    det_assert(reading->page > 0 && reading->page <= PAGE_ROWS);
    PQclear(reading->rows);
    reading->rows = NULL;
    reading->final = final_now(reading->store);
    det_assert(final_before <= reading->final);
    return det_postgres_run(reading->store, &job, NULL);
}

static int give_row(struct reading *reading, int row)
{
    struct det_trace_context trace;
    const struct det_sql_row place = det_postgres_row(reading->rows, row);
    struct det_store_logged logged = det_sql_logged_read(&reading->store->store, &place, &trace);

    if (!logged.is_start)
        reading->event_at = (int64_t)logged.position;
    if (logged.is_start) {
        reading->start_at = (int64_t)logged.position;
        reading->start_key = det_sql_number(&place, DET_SQL_LOGGED_INSTANCE);
    }
    return det_log_select(&reading->walk, &logged) ? reading->visit(reading->context, &logged) : 0;
}

/* True if rows may still appear between the last row and this position. */
static bool is_gap(const struct reading *reading, uint64_t position)
{
    return !reading->is_backward && position > reading->walk.next + 1 &&
           position - 1 > reading->final;
}

enum { ALL, MORE, GAP };

/* ALL, MORE or GAP in `ret`: why the page ended; returns the visitor's value. */
static int give_page(struct reading *reading, int *ret)
{
    int r = 0, count = PQntuples(reading->rows);

    *ret = (size_t)count == reading->page ? MORE : ALL;
    for (int i = 0; r == 0 && i < count; i++) {
        uint64_t position =
            (uint64_t)det_postgres_number(reading->rows, i, DET_SQL_LOGGED_POSITION);

        if (det_log_ends(&reading->walk, position)) {
            *ret = ALL;
            return 0;
        }
        if (is_gap(reading, position)) {
            *ret = GAP;
            return 0;
        }
        r = give_row(reading, i);
    }
    if (*ret == ALL && reading->is_backward)
        reading->walk.next = 0;
    return r;
}

/* Checks once more, after a wait if the last check was in vain. 1: read again; 0: that was the last
 * check. A call that has returned rows does not wait: the next call continues. */
static int check_again(struct reading *reading, uint64_t *ret_last)
{
    struct det_world *world = reading->store->store.world;
    int r;

    if (reading->checks == reading->checks_max || (reading->checks > 0 && reading->walk.wanted > 0))
        return 0;
    if (reading->checks > 0) {
        r = det_world_sleep(world, FIRST_WAIT << (reading->checks - 1));
        if (r < 0)
            return r;
    }
    reading->checks++;
    det_assert(reading->checks <= reading->checks_max);
    r = search_end(reading->store, ret_last);
    return r < 0 ? r : 1;
}

static int read_on(struct reading *reading)
{
    int r = 0, why = MORE;
    uint64_t last;

    while (r == 0 && why != ALL) {
        r = read_page(reading);
        if (r == 0)
            r = give_page(reading, &why);
        if (r != 0 || why != GAP)
            continue;
        r = check_again(reading, &last);
        if (r <= 0)
            return r;
        r = 0;
    }
    return r;
}

/* A backward walk begins at a final position, so that continuing forward misses no row. If no
 * position is known to be final yet, this does not report the end of the log. */
static int find_end(struct reading *reading)
{
    uint64_t after = reading->walk.query->after, last = 0, wanted;
    int r = 1;

    if (reading->walk.query->wants_end || final_now(reading->store) == 0)
        reading->checks_max = END_CHECKS_MAX;
    wanted = after && after <= INT64_MAX ? after - 1 : INT64_MAX;
    while (r > 0 && final_now(reading->store) < wanted) {
        r = check_again(reading, &last);
        if (r > 0 && reading->checks == 1 && last < wanted)
            wanted = last;
    }
    if (r < 0)
        return r;
    last = final_now(reading->store);
    if (last < wanted && (last == 0 || reading->walk.query->wants_end))
        return DET_ERR_BUSY;
    reading->event_at = reading->start_at = (int64_t)(last < wanted ? last : wanted) + 1;
    reading->start_key = INT64_MIN;
    return 0;
}

int det_postgres_log(
    struct det_store *base, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next)
{
    struct reading reading = { .store = postgres_store_of(base),
                               .visit = visit,
                               .context = context,
                               .is_backward = query->is_backward,
                               .start_key = INT64_MAX,
                               .checks_max = CHECKS_MAX };
    int r = 0;

    det_rows_log_begin(&reading.walk, query);
    if (query->is_backward)
        r = find_end(&reading);
    else
        reading.event_at = reading.start_at =
            query->after < INT64_MAX ? (int64_t)query->after : INT64_MAX;
    if (r == 0)
        r = read_on(&reading);
    PQclear(reading.rows);
    if (r == 0)
        *ret_next = reading.walk.next;
    return r;
}
