/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_print.c - prints an instance, its events, timers and effects. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "inspect/print_tasks.h"
#include "inspect/stored_instance.h"
#include "store/effect_key.h"
#include "store/row.h"

const char *instance_timer_name(const struct det_machine *machine, uint16_t timer)
{
    return det_row_timer_name(machine, timer);
}

const char *instance_key(
    const struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_effect *row, char target[INSTANCE_KEY_TEXT])
{
    (void)det_effect_key(target, INSTANCE_KEY_TEXT, store, machine->name, id, row);
    return target;
}

const char *instance_timer_key(
    const struct det_machine *machine, const char *id, const struct det_store_timer *row,
    char target[INSTANCE_KEY_TEXT])
{
    int length = snprintf(
        target, INSTANCE_KEY_TEXT, "%s/%s/timer/%s", machine->name, id,
        instance_timer_name(machine, row->timer));

    det_assert(length > 0 && length < INSTANCE_KEY_TEXT);
    return target;
}

/* "IO" for an error of the library, else the number. */
static const char *error_text(int code, char target[24])
{
    const char *name = det_error_name(code);

    if (strcmp(name, "UNKNOWN") == 0)
        snprintf(target, 24, "%d", code);
    else
        snprintf(target, 24, "%s", name);
    return target;
}

const char *instance_why(int last_error, const char *reason, char target[INSTANCE_WHY_TEXT])
{
    char error[24];

    snprintf(
        target, INSTANCE_WHY_TEXT, "%s%s%s", error_text(last_error, error), reason ? ": " : "",
        reason ? reason : "");
    return target;
}

void *instance_payload_in(const struct det_machine *machine, void *event)
{
    static struct det_empty empty;
    const struct det_event_def *def = &machine->events[det_event_kind(event)];

    det_assert(det_event_kind(event) < machine->event_count);
    return det_record_of(def->payload) ? (char *)event + def->payload_offset : (void *)&empty;
}

const void *instance_payload_of(const struct det_machine *machine, const void *event)
{
    static const struct det_empty empty = { 0 };
    const struct det_event_def *def = &machine->events[det_event_kind(event)];

    det_assert(det_event_kind(event) < machine->event_count);
    return det_record_of(def->payload) ? (const char *)event + def->payload_offset
                                       : (const void *)&empty;
}

static void add_activity(struct det_json_writer *json, const struct instance_effect *effect)
{
    static const char *const names[] = {
        [INSTANCE_RUNNING] = "running", [INSTANCE_QUEUED] = "queued"
    };

    if (effect->activity == INSTANCE_UNKNOWN)
        return;
    det_assert(effect->activity < sizeof names / sizeof *names && !effect->row.is_dead);
    det_json_text(json, "activity", names[effect->activity]);
    if (effect->began)
        det_json_time(json, "began_at", effect->began);
}

static void pending_lines(struct det_json_writer *json, const struct instance *instance)
{
    const struct det_machine *machine = instance->machine;

    det_json_open(json, "timers", '[');
    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        det_json_open(json, NULL, '{');
        instance_timer_line(json, machine, &t->row);
        instance_attempts_line(json, &t->row);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
    det_json_open(json, "effects", '[');
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        det_json_open(json, NULL, '{');
        instance_effect_line(json, instance->store->store, machine, instance->id, &e->row);
        add_activity(json, e);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
    det_json_open(json, "deferred", '[');
    for (const struct instance_deferred *d = instance->deferred; d; d = d->next) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "event", machine->events[det_event_kind(d->row.event)].name);
        det_json_number(json, "sequence", d->row.sequence);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

void instance_head_line(struct det_json_writer *json, const struct instance *instance)
{
    const struct det_store_head *head = &instance->loaded.head;
    const struct det_machine *machine = instance->machine;

    det_json_bool(json, "stopped", head->is_stopped);
    det_json_text(json, "reason", instance->loaded.reason[0] ? instance->loaded.reason : NULL);
    det_json_number(json, "sequence", head->sequence);
    det_json_number(json, "visit", head->visit);
    det_json_number(json, "transitions", head->transition_count);
    det_json_time(json, "started_at", head->started_at);
    det_json_time(json, "moved_at", head->last_transition_at);
    det_json_open(json, "history", '[');
    for (size_t i = 0; i < instance->loaded.history_count; i++)
        det_json_text(json, NULL, machine->states[instance->loaded.history[i]].name);
    det_json_close(json, ']');
}

void instance_item_begin(
    struct det_json_writer *json, const char *type, const char *machine, const char *id)
{
    det_json_open(json, NULL, '{');
    if (type)
        det_json_text(json, "type", type);
    det_json_text(json, "machine", machine);
    det_json_text(json, "id", id);
}

void instance_line(struct det_json_writer *json, const struct instance *instance)
{
    const struct det_machine *machine = instance->machine;

    det_json_text(json, "machine", machine->name);
    det_json_text(json, "id", instance->id);
    det_json_text(json, "state", instance_state(instance));
    det_json_bool(json, "final", instance_is_final(instance));
    instance_head_line(json, instance);
    det_json_record(json, "data", det_machine_data(machine), instance->loaded.data, 0);
    pending_lines(json, instance);
}

void instance_row_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_listed *row)
{
    det_assert(row->state < machine->state_count);
    instance_item_begin(json, "instance", machine->name, row->id);
    det_json_text(json, "state", machine->states[row->state].name);
    det_json_bool(json, "stopped", row->is_stopped);
    det_json_number(json, "sequence", row->sequence);
    det_json_time(json, "started_at", row->started_at);
    det_json_time(json, "moved_at", row->moved_at);
    det_json_close(json, '}');
}

