/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_print.c - how an instance and what belongs to it look. */
#include <string.h>

#include "base/text.h"
#include "inspect/instance.h"
#include "inspect/print_tasks.h"
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
    snprintf(
        target, INSTANCE_KEY_TEXT, "%s/%s/timer/%s", machine->name, id,
        instance_timer_name(machine, row->timer));
    return target;
}

const char *instance_error_text(int code, char target[24])
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
        target, INSTANCE_WHY_TEXT, "%s%s%s", instance_error_text(last_error, error),
        reason ? ": " : "", reason ? reason : "");
    return target;
}

void *instance_payload_in(const struct det_machine *machine, void *event)
{
    static struct det_empty empty;
    const struct det_event_def *def = &machine->events[det_event_kind(event)];

    return det_record_of(def->payload) ? (char *)event + def->payload_offset : (void *)&empty;
}

const void *instance_payload_of(const struct det_machine *machine, const void *event)
{
    static const struct det_empty empty = { 0 };
    const struct det_event_def *def = &machine->events[det_event_kind(event)];

    return det_record_of(def->payload) ? (const char *)event + def->payload_offset
                                       : (const void *)&empty;
}

static void add_activity(struct line *line, const struct instance_effect *effect)
{
    static const char *const names[] = {
        [INSTANCE_RUNNING] = "running", [INSTANCE_QUEUED] = "queued"
    };

    if (effect->activity == INSTANCE_UNKNOWN)
        return;
    line_text(line, "activity", names[effect->activity]);
    if (effect->began)
        line_time(line, "began_at", effect->began);
}

static void pending_lines(struct line *line, const struct instance *instance)
{
    const struct det_machine *machine = instance->machine;

    line_open(line, "timers", '[');
    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        line_open(line, NULL, '{');
        instance_timer_line(line, machine, &t->row);
        instance_attempts_line(line, &t->row);
        line_close(line, '}');
    }
    line_close(line, ']');
    line_open(line, "effects", '[');
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        line_open(line, NULL, '{');
        instance_effect_line(line, instance->store->store, machine, instance->id, &e->row);
        add_activity(line, e);
        line_close(line, '}');
    }
    line_close(line, ']');
    line_open(line, "deferred", '[');
    for (const struct instance_deferred *d = instance->deferred; d; d = d->next) {
        line_open(line, NULL, '{');
        line_text(line, "event", machine->events[det_event_kind(d->row.event)].name);
        line_number(line, "sequence", d->row.sequence);
        line_close(line, '}');
    }
    line_close(line, ']');
}

void instance_line(struct line *line, const struct instance *instance)
{
    const struct det_store_head *head = &instance->loaded.head;
    const struct det_machine *machine = instance->machine;

    line_text(line, "machine", machine->name);
    line_text(line, "id", instance->id);
    line_text(line, "state", instance_state(instance));
    line_bool(line, "final", instance_is_final(instance));
    line_bool(line, "stopped", head->is_stopped);
    line_text(line, "reason", instance->loaded.reason[0] ? instance->loaded.reason : NULL);
    line_number(line, "sequence", head->sequence);
    line_number(line, "visit", head->visit);
    line_number(line, "transitions", head->transition_count);
    line_time(line, "started_at", head->started_at);
    line_time(line, "moved_at", head->last_transition_at);
    line_open(line, "history", '[');
    for (size_t i = 0; i < instance->loaded.history_count; i++)
        line_text(line, NULL, machine->states[instance->loaded.history[i]].name);
    line_close(line, ']');
    line_record(line, "data", det_machine_data(machine), instance->loaded.data, 0);
    pending_lines(line, instance);
}

void instance_row_line(
    struct line *line, const struct det_machine *machine, const struct det_store_listed *row)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "instance");
    line_text(line, "machine", machine->name);
    line_text(line, "id", row->id);
    line_text(line, "state", machine->states[row->state].name);
    line_bool(line, "stopped", row->is_stopped);
    line_number(line, "sequence", row->sequence);
    line_time(line, "started_at", row->started_at);
    line_time(line, "moved_at", row->moved_at);
    line_close(line, '}');
}

void instance_timer_line(
    struct line *line, const struct det_machine *machine, const struct det_store_timer *row)
{
    line_text(line, "timer", instance_timer_name(machine, row->timer));
    line_text(line, "event", machine->events[row->event].name);
    line_time(line, "due", row->due);
    line_number(line, "visit", row->visit);
}

void instance_attempts_line(struct line *line, const struct det_store_timer *row)
{
    char error[24];

    if (!row->attempts && !row->is_dead)
        return;
    line_bool(line, "dead", row->is_dead);
    line_number(line, "attempts", row->attempts);
    line_text(line, "last_error", instance_error_text(row->last_error, error));
    line_text(line, "reason", row->reason);
    if (!row->is_dead)
        line_time(line, "next_at", row->next);
}

void instance_dead_timer_line(
    struct line *line, const struct det_machine *machine, const char *id,
    const struct det_store_timer *row)
{
    const char *name = instance_timer_name(machine, row->timer);
    char key[INSTANCE_KEY_TEXT];

    line_text(line, "effect", *name ? name : machine->events[row->event].name);
    line_text(line, "key", instance_timer_key(machine, id, row, key));
    instance_attempts_line(line, row);
    line_time(line, "asked_at", row->due);
}

void instance_effect_line(
    struct line *line, const struct det_store *store, const struct det_machine *machine,
    const char *id, const struct det_store_effect *row)
{
    char key[INSTANCE_KEY_TEXT], error[24];

    line_text(line, "effect", machine->effects[row->effect].name);
    line_text(line, "key", instance_key(store, machine, id, row, key));
    line_bool(line, "dead", row->is_dead);
    line_number(line, "attempts", row->attempts);
    line_text(
        line, "last_error", row->last_error ? instance_error_text(row->last_error, error) : NULL);
    line_text(line, "reason", row->reason);
    line_time(line, "asked_at", row->at);
    if (!row->is_dead)
        line_time(line, "next_at", row->next);
}

void instance_start_line(
    struct line *line, const struct det_machine *machine, const struct det_store_start *start)
{
    line_number(line, "sequence", 0);
    line_time(line, "at", start->at);
    line_number(line, "version", start->version);
    line_text(line, "state", machine->states[start->state].name);
    line_record(line, "data", det_machine_data(machine), start->data, 0);
}

void instance_event_line(
    struct line *line, const struct det_machine *machine, const struct det_store_event *row)
{
    line_number(line, "sequence", row->sequence);
    line_time(line, "at", row->at);
    line_text(line, "event", row->event == UINT16_MAX ? NULL : machine->events[row->event].name);
    line_text(line, "from", machine->states[row->from].name);
    line_text(line, "to", machine->states[row->to].name);
    line_text(line, "outcome", det_row_outcome_name(row->outcome));
    line_number(line, "choice", row->choice);
    line_number(line, "visit", row->visit);
    line_bool(line, "timeout", row->is_timeout);
    line_text(line, "event_id", row->event_id);
    line_text(line, "cause", row->cause);
    if (row->value && row->event < machine->event_count)
        line_record(
            line, "payload", det_machine_payload(machine, row->event),
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
