/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served_instance.c - an instance of a served store: converts its JSON to rows of a store. Data
 * that no command prints is not in the answers, and zero here: payloads of timers, effects and
 * deferred events, traces, and sensitive fields. */
#include <detent/tool/machine.h>

#include "client/served_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/print_tasks.h"
#include "inspect/stored_instance.h"
#include "store/effect_key.h"
#include "store/row.h"
#include "store/store.h"

/* The handle of an instance. */
struct handle {
    const struct det_machine *machine;
    char id[DET_ID_MAX + 1];
};

static struct handle *handle_of(struct det_store_instance *instance)
{
    return (struct handle *)(void *)instance;
}

/* "IO", or the number of an error without a name; null: none. */
static int error_of(const struct det_json_value *object)
{
    const char *text = show_text(object, "last_error");

    if (*text == '-' || (*text >= '0' && *text <= '9'))
        return (int)strtol(text, NULL, 10);
    return *text && strcmp(text, det_error_name(0)) != 0 ? daemon_error_code(text) : 0;
}

/* Reads a record into a zeroed struct. */
static int read_record(
    const struct det_record *record, const struct det_json_value *json, void *value)
{
    if (!json)
        return 0;
    return det_record_from_json(
               record, json->raw.data, json->raw.size, DET_TEXT_HIDDEN, value, NULL) < 0
               ? DET_ERR_VERSION
               : 0;
}

/* The rows of an instance. */

static int take_timer(
    const struct det_machine *machine, const struct det_json_value *json,
    const struct det_store_rows *rows)
{
    struct det_store_timer row = {
        .visit = det_json_get_number(json, "visit"),
        .due = det_json_get_time(json, "due"),
        .is_dead = det_json_get_bool(json, "dead"),
        .attempts = (uint32_t)det_json_get_number(json, "attempts"),
        .last_error = error_of(json),
        .reason = det_json_get_text(json, "reason"),
        .next = det_json_get_time(json, "next_at"),
    };
    int r;

    if (!row.next)
        row.next = row.due;
    r = det_row_timer_find(machine, show_text(json, "timer"), &row.timer);
    if (r == 0)
        r = det_row_event_find(machine, show_text(json, "event"), &row.event);
    /* Like a store, omits a dead letter whose name the definition does not have. */
    if (r < 0)
        return row.is_dead ? 0 : r;
    return rows->timer ? rows->timer(rows->context, &row) : 0;
}

/* STORE/MACHINE/ID/SEQUENCE/INDEX, or without the store. */
static bool read_key(
    const struct det_store *store, const struct det_machine *machine, const char *key,
    struct det_store_effect *ret)
{
    size_t name = strlen(machine->name);
    const char *slash = strrchr(key, '/'), *before = slash;

    while (before && before > key && before[-1] != '/')
        before--;
    if (!slash || before == key)
        return false;
    ret->sequence = strtoull(before, NULL, 10);
    ret->index = (uint16_t)strtoul(slash + 1, NULL, 10);
    if (strncmp(key, machine->name, name) == 0 && key[name] == '/')
        return true;
    ret->index |= DET_KEY_HAS_STORE;
    if (strlen(key) <= DET_KEY_STORE || key[DET_KEY_STORE] != '/')
        return false;
    if (strncmp(key, store->identity, DET_KEY_STORE) != 0)
        memcpy(ret->origin, key, DET_KEY_STORE);
    return true;
}

static int take_effect(
    struct det_store *store, const struct det_machine *machine, const struct det_json_value *json,
    const struct det_store_rows *rows)
{
    struct det_store_effect row = {
        .is_dead = det_json_get_bool(json, "dead"),
        .attempts = (uint32_t)det_json_get_number(json, "attempts"),
        .last_error = error_of(json),
        .reason = det_json_get_text(json, "reason"),
        .at = det_json_get_time(json, "asked_at"),
        .next = det_json_get_time(json, "next_at"),
    };
    int r;

    r = det_row_effect_find(machine, show_text(json, "effect"), &row.effect);
    if (r < 0)
        return row.is_dead ? 0 : r;
    if (!read_key(store, machine, show_text(json, "key"), &row))
        return served_invalid(store);
    return rows->effect ? rows->effect(rows->context, &row) : 0;
}

