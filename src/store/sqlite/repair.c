/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* repair.c - rewrites the damaged head of an instance.
 *
 * The caller derives the head. The row itself proves whether the result is right: its checksum,
 * made when the head was valid, covers every column. If the version of the definition that wrote
 * the row, or the hash of the last event, may be damaged, both the stored and the derived value are
 * tried. If only the checksum is damaged, the rest of the row must equal the derived head; no
 * column is trusted unchecked. */
#include <stdio.h>

#include "base/buffer.h"
#include "store/sqlite/sqlite.h"

struct repair {
    struct sqlite_store *store;
    const struct det_machine *machine;
    struct sqlite_instance *instance; /* as in the row */
    uint64_t version;
    uint32_t checksum;          /* stored in the row */
    uint32_t content;           /* computed from its columns */
    struct det_chain_hash last; /* hash of the last event, if kept */
    struct det_chain_head head; /* the original head */
};

/* Reads the hash of the last event, if kept. */
static int read_last(struct repair *repair, struct sqlite_connection *reader)
{
    struct sqlite_event event;
    struct sqlite_call call;
    int r;

    repair->last = repair->instance->hash;
    if (!repair->instance->last_event)
        return 0;
    r = det_sqlite_event_read(
        reader, repair->instance->last_event, repair->instance->key, &call, &event);
    if (r == 0)
        repair->last = event.hash;
    det_sqlite_end(&call);
    return r;
}

static int read_row(
    struct repair *repair, struct sqlite_call *call, struct det_store_loaded *loaded)
{
    struct sqlite_head row;
    int r;

    r = det_sqlite_head_read(call, &row);
    if (r < 0)
        return r;
    repair->version = row.head.version;
    repair->checksum = row.checksum;
    repair->content = det_chain_head_checksum(&row.head);
    if (repair->content == row.checksum)
        return DET_ERR_EXISTS;
    if (row.head.reason && !det_text_copy(loaded->reason, sizeof loaded->reason, row.head.reason))
        loaded->reason[0] = 0;
    r = det_sqlite_handle_open(repair->store, repair->machine, &row, &repair->instance);
    if (r == 0)
        repair->instance->last_event = det_sqlite_get_number(call, 15);
    return r;
}

static int find_row(struct repair *repair, const char *id, struct det_store_loaded *loaded)
{
    struct sqlite_connection *reader;
    struct sqlite_call call;
    int r;

    r = det_sqlite_reader(repair->store, &reader);
    if (r < 0)
        return r;
    det_sqlite_call(reader, STATEMENT_INSTANCE_LOAD, &call);
    det_sqlite_text(&call, repair->machine->name);
    det_sqlite_text(&call, id);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = read_row(repair, &call, loaded);
    else if (r == 0)
        r = DET_ERR_NOT_FOUND;
    det_sqlite_end(&call);
    if (r == 0)
        r = read_last(repair, reader);
    det_sqlite_reader_end(repair->store, reader);
    return r;
}

static bool is_proven(struct repair *repair)
{
    const uint64_t versions[] = { repair->version, repair->machine->version };
    const struct det_chain_hash *const hashes[] = { &repair->instance->hash, &repair->last };

    for (int i = 0; i < 4; i++) {
        repair->head.version = versions[i % 2];
        repair->head.hash = *hashes[i / 2];
        if (det_chain_head_checksum(&repair->head) == repair->checksum)
            return true;
    }
    /* With the hash of the last event, which is not from the row. */
    return repair->instance->last_event &&
           det_chain_head_checksum(&repair->head) == repair->content;
}

/* Writes the head, unless another thread was first. */
static int write_head(struct sqlite_store *store, void *context)
{
    const struct repair *repair = context;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_INSTANCE_REPAIR, &call);
    det_sqlite_number(&call, repair->instance->key);
    det_sqlite_number(&call, repair->checksum);
    det_sqlite_bind_head(&call, &repair->head, repair->instance->last_event, 0);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    return sqlite3_changes(store->writer.database) == 1 ? 0 : DET_ERR_CONFLICT;
}

static int write_if_proven(struct repair *repair, const struct det_store_loaded *loaded)
{
    struct det_buffer bytes;
    int r;

    det_buffer_init(&bytes, repair->store->store.allocator);
    repair->head = det_row_chain_head(repair->machine, repair->instance->id, &loaded->head);
    repair->head.reason = loaded->reason[0] ? loaded->reason : NULL;
    r = det_row_data_encode(repair->machine, loaded->data, &bytes, &repair->head.data);
    if (r == 0 && !is_proven(repair))
        r = DET_ERR_CORRUPT;
    if (r == 0)
        r = det_sqlite_alone(repair->store, write_head, repair);
    det_buffer_deinit(&bytes);
    return r;
}

int det_sqlite_repair(
    struct det_store *base, const struct det_machine *machine, const char *id,
    int (*derive)(
        void *context, struct det_store_instance *instance, struct det_store_loaded *loaded),
    void *context)
{
    struct repair repair = { .store = sqlite_store_of(base), .machine = machine };
    struct det_store_loaded loaded = { 0 };
    int r;

    r = find_row(&repair, id, &loaded);
    if (r == 0)
        r = derive(context, (struct det_store_instance *)(void *)repair.instance, &loaded);
    if (r == 0)
        r = write_if_proven(&repair, &loaded);
    if (repair.instance)
        det_sqlite_instance_close(repair.store, repair.instance);
    return r;
}
