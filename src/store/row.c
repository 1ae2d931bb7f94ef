/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row.c - converts between a commit and its rows. An event whose payload has no fields is stored
 * without bytes: missing fields are zero. */
#include <detent/tool/machine.h>

#include "store/row.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "machine/write.h"

const char *det_row_event_name(const struct det_machine *machine, uint16_t event)
{
    if (event == UINT16_MAX)
        return NULL;
    det_assert(event < machine->event_count);
    return machine->events[event].name;
}

const char *det_row_timer_name(const struct det_machine *machine, uint16_t timer)
{
    if (timer == DET_STATE_TIMER)
        return "";
    if (timer == DET_DEFERRED_TIMER)
        return DET_DEFERRED_TIMER_NAME;
    det_assert(timer < machine->timer_count);
    return machine->timers[timer].name;
}

const char *det_row_effect_name(const struct det_machine *machine, uint16_t effect)
{
    det_assert(effect < machine->effect_count);
    return machine->effects[effect].name;
}

const char *det_row_answer_event(const struct det_store_commit *commit)
{
    return commit->answer.request ? det_row_event_name(commit->machine, commit->answer.event)
                                  : NULL;
}

static int id_result(int id, uint16_t *ret)
{
    if (id < 0)
        return DET_ERR_VERSION;
    *ret = (uint16_t)id;
    return 0;
}

int det_row_state_find(const struct det_machine *machine, const char *name, uint16_t *ret)
{
    return id_result(det_machine_find_state(machine, name), ret);
}

int det_row_event_find(const struct det_machine *machine, const char *name, uint16_t *ret)
{
    return id_result(name ? det_machine_find_event(machine, name) : UINT16_MAX, ret);
}

int det_row_timer_seek(const struct det_machine *machine, const char *name)
{
    return strcmp(name, DET_DEFERRED_TIMER_NAME) == 0 ? DET_DEFERRED_TIMER
                                                      : det_machine_find_timer(machine, name);
}

int det_row_timer_find(const struct det_machine *machine, const char *name, uint16_t *ret)
{
    return id_result(name[0] ? det_row_timer_seek(machine, name) : DET_STATE_TIMER, ret);
}

int det_row_effect_find(const struct det_machine *machine, const char *name, uint16_t *ret)
{
    return id_result(det_machine_find_effect(machine, name), ret);
}

int det_row_spec(const struct det_machine *machine, struct det_buffer *buffer)
{
    int r;

    r = det_write_machine(machine, buffer, NULL);
    return r == DET_ERR_UNSUPPORTED || r == DET_ERR_LIMIT ? 0 : r;
}

/* Reserves `size` bytes beyond the size of the buffer. */
static int reserve_bytes(struct det_buffer *buffer, size_t size)
{
    size_t before = buffer->size;

    (void)det_buffer_extend(buffer, size);
    if (det_buffer_status(buffer) < 0)
        return det_buffer_status(buffer);
    buffer->size = before;
    return 0;
}

static size_t room_in(const struct det_buffer *buffer)
{
    size_t room = buffer->capacity > buffer->size ? buffer->capacity - buffer->size - 1 : 0;

    return buffer->limit && buffer->limit - buffer->size < room ? buffer->limit - buffer->size
                                                                : room;
}

static int64_t encode_into_room(
    const struct det_record *record, const void *value, struct det_buffer *buffer)
{
    char *target = buffer->data + buffer->size;
    int64_t size;

    size = det_record_encode(record, value, target, room_in(buffer), NULL);
    if (size < 0)
        *target = 0;
    return size;
}

/* Encodes into the available room, which mostly suffices, and computes the largest size only
 * otherwise, since that costs more than encoding. */
static int encode_record(
    const struct det_record *record, const void *value, struct det_buffer *buffer,
    struct det_chain_bytes *ret)
{
    int64_t size = DET_ERR_LIMIT;
    int r;

