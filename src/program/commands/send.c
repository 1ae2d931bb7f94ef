/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* send.c - `detent send`: sends an event to an instance in a store. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/instance_change.h"
#include "terminal/args.h"

enum { OPTION_PAYLOAD, OPTION_DATA, OPTION_ID, OPTION_EXPECT, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_PAYLOAD] = { "payload", 'p', "JSON", NULL, "payload of the event; @FILE reads a file" },
    [OPTION_DATA] = { "data", 'd', "JSON", NULL, "deprecated name of --payload" },
    [OPTION_ID] = { "id", 0, "EVENT_ID", NULL,
                    "event id; sent again with it, the event happens once" },
    [OPTION_EXPECT] = { "expect", 0, "N", NULL,
                        "only if its last event has this number (0: no events)" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

struct sending {
    struct act act;
    const struct cli_args *args;
    unsigned kind;
    struct det_send_options options;
};

static int report_event(struct sending *sending, const char *name)
{
    const struct det_machine *machine = sending->act.machine;
    const char *names[DET_EVENTS_MAX];
    int nearest;

    for (size_t i = 0; i < machine->event_count; i++)
        names[i] = machine->events[i].name;
    nearest = det_text_nearest(name, names, machine->event_count);
    if (nearest >= 0)
        cli_report_error(
            sending->act.store.cli, "%s has no event '%s'; did you mean '%s'?", machine->name, name,
            names[nearest]);
    else
        cli_report_error(
            sending->act.store.cli, "%s has no event '%s'; 'detent why %s' lists its events",
            machine->name, name, sending->act.id);
    return CLI_USAGE;
}

static const char *payload_text(const struct cli_args *args)
{
    return args->values[args->values[OPTION_PAYLOAD] ? OPTION_PAYLOAD : OPTION_DATA];
}

/* Checks for internal events before the search for the instance: users may not send them. */
static int find_event(struct sending *sending)
{
    const struct det_machine *machine = sending->act.machine;
    const char *name = sending->args->operands[1];
    int kind = det_machine_find_event(machine, name);

    if (kind < 0)
        return report_event(sending, name);
    if (machine->events[kind].is_internal) {
        cli_report_error(
            sending->act.store.cli, "%s is an internal event: only effects and timers send it",
            name);
        return CLI_REFUSED;
    }
    sending->kind = (unsigned)kind;
    return CLI_OK;
}

/* The earlier use of an event id. */
struct used_id {
    const struct det_machine *machine;
    uint64_t sequence;
    const char *name; /* of the event; NULL: no longer stored */
};

static int take_used(void *context, const struct det_store_event *row)
{
    struct used_id *used = context;

    if (row->sequence == used->sequence)
        used->name =
            row->event == UINT16_MAX ? "a manual stop" : used->machine->events[row->event].name;
    return 1;
}

static int find_used(struct act *act, struct used_id *used)
{
    const struct cli_store *store = &act->store;
    struct instance instance;
    int code, r;

    if (used->sequence == 0) {
        used->name = "its start";
        return CLI_OK;
    }
    code = instance_open(&act->store, act->machine, act->id, &instance);
    if (code != CLI_OK)
        return code;
    r = store->ops->events(
        store->store, instance.loaded.instance, used->sequence - 1, take_used, used);
    instance_close(&instance);
    return r < 0 ? cli_report_store_error(&act->store, r, NULL) : CLI_OK;
}

/* Reports a repeated request, or an error if its id was used for another event. */
static int report_again(struct sending *sending, const struct det_sent *sent)
{
    struct act *act = &sending->act;
    const char *wanted = act->machine->events[sending->kind].name;
    struct used_id used = { .machine = act->machine, .sequence = sent->sequence };
    int code = find_used(act, &used);

    if (code != CLI_OK)
        return code;
    if (!used.name || strcmp(used.name, wanted) == 0) {
        act_report(act, used.name, sent);
        act_report_pending(act);
        return CLI_OK;
    }
    cli_report_error(
        act->store.cli, "the id '%s' was used before: event %llu was %s, not %s; nothing was done",
        sending->options.event_id, (unsigned long long)sent->sequence, used.name, wanted);
    return CLI_CONFLICT;
}

static int send_event(struct sending *sending, void *event)
{
    struct act *act = &sending->act;
    const struct det_machine *machine = act->machine;
    struct det_error error = { 0 };
    struct det_sent sent;
    int code, r;

    memcpy(event, &sending->kind, sizeof sending->kind);
    act->option = "--payload";
    code = act_read_json(
        act, machine->events[sending->kind].name, payload_text(sending->args),
        det_machine_payload(machine, sending->kind), 0, instance_payload_in(machine, event));
    if (code != CLI_OK)
        return code;
    r = act_send(act, event, &sending->options, &sent, &error);
    if (r < 0)
        return act_report_error(act, r, &error);
    if (sent.is_duplicate)
        return report_again(sending, &sent);
    act_report(act, machine->events[sending->kind].name, &sent);
    act_report_pending(act);
    return CLI_OK;
}

static int send_to(struct sending *sending)
{
    struct act *act = &sending->act;
    const struct det_allocator *allocator = act->store.cli->allocator;
    struct det_machine *machine;
    void *event;
    int code;

    act->id = sending->args->operands[0];
    code = cli_store_find(&act->store, act->id, &machine);
    if (code != CLI_OK)
        return code;
    act->machine = machine;
    code = find_event(sending);
    if (code != CLI_OK)
        return code;
    event = det_alloc_zero(allocator, machine->event_size);
    code = event ? send_event(sending, event) : cli_no_memory(act->store.cli);
    det_free(allocator, event, machine->event_size);
    return code;
}

/* 0: an instance without events. */
static bool read_expected(struct cli *cli, const char *text, uint64_t *ret)
{
    if (!text)
        return true;
    if (!cli_args_number(cli, "expect", text, 0, INT64_MAX, ret))
        return false;
    if (*ret == 0)
        *ret = DET_EXPECT_NO_EVENT;
    return true;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct sending sending = { .args = args };
    uint64_t expected = 0;
    int code;

    if (args->values[OPTION_PAYLOAD] && args->values[OPTION_DATA]) {
        cli_report_error(
            cli, "both --payload and its deprecated name --data are given; use --payload alone");
        return CLI_USAGE;
    }
    if (!read_expected(cli, args->values[OPTION_EXPECT], &expected))
        return CLI_USAGE;
    sending.options.expected = expected;
    sending.options.event_id = args->values[OPTION_ID];
    code = act_open(cli, &request, &sending.act);
    if (code == CLI_OK)
        code = send_to(&sending);
    act_close(&sending.act);
    return code;
}

extern const struct cli_command cli_command_send;
const struct cli_command cli_command_send = {
    .name = "send",
    .summary = "send an event to an instance",
    .about =
        "Sends an event and returns when its transition is on the disk. The definition is\n"
        "that of the project, or of the store. Timers and effects that follow wait in the\n"
        "store for a program that serves it. If a machine has guards, hooks or updates in\n"
        "C, only a program that has these functions can send its events.\n"
        "\n"
        "    detent send o-1 pay --payload '{\"card\": \"4242\", \"cents\": 1999}' --id pay-o-1\n"
        "\n"
        "Exits with 6 if the state does not handle the event or a guard refuses it, and\n"
        "with 4 if --expect does not hold or --id was used for another event. With --id the\n"
        "same event can be sent again after any failure, and happens once.",
    .operand = { .form = "ID EVENT", .least = 2, .most = 2 },
    .options = option_table,
    .run = run_command,
};
