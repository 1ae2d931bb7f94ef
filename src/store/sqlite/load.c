/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - reads an instance and all of its rows in one transaction. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/sqlite/sqlite.h"

int det_sqlite_head_read(struct sqlite_call *call, struct sqlite_head *ret)
{
    struct det_chain_head *head = &ret->head;

    ret->key = det_sqlite_get_number(call, 0);
    *head = (struct det_chain_head){
        .machine = det_sqlite_get_text(call, 1, false),
        .id = det_sqlite_get_text(call, 2, false),
        .version = (uint64_t)det_sqlite_get_number(call, 3),
        .state = det_sqlite_get_text(call, 4, false),
        .sequence = (uint64_t)det_sqlite_get_number(call, 5),
        .visit = (uint64_t)det_sqlite_get_number(call, 6),
        .transitions = (uint64_t)det_sqlite_get_number(call, 7),
        .started_at = det_sqlite_get_number(call, 8),
        .moved_at = det_sqlite_get_number(call, 9),
        .is_stopped = det_sqlite_get_number(call, 10) != 0,
        .reason = det_sqlite_get_text(call, 11, true),
        .data = det_sqlite_get_bytes(call, 12),
    };
    ret->checksum = (uint32_t)det_sqlite_get_number(call, 14);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    if (ret->checksum != det_sqlite_get_number(call, 14))
        return DET_ERR_CORRUPT;
    return det_sqlite_get_hash(call, 13, &head->hash);
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

/* Room for two structs of the machine in the connection: an event, followed by data. */
static char *values_of(struct sqlite_connection *reader, const struct det_machine *machine)
{
    size_t size = (machine->event_size + 15u) / 16u * 16u + det_machine_data(machine)->size;

    det_buffer_clear(&reader->values);
    return det_buffer_extend(&reader->values, size + 1);
}

static int load_timer(
    struct sqlite_call *call, const struct det_machine *machine, char *value,
    const struct det_store_rows *rows)
{
    struct det_store_timer row = {
        .visit = (uint64_t)det_sqlite_get_number(call, 1),
        .due = det_sqlite_get_number(call, 2),
        .attempts = (uint32_t)det_sqlite_get_number(call, 5),
        .last_error = (int)det_sqlite_get_number(call, 6),
        .next = det_sqlite_get_number(call, 7),
        .reason = det_sqlite_get_text(call, 8, true),
        .is_dead = det_sqlite_get_number(call, 9) != 0,
    };
    struct det_chain_bytes payload;
    int r;

    r = det_sqlite_get_complete(call, 10);
    if (r < 0)
        return r;
    r = det_row_timer_find(machine, det_sqlite_get_text(call, 0, false), &row.timer);
    if (r == 0)
        r = det_row_event_find(machine, det_sqlite_get_text(call, 3, false), &row.event);
    payload = det_sqlite_get_bytes(call, 4);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    /* A dead row whose name is not in the definition stays in the file only. */
    if (r < 0)
        return row.is_dead ? 0 : r;
    if (payload.data) {
        r = det_row_payload_decode(call->connection->store, machine, row.event, payload, value);
        row.value = value;
    }
    return r < 0 || !rows->timer ? r : rows->timer(rows->context, &row);
}

static int effect_names(
    struct sqlite_call *call, const struct det_machine *machine, struct det_store_effect *row,
    uint16_t *event)
{
    int r;

    r = det_row_effect_find(machine, det_sqlite_get_text(call, 2, false), &row->effect);
    if (r == 0)
        r = det_row_state_find(machine, det_sqlite_get_text(call, 3, false), &row->from);
    if (r == 0)
        r = det_row_state_find(machine, det_sqlite_get_text(call, 4, false), &row->to);
    return r < 0 ? r : det_row_event_find(machine, det_sqlite_get_text(call, 12, true), event);
}

static int load_effect(
    struct sqlite_call *call, const struct det_machine *machine, char *value,
    const struct det_store_rows *rows)
{
    char *data = value + ((size_t)machine->event_size + 15) / 16 * 16;
    struct det_store_effect row = {
        .sequence = (uint64_t)det_sqlite_get_number(call, 0),
        .index = (uint16_t)det_sqlite_get_number(call, 1),
        .visit = (uint64_t)det_sqlite_get_number(call, 5),
        .asked = (uint64_t)det_sqlite_get_number(call, 6),
        .at = det_sqlite_get_number(call, 7),
        .attempts = (uint32_t)det_sqlite_get_number(call, 8),
        .last_error = (int)det_sqlite_get_number(call, 9),
        .next = det_sqlite_get_number(call, 10),
        .is_dead = det_sqlite_get_number(call, 14) != 0,
        .reason = det_sqlite_get_text(call, 15, true),
        .data = data,
    };
    struct det_chain_bytes bytes = det_sqlite_get_bytes(call, 11);
    struct det_trace_context trace;
    uint16_t event = UINT16_MAX;
    int r;

    if (det_trace_context_read(det_sqlite_get_bytes(call, 16), &trace))
        row.trace = &trace;
    det_row_origin(&row, det_sqlite_get_text(call, 18, true));
    r = det_sqlite_get_complete(call, 17);
    if (r < 0)
        return r;
    r = effect_names(call, machine, &row, &event);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    /* A dead row whose name is not in the definition stays in the file only. */
    if (r < 0)
        return row.is_dead ? 0 : r;
    r = det_row_data_decode(call->connection->store, machine, bytes, data);
    /* An effect always has the event that requested it. */
    if (r == 0 && event == UINT16_MAX)
        r = DET_ERR_CORRUPT;
    if (r == 0) {
        r = det_row_payload_decode(
            call->connection->store, machine, event, det_sqlite_get_bytes(call, 13), value);
        row.event = value;
    }
    return r < 0 || !rows->effect ? r : rows->effect(rows->context, &row);
}

static int load_deferred(
    struct sqlite_call *call, const struct det_machine *machine, char *value,
    const struct det_store_rows *rows)
{
    struct det_store_deferred row = {
        .sequence = (uint64_t)det_sqlite_get_number(call, 0),
        .event = value,
    };
    uint16_t event;
    int r;

    r = det_sqlite_get_complete(call, 3);
    if (r == 0)
        r = det_row_event_find(machine, det_sqlite_get_text(call, 1, false), &event);
    if (r == 0)
        r = det_row_payload_decode(
            call->connection->store, machine, event, det_sqlite_get_bytes(call, 2), value);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    return r < 0 || !rows->deferred ? r : rows->deferred(rows->context, &row);
}

typedef int load_row_fn(
    struct sqlite_call *call, const struct det_machine *machine, char *value,
    const struct det_store_rows *rows);

static int load_table(
    struct sqlite_connection *reader, enum sqlite_statement statement,
    struct sqlite_instance *instance, load_row_fn *load, const struct det_store_rows *rows)
{
    char *value = values_of(reader, instance->machine);
    struct sqlite_call call;
    int r;

    if (!value)
        return DET_ERR_NO_MEMORY;
    det_sqlite_call(reader, statement, &call);
    det_sqlite_number(&call, instance->key);
    while ((r = det_sqlite_step(&call)) > 0) {
        instance->owned--;
        r = load(&call, instance->machine, value, rows);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
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
        r = load_table(reader, STATEMENT_TIMER_LOAD, instance, load_timer, rows);
    if (r == 0)
        r = load_table(reader, STATEMENT_EFFECT_LOAD, instance, load_effect, rows);
    if (r == 0)
        r = load_table(reader, STATEMENT_DEFERRED_LOAD, instance, load_deferred, rows);
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