    if (buffer->data && !buffer->error)
        size = encode_into_room(record, value, buffer);
    if (size == DET_ERR_LIMIT) {
        r = reserve_bytes(buffer, det_record_encoded_max(record));
        if (r < 0)
            return r;
        size = encode_into_room(record, value, buffer);
    }
    if (size < 0)
        return DET_ERR_INVALID;
    *ret = (struct det_chain_bytes){ buffer->data + buffer->size, (size_t)size };
    buffer->size += (size_t)size;
    buffer->data[buffer->size] = 0;
    return 0;
}

int det_row_payload_encode(
    const struct det_machine *machine, const void *event, struct det_buffer *buffer,
    struct det_chain_bytes *ret)
{
    const struct det_record *record;
    unsigned kind;

    *ret = (struct det_chain_bytes){ 0 };
    if (!event)
        return 0;
    kind = det_event_kind(event);
    if (kind >= machine->event_count)
        return DET_ERR_INVALID;
    record = det_machine_payload(machine, kind);
    if (record->field_count == 0)
        return 0;
    return encode_record(
        record, (const char *)event + machine->events[kind].payload_offset, buffer, ret);
}

/* Every decoding error is damage, since valid bytes were written. */
static int decode_result(int r)
{
    return r == 0 || r == DET_ERR_VERSION ? r : DET_ERR_CORRUPT;
}

/* The version in the frame of a record: a format byte, then a number of 7 bits a byte; 0: none. */
static uint32_t version_of(struct det_chain_bytes bytes)
{
    const uint8_t *at = bytes.data;
    uint64_t version = 0;

    for (size_t i = 1; i < bytes.size && i <= 5; i++) {
        version |= (uint64_t)(at[i] & 0x7f) << (7 * (i - 1));
        if (!(at[i] & 0x80))
            return version <= UINT32_MAX ? (uint32_t)version : 0;
    }
    return 0;
}

/* 1 if the store's upcast function has converted the bytes. After its failure the bytes may be
 * valid; only this program cannot convert them. */
static int upcast_record(
    const struct det_store *store, struct det_upcast *old, const struct det_record *record,
    void *value)
{
    int r;

    old->version = version_of((struct det_chain_bytes){ .data = old->bytes, .size = old->size });
    if (!store->upcast || old->version == 0 || old->version >= record->version)
        return 0;
    memset(value, 0, record->size);
    r = store->upcast(store->upcast_user, old, value);
    if (r > 0 && det_record_validate(record, value, NULL) < 0)
        return DET_ERR_VERSION;
    return r < 0 && r != DET_ERR_NO_MEMORY ? DET_ERR_VERSION : r;
}

static int decode_record(
    const struct det_store *store, struct det_upcast old, const struct det_record *record,
    void *value)
{
    int r;

    r = upcast_record(store, &old, record, value);
    if (r != 0)
        return r < 0 ? r : 0;
    return decode_result(det_record_decode(record, old.bytes, old.size, value, NULL));
}

int det_row_payload_decode(
    const struct det_store *store, const struct det_machine *machine, uint16_t kind,
    struct det_chain_bytes payload, void *event)
{
    unsigned number = kind;

    det_assert(kind < machine->event_count);
    memset(event, 0, machine->event_size);
    memcpy(event, &number, sizeof number);
    if (!payload.data)
        return 0;
    return decode_record(
        store,
        (struct det_upcast){ .machine = machine,
                             .event = machine->events[kind].name,
                             .bytes = payload.data,
                             .size = payload.size },
        det_machine_payload(machine, kind), (char *)event + machine->events[kind].payload_offset);
}

int det_row_data_encode(
    const struct det_machine *machine, const void *data, struct det_buffer *buffer,
    struct det_chain_bytes *ret)
{
    return encode_record(det_machine_data(machine), data, buffer, ret);
}

int det_row_data_decode(
    const struct det_store *store, const struct det_machine *machine, struct det_chain_bytes bytes,
    void *data)
{
    return decode_record(
        store, (struct det_upcast){ .machine = machine, .bytes = bytes.data, .size = bytes.size },
        det_machine_data(machine), data);
}