/* Returns a zeroed event struct of this kind; NULL: out of memory. */
static void *make_event(struct det_store *store, const struct det_machine *machine, unsigned kind)
{
    void *event = det_alloc_zero(store->allocator, machine->event_size);

    det_assert(machine->event_size >= sizeof kind);
    if (event)
        memcpy(event, &kind, sizeof kind);
    return event;
}

static int take_deferred(
    struct det_store *store, const struct det_machine *machine, const struct det_json_value *json,
    const struct det_store_rows *rows)
{
    struct det_store_deferred row = { .sequence = det_json_get_number(json, "sequence") };
    uint16_t kind;
    void *event;
    int r;

    r = det_row_event_find(machine, show_text(json, "event"), &kind);
    if (r < 0 || !rows->deferred)
        return r;
    event = make_event(store, machine, kind);
    row.event = event;
    r = event ? rows->deferred(rows->context, &row) : DET_ERR_NO_MEMORY;
    det_free(store->allocator, event, machine->event_size);
    return r;
}

static int take_head(
    const struct det_machine *machine, const struct det_json_value *json,
    struct det_store_loaded *ret)
{
    const char *reason = det_json_get_text(json, "reason");
    int r;

    ret->head = (struct det_store_head){
        .sequence = det_json_get_number(json, "sequence"),
        .visit = det_json_get_number(json, "visit"),
        .transition_count = det_json_get_number(json, "transitions"),
        .started_at = det_json_get_time(json, "started_at"),
        .last_transition_at = det_json_get_time(json, "moved_at"),
        .is_stopped = det_json_get_bool(json, "stopped"),
    };
    ret->history_count = 0;
    (void)det_text_copy(ret->reason, sizeof ret->reason, reason ? reason : "");
    r = det_row_state_find(machine, show_text(json, "state"), &ret->head.state);
    DET_JSON_EACH (state, det_json_get(json, "history")) {
        const char *name = det_json_value_text(state);

        if (r == 0 && ret->history_count < DET_HISTORY_MAX)
            r = det_row_state_find(machine, name ? name : "", &ret->history[ret->history_count++]);
    }
    if (r < 0)
        return r;
    det_assert(ret->head.state < machine->state_count && ret->history_count <= DET_HISTORY_MAX);
    memset(ret->data, 0, det_machine_data(machine)->size);
    return read_record(det_machine_data(machine), det_json_get(json, "data"), ret->data);
}

static int take_instance(
    struct det_store *store, const struct det_machine *machine, const struct det_json_value *json,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    int r = take_head(machine, json, ret);

    DET_JSON_EACH (timer, det_json_get(json, "timers"))
        r = r == 0 ? take_timer(machine, timer, rows) : r;
    DET_JSON_EACH (effect, det_json_get(json, "effects"))
        r = r == 0 ? take_effect(store, machine, effect, rows) : r;
    DET_JSON_EACH (deferred, det_json_get(json, "deferred"))
        r = r == 0 ? take_deferred(store, machine, deferred, rows) : r;
    return r;
}

int served_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct handle *handle = DET_NEW(store->allocator, struct handle);
    const struct det_json_value *answer = NULL;
    struct served_call call;
    int r;

    if (!handle)
        return DET_ERR_NO_MEMORY;
    /* No instance has such an id, and the API would refuse it. */
    if (!det_store_id_is_valid(id) || !det_text_copy(handle->id, sizeof handle->id, id)) {
        DET_DELETE(store->allocator, handle);
        return DET_ERR_NOT_FOUND;
    }
    handle->machine = machine;
    served_begin(&call, store);
    served_instance_path(&call, machine, id, "");
    r = served_get(&call, &answer);
    if (r == 0)
        r = take_instance(store, machine, answer, rows, ret);
    r = served_end(&call, r);
    if (r != 0)
        DET_DELETE(store->allocator, handle);
    else
        ret->instance = (struct det_store_instance *)(void *)handle;
    return r;
}

void served_release(struct det_store *store, struct det_store_instance *instance)
{
    struct handle *handle = handle_of(instance);

    if (handle)
        DET_DELETE(store->allocator, handle);
}

/* History. */

