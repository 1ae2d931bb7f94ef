/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_read.c - lines of an export as rows of a store. */
#include <detent/tool/machine.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "inspect/stored_instance.h"
#include "store/effect_key.h"
#include "store/row.h"
#include "transfer/import.h"

/* Converts the state of an object to a result. */
static int verdict_of(struct import *import, const struct det_json_object *members)
{
    if (members->has_failed)
        return DET_ERR_NO_MEMORY;
    if (!members->wrong[0])
        return 0;
    snprintf(import->wrong, sizeof import->wrong, "'%s' is missing or invalid", members->wrong);
    return DET_ERR_MALFORMED;
}

static int open_members(
    struct import *import, struct det_arena *arena, const struct det_json_value *value,
    struct det_json_object *members)
{
    struct det_error error = { 0 };
    int r = det_json_object_init(members, arena, value, &error);

    if (r < 0 && r != DET_ERR_NO_MEMORY)
        snprintf(import->wrong, sizeof import->wrong, "%s", error.text);
    return r < 0 && r != DET_ERR_NO_MEMORY ? DET_ERR_MALFORMED : r;
}

static int open_line(
    struct import *import, struct det_arena *arena, struct det_view line,
    struct det_json_object *members)
{
    const struct det_json_value *value = NULL;
    struct det_error error = { 0 };
    int r = det_json_read(arena, line, &value, &error);

    if (r == 0 || r == DET_ERR_NO_MEMORY)
        return r < 0 ? r : open_members(import, arena, value, members);
    snprintf(import->wrong, sizeof import->wrong, "%s", error.text);
    return DET_ERR_MALFORMED;
}

/* Context of the readers of elements. */
struct reading {
    struct import *import;
    struct incoming *incoming;
};

typedef int find_fn(const struct det_machine *machine, const char *name);

/* The id of a name of the machine; a name that it does not have makes the object wrong. */
static uint16_t find_name(
    const struct incoming *incoming, struct det_json_object *members, const char *key,
    find_fn *find)
{
    int found = find(incoming->machine, det_json_object_text(members, key));

    if (found < 0)
        det_json_object_fail(members, key);
    return found < 0 ? 0 : (uint16_t)found;
}

static void read_value(
    struct det_json_object *members, const char *key, const struct det_record *record, void *value)
{
    const struct det_json_value *member = det_json_object_find(members, key);

    if (!member ||
        det_record_from_json(record, member->raw.data, member->raw.size, 0, value, NULL) < 0)
        det_json_object_fail(members, key);
}

/* An event struct of a kind with the payload of the object; NULL: no memory. */
static void *read_event_value(
    const struct incoming *incoming, struct det_arena *arena, struct det_json_object *members,
    unsigned kind)
{
    const struct det_machine *machine = incoming->machine;
    void *event;

    det_assert(kind < machine->event_count);
    event = det_arena_alloc(arena, machine->event_size);

    if (!event) {
        members->has_failed = true;
        return NULL;
    }
    memcpy(event, &kind, sizeof kind);
    det_assert(det_event_kind(event) == kind);
    read_value(
        members, "payload", det_machine_payload(machine, kind),
        instance_payload_in(machine, event));
    return event;
}

/* Returns the trace context of the object; NULL: none. */
static const struct det_trace_context *read_trace(
    struct det_arena *arena, struct det_json_object *members)
{
    const char *text = det_json_object_text_or_null(members, "trace");
    struct det_trace_context *trace;

    if (!text)
        return NULL;
    trace = det_arena_alloc(arena, sizeof *trace);
    members->has_failed |= !trace;
    if (trace && det_trace_parse(text, strlen(text), trace) < 0)
        det_json_object_fail(members, "trace");
    return trace;
}

static void *read_data(struct incoming *incoming, struct det_json_object *members)
{
    const struct det_record *record = det_machine_data(incoming->machine);
    void *data = det_arena_alloc(&incoming->arena, record->size);

    if (data)
        read_value(members, "data", record, data);
    members->has_failed |= !data;
    return data;
}

