/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - the log: events and starts by their positions, some of which may still be uncommitted.
 *
 *     positions   5  6  7  8  9 10 11        8: its transaction is under way, or was rolled back
 *                 x  x  x  .  x  x  .        the reader stops at 7, or, if 8 is final, at 10
 *
 * Positions come from a sequence, and transactions end in any order. So a gap is passed only when
 * everything up to some position after it is known to be final, see docs/formats/sql_schema.md:
 *
 *     the last position that is visible, `seen` --> who writes now, `writers`
 *     ... none of these writes any more         --> `final` = `seen`
 *
 * Invariants
 *   1. `final` only grows, and holds for what is read after it was found: so it is asked for before
 *      a page is, never after.
 *   2. A writer has a lock on the table before it gets a position, and until it is visible. */
#include <detent/tool/store.h>

#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/session.h"
#include "store/sql/log.h"

/* A page begins with few rows, and has more or fewer then, by how long they are: all of it comes
 * into memory at once. */
#define PAGE_ROWS  1024
#define PAGE_FIRST 64
#define PAGE_BYTES (256u << 10)
/* How often one call looks whether a gap is final, and how long it waits before the second look;
 * each further wait is twice as long. The end of the log is worth a longer wait (half a second). */
#define LOOKS_MAX     6
#define END_LOOKS_MAX 10
#define FIRST_WAIT    DET_MILLISECOND

/* What is final. */

struct looking {
    uint64_t seen; /* of the look before; 0: there was none */
    char *writers;
    uint64_t last; /* of this one */
    bool is_standby, is_over;
    char *writing; /* NULL: nobody */
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

/* The look before, as a copy: others look too. */
static int recall_look(struct postgres_store *store, struct looking *looking)
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

/* Whatever two looks of other threads have found meanwhile: each is true by itself. */
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

/* One look; `ret` is the last position that was visible then. */
static int look_for_end(struct postgres_store *store, uint64_t *ret)
{
    struct looking looking = { 0 };
    const struct postgres_job job = { send_looking, take_looking, &looking, true, 0 };
    int r;

    r = recall_look(store, &looking);
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
    uint64_t final; /* before the page was read */
    unsigned looks, looks_max;
    size_t page; /* rows that were asked for */
    PGresult *rows;
};

/* One more than are wanted says where the last one ends, see det_log_ends(). */
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

/* Others may have migrated the store. */
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

    reading->page = next_page(reading);
    PQclear(reading->rows);
    reading->rows = NULL;
    reading->final = final_now(reading->store);
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
    return det_log_look(&reading->walk, &logged) ? reading->visit(reading->context, &logged) : 0;
}

/* Whether somebody may still come between the last row and this position. */
static bool is_gap(const struct reading *reading, uint64_t position)
{
    return !reading->is_backward && position > reading->walk.next + 1 &&
           position - 1 > reading->final;
}

enum { ALL, MORE, GAP };

/* ALL, MORE or GAP in `ret`: why it has ended; or what the visitor answers. */
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

/* Looks once more, after a wait if it was in vain. 1: it is worth to read again; 0: that was the
 * last time. Who has been given something does not wait: the next call goes on. */
static int look_again(struct reading *reading, uint64_t *ret_last)
{
    struct det_world *world = reading->store->store.world;
    int r;

    if (reading->looks == reading->looks_max || (reading->looks > 0 && reading->walk.wanted > 0))
        return 0;
    if (reading->looks > 0) {
        r = det_world_sleep(world, FIRST_WAIT << (reading->looks - 1));
        if (r < 0)
            return r;
    }
    reading->looks++;
    r = look_for_end(reading->store, ret_last);
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
        r = look_again(reading, &last);
        if (r <= 0)
            return r;
        r = 0;
    }
    return r;
}

/* Backward begins where everything is final, so that who then goes on forward misses nothing. An
 * opening that knows of nothing final yet does not take that for the end of the log. */
static int find_end(struct reading *reading)
{
    uint64_t after = reading->walk.query->after, last = 0, wanted;
    int r = 1;

    if (reading->walk.query->wants_end || final_now(reading->store) == 0)
        reading->looks_max = END_LOOKS_MAX;
    wanted = after && after <= INT64_MAX ? after - 1 : INT64_MAX;
    while (r > 0 && final_now(reading->store) < wanted) {
        r = look_again(reading, &last);
        if (r > 0 && reading->looks == 1 && last < wanted)
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
                               .looks_max = LOOKS_MAX };
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
