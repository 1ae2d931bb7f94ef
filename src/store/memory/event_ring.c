/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_ring.c - the last events of an instance in the memory store: a ring that grows up to the
 * number of kept events, and then overwrites the oldest. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/contract.h"
#include "store/memory/memory.h"

#define ROWS_MIN 4u

/* Bytes of an event's payload; 0 for a record without fields. */
static uint32_t payload_size(const struct det_machine *machine, uint16_t event)
{
    const struct det_record *record = det_record_of(machine->events[event].payload);

    return record && record->field_count ? record->size : 0;
}

int det_memory_rows_measure(struct memory_store *store, struct memory_machine *machine)
{
    uint32_t largest = 0;

    machine->inline_size = DET_NEW_ARRAY(store->store.allocator, machine->event_count, uint32_t);
    if (!machine->inline_size)
        return DET_ERR_NO_MEMORY;
    for (uint16_t i = 0; i < machine->event_count; i++) {
        uint32_t size = payload_size(machine->machine, i);

        if (size > MEMORY_INLINE_MAX)
            continue;
        machine->inline_size[i] = size;
        if (size > largest)
            largest = size;
    }
    machine->row_size = ((uint32_t)sizeof(struct memory_row) + largest + 7) / 8 * 8;
    return 0;
}

/* Bytes of the payload outside of the row. */
static uint32_t large_size(const struct memory_machine *machine, uint16_t event)
{
    if (event == UINT16_MAX || machine->inline_size[event])
        return 0;
    return payload_size(machine->machine, event);
}

bool det_memory_rows_fits(
    const struct memory_instance *instance, const struct det_store_event *event)
{
    return !event->event_id && !event->cause && !large_size(instance->machine, event->event);
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Index of the first event of a commit that will be kept: a commit with more events than are kept
 * overwrites its own first ones, which need no room. */
static size_t first_kept(const struct memory_store *store, const struct det_store_commit *commit)
{
    return commit->event_count > store->events_kept ? commit->event_count - store->events_kept : 0;
}

/* Asserts the part of invariant 3 that concerns the ring. */
static void assert_rows(const struct memory_instance *instance)
{
    det_assert(instance->row_count <= instance->row_capacity);
    det_assert(instance->row_next < instance->row_capacity || !instance->row_capacity);
    det_assert(!instance->rows == !instance->row_capacity);
}

static int grow_rows(struct memory_store *store, struct memory_instance *instance, uint32_t wanted)
{
    uint32_t capacity = instance->row_capacity ? instance->row_capacity : ROWS_MIN;
    uint32_t first = instance->row_next + instance->row_capacity - instance->row_count;
    size_t size = instance->machine->row_size;
    char *rows;

    while (capacity < wanted)
        capacity *= 2;
    if (capacity > store->events_kept)
        capacity = store->events_kept;
    rows = det_alloc_array(store->store.allocator, capacity, size);
    if (!rows)
        return DET_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < instance->row_capacity; i++)
        memcpy(
            rows + i * size, memory_row_at(instance, (first + i) % instance->row_capacity), size);
    if (instance->rows)
        det_free(store->store.allocator, instance->rows, instance->row_capacity * size);
    instance->rows = rows;
    instance->row_capacity = capacity;
    instance->row_next = instance->row_count % capacity;
    assert_rows(instance);
    return 0;
}

/* Grows the block of a place without changing its content. */
static int grow_extra(struct memory_store *store, struct memory_row *row, size_t wanted)
{
    size_t old = row->extra ? sizeof *row->extra + row->extra->capacity : 0;
    struct memory_extra *extra;

    if (row->extra && row->extra->capacity >= wanted)
        return 0;
    wanted = (wanted + 15) / 16 * 16;
    extra = det_realloc(store->store.allocator, row->extra, old, sizeof *extra + wanted);
    if (!extra)
        return DET_ERR_NO_MEMORY;
    if (!row->extra)
        *extra = (struct memory_extra){ 0 };
    det_assert(wanted <= UINT32_MAX);
    extra->capacity = (uint32_t)wanted;
    row->extra = extra;
    return 0;
}

int det_memory_rows_reserve(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit)
{
    size_t first = first_kept(store, commit), wanted = instance->row_count + commit->event_count;
    size_t place = instance->row_next + first;
    int r;

    if (wanted > store->events_kept)
        wanted = store->events_kept;
    if (wanted > instance->row_capacity) {
        r = grow_rows(store, instance, (uint32_t)wanted);
        if (r < 0)
            return r;
        place = instance->row_next + first;
    }
    for (size_t i = first; i < commit->event_count; i++, place++) {
        const struct det_store_event *event = &commit->events[i];
        size_t size = large_size(instance->machine, event->event) + text_size(event->event_id) +
                      text_size(event->cause);

        if (!size)
            continue;
        r = grow_extra(
            store, memory_row_at(instance, (uint32_t)(place % instance->row_capacity)), size);
        if (r < 0)
            return r;
    }
    return 0;
}

