/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.c - over many instances: whether they fit a definition, lists of them, and what is
 * due. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/row.h"
#include "store/sqlite/sqlite.h"

/* Serving. */

/* Names that are in use, and where they are sought in a definition. */
static const struct used {
    enum sqlite_statement statement;
    int (*find)(const struct det_machine *machine, const char *name);
    const char *kind, *users;
} used[] = {
    { STATEMENT_USED_STATES, det_machine_find_state, "state", "instances in it" },
    { STATEMENT_USED_TIMERS, det_row_timer_seek, "timer", "some that are armed" },
    { STATEMENT_USED_TIMER_EVENTS, det_machine_find_event, "event", "armed timers that send it" },
    { STATEMENT_USED_EFFECTS, det_machine_find_effect, "effect", "some that have not ended" },
    { STATEMENT_USED_EFFECT_EVENTS, det_machine_find_event, "event", "effects that it asked for" },
};

static int check_used(
    struct sqlite_connection *reader, const struct used *names, const struct det_machine *machine,
    struct det_error *reterr)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, names->statement, &call);
    det_sqlite_text(&call, machine->name);
    while ((r = det_sqlite_step(&call)) > 0) {
        const char *name = det_sqlite_get_text(&call, 0, false);

        if (names->find(machine, name) >= 0)
            continue;
        r = det_error_set(
            reterr, DET_ERR_VERSION,
            "version %u of %s has no %s \"%s\", but the store has %s: %lld; bring the name back, "
            "or migrate the instances first (\"detent diff\" shows what else is stranded)",
            machine->version, machine->name, names->kind, name, names->users,
            (long long)det_sqlite_get_number(&call, 1));
        break;
    }
    det_sqlite_end(&call);
    return r;
}

/* Whether a statement about the definition finds a row: 1, 0 or an error. */
static int asks(
    struct sqlite_connection *connection, enum sqlite_statement statement,
    const struct sqlite_definition *definition)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, statement, &call);
    det_sqlite_text(&call, definition->machine->name);
    if (statement == STATEMENT_DEFINITION_KNOWN)
        det_sqlite_number(&call, definition->machine->version);
    det_sqlite_text(&call, definition->fingerprint);
    r = det_sqlite_step(&call);
    det_sqlite_end(&call);
    return r;
}

int det_sqlite_definition_fits(
    struct sqlite_connection *connection, const struct sqlite_definition *definition,
    struct det_error *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof used / sizeof used[0]; i++)
        r = check_used(connection, &used[i], definition->machine, reterr);
    return r;
}

/* Where no other definition was ever served, all that is stored was written by this one, and need
 * not be looked through. */
static int check_fits(
    struct sqlite_connection *reader, const struct sqlite_definition *definition, bool *ret_known,
    struct det_error *reterr)
{
    int r, other;

    r = asks(reader, STATEMENT_DEFINITION_KNOWN, definition);
    if (r < 0)
        return r;
    *ret_known = r > 0;
    other = asks(reader, STATEMENT_DEFINITION_OTHER, definition);
    if (other < 0)
        return other;
    if (*ret_known && !other && definition->spec.size > 0)
        return 0;
    return det_sqlite_definition_fits(reader, definition, reterr);
}

int det_sqlite_definition_keep(
    struct sqlite_store *store, const struct sqlite_definition *definition)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, STATEMENT_DEFINITION_SET, &call);
    det_sqlite_text(&call, definition->machine->name);
    det_sqlite_number(&call, definition->machine->version);
    det_sqlite_text(&call, definition->fingerprint);
    det_sqlite_text(&call, det_buffer_text(&definition->spec));
    det_sqlite_number(&call, det_world_now(store->store.world, DET_CLOCK_WALL));
    return det_sqlite_run(&call);
}

static int keep_alone(struct sqlite_store *store, void *context)
{
    return det_sqlite_definition_keep(store, context);
}

static int serve(
    struct sqlite_store *store, struct sqlite_definition *definition, struct det_error *reterr)
{
    struct sqlite_connection *reader;
    bool is_known = false;
    int r;

    if (reterr)
        reterr->code = 0;
    r = det_sqlite_reader(store, &reader);
    if (r == 0) {
        r = check_fits(reader, definition, &is_known, reterr);
        det_sqlite_reader_end(store, reader);
    }
    if (r == 0 && !is_known && store->writer.database)
        r = det_sqlite_alone(store, keep_alone, definition);
    if (r < 0 && reterr && reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s: cannot serve %s: %s", store->path, definition->machine->name,
            det_error_text(r));
    return r;
}

int det_sqlite_definition_open(
    const struct sqlite_store *store, const struct det_machine *machine,
    struct sqlite_definition *ret)
{
    int r;

    ret->machine = machine;
    det_buffer_init(&ret->spec, store->store.allocator);
    r = det_row_spec(machine, &ret->spec);
    if (r < 0)
        det_buffer_deinit(&ret->spec);
    else
        det_chain_fingerprint(det_buffer_text(&ret->spec), ret->fingerprint);
    return r;
}

void det_sqlite_definition_close(struct sqlite_definition *definition)
{
    det_buffer_deinit(&definition->spec);
}