static int read_history(struct reading *reading, const struct det_json_value *element)
{
    struct incoming *incoming = reading->incoming;
    const char *name = det_json_value_text(element);
    int found;

    if (incoming->history_count == DET_HISTORY_MAX || !name)
        return DET_ERR_MALFORMED;
    found = det_machine_find_state(incoming->machine, name);
    if (found < 0)
        return DET_ERR_MALFORMED;
    incoming->history[incoming->history_count++] = (uint16_t)found;
    return 0;
}

static uint16_t find_timer(const struct incoming *incoming, struct det_json_object *members)
{
    const char *name = det_json_object_text(members, "timer");
    uint16_t found = DET_STATE_TIMER;

    if (det_row_timer_find(incoming->machine, name, &found) < 0)
        det_json_object_fail(members, "timer");
    return found;
}

/* Reads the attempts of a timer that has failed. */
static void read_attempts(struct det_json_object *members, struct det_store_timer *timer)
{
    if (!det_json_object_find(members, "attempts"))
        return;
    timer->attempts = (uint32_t)det_json_object_number(members, "attempts");
    timer->last_error = (int)det_json_object_signed(members, "last_error");
    timer->reason = det_json_object_text_or_null(members, "reason");
    timer->next = det_json_object_time(members, "next");
    timer->is_dead = det_json_object_bool(members, "dead");
    if (timer->reason && strlen(timer->reason) > DET_REASON_MAX)
        det_json_object_fail(members, "reason");
}

static int read_timer(struct reading *reading, const struct det_json_value *element)
{
    struct incoming *incoming = reading->incoming;
    struct det_store_timer_change *change = &incoming->timers[incoming->timer_count];
    struct det_json_object members;
    int r = open_members(reading->import, &incoming->arena, element, &members);

    if (r < 0)
        return r;
    *change = (struct det_store_timer_change){
        .kind = DET_STORE_SET,
        .timer = { .timer = find_timer(incoming, &members),
                   .event = find_name(incoming, &members, "event", det_machine_find_event),
                   .visit = det_json_object_number(&members, "visit"),
                   .due = det_json_object_time(&members, "due") },
    };
    if (det_json_object_find(&members, "payload"))
        change->timer.value =
            read_event_value(incoming, &incoming->arena, &members, change->timer.event);
    read_attempts(&members, &change->timer);
    incoming->timer_count++;
    return verdict_of(reading->import, &members);
}

void import_head(struct import *import, struct det_json_object *members)
{
    const char *identity = det_json_object_text_or_null(members, "identity");

    snprintf(import->origin, sizeof import->origin, "%s", identity ? identity : "");
}

/* An attempt may have reached the other side with the previous key. The effect keeps it, with the
 * store that it names: the one in the row, or the exported one. */
static void read_origin(
    const struct import *import, struct det_json_object *members, struct det_store_effect *row)
{
    const char *origin = det_json_object_text_or_null(members, "origin");

    if (!(row->index & DET_KEY_HAS_STORE))
        return;
    if (!origin)
        origin = import->origin;
    if (strspn(origin, "0123456789abcdef") != DET_KEY_STORE || origin[DET_KEY_STORE])
        det_json_object_fail(members, "origin");
    det_row_origin(row, origin);
    /* The effect returns to its store. */
    if (strncmp(row->origin, import->store->store->identity, DET_KEY_STORE) == 0)
        det_row_origin(row, NULL);
}

static int read_effect(struct reading *reading, const struct det_json_value *element)
{
    struct incoming *incoming = reading->incoming;
    struct det_store_effect_change *change = &incoming->effects[incoming->effect_count];
    struct det_json_object members;
    unsigned event;
    int r = open_members(reading->import, &incoming->arena, element, &members);

    if (r < 0)
        return r;
    event = find_name(incoming, &members, "event", det_machine_find_event);
    *change = (struct det_store_effect_change){
        .kind = DET_STORE_SET,
        .effect = {
            .sequence = det_json_object_number(&members, "sequence"),
            .index = (uint16_t)det_json_object_number(&members, "index"),
            .effect = find_name(incoming, &members, "effect", det_machine_find_effect),
            .from = find_name(incoming, &members, "from", det_machine_find_state),
            .to = find_name(incoming, &members, "to", det_machine_find_state),
            .visit = det_json_object_number(&members, "visit"),
            .asked = det_json_object_number(&members, "asked"),
            .at = det_json_object_time(&members, "at"),
            .attempts = (uint32_t)det_json_object_number(&members, "attempts"),
            .last_error = (int)det_json_object_signed(&members, "last_error"),
            .reason = det_json_object_text_or_null(&members, "reason"),
            .next = det_json_object_time(&members, "next"),
            .is_dead = det_json_object_bool(&members, "dead"),
            .data = read_data(incoming, &members),
            .event = read_event_value(incoming, &incoming->arena, &members, event),
            .trace = read_trace(&incoming->arena, &members),
        },
    };
    incoming->effect_count++;
    read_origin(reading->import, &members, &change->effect);
    if (change->effect.reason && strlen(change->effect.reason) > DET_REASON_MAX)
        det_json_object_fail(&members, "reason");
    return verdict_of(reading->import, &members);
}

