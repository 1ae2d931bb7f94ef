/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* events.c - the chain of an instance's events, from the newest back.
 *
 *     instances.last_event --> e9 --previous--> e8 --> ... --> e4 --> 0
 *
 * To visit the oldest first, one walk back notes where each chunk begins. Then each chunk, the
 * oldest first, is walked again and its positions are noted; these rows are read page by page. Each
 * page is a transaction. If rows were deleted in between, the rest is noted again.
 *
 * If an instance has many events with few of others between them, they are read in the order of the
 * table, which takes a tenth of the time. Once a row is missing there, the chain is walked. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/sql/load.h"
#include "store/sql/log.h"
#include "store/sqlite/session.h"

#define CHUNK 4096u
/* Limit of a scan: this many rows per requested row. */
#define SCAN_FACTOR 4u
/* Limit of events read for a history; an instance with few changes of state gets a shorter one. */
#define HISTORY_STEPS 4096u

/* The common columns of EVENT_READ and EVENT_SCAN. */
static int read_columns(struct sqlite_call *call, struct sqlite_event *ret)
{
    const struct det_sql_row row = det_sqlite_row(call);
    struct det_chain_bytes hash;

    ret->previous = det_sqlite_get_number(call, 0);
    ret->event = det_sql_event_read(&row, &hash);
    ret->has_trace = det_trace_context_read(det_sql_bytes(&row, DET_SQL_EVENT_TRACE), &ret->trace);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    if (!hash.data || hash.size != DET_CHAIN_SIZE)
        return DET_ERR_CORRUPT;
    memcpy(ret->hash.bytes, hash.data, DET_CHAIN_SIZE);
    return 0;
}

int det_sqlite_event_read(
    struct sqlite_connection *connection, int64_t position, int64_t key, struct sqlite_call *call,
    struct sqlite_event *ret)
{
    int r;

    det_sqlite_call(connection, STATEMENT_EVENT_READ, call);
    det_sqlite_number(call, position);
    det_sqlite_number(call, key);
    r = det_sqlite_step(call);
    if (r <= 0)
        return r < 0 ? r : DET_ERR_CORRUPT;
    return read_columns(call, ret);
}

int det_sqlite_step_read(
    struct sqlite_connection *connection, int64_t key, int64_t position, uint64_t expected,
    struct sqlite_step *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_EVENT_STEP, &call);
    det_sqlite_number(&call, position);
    det_sqlite_number(&call, key);
    r = det_sqlite_step(&call);
    ret->position = position;
    if (r > 0) {
        ret->previous = det_sqlite_get_number(&call, 0);
        ret->sequence = (uint64_t)det_sqlite_get_number(&call, 1);
    }
    det_sqlite_end(&call);
    if (r < 0)
        return r;
    return r > 0 && ret->sequence == expected ? 0 : DET_ERR_CORRUPT;
}

/* The current beginning of an instance's chain. */
static int read_last(
    struct sqlite_connection *connection, int64_t key, int64_t *ret_position,
    uint64_t *ret_sequence)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_INSTANCE_REFRESH, &call);
    det_sqlite_number(&call, key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        *ret_sequence = (uint64_t)det_sqlite_get_number(&call, 0);
        *ret_position = det_sqlite_get_number(&call, 1);
    }
    det_sqlite_end(&call);
    if (r < 0)
        return r;
    return r > 0 ? 0 : DET_ERR_CORRUPT;
}

/* Appends every `stride`-th event after `after`, at most `limit` of them, from `sequence` back. */
struct range {
    int64_t key, position;
    uint64_t sequence, after;
    size_t stride, limit;
};

static int note_steps(
    struct sqlite_connection *reader, struct range range, struct det_buffer *steps)
{
    struct sqlite_step step;
    size_t count = 0;
    int r;

    det_buffer_clear(steps);
    while (range.position && range.sequence > range.after && count < range.limit) {
        r = det_sqlite_step_read(reader, range.key, range.position, range.sequence, &step);
        if (r < 0)
            return r;
        if (count++ % range.stride == 0)
            det_buffer_append(steps, &step, sizeof step);
        if (det_buffer_status(steps) < 0)
            return det_buffer_status(steps);
        range.position = step.previous;
        range.sequence--;
    }
    return 0;
}