void instance_timer_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_timer *row)
{
    det_assert(row->event < machine->event_count);
    det_json_text(json, "timer", instance_timer_name(machine, row->timer));
    det_json_text(json, "event", machine->events[row->event].name);
    det_json_time(json, "due", row->due);
    det_json_number(json, "visit", row->visit);
}

void instance_attempts_line(struct det_json_writer *json, const struct det_store_timer *row)
{
    char error[24];

    if (!row->attempts && !row->is_dead) {
        /* One that was retried. */
        if (row->next != row->due)
            det_json_time(json, "next_at", row->next);
        return;
    }
    det_json_bool(json, "dead", row->is_dead);
    det_json_number(json, "attempts", row->attempts);
    det_json_text(json, "last_error", error_text(row->last_error, error));
    det_json_text(json, "reason", row->reason);
    if (!row->is_dead)
        det_json_time(json, "next_at", row->next);
}

void instance_dead_timer_line(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const struct det_store_timer *row)
{
    const char *name = instance_timer_name(machine, row->timer);
    char key[INSTANCE_KEY_TEXT];

    det_assert(row->is_dead);
    det_json_text(json, "effect", *name ? name : machine->events[row->event].name);
    det_json_text(json, "key", instance_timer_key(machine, id, row, key));
    instance_attempts_line(json, row);
    det_json_time(json, "asked_at", row->due);
}

void instance_effect_line(
    struct det_json_writer *json, const struct det_store *store, const struct det_machine *machine,
    const char *id, const struct det_store_effect *row)
{
    char key[INSTANCE_KEY_TEXT], error[24];

    det_assert(row->effect < machine->effect_count);
    det_json_text(json, "effect", machine->effects[row->effect].name);
    det_json_text(json, "key", instance_key(store, machine, id, row, key));
    det_json_bool(json, "dead", row->is_dead);
    det_json_number(json, "attempts", row->attempts);
    det_json_text(json, "last_error", row->last_error ? error_text(row->last_error, error) : NULL);
    det_json_text(json, "reason", row->reason);
    det_json_time(json, "asked_at", row->at);
    if (!row->is_dead)
        det_json_time(json, "next_at", row->next);
}

void instance_start_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_start *start)
{
    det_json_number(json, "sequence", 0);
    det_json_time(json, "at", start->at);
    det_json_number(json, "version", start->version);
    det_json_text(json, "state", machine->states[start->state].name);
    det_json_record(json, "data", det_machine_data(machine), start->data, 0);
}

void instance_event_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_event *row)
{
    det_assert(row->event == UINT16_MAX || row->event < machine->event_count);
    det_assert(row->from < machine->state_count && row->to < machine->state_count);
    det_json_number(json, "sequence", row->sequence);
    det_json_time(json, "at", row->at);
    det_json_text(
        json, "event", row->event == UINT16_MAX ? NULL : machine->events[row->event].name);
    det_json_text(json, "from", machine->states[row->from].name);
    det_json_text(json, "to", machine->states[row->to].name);
    det_json_text(json, "outcome", det_outcome_name(row->outcome));
    det_json_number(json, "choice", row->choice);
    det_json_number(json, "visit", row->visit);
    det_json_bool(json, "timeout", row->is_timeout);
    det_json_text(json, "event_id", row->event_id);
    det_json_text(json, "cause", row->cause);
    if (row->value && row->event < machine->event_count)
        det_json_record(
            json, "payload", det_machine_payload(machine, row->event),
            instance_payload_of(machine, row->value), 0);
}

const char *instance_when(det_time at, det_time now, char target[INSTANCE_WHEN_TEXT])
{
    char span[SHOW_SPAN_TEXT];

    if (at <= now)
        snprintf(target, INSTANCE_WHEN_TEXT, "%s ago", show_span(now - at, span));
    else
        snprintf(target, INSTANCE_WHEN_TEXT, "in %s", show_span(at - now, span));
    return target;
}

const char *instance_time(det_time at, char target[INSTANCE_TIME_TEXT])
{
    char whole[DET_TIME_TEXT];

    det_format_time(at / DET_SECOND * DET_SECOND, whole, sizeof whole);
    snprintf(target, INSTANCE_TIME_TEXT, "%s", whole);
    return target;
}

const char *instance_record(
    const struct det_record *record, const void *value, char target[INSTANCE_RECORD_TEXT])
{
    if (record == det_empty_record()) {
        *target = '\0';
        return target;
    }
    if (det_record_print(record, value, 0, target, INSTANCE_RECORD_TEXT) >= INSTANCE_RECORD_TEXT) {
        size_t whole = det_utf8_check(target, strlen(target));

        whole = whole > INSTANCE_RECORD_TEXT - 4 ? INSTANCE_RECORD_TEXT - 4 : whole;
        while (whole > 0 && ((unsigned char)target[whole] & 0xC0) == 0x80)
            whole--;
        det_assert(whole + 4 <= INSTANCE_RECORD_TEXT);
        memcpy(target + whole, "...", 4);
    }
    return target;
}

const char *instance_payload(
    const struct det_machine *machine, const void *event, char target[INSTANCE_RECORD_TEXT])
{
    *target = '\0';
    if (!event)
        return target;
    return instance_record(
        det_machine_payload(machine, det_event_kind(event)), instance_payload_of(machine, event),
        target);
}

const char *instance_sender(const struct det_store_event *row)
{
    if (row->cause)
        return row->cause;
    if (row->is_timeout)
        return "timer";
    return row->event_id ? row->event_id : "";
}
