/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - the log: events and starts, each by position, merged.
 *
 * There is one writer, and positions are assigned in the order of commits: a transaction sees all
 * rows up to the last position in it. So each page of a walk may be a separate snapshot.
 *
 *     forward    ... starts at 7, event 7, starts at 8 ...
 *     backward   ... starts at 8, event 7, starts at 7 ...
 *
 * Invariants
 *   1. `event_at` and `start_at`, `start_key` are the last rows read of each table: the next page
 *      continues after them, also between rows that share a position.
 *   2. A page ends when it is full or has read PAGE_CHECKS rows, so that no transaction is long:
 *      the write-ahead log cannot shrink during one. */
#include <detent/tool/store.h>

#include "base/memory.h"
#include "os/os.h"
#include "store/log.h"
#include "store/sql/log.h"
#include "store/sqlite/session.h"

#define PAGE_CHECKS 10000

struct source {
    struct sqlite_call call;
    bool is_start, has_row;
    int64_t position;
};

struct reading {
    struct sqlite_store *store;
    struct det_log_walk walk;
    bool is_backward;
    int64_t event_at, start_at, start_key;
    struct det_sql_page page;
};

static int source_next(struct source *source)
{
    int r;

    r = det_sqlite_step(&source->call);
    source->has_row = r > 0;
    if (r > 0)
        source->position = det_sqlite_get_number(&source->call, DET_SQL_LOGGED_POSITION);
    return r < 0 ? r : 0;
}

static int source_open(
    struct source *source, struct sqlite_connection *reader, const struct reading *reading)
{
    static const enum sqlite_statement statements[2][2] = {
        { STATEMENT_LOG_EVENTS, STATEMENT_LOG_EVENTS_BACK },
        { STATEMENT_LOG_STARTS, STATEMENT_LOG_STARTS_BACK },
    };

    det_sqlite_call(reader, statements[source->is_start][reading->is_backward], &source->call);
    det_sqlite_number(&source->call, source->is_start ? reading->start_at : reading->event_at);
    if (source->is_start)
        det_sqlite_number(&source->call, reading->start_key);
    return source_next(source);
}

/* The source of the next row; at one position starts come before the event. */
static struct source *choose_source(
    const struct reading *reading, struct source *events, struct source *starts)
{
    bool is_start_lower = starts->position <= events->position;

    if (!events->has_row || !starts->has_row)
        return starts->has_row ? starts : events;
    return is_start_lower != reading->is_backward ? starts : events;
}

/* Copies a row into the page; 1: the page is full now. */
static int keep_row(struct reading *reading, struct det_store_logged row)
{
    const char **texts[] = { &row.machine, &row.id,      &row.from,     &row.to,
                             &row.event,   &row.outcome, &row.event_id, &row.cause };
    int r = 0;

    if (row.trace)
        r = det_sql_page_keep_trace(&reading->page, row.trace, &row.trace);
    for (size_t i = 0; r == 0 && i < sizeof texts / sizeof *texts; i++)
        r = det_sql_page_keep(&reading->page, texts[i]);
    if (r == 0 && row.payload) {
        row.payload = det_arena_copy_n(&reading->page.texts, row.payload, row.payload_size);
        r = row.payload ? 0 : DET_ERR_NO_MEMORY;
    }
    return r < 0 ? r : det_sql_page_add(&reading->page, &row);
}

static int take_row(struct reading *reading, struct source *source)
{
    const struct det_sql_row row = det_sqlite_row(&source->call);
    struct det_trace_context trace;
    struct det_store_logged logged = det_sql_logged_read(&reading->store->store, &row, &trace);
    int r = 0;

    if (source->call.code != SQLITE_OK)
        return det_sqlite_error(source->call.code);
    if (det_log_select(&reading->walk, &logged))
        r = keep_row(reading, logged);
    if (!source->is_start)
        reading->event_at = source->position;
    if (source->is_start) {
        reading->start_at = source->position;
        reading->start_key = det_sqlite_get_number(&source->call, DET_SQL_LOGGED_INSTANCE);
    }
    return r;
}

/* 1: there may be more; 0: the limit or the end is reached. */
static int read_merged(struct reading *reading, struct source *events, struct source *starts)
{
    struct source *source;
    size_t looks = 0;
    int r, full = 0;

    while (!full && (source = choose_source(reading, events, starts))->has_row) {
        if (det_log_ends(&reading->walk, (uint64_t)source->position))
            return 0;
        full = take_row(reading, source);
        if (full < 0)
            return full;
        r = source_next(source);
        if (r < 0)
            return r;
        full = full || ++looks == PAGE_CHECKS;
    }
    if (!full && reading->is_backward)
        reading->walk.next = 0;
    return full;
}

static int read_page(struct reading *reading)
{
    struct source events = { .is_start = false }, starts = { .is_start = true };
    struct sqlite_connection *reader;
    int r;

    det_sql_page_clear(&reading->page);
    r = det_sqlite_reader(reading->store, &reader);
    if (r < 0)
        return r;
    r = det_sqlite_renames_refresh(reading->store, reader);
    if (r == 0)
        r = source_open(&events, reader, reading);
    if (r == 0)
        r = source_open(&starts, reader, reading);
    if (r == 0)
        r = read_merged(reading, &events, &starts);
    det_sqlite_end(&events.call);
    det_sqlite_end(&starts.call);
    det_sqlite_reader_end(reading->store, reader);
    return r;
}

static void begin_reading(struct reading *reading, const struct det_store_log_query *query)
{
    bool is_from_end = query->is_backward && !query->after;
    int64_t at = is_from_end || query->after > INT64_MAX ? INT64_MAX : (int64_t)query->after;

    det_rows_log_begin(&reading->walk, query);
    reading->is_backward = query->is_backward;
    reading->event_at = reading->start_at = at;
    reading->start_key = query->is_backward && at < INT64_MAX ? INT64_MIN : INT64_MAX;
}

/* Rows read before an error are shown before it is returned. */
int det_sqlite_log(
    struct det_store *base, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next)
{
    struct reading reading = { .store = sqlite_store_of(base) };
    const struct det_store_logged *row;
    int r, more;

    begin_reading(&reading, query);
    det_sql_page_init(&reading.page, base->allocator, sizeof *row);
    do {
        row = NULL;
        more = read_page(&reading);
        r = 0;
        while (r == 0 && (row = det_sql_page_next(&reading.page, row)))
            r = visit(context, row);
    } while (r == 0 && more > 0);
    det_sql_page_deinit(&reading.page);
    if (r == 0 && more < 0)
        r = more;
    if (r == 0)
        *ret_next = reading.walk.next;
    return r;
}