/* `chunks` and `steps` are stacks with the oldest on top. */
struct event_walk {
    struct sqlite_store *store;
    const struct sqlite_instance *instance;
    uint64_t after; /* the last event in a page */
    struct det_buffer chunks, steps;
    bool is_noted;
    bool is_begun; /* the method of reading is chosen */
    bool is_scan;  /* in the order of the table: */
    bool has_scanned;
    int64_t from, to;     /* after position `from`, up to position `to` */
    uint64_t to_sequence; /* the sequence at `to` */
    struct det_sql_page page;
};

static bool pop_step(struct det_buffer *steps, struct sqlite_step *ret)
{
    det_assert(steps->size % sizeof *ret == 0);
    if (!steps->size)
        return false;
    steps->size -= sizeof *ret;
    memcpy(ret, steps->data + steps->size, sizeof *ret);
    steps->data[steps->size] = 0;
    return true;
}

/* Adds an event to the page; 1: the page is full now. */
static int keep_event(struct event_walk *walk, struct sqlite_event *row, int64_t position)
{
    char *value = det_arena_alloc(&walk->page.texts, walk->instance->machine->event_size);
    struct det_store_event event;
    int r;

    if (!value)
        return DET_ERR_NO_MEMORY;
    r = det_sql_event_load(
        &walk->store->store, walk->instance->machine, position, &row->event, value, &event);
    if (r == 0)
        r = det_sql_page_keep(&walk->page, &event.event_id);
    if (r == 0)
        r = det_sql_page_keep(&walk->page, &event.cause);
    if (r == 0 && row->has_trace)
        r = det_sql_page_keep_trace(&walk->page, &row->trace, &event.trace);
    if (r == 0) {
        walk->after = event.sequence;
        r = det_sql_page_add(&walk->page, &event);
    }
    return r;
}

static int read_event(struct event_walk *walk, struct sqlite_connection *reader, int64_t position)
{
    struct sqlite_event row;
    struct sqlite_call call;
    int r;

    r = det_sqlite_event_read(reader, position, walk->instance->key, &call, &row);
    if (r == 0)
        r = keep_event(walk, &row, position);
    det_sqlite_end(&call);
    return r;
}