static const char *payload_of(
    const struct det_machine *machine, const struct det_store_event *event)
{
    return (const char *)event->value + machine->events[event->event].payload_offset;
}

static void fill_extra(
    const struct memory_machine *machine, struct memory_extra *extra,
    const struct det_store_event *event)
{
    uint32_t size = large_size(machine, event->event);
    size_t id = text_size(event->event_id), cause = text_size(event->cause);

    /* A place that is overwritten within its own commit has no reserved room, and is not read. */
    if (size + id + cause > extra->capacity)
        id = cause = size = 0;
    extra->payload_size = size;
    extra->id_size = (uint16_t)id;
    extra->cause_size = (uint16_t)cause;
    if (size)
        memcpy(extra->bytes, payload_of(machine->machine, event), size);
    if (id)
        memcpy(extra->bytes + size, event->event_id, id);
    if (cause)
        memcpy(extra->bytes + size + id, event->cause, cause);
}

void det_memory_rows_append(struct memory_instance *instance, const struct det_store_event *event)
{
    const struct memory_machine *machine = instance->machine;
    struct memory_row *row = memory_row_at(instance, instance->row_next);

    det_check((assert_rows(instance), instance->row_capacity > 0));
    row->at = event->at;
    row->visit_choice = event->visit | (uint64_t)event->choice << MEMORY_VISIT_BITS;
    row->from = event->from;
    row->to = event->to;
    row->event = event->event;
    row->outcome = (uint8_t)event->outcome;
    row->is_timeout = event->is_timeout;
    if (event->event != UINT16_MAX && machine->inline_size[event->event])
        memcpy(
            row->payload, payload_of(machine->machine, event), machine->inline_size[event->event]);
    if (row->extra)
        fill_extra(machine, row->extra, event);
    instance->row_next++;
    if (instance->row_next == instance->row_capacity)
        instance->row_next = 0;
    if (instance->row_count < instance->row_capacity)
        instance->row_count++;
}

uint32_t det_memory_rows_forget(struct memory_instance *instance, uint64_t kept)
{
    uint32_t gone = instance->row_count > kept ? instance->row_count - (uint32_t)kept : 0;

    instance->row_count -= gone;
    assert_rows(instance);
    return gone;
}

void det_memory_rows_close(struct memory_store *store, struct memory_instance *instance)
{
    assert_rows(instance);
    for (uint32_t i = 0; i < instance->row_capacity; i++) {
        struct memory_extra *extra = memory_row_at(instance, i)->extra;

        if (extra)
            det_free(store->store.allocator, extra, sizeof *extra + extra->capacity);
    }
    det_free(
        store->store.allocator, instance->rows,
        (size_t)instance->row_capacity * instance->machine->row_size);
}

/* Restores the event struct in `value`, which is zero except for what this writes. */
static void restore_value(
    const struct memory_machine *machine, const struct memory_row *row, char *value)
{
    char *payload = value + machine->machine->events[row->event].payload_offset;
    unsigned kind = row->event;

    det_assert(kind < machine->event_count);
    memcpy(value, &kind, sizeof kind);
    if (machine->inline_size[kind])
        memcpy(payload, row->payload, machine->inline_size[kind]);
    else if (row->extra && row->extra->payload_size)
        memcpy(payload, row->extra->bytes, row->extra->payload_size);
}

static struct det_store_event row_event(const struct memory_row *row, uint64_t sequence)
{
    const struct memory_extra *extra = row->extra;
    struct det_store_event event = {
        .sequence = sequence,
        .visit = row->visit_choice & (((uint64_t)1 << MEMORY_VISIT_BITS) - 1),
        .choice = (uint16_t)(row->visit_choice >> MEMORY_VISIT_BITS),
        .from = row->from,
        .to = row->to,
        .event = row->event,
        .outcome = row->outcome,
        .is_timeout = row->is_timeout,
        .at = row->at,
    };

    if (extra && extra->id_size)
        event.event_id = extra->bytes + extra->payload_size;
    if (extra && extra->cause_size)
        event.cause = extra->bytes + extra->payload_size + extra->id_size;
    return event;
}

int det_memory_events(
    struct det_store *store, struct det_store_instance *handle, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct memory_instance *instance = memory_instance_of(handle);
    size_t size = instance->machine->event_size;
    uint32_t count = instance->row_count;
    char *value;
    int r = 0;

    det_contract_events(handle, visit);
    value = det_alloc_zero(store->allocator, size);
    if (!value)
        return DET_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint64_t sequence = instance->head.sequence - (count - 1 - i);
        uint32_t back = (instance->row_next + instance->row_capacity - count + i);
        const struct memory_row *row = memory_row_at(instance, back % instance->row_capacity);
        struct det_store_event event = row_event(row, sequence);

        if (sequence <= after)
            continue;
        if (row->event != UINT16_MAX) {
            memset(value, 0, size);
            restore_value(instance->machine, row, value);
            event.value = value;
        }
        r = visit(context, &event);
    }
    det_free(store->allocator, value, size);
    return r;
}
