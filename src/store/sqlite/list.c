/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.c - lists of instances and of due work. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/row.h"
#include "store/sqlite/sqlite.h"

/* The rest of a list, after `after`, at most `left` more. */
struct listing {
    const struct det_machine *machine;
    const struct det_store_query *query;
    char after[DET_ID_MAX + 1];
    size_t left;
    det_time now; /* locks that have lapsed by then count as free */
    /* For a selection of few out of many: tries the first ones, then scans in the order of the
     * table, a number of rows at a time. Going by id would read a page of the file for each row. */
    enum sqlite_statement statement;
    struct det_sql_page page;
};
#define PROBE_ROWS 2000
#define SCAN_ROWS  50000

static void bind_listing(struct sqlite_call *call, void *context)
{
    const struct listing *listing = context;
    const struct det_store_query *query = listing->query;

    det_sqlite_text(call, listing->machine->name);
    det_sqlite_text(call, listing->after);
    det_sqlite_text(call, query->has_state ? listing->machine->states[query->state].name : NULL);
    det_sqlite_number(call, query->moved_before);
    if (query->stopped == DET_STORE_ANY)
        det_sqlite_null(call);
    else
        det_sqlite_number(call, query->stopped == DET_STORE_STOPPED);
    det_sqlite_number(call, query->has_dead);
    if (listing->statement == STATEMENT_INSTANCE_SCAN && listing->left > SCAN_ROWS)
        det_sqlite_number(call, SCAN_ROWS);
    else
        det_sqlite_number(call, listing->left < INT64_MAX ? (int64_t)listing->left : -1);
    if (query->is_locked)
        det_sqlite_number(call, listing->now);
    else if (listing->statement == STATEMENT_INSTANCE_PROBE)
        det_sqlite_number(call, PROBE_ROWS);
}

static int read_listed(struct sqlite_call *call, void *context)
{
    struct listing *listing = context;
    uint16_t state = 0;
    struct det_store_listed row = {
        .id = det_sqlite_get_text(call, 0, false),
        .is_stopped = det_sqlite_get_number(call, 2) != 0,
        .sequence = (uint64_t)det_sqlite_get_number(call, 3),
        .started_at = det_sqlite_get_number(call, 4),
        .moved_at = det_sqlite_get_number(call, 5),
    };
    int r = 0;

    if (!listing->query->ids_only)
        r = det_row_state_find(listing->machine, det_sqlite_get_text(call, 1, false), &state);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    row.state = state;
    if (r == 0 && !det_text_copy(listing->after, sizeof listing->after, row.id))
        r = DET_ERR_CORRUPT;
    if (r == 0)
        r = det_sql_page_keep(&listing->page, &row.id);
    if (r == 0)
        r = det_sql_page_add(&listing->page, &row);
    /* A scan of the whole table is read to its end. */
    return r > 0 && listing->statement == STATEMENT_INSTANCE_SCAN ? 0 : r;
}

static void bind_many(struct sqlite_call *call, void *context)
{
    const struct listing *listing = context;

    det_sqlite_text(call, listing->machine->name);
    det_sqlite_text(call, listing->after);
    det_sqlite_number(call, PROBE_ROWS);
}

static int read_many(struct sqlite_call *call, void *context)
{
    (void)call;
    (void)context;
    return 1;
}

static int choose_statement(struct sqlite_store *store, struct listing *listing)
{
    const struct det_store_query *query = listing->query;
    const struct sqlite_question many = { STATEMENT_INSTANCE_MANY, bind_many, read_many, listing };
    int r = 0;

    listing->statement = query->is_locked  ? STATEMENT_INSTANCE_LOCKED
                         : query->has_dead ? STATEMENT_INSTANCE_DEAD
                                           : STATEMENT_INSTANCE_LIST;
    if (listing->statement == STATEMENT_INSTANCE_LIST &&
        (query->has_state || query->moved_before || query->stopped != DET_STORE_ANY))
        r = det_sqlite_ask(store, &many);
    if (r > 0)
        listing->statement = STATEMENT_INSTANCE_PROBE;
    return r < 0 ? r : 0;
}

/* True if there may be rows after this page; `r` is the result of reading it. */
static int goes_on(struct listing *listing, int r, size_t rows)
{
    if (r == 0 && listing->statement == STATEMENT_INSTANCE_SCAN)
        return rows == SCAN_ROWS;
    if (r < 0 || listing->statement != STATEMENT_INSTANCE_PROBE)
        return r;
    listing->statement = STATEMENT_INSTANCE_SCAN;
    return 1;
}