/* The position of its start in the log; 0: unknown. */
static int read_start_position(struct sqlite_connection *reader, int64_t key, int64_t *ret)
{
    struct sqlite_call call;
    int r;

    *ret = 0;
    det_sqlite_call(reader, STATEMENT_START_READ, &call);
    det_sqlite_number(&call, key);
    r = det_sqlite_step(&call);
    if (r > 0)
        *ret = det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

/* Chooses between scan and chain, see the head of this file. */
static int choose_walk(struct event_walk *walk, struct sqlite_connection *reader)
{
    uint64_t wanted;
    int r;

    det_assert(!walk->is_begun && !walk->is_noted);
    walk->is_begun = true;
    r = read_last(reader, walk->instance->key, &walk->to, &walk->to_sequence);
    wanted = walk->to_sequence > walk->after ? walk->to_sequence - walk->after : 0;
    if (r < 0 || wanted < CHUNK)
        return r;
    r = read_start_position(reader, walk->instance->key, &walk->from);
    walk->is_scan =
        r == 0 && walk->to > walk->from && (uint64_t)(walk->to - walk->from) / SCAN_FACTOR < wanted;
    return r;
}

/* One row of a scan; 1: the page is full now, or the scan has ended. */
static int scan_row(struct event_walk *walk, struct sqlite_call *call, bool *is_first)
{
    int64_t position = det_sqlite_get_number(call, 16);
    struct sqlite_event row;
    int r;

    r = read_columns(call, &row);
    if (r < 0)
        return r;
    if (row.event.sequence <= walk->after)
        return 0;
    /* The predecessors of the first row may be pruned. */
    if (row.event.sequence != walk->after + 1 && !*is_first) {
        walk->is_scan = false;
        return 1;
    }
    *is_first = false;
    walk->from = position;
    return keep_event(walk, &row, position);
}

/* 1: there may be more. */
static int scan_page(struct event_walk *walk, struct sqlite_connection *reader)
{
    bool is_first = !walk->has_scanned;
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, STATEMENT_EVENT_SCAN, &call);
    det_sqlite_number(&call, walk->from);
    det_sqlite_number(&call, walk->instance->key);
    det_sqlite_number(&call, walk->to);
    while ((r = det_sqlite_step(&call)) > 0) {
        r = scan_row(walk, &call, &is_first);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    walk->has_scanned = true;
    if (r != 0)
        return r;
    /* Later events, and those that the scan has not found, are read through the chain. */
    walk->is_scan = false;
    return 1;
}

static int note_chunks(struct event_walk *walk, struct sqlite_connection *reader)
{
    struct range range = {
        .key = walk->instance->key, .after = walk->after, .stride = CHUNK, .limit = SIZE_MAX
    };
    int r;

    walk->is_noted = true;
    det_buffer_clear(&walk->steps);
    r = read_last(reader, range.key, &range.position, &range.sequence);
    return r < 0 ? r : note_steps(reader, range, &walk->chunks);
}

/* 1: there is a next one. */
static int next_step(
    struct event_walk *walk, struct sqlite_connection *reader, struct sqlite_step *ret)
{
    int64_t key = walk->instance->key;
    struct sqlite_step first;
    int r = 0;

    if (!walk->steps.size && pop_step(&walk->chunks, &first))
        r = note_steps(
            reader, (struct range){ key, first.position, first.sequence, walk->after, 1, CHUNK },
            &walk->steps);
    return r < 0 ? r : pop_step(&walk->steps, ret);
}

static int read_noted(struct event_walk *walk, struct sqlite_connection *reader)
{
    struct sqlite_step step;
    int r;

    while ((r = next_step(walk, reader, &step)) > 0) {
        r = read_event(walk, reader, step.position);
        if (r != 0)
            break;
    }
    return r;
}

/* 1: there may be more. */
static int walk_page(struct event_walk *walk, struct sqlite_connection *reader)
{
    bool was_noted = walk->is_noted;
    int r = 0;

    if (!was_noted)
        r = note_chunks(walk, reader);
    if (r == 0)
        r = read_noted(walk, reader);
    if (r == DET_ERR_CORRUPT && was_noted) {
        r = note_chunks(walk, reader);
        if (r == 0)
            r = read_noted(walk, reader);
    }
    return r;
}

static int read_page(struct event_walk *walk)
{
    struct sqlite_connection *reader;
    int r = 0;

    det_sql_page_clear(&walk->page);
    r = det_sqlite_reader(walk->store, &reader);
    if (r < 0)
        return r;
    if (!walk->is_begun)
        r = choose_walk(walk, reader);
    if (r == 0)
        r = walk->is_scan ? scan_page(walk, reader) : walk_page(walk, reader);
    det_sqlite_reader_end(walk->store, reader);
    return r;
}

/* Rows read before an error are shown before it is returned. */
static int show_events(
    struct event_walk *walk, int (*visit)(void *context, const struct det_store_event *row),
    void *context)
{
    int r, more;

    do {
        const struct det_store_event *row = NULL;

        more = read_page(walk);
        r = 0;
        while (r == 0 && (row = det_sql_page_next(&walk->page, row)))
            r = visit(context, row);
    } while (r == 0 && more > 0);
    return r == 0 && more < 0 ? more : r;
}

int det_sqlite_events(
    struct det_store *base, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct event_walk walk = { .store = sqlite_store_of(base),
                               .instance = sqlite_instance_of(instance),
                               .after = after };
    int r;

    det_contract_events(instance, visit);
    det_buffer_init(&walk.chunks, base->allocator);
    det_buffer_init(&walk.steps, base->allocator);
    det_sql_page_init(&walk.page, base->allocator, sizeof(struct det_store_event));
    r = show_events(&walk, visit, context);
    det_buffer_deinit(&walk.chunks);
    det_buffer_deinit(&walk.steps);
    det_sql_page_deinit(&walk.page);
    return r;
}

/* History. */

struct past {
    const struct sqlite_store *store;
    uint64_t sequences[DET_HISTORY_MAX]; /* of the event that left the state */
    uint64_t first;                      /* the oldest event read; 0: none */
    bool is_cut;                         /* older events were deleted */
};

/* Appends the states of the snapshot to those left after it. A damaged snapshot is ignored; the
 * check of the store reports it. An unknown name ends the history. */
static int splice_history(
    struct sqlite_call *call, const struct det_machine *machine, const struct past *past,
    struct det_store_loaded *loaded)
{
    const char *history = det_sqlite_get_text(call, 15, false);
    det_time taken_at = det_sqlite_get_number(call, 16);
    struct sqlite_head row;
    int r;

    r = det_sqlite_head_read(call, &row);
    if (r < 0)
        return r == DET_ERR_CORRUPT ? 0 : r;
    if (det_chain_snapshot_checksum(&row.head, history, taken_at) != row.checksum)
        return 0;
    while (loaded->history_count > 0 &&
           past->sequences[loaded->history_count - 1] <= row.head.sequence)
        loaded->history_count--;
    r = det_row_history_read(machine, history, loaded);
    return r == DET_ERR_VERSION ? 0 : r;
}

static int add_snapshot_history(
    struct sqlite_connection *reader, const struct sqlite_instance *instance,
    const struct past *past, struct det_store_loaded *loaded)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, STATEMENT_SNAPSHOT_READ, &call);
    det_sqlite_number(&call, instance->key);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = splice_history(&call, instance->machine, past, loaded);
    det_sqlite_end(&call);
    return r;
}

