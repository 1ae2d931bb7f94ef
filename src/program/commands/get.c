/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* get.c - `detent get`: shows an instance of a store. */
#include <detent/tool/machine.h>
#include <string.h>

#include "client/instance_command.h"
#include "inspect/print_tasks.h"

static void print_data(struct cli *cli, const struct instance *instance)
{
    const struct det_record *record = det_machine_data(instance->machine);
    char text[INSTANCE_RECORD_TEXT];

    if (*instance_record(record, instance->loaded.data, text))
        facts_print(cli, "data", "%s", text);
}

static void print_history(struct cli *cli, const struct instance *instance)
{
    char text[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < instance->loaded.history_count && used < sizeof text; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s", i ? ", " : "",
            instance->machine->states[instance->loaded.history[i]].name);
    if (*text)
        facts_print(cli, "before", "%s", text);
}

static int print_facts(struct cli *cli, const struct instance *instance)
{
    const struct det_store_head *head = &instance->loaded.head;
    char time[INSTANCE_TIME_TEXT], when[INSTANCE_WHEN_TEXT];

    facts_head(cli, instance);
    print_history(cli, instance);
    facts_print(
        cli, "events", "%llu, of which %llu changed the state", (unsigned long long)head->sequence,
        (unsigned long long)head->transition_count);
    facts_print(
        cli, "started", "%s, %s", instance_when(head->started_at, instance->now, when),
        instance_time(head->started_at, time));
    print_data(cli, instance);
    facts_timers(cli, instance);
    facts_effects(cli, instance);
    facts_deferred(cli, instance);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return instance_command(cli, args, print_facts, NULL);
}

extern const struct cli_command cli_command_get;
const struct cli_command cli_command_get = {
    .name = "get",
    .summary = "show an instance of a machine",
    .about = "Prints the state and data of an instance, and what is pending. Sensitive fields\n"
             "are not shown. The store is opened for reading only, and programs that use it are\n"
             "not disturbed.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = instance_command_options,
    .run = run_command,
};