int det_sqlite_serve(
    struct det_store *base, const struct det_machine *machine, struct det_error *reterr)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_definition definition;
    int r;

    r = det_sqlite_definition_open(store, machine, &definition);
    if (r < 0)
        return det_error_set(reterr, r, "no memory for the definition of %s", machine->name);
    r = serve(store, &definition, reterr);
    det_sqlite_definition_close(&definition);
    return r;
}

/* Lists. */

/* A list that goes on behind `after` with at most `left` more. */
struct listing {
    const struct det_machine *machine;
    const struct det_store_query *query;
    char after[DET_ID_MAX + 1];
    size_t left;
    det_time now; /* locks that have lapsed by then are none */
    /* Where few of many may be wanted: a look at the first ones, then all in the order of the
     * table, so many at a time. To go by the ids would read a page of the file for each. */
    enum sqlite_statement statement;
    struct sqlite_page page;
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
        r = det_sqlite_page_keep(&listing->page, &row.id);
    if (r == 0)
        r = det_sqlite_page_add(&listing->page, &row);
    /* What was looked for in the whole table is read to its end. */
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

/* Whether there may be more behind a page; `r` is what reading it has answered. */
static int goes_on(struct listing *listing, int r, size_t rows)
{
    if (r == 0 && listing->statement == STATEMENT_INSTANCE_SCAN)
        return rows == SCAN_ROWS;
    if (r < 0 || listing->statement != STATEMENT_INSTANCE_PROBE)
        return r;
    listing->statement = STATEMENT_INSTANCE_SCAN;
    return 1;
}

/* What could be read before an error is shown before it is told. */
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

        det_sqlite_page_clear(&listing->page);
        more = det_sqlite_ask(store, &question);
        rows = listing->page.rows.size / sizeof *row;
        more = goes_on(listing, more, rows);
        r = 0;
        while (r == 0 && (row = det_sqlite_page_next(&listing->page, row)))
            r = visit(context, row);
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

    listing.left = listing.query->limit ? listing.query->limit : SIZE_MAX;
    listing.now = det_world_now(base->world, DET_CLOCK_WALL);
    if (listing.query->after)
        (void)det_text_copy(listing.after, sizeof listing.after, listing.query->after);
    det_sqlite_page_init(&listing.page, base->allocator, sizeof(struct det_store_listed));
    r = show_listing(sqlite_store_of(base), &listing, visit, context);
    det_sqlite_page_deinit(&listing.page);
    return r;
}

/* What is due: timers and effects, each by their time, merged. */

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

static struct source *earlier(struct source *timers, struct source *effects)
{
    if (!timers->has_row)
        return effects;
    return effects->has_row && effects->due < timers->due ? effects : timers;
}

struct due {
    const struct det_store_due_query *query;
    det_time next;
    struct sqlite_page page; /* all of it: the limit is the caller's */
};

static int read_due(struct source *timers, struct source *effects, struct due *due)
{
    struct source *source;
    int r;

    for (size_t count = 0; (source = earlier(timers, effects))->has_row; count++) {
        struct det_store_due row = { .due = source->due, .is_timer = source->is_timer };

        if (source->due > due->query->before || count == due->query->limit) {
            due->next = source->due;
            return 0;
        }
        row.id = det_sqlite_get_text(&source->call, 0, false);
        r = det_sqlite_error(source->call.code);
        if (r == 0)
            r = det_sqlite_page_keep(&due->page, &row.id);
        if (r == 0)
            r = det_sqlite_page_add(&due->page, &row);
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

    det_sqlite_page_init(&due.page, base->allocator, sizeof *row);
    r = read_sources(sqlite_store_of(base), machine, &due);
    while (r == 0 && (row = det_sqlite_page_next(&due.page, row)))
        r = visit(context, row);
    det_sqlite_page_deinit(&due.page);
    if (r == 0)
        *ret_next = due.next;
    return r;
}

/* What is in a store. */

struct stored {
    const char *name, *spec;
    uint32_t version;
};

/* All of them: there are as many as there are definitions. */
static int read_stored(struct sqlite_call *call, void *context)
{
    struct stored stored = { det_sqlite_get_text(call, 0, false),
                             det_sqlite_get_text(call, 2, false),
                             (uint32_t)det_sqlite_get_number(call, 1) };
    int r;

    r = det_sqlite_get_whole(call, 3);
    if (r == 0)
        r = det_sqlite_page_keep(context, &stored.name);
    if (r == 0)
        r = det_sqlite_page_keep(context, &stored.spec);
    if (r == 0)
        r = det_sqlite_page_add(context, &stored);
    return r < 0 ? r : 0;
}

int det_sqlite_machines(
    struct det_store *base,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context)
{
    struct sqlite_page page;
    const struct sqlite_question question = { STATEMENT_DEFINITION_LIST, NULL, read_stored, &page };
    const struct stored *row = NULL;
    int r;

    det_sqlite_page_init(&page, base->allocator, sizeof *row);
    r = det_sqlite_ask(sqlite_store_of(base), &question);
    while (r == 0 && (row = det_sqlite_page_next(&page, row)))
        r = visit(context, row->name, row->version, row->spec);
    det_sqlite_page_deinit(&page);
    return r;
}