static int read_event(
    const struct det_machine *machine, const struct det_json_value *json,
    struct det_store_event *row)
{
    int outcome = det_outcome_find(show_text(json, "outcome")), r;

    *row = (struct det_store_event){
        .sequence = det_json_get_number(json, "sequence"),
        .visit = det_json_get_number(json, "visit"),
        .outcome = (uint16_t)outcome,
        .choice = (uint16_t)det_json_get_number(json, "choice"),
        .is_timeout = det_json_get_bool(json, "timeout"),
        .at = det_json_get_time(json, "at"),
        .event_id = det_json_get_text(json, "event_id"),
        .cause = det_json_get_text(json, "cause"),
    };
    r = outcome < 0 ? DET_ERR_VERSION : 0;
    if (r == 0)
        r = det_row_event_find(machine, det_json_get_text(json, "event"), &row->event);
    if (r == 0)
        r = det_row_state_find(machine, show_text(json, "from"), &row->from);
    if (r == 0)
        r = det_row_state_find(machine, show_text(json, "to"), &row->to);
    return r;
}

/* `event` has the size of the machine's. */
static int read_payload(
    const struct det_machine *machine, const struct det_json_value *json,
    struct det_store_event *row, void *event)
{
    const struct det_json_value *payload = det_json_get(json, "payload");
    unsigned kind = row->event;

    det_assert(row->event == UINT16_MAX || row->event < machine->event_count);
    if (!payload || row->event == UINT16_MAX)
        return 0;
    memset(event, 0, machine->event_size);
    memcpy(event, &kind, sizeof kind);
    row->value = event;
    return read_record(
        det_machine_payload(machine, kind), payload, instance_payload_in(machine, event));
}

int served_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    const struct handle *handle = handle_of(instance);
    const struct det_machine *machine = handle->machine;
    const struct det_json_value *json = NULL;
    void *event = make_event(store, machine, 0);
    struct served_call call;
    struct det_store_event row;
    int r, outcome = 0;

    if (!event)
        return DET_ERR_NO_MEMORY;
    served_begin(&call, store);
    served_instance_path(&call, machine, handle->id, "/history");
    served_query_number(&call, "limit", SERVED_PAGE);
    served_query_number(&call, "after", after);
    r = served_ask(&call);
    while (r == 0 && outcome == 0 && (r = served_next(&call, &json)) > 0) {
        r = read_event(machine, json, &row);
        if (r == 0)
            r = read_payload(machine, json, &row, event);
        if (r == 0)
            outcome = visit(context, &row);
    }
    det_free(store->allocator, event, machine->event_size);
    r = served_end(&call, r);
    return r < 0 ? r : outcome;
}

int served_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret)
{
    const struct handle *handle = handle_of(instance);
    const struct det_machine *machine = handle->machine;
    const struct det_json_value *json = NULL;
    struct served_call call;
    int r;

    served_begin(&call, store);
    served_instance_path(&call, machine, handle->id, "/history");
    served_query_number(&call, "limit", 1);
    r = served_ask(&call);
    if (r == 0)
        r = served_next(&call, &json);
    if (r == 0 || (r > 0 && strcmp(show_text(json, "type"), "start") != 0))
        r = DET_ERR_NOT_FOUND;
    if (r > 0) {
        ret->at = det_json_get_time(json, "at");
        ret->version = (uint32_t)det_json_get_number(json, "version");
        r = det_row_state_find(machine, show_text(json, "state"), &ret->state);
    }
    if (r == 0)
        r = read_record(det_machine_data(machine), det_json_get(json, "data"), ret->data);
    return served_end(&call, r);
}

/* Lock. */

int served_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    const struct det_json_value *answer = NULL;
    struct served_call call;
    int r;

    if (change->verb != DET_LEASE_READ)
        return DET_ERR_READ_ONLY;
    served_begin(&call, store);
    served_instance_path(&call, machine, change->name, "/lock");
    r = served_get(&call, &answer);
    if (r == 0) {
        *ret = (struct det_store_lease){ .token = det_json_get_number(answer, "fence"),
                                         .expires_at = det_json_get_time(answer, "until") };
        (void)det_text_copy(ret->owner, sizeof ret->owner, show_text(answer, "owner"));
    }
    return served_end(&call, r);
}
