/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - reads the rows of an instance, for both SQL drivers. */
#include <detent/tool/machine.h>

#include "store/sql/load.h"

#include <string.h>

#include "store/log.h"
#include "store/row.h"
#include "store/sql/renames.h"

/* Columns of the statements that load rows. Those of a timer end with ROW_OWNER, and those of a
 * deferred event with ROW_COMPLETE. */
enum {
    ROW_KIND,
    ROW_SEQUENCE,
    ROW_NUMBER,
    ROW_EVENT,
    ROW_PAYLOAD,
    ROW_COMPLETE,
    ROW_NAME,
    ROW_VISIT,
    ROW_AT, /* of a timer: due */
    ROW_NEXT,
    ROW_ATTEMPTS,
    ROW_LAST_ERROR,
    ROW_REASON,
    ROW_IS_DEAD,
    ROW_OWNER, /* NULL: the store is not shared */
    ROW_FROM,
    ROW_TO,
    ROW_ASKED,
    ROW_DATA,
    ROW_TRACE,
    ROW_ORIGIN,
};

/* Values of ROW_KIND. */
enum { KIND_TIMER, KIND_EFFECT, KIND_DEFERRED };

static size_t data_offset(const struct det_machine *machine)
{
    return ((size_t)machine->event_size + 15) / 16 * 16;
}

size_t det_sql_load_room(const struct det_machine *machine)
{
    return data_offset(machine) + det_machine_data(machine)->size;
}

static bool is_foreign(const struct det_sql_loading *loading, const struct det_sql_row *row)
{
    const char *owner = det_sql_text_or_null(row, ROW_OWNER);

    return owner && strcmp(owner, loading->store->owner) != 0;
}

/* The result of reading a row's names, `r`, once all of its columns are read. */
static int names_result(const struct det_sql_row *row, int r)
{
    int status = det_sql_status(row);

    return status < 0 ? status : r;
}

static int load_timer(const struct det_sql_loading *loading, const struct det_sql_row *row)
{
    const struct det_machine *machine = loading->machine;
    struct det_chain_bytes payload = det_sql_bytes(row, ROW_PAYLOAD);
    struct det_store_timer timer = {
        .visit = det_sql_count(row, ROW_VISIT),
        .due = det_sql_number(row, ROW_AT),
        .next = det_sql_number(row, ROW_NEXT),
        .attempts = (uint32_t)det_sql_number(row, ROW_ATTEMPTS),
        .last_error = (int)det_sql_number(row, ROW_LAST_ERROR),
        .reason = det_sql_text_or_null(row, ROW_REASON),
        .is_dead = det_sql_flag(row, ROW_IS_DEAD),
    };
    int r;

    timer.is_foreign = !timer.is_dead && is_foreign(loading, row);
    r = det_row_timer_find(machine, det_sql_text(row, ROW_NAME), &timer.timer);
    if (r == 0)
        r = det_row_event_find(machine, det_sql_text(row, ROW_EVENT), &timer.event);
    r = names_result(row, r);
    if (r < 0)
        return r == DET_ERR_VERSION && timer.is_dead ? 0 : r;
    if (payload.data) {
        r = det_row_payload_decode(loading->store, machine, timer.event, payload, loading->room);
        timer.value = loading->room;
    }
    return r < 0 || !loading->rows->timer ? r
                                          : loading->rows->timer(loading->rows->context, &timer);
}

static int read_effect_names(
    const struct det_machine *machine, const struct det_sql_row *row, struct det_store_effect *ret,
    uint16_t *ret_event)
{
    int r;

    r = det_row_effect_find(machine, det_sql_text(row, ROW_NAME), &ret->effect);
    if (r == 0)
        r = det_row_state_find(machine, det_sql_text(row, ROW_FROM), &ret->from);
    if (r == 0)
        r = det_row_state_find(machine, det_sql_text(row, ROW_TO), &ret->to);
    if (r == 0)
        r = det_row_event_find(machine, det_sql_text_or_null(row, ROW_EVENT), ret_event);
    return names_result(row, r);
}