static int read_deferred(struct reading *reading, const struct det_json_value *element)
{
    struct incoming *incoming = reading->incoming;
    struct det_store_deferred_change *change = &incoming->deferred[incoming->deferred_count];
    struct det_json_object members;
    unsigned event;
    int r = open_members(reading->import, &incoming->arena, element, &members);

    if (r < 0)
        return r;
    event = find_name(incoming, &members, "event", det_machine_find_event);
    *change = (struct det_store_deferred_change){
        .kind = DET_STORE_SET,
        .deferred = { .sequence = det_json_object_number(&members, "sequence"),
                      .event = read_event_value(incoming, &incoming->arena, &members, event) },
    };
    incoming->deferred_count++;
    return verdict_of(reading->import, &members);
}

/* Makes room for the elements of an array, `size` bytes each, and reads them. */
struct array {
    const char *key;
    size_t size;
    int (*read)(struct reading *reading, const struct det_json_value *element);
};

static int read_array(
    struct reading *reading, struct det_json_object *members, const struct array *array,
    void **target)
{
    const struct det_json_value *list = det_json_object_array(members, array->key);
    int r = 0;

    if (!list || list->count == 0)
        return 0;
    *target = det_arena_array(&reading->incoming->arena, list->count, array->size);
    if (!*target)
        return DET_ERR_NO_MEMORY;
    DET_JSON_EACH (element, list) {
        r = array->read(reading, element);
        if (r < 0)
            break;
    }
    det_assert(reading->incoming->history_count <= DET_HISTORY_MAX);
    return r;
}

static int read_arrays(struct reading *reading, struct det_json_object *members)
{
    struct incoming *incoming = reading->incoming;
    static const struct array history = { "history", 1, read_history },
                              timers = { "timers", sizeof *incoming->timers, read_timer },
                              effects = { "effects", sizeof *incoming->effects, read_effect },
                              deferred = { "deferred", sizeof *incoming->deferred, read_deferred };
    void *none = NULL;
    int r;

    r = read_array(reading, members, &history, &none);
    if (r == DET_ERR_MALFORMED)
        snprintf(
            reading->import->wrong, sizeof reading->import->wrong,
            "'history' is not one of this machine");
    if (r == 0)
        r = read_array(reading, members, &timers, (void **)&incoming->timers);
    if (r == 0)
        r = read_array(reading, members, &effects, (void **)&incoming->effects);
    if (r == 0)
        r = read_array(reading, members, &deferred, (void **)&incoming->deferred);
    return r;
}

static void read_head(struct incoming *incoming, struct det_json_object *members)
{
    incoming->id = det_json_object_text(members, "id");
    incoming->reason = det_json_object_text_or_null(members, "reason");
    incoming->head = (struct det_store_head){
        .sequence = det_json_object_number(members, "sequence"),
        .visit = det_json_object_number(members, "visit"),
        .transition_count = det_json_object_number(members, "transitions"),
        .started_at = det_json_object_time(members, "started_at"),
        .last_transition_at = det_json_object_time(members, "moved_at"),
        .state = find_name(incoming, members, "state", det_machine_find_state),
        .is_stopped = det_json_object_bool(members, "stopped"),
    };
    incoming->first = det_json_object_number(members, "first");
    incoming->moves = det_json_object_number(members, "moves");
    incoming->data = read_data(incoming, members);
}