/* Rows read before an error are shown before it is returned. */
static int show_listing(
    struct sqlite_store *store, struct listing *listing,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    int r, more;

    r = choose_statement(store, listing);
    if (r < 0)
        return r;
    do {
        const struct sqlite_question question = { listing->statement, bind_listing, read_listed,
                                                  listing };
        const struct det_store_listed *row = NULL;
        size_t rows;

        det_sql_page_clear(&listing->page);
        more = det_sqlite_ask(store, &question);
        rows = listing->page.rows.size / sizeof *row;
        more = goes_on(listing, more, rows);
        r = 0;
        while (r == 0 && (row = det_sql_page_next(&listing->page, row)))
            r = visit(context, row);
        det_assert(rows <= listing->left);
        listing->left -= rows;
    } while (r == 0 && more > 0 && listing->left > 0);
    return r == 0 && more < 0 ? more : r;
}

int det_sqlite_list(
    struct det_store *base, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    static const struct det_store_query all = { 0 };
    struct listing listing = { .machine = machine, .query = query ? query : &all };
    int r;

    det_contract_list(machine, query, visit);
    listing.left = listing.query->limit ? listing.query->limit : SIZE_MAX;
    listing.now = det_world_now(base->world, DET_CLOCK_WALL);
    if (listing.query->after)
        (void)det_text_copy(listing.after, sizeof listing.after, listing.query->after);
    det_sql_page_init(&listing.page, base->allocator, sizeof(struct det_store_listed));
    r = show_listing(sqlite_store_of(base), &listing, visit, context);
    det_sql_page_deinit(&listing.page);
    return r;
}

/* Due work: timers and effects, each by time, merged. */

struct source {
    struct sqlite_call call;
    bool is_timer, has_row;
    det_time due;
};

static int source_next(struct source *source)
{
    int r;

    r = det_sqlite_step(&source->call);
    source->has_row = r > 0;
    if (r > 0)
        source->due = det_sqlite_get_number(&source->call, 1);
    return r < 0 ? r : 0;
}

static int source_open(
    struct source *source, struct sqlite_connection *reader, const struct det_machine *machine,
    const struct det_store_due_query *query)
{
    bool is_timer = source->is_timer;

    det_sqlite_call(reader, is_timer ? STATEMENT_TIMER_DUE : STATEMENT_OUTBOX_DUE, &source->call);
    det_sqlite_text(&source->call, machine->name);
    det_sqlite_number(&source->call, query->from ? query->from : INT64_MIN);
    if (query->kind == (is_timer ? DET_DUE_EFFECTS : DET_DUE_TIMERS))
        return 0;
    return source_next(source);
}

static struct source *earlier_source(struct source *timers, struct source *effects)
{
    if (!timers->has_row)
        return effects;
    return effects->has_row && effects->due < timers->due ? effects : timers;
}

struct due {
    const struct det_store_due_query *query;
    det_time next;
    struct det_sql_page page; /* all of it: the caller sets the limit */
};

static int read_due(struct source *timers, struct source *effects, struct due *due)
{
    struct source *source;
    int r;

    for (size_t count = 0; (source = earlier_source(timers, effects))->has_row; count++) {
        struct det_store_due row = { .due = source->due, .is_timer = source->is_timer };

        if (source->due > due->query->before || count == due->query->limit) {
            due->next = source->due;
            return 0;
        }
        row.id = det_sqlite_get_text(&source->call, 0, false);
        r = det_sqlite_error(source->call.code);
        if (r == 0)
            r = det_sql_page_keep(&due->page, &row.id);
        if (r == 0)
            r = det_sql_page_add(&due->page, &row);
        if (r >= 0)
            r = source_next(source);
        if (r < 0)
            return r;
    }
    due->next = DET_NEVER;
    return 0;
}

static int read_sources(
    struct sqlite_store *store, const struct det_machine *machine, struct due *due)
{
    struct source timers = { .is_timer = true }, effects = { .is_timer = false };
    struct sqlite_connection *reader;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    r = source_open(&timers, reader, machine, due->query);
    if (r == 0) {
        r = source_open(&effects, reader, machine, due->query);
        if (r == 0)
            r = read_due(&timers, &effects, due);
        det_sqlite_end(&effects.call);
    }
    det_sqlite_end(&timers.call);
    det_sqlite_reader_end(store, reader);
    return r;
}

int det_sqlite_due(
    struct det_store *base, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct due due = { .query = query };
    const struct det_store_due *row = NULL;
    int r;

    det_contract_due(machine, query, visit, ret_next);
    det_sql_page_init(&due.page, base->allocator, sizeof *row);
    r = read_sources(sqlite_store_of(base), machine, &due);
    while (r == 0 && (row = det_sql_page_next(&due.page, row)))
        r = visit(context, row);
    det_sql_page_deinit(&due.page);
    if (r == 0)
        *ret_next = due.next;
    return r;
}
