/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - writes one commit in the transaction of its batch: conditions, values, rows.
 *
 * A plain event is one UPDATE and one INSERT. The UPDATE itself checks sequence and fence; the row
 * is read for the reason only if it changes nothing. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

struct span {
    size_t offset, size;
    bool is_null;
};

void det_sqlite_instance_close(struct sqlite_store *store, struct sqlite_instance *instance)
{
    const struct det_allocator *allocator = store->store.allocator;

    if (!instance)
        return;
    det_free_string(allocator, instance->id);
    det_free_string(allocator, instance->reason);
    det_buffer_deinit(&instance->data);
    DET_DELETE(allocator, instance);
}

static int set_reason(
    struct sqlite_store *store, struct sqlite_instance *instance, const char *reason)
{
    char *copy = NULL;

    if (reason) {
        copy = det_string_copy(store->store.allocator, reason);
        if (!copy)
            return DET_ERR_NO_MEMORY;
    }
    det_free_string(store->store.allocator, instance->reason);
    instance->reason = copy;
    return 0;
}

static int set_data(struct sqlite_instance *instance, struct det_chain_bytes data)
{
    det_buffer_clear(&instance->data);
    det_buffer_append(&instance->data, data.data, data.size);
    return det_buffer_status(&instance->data);
}

static int refresh_from(
    struct sqlite_store *store, struct sqlite_instance *instance, struct sqlite_call *call)
{
    int r;

    instance->sequence = (uint64_t)det_sqlite_get_number(call, 0);
    instance->last_event = det_sqlite_get_number(call, 1);
    r = det_sqlite_get_hash(call, 2, &instance->hash);
    if (r == 0)
        r = set_reason(store, instance, det_sqlite_get_text(call, 3, true));
    return r < 0 ? r : set_data(instance, det_sqlite_get_bytes(call, 4));
}

int det_sqlite_instance_refresh(struct sqlite_store *store, struct sqlite_instance *instance)
{
    struct sqlite_call call;
    int r;

    det_assert(instance->key > 0);
    instance->is_stale = true;
    det_sqlite_call(&store->writer, STATEMENT_INSTANCE_REFRESH, &call);
    det_sqlite_number(&call, instance->key);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = refresh_from(store, instance, &call);
    else if (r == 0)
        r = DET_ERR_CORRUPT;
    if (r == 0 && call.code != SQLITE_OK)
        r = det_sqlite_error(call.code);
    det_sqlite_end(&call);
    if (r < 0)
        return r;
    instance->prunings = store->prunings;
    instance->is_stale = false;
    return 0;
}

/* Encoding. */

static int add_span(struct sqlite_scratch *scratch, int r, struct det_chain_bytes bytes)
{
    struct span span = { .size = bytes.size, .is_null = !bytes.data };

    if (r < 0)
        return r;
    if (bytes.data)
        span.offset = (size_t)((const char *)bytes.data - scratch->bytes.data);
    det_buffer_append(&scratch->spans, &span, sizeof span);
    return det_buffer_status(&scratch->spans);
}

int det_sqlite_encode_payload(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *event)
{
    struct det_chain_bytes bytes;
    int r;

    r = det_row_payload_encode(machine, event, &scratch->bytes, &bytes);
    return add_span(scratch, r, bytes);
}

int det_sqlite_encode_data(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *data)
{
    struct det_chain_bytes bytes;
    int r;

    r = det_row_data_encode(machine, data, &scratch->bytes, &bytes);
    return add_span(scratch, r, bytes);
}

static struct det_chain_bytes span_at(const struct sqlite_scratch *scratch, size_t index)
{
    struct span span;

    det_assert((index + 1) * sizeof span <= scratch->spans.size);
    memcpy(&span, scratch->spans.data + index * sizeof span, sizeof span);
    det_assert(span.offset + span.size <= scratch->bytes.size);
    if (span.is_null)
        return (struct det_chain_bytes){ 0 };
    return (struct det_chain_bytes){ scratch->bytes.data + span.offset, span.size };
}

struct det_chain_bytes det_sqlite_next_value(struct sqlite_scratch *scratch)
{
    det_assert(scratch->next_span < scratch->spans.size / sizeof(struct span));
    return span_at(scratch, scratch->next_span++);
}

