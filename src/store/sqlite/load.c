/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - reads an instance and all of its rows in one transaction. */
#include "store/sql/load.h"

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/sql/instance.h"
#include "store/sqlite/session.h"

int det_sqlite_head_read(struct sqlite_call *call, struct sqlite_head *ret)
{
    const struct det_sql_row row = det_sqlite_row(call);
    int64_t checksum = det_sqlite_get_number(call, 14);
    int r;

    ret->key = det_sqlite_get_number(call, 0);
    ret->checksum = (uint32_t)checksum;
    r = det_sql_head_read(&row, 3, &ret->head);
    return r == 0 && ret->checksum != checksum ? DET_ERR_CORRUPT : r;
}

int det_sqlite_handle_open(
    struct sqlite_store *store, const struct det_machine *machine, const struct sqlite_head *row,
    struct sqlite_instance **ret)
{
    const struct det_allocator *allocator = store->store.allocator;
    struct sqlite_instance *instance = DET_NEW(allocator, struct sqlite_instance);

    if (!instance)
        return DET_ERR_NO_MEMORY;
    instance->machine = machine;
    instance->key = row->key;
    instance->sequence = row->head.sequence;
    instance->hash = row->head.hash;
    det_buffer_init(&instance->data, allocator);
    det_buffer_append(&instance->data, row->head.data.data, row->head.data.size);
    instance->id = det_string_copy(allocator, row->head.id);
    if (row->head.reason)
        instance->reason = det_string_copy(allocator, row->head.reason);
    if (!instance->id || (row->head.reason && !instance->reason) ||
        det_buffer_status(&instance->data) < 0) {
        det_sqlite_instance_close(store, instance);
        return DET_ERR_NO_MEMORY;
    }
    *ret = instance;
    return 0;
}

static int load_head(
    struct sqlite_store *store, struct sqlite_call *call, const struct det_machine *machine,
    struct det_store_loaded *ret, struct sqlite_instance **ret_instance)
{
    struct sqlite_head row;
    int r;

    r = det_sqlite_head_read(call, &row);
    if (r < 0)
        return r;
    if (det_chain_head_checksum(&row.head) != row.checksum)
        return DET_ERR_CORRUPT;
    r = det_row_head_read(&store->store, machine, &row.head, ret);
    if (r == 0)
        r = det_sqlite_handle_open(store, machine, &row, ret_instance);
    if (r == 0) {
        (*ret_instance)->last_event = det_sqlite_get_number(call, 15);
        (*ret_instance)->owned = det_sqlite_get_number(call, 16);
    }
    return r;
}

static int find_head(
    struct sqlite_store *store, struct sqlite_connection *reader, const struct det_machine *machine,
    const char *id, struct det_store_loaded *ret, struct sqlite_instance **ret_instance)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, STATEMENT_INSTANCE_LOAD, &call);
    det_sqlite_text(&call, machine->name);
    det_sqlite_text(&call, id);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = load_head(store, &call, machine, ret, ret_instance);
    else if (r == 0)
        r = DET_ERR_NOT_FOUND;
    det_sqlite_end(&call);
    return r;
}

static int load_table(
    struct sqlite_connection *reader, enum sqlite_statement statement,
    struct sqlite_instance *instance, const struct det_sql_loading *loading)
{
    struct det_sql_row row;
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, statement, &call);
    det_sqlite_number(&call, instance->key);
    row = det_sqlite_row(&call);
    while ((r = det_sqlite_step(&call)) > 0) {
        instance->owned--;
        r = det_sql_row_load(loading, &row);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    return r;
}

static int load_tables(
    struct sqlite_connection *reader, struct sqlite_instance *instance,
    const struct det_store_rows *rows)
{
    static const enum sqlite_statement statements[] = { STATEMENT_TIMER_LOAD, STATEMENT_EFFECT_LOAD,
                                                        STATEMENT_DEFERRED_LOAD };
    struct det_sql_loading loading = { reader->store, instance->machine, rows, NULL };
    int r = 0;

    det_buffer_clear(&reader->values);
    loading.room = det_buffer_extend(&reader->values, det_sql_load_room(instance->machine));
    if (!loading.room)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; r == 0 && i < sizeof statements / sizeof *statements; i++)
        r = load_table(reader, statements[i], instance, &loading);
    return r;
}

/* Checks that no row is missing or belongs to another instance. */
static int check_owned(const struct sqlite_instance *instance)
{
    return instance->owned % SQLITE_OWNED_ANSWER == 0 ? 0 : DET_ERR_CORRUPT;
}

static int load_all(
    struct sqlite_store *store, struct sqlite_connection *reader, const char *id,
    const struct det_machine *machine, const struct det_store_rows *rows,
    struct det_store_loaded *ret)
{
    struct sqlite_instance *instance = NULL;
    uint64_t prunings = store->prunings;
    int r;

    r = find_head(store, reader, machine, id, ret, &instance);
    if (r < 0)
        return r;
    det_assert(instance);
    instance->prunings = prunings;
    r = det_sqlite_history(store, reader, instance, ret);
    if (r == 0)
        r = load_tables(reader, instance, rows);
    if (r == 0)
        r = check_owned(instance);
    if (r != 0) {
        det_sqlite_instance_close(store, instance);
        return r;
    }
    ret->instance = (struct det_store_instance *)(void *)instance;
    return 0;
}

int det_sqlite_load(
    struct det_store *base, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    int r;

    det_contract_load(machine, id, ret);
    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    r = load_all(store, reader, id, machine, rows, ret);
    det_sqlite_reader_end(store, reader);
    return r;
}

void det_sqlite_release(struct det_store *store, struct det_store_instance *instance)
{
    det_sqlite_instance_close(sqlite_store_of(store), sqlite_instance_of(instance));
}
