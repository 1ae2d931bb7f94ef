/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_print.c - prints one recorded event, as an object or as a line. */
#include "inspect/event_print.h"

#include "base/assert.h"

const char *event_print_name(const struct det_machine *machine, const struct det_store_event *row)
{
    det_assert(row->event == UINT16_MAX || row->event < machine->event_count);
    return row->event == UINT16_MAX ? "(stopped manually)" : machine->events[row->event].name;
}

/* Returns the target state, or the outcome if the state did not change. */
const char *event_print_target(const struct det_machine *machine, const struct det_store_event *row)
{
    switch (row->outcome) {
    case DET_OUTCOME_GOTO:
        det_assert(row->to < machine->state_count);
        return machine->states[row->to].name;
    case DET_OUTCOME_STAY:
        return "(stays)";
    case DET_OUTCOME_STOP:
        return "(stops)";
    case DET_OUTCOME_DEFERRED:
        return "(deferred)";
    default:
        return "(dead letter)";
    }
}

void event_print_object(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row)
{
    struct det_json_writer json;

    det_json_writer_init(&json, cli->allocator);
    instance_item_begin(&json, "event", instance->machine->name, instance->id);
    instance_event_line(&json, instance->machine, row);
    cli_json_end(cli, &json);
}

void event_print_line(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row)
{
    const struct det_machine *machine = instance->machine;
    char time[INSTANCE_TIME_TEXT], text[INSTANCE_RECORD_TEXT];
    const char *sender = instance_sender(row);

    cli_print_in(
        cli, CLI_FAINT, "%s %5llu  ", instance_time(row->at, time),
        (unsigned long long)row->sequence);
    cli_print(cli, "%s: %s -> ", event_print_name(machine, row), machine->states[row->from].name);
    cli_print_in(cli, CLI_BOLD, "%s", event_print_target(machine, row));
    if (*sender)
        cli_print(cli, "  by %s", sender);
    instance_payload(machine, row->value, text);
    cli_print(cli, "%s%s\n", *text ? "  " : "", text);
}