/* The data, if it changes; then the payloads of the events; then the values of the changes. */
static int encode_values(const struct sqlite_write *write)
{
    struct sqlite_scratch *scratch = &write->store->scratch;
    const struct det_store_commit *commit = write->commit;
    int r = 0;

    det_buffer_clear(&scratch->bytes);
    det_buffer_clear(&scratch->spans);
    det_buffer_clear(&scratch->hashes);
    scratch->next_span = 0;
    if (commit->data)
        r = det_sqlite_encode_data(scratch, commit->machine, commit->data);
    for (size_t i = 0; r == 0 && i < commit->event_count; i++)
        r = det_sqlite_encode_payload(scratch, commit->machine, commit->events[i].value);
    return r < 0 ? r : det_sqlite_changes_encode(write);
}

/* Computes the hash of each event from its predecessor. */
static int make_chain(const struct sqlite_write *write, struct det_chain_hash *hash)
{
    struct sqlite_scratch *scratch = &write->store->scratch;
    const struct det_store_commit *commit = write->commit;

    for (size_t i = 0; i < commit->event_count; i++) {
        struct det_chain_event event = det_row_chain_event(
            commit->machine, write->instance->id, &commit->events[i],
            span_at(scratch, i + (commit->data != NULL)));

        *hash = det_chain_next(hash, &event);
        det_buffer_append(&scratch->hashes, hash->bytes, sizeof hash->bytes);
    }
    return det_buffer_status(&scratch->hashes);
}

/* Writing. */

void det_sqlite_bind_head(
    struct sqlite_call *call, const struct det_chain_head *head, int64_t last_event, int64_t owned)
{
    det_sqlite_number(call, (int64_t)head->version);
    det_sqlite_name(call, head->state);
    det_sqlite_number(call, (int64_t)head->sequence);
    det_sqlite_number(call, (int64_t)head->visit);
    det_sqlite_number(call, (int64_t)head->transitions);
    det_sqlite_number(call, head->started_at);
    det_sqlite_number(call, head->moved_at);
    det_sqlite_number(call, head->is_stopped);
    det_sqlite_text(call, head->reason);
    det_sqlite_bytes(call, head->data);
    det_sqlite_bytes(call, det_sqlite_hash_bytes(&head->hash));
    det_sqlite_number(call, last_event);
    det_sqlite_number(call, det_chain_head_checksum(head));
    det_sqlite_number(call, owned);
}

static bool has_expected(const struct det_store_commit *commit)
{
    return commit->event_count || commit->is_snapshot;
}

/* The sequence that the row must have for writing the head. */
static uint64_t wanted_sequence(const struct det_store_commit *commit)
{
    return has_expected(commit) ? commit->expected : commit->head->sequence;
}

/* Returns the reason why no row was changed: the lock, or the sequence. 0: neither. */
static int ask_why(const struct sqlite_write *write, bool is_sequence_checked)
{
    struct det_store_commit *commit = write->commit;
    struct sqlite_call call;
    uint64_t sequence, fence;
    det_time until;
    int r;

    det_sqlite_call(&write->store->writer, STATEMENT_INSTANCE_GUARD, &call);
    det_sqlite_number(&call, write->instance->key);
    r = det_sqlite_step(&call);
    if (r <= 0) {
        det_sqlite_end(&call);
        return r < 0 ? r : DET_ERR_CORRUPT;
    }
    sequence = (uint64_t)det_sqlite_get_number(&call, 0);
    fence = (uint64_t)det_sqlite_get_number(&call, 1);
    until = det_sqlite_get_number(&call, 2);
    det_sqlite_end(&call);
    if (commit->fence && (commit->fence != fence || until <= write->now))
        return DET_ERR_LOCK_LOST;
    if (!commit->fence && until > write->now)
        return DET_ERR_LOCKED;
    if (!is_sequence_checked || sequence == wanted_sequence(commit))
        return 0;
    commit->actual = sequence;
    return DET_ERR_CONFLICT;
}

static int insert_head(
    const struct sqlite_write *write, const struct det_chain_head *head, int64_t last_event)
{
    sqlite3 *database = write->store->writer.database;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&write->store->writer, STATEMENT_INSTANCE_INSERT, &call);
    det_sqlite_text(&call, head->machine);
    det_sqlite_text(&call, head->id);
    det_sqlite_bind_head(&call, head, last_event, write->owned);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    if (sqlite3_changes(database) == 0)
        return DET_ERR_EXISTS;
    write->instance->key = sqlite3_last_insert_rowid(database);
    det_assert(write->instance->key > 0);
    return 0;
}