/* Stores that did not record it have none. */
static int read_start(struct reading *reading, struct det_json_object *members)
{
    struct incoming *incoming = reading->incoming;
    const struct det_json_value *found = det_json_object_find(members, "start");
    struct det_json_object inner;
    int r;

    if (!found)
        return 0;
    r = open_members(reading->import, &incoming->arena, found, &inner);
    if (r < 0)
        return r;
    incoming->start = (struct det_store_start){
        .at = det_json_object_time(&inner, "at"),
        .version = (uint32_t)det_json_object_number(&inner, "version"),
        .state = find_name(incoming, &inner, "state", det_machine_find_state),
        .data = read_data(incoming, &inner),
    };
    return verdict_of(reading->import, &inner);
}

/* Rejects contradictions, which the store would accept and which would fail much later. */
static int check_instance(struct import *import, const struct incoming *incoming)
{
    const struct det_store_head *head = &incoming->head;

    if (incoming->first > head->sequence || incoming->moves > head->transition_count ||
        head->sequence > INT64_MAX || head->visit > INT64_MAX || !*incoming->id ||
        strlen(incoming->id) > DET_ID_MAX ||
        (incoming->reason && strlen(incoming->reason) > DET_REASON_MAX)) {
        snprintf(
            import->wrong, sizeof import->wrong,
            "the values of the instance contradict each other");
        return DET_ERR_MALFORMED;
    }
    return 0;
}

int import_read_instance(struct import *import, struct incoming *incoming, struct det_view line)
{
    struct reading reading = { import, incoming };
    struct det_json_object members;
    int r = open_line(import, &incoming->arena, line, &members);

    det_assert(!incoming->is_there && incoming->history_count == 0);
    if (r < 0)
        return r;
    read_head(incoming, &members);
    r = verdict_of(import, &members);
    if (r == 0)
        r = read_arrays(&reading, &members);
    if (r == 0)
        r = read_start(&reading, &members);
    if (r == 0)
        r = verdict_of(import, &members);
    return r == 0 ? check_instance(import, incoming) : r;
}

/* "goto" and so on, as the export writes them. */
static uint16_t find_outcome(struct det_json_object *members)
{
    int outcome = det_outcome_find(det_json_object_text(members, "outcome"));

    if (outcome >= 0)
        return (uint16_t)outcome;
    det_json_object_fail(members, "outcome");
    return 0;
}

/* Returns the answer to its id, with the request of the id if that is known. */
static struct det_store_answer read_answer(
    const struct incoming *incoming, struct det_json_object *members,
    const struct det_store_event *row)
{
    struct det_store_answer answer = { .outcome = row->outcome,
                                       .state = row->to,
                                       .sequence = row->sequence,
                                       .visit = row->visit,
                                       .event = UINT16_MAX };

    if (!det_json_object_find(members, "request"))
        return answer;
    answer.request = det_json_object_number(members, "request");
    if (answer.request > INT64_MAX)
        det_json_object_fail(members, "request");
    if (det_json_object_text_or_null(members, "request_event"))
        answer.event = find_name(incoming, members, "request_event", det_machine_find_event);
    return answer;
}

int import_read_event(
    struct import *import, struct incoming *incoming, struct det_view line,
    struct import_event *ret)
{
    struct det_arena *arena = &incoming->events_arena;
    struct det_json_object members;
    int r = open_line(import, arena, line, &members);

    if (r < 0)
        return r;
    ret->row = (struct det_store_event){
        .sequence = det_json_object_number(&members, "sequence"),
        .visit = det_json_object_number(&members, "visit"),
        .from = find_name(incoming, &members, "from", det_machine_find_state),
        .to = find_name(incoming, &members, "to", det_machine_find_state),
        .event = UINT16_MAX,
        .outcome = find_outcome(&members),
        .choice = (uint16_t)det_json_object_number(&members, "choice"),
        .is_timeout = det_json_object_bool(&members, "timeout"),
        .at = det_json_object_time(&members, "at"),
        .event_id = det_json_object_text_or_null(&members, "event_id"),
        .cause = det_json_object_text_or_null(&members, "cause"),
        .trace = read_trace(arena, &members),
    };
    if (det_json_object_text_or_null(&members, "event")) {
        ret->row.event = find_name(incoming, &members, "event", det_machine_find_event);
        ret->row.value = read_event_value(incoming, arena, &members, ret->row.event);
    }
    ret->answer = read_answer(incoming, &members, &ret->row);
    return verdict_of(import, &members);
}