/* Reads one event; returns 1 to continue with `*position`, 0 when the history is complete. */
static int look_back(
    struct sqlite_call *call, const struct sqlite_instance *instance, struct past *past,
    struct det_store_loaded *loaded, int64_t *position)
{
    uint64_t sequence = (uint64_t)det_sqlite_get_number(call, 1);
    int outcome = det_outcome_find(det_sqlite_get_text(call, 2, false));
    const char *state = det_renames_apply(
        past->store->sql.renames, instance->machine->name, DET_NAME_STATE, *position,
        det_sqlite_get_text(call, 3, false));
    struct det_chain_hash hash;
    int r;

    r = det_sqlite_get_hash(call, 4, &hash);
    if (r < 0)
        return r;
    /* The newest event must match the head. */
    if (!past->first &&
        (sequence != instance->sequence || memcmp(&hash, &instance->hash, sizeof hash) != 0))
        return DET_ERR_CORRUPT;
    if (past->first && sequence != past->first - 1)
        return DET_ERR_CORRUPT;
    past->first = sequence;
    *position = det_sqlite_get_number(call, 0);
    past->is_cut = *position == 0 && sequence > 1;
    if (outcome != DET_OUTCOME_GOTO)
        return 1;
    past->sequences[loaded->history_count] = sequence;
    if (det_row_state_find(instance->machine, state, &loaded->history[loaded->history_count]) < 0)
        return 0;
    loaded->history_count++;
    return loaded->history_count < DET_HISTORY_MAX &&
           loaded->history_count < loaded->head.transition_count;
}

int det_sqlite_history(
    const struct sqlite_store *store, struct sqlite_connection *reader,
    const struct sqlite_instance *instance, struct det_store_loaded *loaded)
{
    struct past past = { .store = store,
                         .is_cut = !instance->last_event && instance->sequence > 0 };
    int64_t position = instance->last_event;
    struct sqlite_call call;
    int r = 1;

    for (size_t i = 0; r > 0 && position && i < HISTORY_STEPS; i++) {
        det_sqlite_call(reader, STATEMENT_EVENT_STEP, &call);
        det_sqlite_number(&call, position);
        det_sqlite_number(&call, instance->key);
        r = det_sqlite_step(&call);
        if (r > 0)
            r = look_back(&call, instance, &past, loaded, &position);
        else if (r == 0)
            r = DET_ERR_CORRUPT;
        det_sqlite_end(&call);
    }
    if (r <= 0 || !past.is_cut)
        return r < 0 ? r : 0;
    return add_snapshot_history(reader, instance, &past, loaded);
}