static int update_head(
    const struct sqlite_write *write, const struct det_chain_head *head, int64_t last_event)
{
    const struct det_store_commit *commit = write->commit;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&write->store->writer, STATEMENT_INSTANCE_UPDATE, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_number(&call, (int64_t)wanted_sequence(commit));
    det_sqlite_bind_head(&call, head, last_event, write->owned);
    det_sqlite_number(&call, (int64_t)commit->fence);
    det_sqlite_number(&call, write->now);
    r = det_sqlite_run(&call);
    if (r < 0 || sqlite3_changes(write->store->writer.database) == 1)
        return r;
    r = ask_why(write, true);
    return r < 0 ? r : DET_ERR_CORRUPT;
}

/* A start has a place in the log like an event, and its commit has no events. */
static int insert_start(const struct sqlite_write *write, const struct det_chain_start *start)
{
    struct sqlite_call call;

    det_sqlite_call(&write->store->writer, STATEMENT_START_SET, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_number(&call, write->store->next_position++);
    det_sqlite_number(&call, (int64_t)start->version);
    det_sqlite_text(&call, start->state);
    det_sqlite_bytes(&call, start->data);
    det_sqlite_number(&call, start->at);
    return det_sqlite_run(&call);
}

static int insert_event(const struct sqlite_write *write, size_t index, int64_t previous)
{
    const struct det_store_commit *commit = write->commit;
    const struct det_store_event *event = &commit->events[index];
    const struct det_machine *machine = commit->machine;
    struct sqlite_scratch *scratch = &write->store->scratch;
    struct sqlite_row row = {
        .position = write->store->next_position + (int64_t)index,
        .instance = write->instance->key,
        .previous = previous,
        .sequence = event->sequence,
        .version = machine->version,
        .visit = event->visit,
        .from = machine->states[event->from].name,
        .to = machine->states[event->to].name,
        .event = det_row_event_name(machine, event->event),
        .outcome = det_outcome_name(event->outcome),
        .event_id = event->event_id,
        .cause = event->cause,
        .choice = event->choice,
        .is_timeout = event->is_timeout,
        .at = event->at,
        .payload = det_sqlite_next_value(scratch),
        .trace = event->trace,
    };

    det_assert((index + 1) * DET_CHAIN_SIZE <= scratch->hashes.size);
    memcpy(row.hash.bytes, scratch->hashes.data + index * DET_CHAIN_SIZE, DET_CHAIN_SIZE);
    return det_sqlite_append(write->store, &row);
}

static int insert_events(const struct sqlite_write *write)
{
    const struct det_store_commit *commit = write->commit;
    int64_t previous = write->instance->last_event;
    int r;

    for (size_t i = 0; i < commit->event_count; i++) {
        r = insert_event(write, i, previous);
        if (r < 0)
            return r;
        previous = write->store->next_position + (int64_t)i;
    }
    return 0;
}

static int insert_snapshot(const struct sqlite_write *write, const struct det_chain_head *head)
{
    const struct det_store_commit *commit = write->commit;
    struct det_buffer *bytes = &write->store->scratch.bytes;
    struct sqlite_call call;
    const char *history;
    int r;

    /* The other values are written already, so the buffer may move. */
    det_buffer_clear(bytes);
    r = det_row_history_write(commit->machine, commit->history, commit->history_count, bytes);
    if (r < 0)
        return r;
    history = det_buffer_text(bytes);
    det_sqlite_call(&write->store->writer, STATEMENT_SNAPSHOT_SET, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_number(&call, (int64_t)head->sequence);
    det_sqlite_number(&call, (int64_t)head->version);
    det_sqlite_text(&call, head->state);
    det_sqlite_number(&call, (int64_t)head->visit);
    det_sqlite_number(&call, (int64_t)head->transitions);
    det_sqlite_number(&call, head->started_at);
    det_sqlite_number(&call, head->moved_at);
    det_sqlite_number(&call, head->is_stopped);
    det_sqlite_text(&call, head->reason);
    det_sqlite_bytes(&call, head->data);
    det_sqlite_bytes(&call, det_sqlite_hash_bytes(&head->hash));
    det_sqlite_text(&call, history);
    det_sqlite_number(&call, write->now);
    det_sqlite_number(&call, det_chain_snapshot_checksum(head, history, write->now));
    return det_sqlite_run(&call);
}

/* A commit. */

int det_sqlite_instance_open(struct sqlite_store *store, struct det_store_commit *commit)
{
    struct sqlite_instance *instance = DET_NEW(store->store.allocator, struct sqlite_instance);

    if (!instance)
        return DET_ERR_NO_MEMORY;
    instance->machine = commit->machine;
    instance->prunings = store->prunings;
    det_buffer_init(&instance->data, store->store.allocator);
    instance->id = det_string_copy(store->store.allocator, commit->id);
    if (!instance->id) {
        det_sqlite_instance_close(store, instance);
        return DET_ERR_NO_MEMORY;
    }
    commit->instance = (struct det_store_instance *)(void *)instance;
    return 0;
}

/* True if the cached row may be used. */
static bool is_fresh(const struct sqlite_store *store, const struct sqlite_write *write)
{
    const struct sqlite_instance *instance = write->instance;

    if (instance->is_stale || instance->prunings != store->prunings)
        return false;
    return !has_expected(write->commit) || instance->sequence == write->commit->expected;
}

static int check_commit(struct sqlite_write *write)
{
    const struct det_store_commit *commit = write->commit;
    int r, why;

    if (commit->is_new)
        return det_sqlite_changes_check(write, &write->owned);
    if (!is_fresh(write->store, write)) {
        r = det_sqlite_instance_refresh(write->store, write->instance);
        if (r < 0)
            return r;
    }
    r = det_sqlite_changes_check(write, &write->owned);
    if (r == 0)
        return 0;
    /* A conflict, or a lock, is reported before its consequences. */
    why = ask_why(write, has_expected(commit));
    return why < 0 ? why : r;
}

/* The head after the commit; its data is the handle's, which is already updated. */
static struct det_chain_head head_of(
    const struct sqlite_write *write, const struct det_chain_hash *hash)
{
    struct det_chain_head head =
        det_row_chain_head(write->commit->machine, write->instance->id, write->commit->head);

    head.reason = write->instance->reason;
    head.data = (struct det_chain_bytes){ det_buffer_text(&write->instance->data),
                                          write->instance->data.size };
    head.hash = *hash;
    return head;
}

/* From here on the handle is ahead of its row, until the transaction ends successfully. */
static int advance_handle(const struct sqlite_write *write)
{
    const struct det_store_commit *commit = write->commit;
    int r = 0;

    write->instance->is_stale = true;
    if (commit->data)
        r = set_data(write->instance, det_sqlite_next_value(&write->store->scratch));
    if (r == 0 && commit->reason)
        r = set_reason(write->store, write->instance, commit->reason);
    return r;
}

static int write_head(
    const struct sqlite_write *write, const struct det_chain_head *head, bool *is_dirty)
{
    struct sqlite_store *store = write->store;
    const struct det_store_commit *commit = write->commit;
    int64_t last_event = write->instance->last_event;
    int r;

    if (commit->event_count)
        last_event = store->next_position + (int64_t)commit->event_count - 1;
    if (commit->is_new)
        r = insert_head(write, head, last_event);
    else if (commit->event_count || commit->data || commit->reason)
        r = update_head(write, head, last_event);
    else {
        r = ask_why(write, has_expected(commit));
        if (r < 0)
            return r;
        *is_dirty = true;
        return det_sqlite_own(store, write->instance->key, write->owned);
    }
    *is_dirty = r == 0;
    return r;
}

int det_sqlite_write_commit(struct sqlite_write *write, bool *ret_dirty)
{
    struct sqlite_store *store = write->store;
    const struct det_store_commit *commit = write->commit;
    struct sqlite_instance *instance = write->instance;
    struct det_chain_start start = { 0 };
    struct det_chain_hash hash;
    struct det_chain_head head;
    int r;

    det_assert(instance && !*ret_dirty);
    det_assert(commit->is_new == (instance->key == 0));
    r = check_commit(write);
    if (r == 0)
        r = encode_values(write);
    if (r < 0)
        return r;
    if (commit->is_new) {
        start = det_row_chain_start(commit, span_at(&store->scratch, 0));
        instance->hash = det_chain_start(&start);
    }
    hash = instance->hash;
    r = make_chain(write, &hash);
    if (r == 0)
        r = advance_handle(write);
    if (r < 0)
        return r;
    head = head_of(write, &hash);
    r = write_head(write, &head, ret_dirty);
    if (r < 0)
        return r;
    *ret_dirty = true;
    if (start.state)
        r = insert_start(write, &start);
    if (r == 0)
        r = insert_events(write);
    if (r == 0)
        r = det_sqlite_changes_apply(write);
    if (r == 0 && commit->is_snapshot)
        r = insert_snapshot(write, &head);
    if (r < 0)
        return r;
    /* What was encoded is what was written. */
    det_assert(store->scratch.next_span * sizeof(struct span) == store->scratch.spans.size);
    instance->hash = hash;
    if (commit->event_count) {
        instance->sequence = head.sequence;
        instance->last_event = store->next_position + (int64_t)commit->event_count - 1;
        store->next_position += (int64_t)commit->event_count;
    }
    return 0;
}