static int load_effect(const struct det_sql_loading *loading, const struct det_sql_row *row)
{
    const struct det_machine *machine = loading->machine;
    char *data = loading->room + data_offset(machine);
    struct det_chain_bytes payload = det_sql_bytes(row, ROW_PAYLOAD);
    struct det_chain_bytes data_bytes = det_sql_bytes(row, ROW_DATA);
    struct det_trace_context trace;
    struct det_store_effect effect = {
        .sequence = det_sql_count(row, ROW_SEQUENCE),
        .index = (uint16_t)det_sql_number(row, ROW_NUMBER),
        .visit = det_sql_count(row, ROW_VISIT),
        .asked = det_sql_count(row, ROW_ASKED),
        .at = det_sql_number(row, ROW_AT),
        .attempts = (uint32_t)det_sql_number(row, ROW_ATTEMPTS),
        .last_error = (int)det_sql_number(row, ROW_LAST_ERROR),
        .next = det_sql_number(row, ROW_NEXT),
        .is_dead = det_sql_flag(row, ROW_IS_DEAD),
        .reason = det_sql_text_or_null(row, ROW_REASON),
        .data = data,
        .event = loading->room,
    };
    uint16_t event = UINT16_MAX;
    int r;

    effect.is_foreign = !effect.is_dead && is_foreign(loading, row);
    if (det_trace_context_read(det_sql_bytes(row, ROW_TRACE), &trace))
        effect.trace = &trace;
    det_row_origin(&effect, det_sql_text_or_null(row, ROW_ORIGIN));
    r = read_effect_names(machine, row, &effect, &event);
    if (r < 0)
        return r == DET_ERR_VERSION && effect.is_dead ? 0 : r;
    /* An effect always has the event that requested it. */
    if (event == UINT16_MAX)
        return DET_ERR_CORRUPT;
    r = det_row_data_decode(loading->store, machine, data_bytes, data);
    if (r == 0)
        r = det_row_payload_decode(loading->store, machine, event, payload, loading->room);
    return r < 0 || !loading->rows->effect ? r
                                           : loading->rows->effect(loading->rows->context, &effect);
}

static int load_deferred(const struct det_sql_loading *loading, const struct det_sql_row *row)
{
    const struct det_store_deferred deferred = {
        .sequence = det_sql_count(row, ROW_SEQUENCE),
        .event = loading->room,
    };
    struct det_chain_bytes payload = det_sql_bytes(row, ROW_PAYLOAD);
    uint16_t event;
    int r;

    r = names_result(
        row, det_row_event_find(loading->machine, det_sql_text(row, ROW_EVENT), &event));
    if (r == 0)
        r = det_row_payload_decode(loading->store, loading->machine, event, payload, loading->room);
    return r < 0 || !loading->rows->deferred
               ? r
               : loading->rows->deferred(loading->rows->context, &deferred);
}

int det_sql_row_load(const struct det_sql_loading *loading, const struct det_sql_row *row)
{
    int r;

    r = det_sql_check(row, ROW_COMPLETE);
    if (r < 0)
        return r;
    switch (det_sql_number(row, ROW_KIND)) {
    case KIND_TIMER:
        return load_timer(loading, row);
    case KIND_EFFECT:
        return load_effect(loading, row);
    default:
        return load_deferred(loading, row);
    }
}

int det_sql_event_load(
    const struct det_store *store, const struct det_machine *machine, int64_t position,
    const struct det_chain_event *event, void *value, struct det_store_event *ret)
{
    const char *from = det_sql_renamed(store, machine->name, DET_NAME_STATE, position, event->from);
    const char *to = det_sql_renamed(store, machine->name, DET_NAME_STATE, position, event->to);
    const char *name =
        det_sql_renamed(store, machine->name, DET_NAME_EVENT, position, event->event);
    int outcome = det_outcome_find(event->outcome), r;

    *ret = (struct det_store_event){
        .sequence = event->sequence,
        .visit = event->visit,
        .outcome = (uint16_t)outcome,
        .choice = (uint16_t)event->choice,
        .is_timeout = event->is_timeout,
        .at = event->at,
        .event_id = event->event_id,
        .cause = event->cause,
    };
    if (outcome < 0)
        return DET_ERR_VERSION;
    r = det_row_state_find(machine, from, &ret->from);
    if (r == 0)
        r = det_row_state_find(machine, to, &ret->to);
    if (r == 0)
        r = det_row_event_find(machine, name, &ret->event);
    if (r < 0 || ret->event == UINT16_MAX)
        return r;
    ret->value = value;
    return det_row_payload_decode(store, machine, ret->event, event->payload, value);
}