struct det_chain_event det_row_chain_event(
    const struct det_machine *machine, const char *id, const struct det_store_event *event,
    struct det_chain_bytes payload)
{
    return (struct det_chain_event){
        .machine = machine->name,
        .id = id,
        .version = machine->version,
        .sequence = event->sequence,
        .visit = event->visit,
        .from = machine->states[event->from].name,
        .to = machine->states[event->to].name,
        .event = det_row_event_name(machine, event->event),
        .outcome = det_outcome_name(event->outcome),
        .choice = event->choice,
        .is_timeout = event->is_timeout,
        .at = event->at,
        .event_id = event->event_id,
        .cause = event->cause,
        .payload = payload,
    };
}

struct det_chain_start det_row_chain_start(
    const struct det_store_commit *commit, struct det_chain_bytes data)
{
    const struct det_store_head *head = commit->head;
    struct det_chain_start start = {
        .machine = commit->machine->name,
        .id = commit->id,
        .at = head->started_at,
    };

    if (!commit->is_new || commit->is_start_unknown || head->sequence > 0)
        return start;
    det_assert(head->state < commit->machine->state_count);
    start.version = commit->machine->version;
    start.state = commit->machine->states[head->state].name;
    start.data = data;
    return start;
}

struct det_chain_head det_row_chain_head(
    const struct det_machine *machine, const char *id, const struct det_store_head *head)
{
    return (struct det_chain_head){
        .machine = machine->name,
        .id = id,
        .version = machine->version,
        .state = machine->states[head->state].name,
        .sequence = head->sequence,
        .visit = head->visit,
        .transitions = head->transition_count,
        .started_at = head->started_at,
        .moved_at = head->last_transition_at,
        .is_stopped = head->is_stopped,
    };
}

int det_row_head_read(
    const struct det_store *store, const struct det_machine *machine,
    const struct det_chain_head *head, struct det_store_loaded *ret)
{
    int r;

    ret->head = (struct det_store_head){
        .sequence = head->sequence,
        .visit = head->visit,
        .transition_count = head->transitions,
        .started_at = head->started_at,
        .last_transition_at = head->moved_at,
        .is_stopped = head->is_stopped,
    };
    ret->history_count = 0;
    if (!det_text_copy(ret->reason, sizeof ret->reason, head->reason ? head->reason : ""))
        return DET_ERR_CORRUPT;
    r = det_row_state_find(machine, head->state, &ret->head.state);
    return r < 0 ? r : det_row_data_decode(store, machine, head->data, ret->data);
}

int det_row_history_write(
    const struct det_machine *machine, const uint16_t *history, size_t count,
    struct det_buffer *buffer)
{
    for (size_t i = 0; i < count; i++) {
        det_assert(history[i] < machine->state_count);
        if (i)
            det_buffer_append_char(buffer, ' ');
        det_buffer_append_text(buffer, machine->states[history[i]].name);
    }
    return det_buffer_status(buffer);
}

int det_row_history_read(
    const struct det_machine *machine, const char *text, struct det_store_loaded *loaded)
{
    char name[DET_NAME_MAX + 1];
    int r;

    while (*text && loaded->history_count < DET_HISTORY_MAX) {
        size_t length = strcspn(text, " ");

        if (length == 0 || length > DET_NAME_MAX)
            return DET_ERR_CORRUPT;
        memcpy(name, text, length);
        name[length] = 0;
        r = det_row_state_find(machine, name, &loaded->history[loaded->history_count]);
        if (r < 0)
            return r;
        loaded->history_count++;
        text += length + (text[length] == ' ');
    }
    return 0;
}

bool det_row_may_be_dead(
    const struct det_store_commit *commit, const struct det_store_effect *effect)
{
    return !commit->is_new && (!commit->event_count || effect->sequence <= commit->expected);
}

void det_row_origin(struct det_store_effect *effect, const char *origin)
{
    (void)snprintf(effect->origin, sizeof effect->origin, "%s", origin ? origin : "");
}
