/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timers.c - `detent timers`: armed and dead timers, and when they are due. */
#include "client/served_store.h"
#include "inspect/pending.h"
#include "terminal/args.h"

#define LIMIT_DEFAULT 100

enum { OPTION_LIMIT, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_LIMIT] = { "limit", 'n', "N", NULL, "at most N timers (default 100)" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "id", 0, false },    { "machine", 3, false }, { "due", 0, true },
    { "event", 0, false }, { "timer", 1, false },   { "at", 2, false },
};

static void add_row(struct table *table, const struct pending *armed, det_time now)
{
    char when[INSTANCE_WHEN_TEXT], time[INSTANCE_TIME_TEXT];

    table_add(table, CLI_BOLD, "%s", armed->place.id);
    table_add(table, CLI_PLAIN, "%s", armed->place.machine);
    if (armed->timer.is_dead)
        table_add(table, CLI_RED, "dead");
    else
        table_add(
            table, armed->place.due <= now ? CLI_YELLOW : CLI_PLAIN, "%s",
            instance_when(armed->place.due, now, when));
    table_add(table, CLI_PLAIN, "%s", armed->event);
    table_add(table, CLI_PLAIN, "%s", armed->place.timer);
    table_add(table, CLI_PLAIN, "%s", instance_time(armed->place.due, time));
}

static int print(struct pending_list *timers)
{
    struct cli *cli = timers->store->cli;
    size_t count;
    const struct pending *all = pending_sort(timers, &count);
    det_time now = timers->store->ops->now(timers->store->store);
    struct table table;
    struct det_json_writer json;

    if (det_buffer_status(&timers->found) < 0)
        return cli_no_memory(cli);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&json, cli->allocator);
    for (size_t i = 0; i < count && i < timers->limit; i++) {
        if (cli->is_json) {
            pending_timer_line(&json, &all[i]);
            cli_print_line(cli, &json);
        } else {
            add_row(&table, &all[i], now);
        }
    }
    table_show(&table, "No timer is armed.");
    if (timers->left_out)
        cli_print_error(
            cli,
            "Instances that cannot be read are left out: %zu; 'detent store verify' names "
            "them\n",
            timers->left_out);
    if (count > timers->limit)
        cli_print_error(cli, "There are more: --limit shows them\n");
    det_json_writer_deinit(&json);
    table_deinit(&table);
    return CLI_OK;
}

static void find_both(struct pending_list *timers, const struct instance *instance)
{
    pending_of(timers, instance);
    timers->is_dead = true;
    pending_of(timers, instance);
    timers->is_dead = false;
}

static int find_dead(void *context, struct det_machine *machine, const char *id)
{
    struct pending_list *timers = context;
    struct instance instance;

    if (instance_load(timers->store, machine, id, &instance) < 0)
        return CLI_OK;
    pending_of(timers, &instance);
    instance_close(&instance);
    return CLI_OK;
}

static int find_of_machine(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .has_dead = true };
    struct pending_list *timers = context;
    int code = pending_of_machine(timers, machine);

    timers->is_dead = true;
    if (code == CLI_OK)
        code = cli_store_instances(timers->store, machine, &query, find_dead, timers);
    timers->is_dead = false;
    return code;
}

static int find(struct pending_list *timers, const struct cli_args *args)
{
    struct instance instance;
    int code;

    if (args->operand_count == 0)
        return cli_store_each(timers->store, find_of_machine, timers);
    code = instance_find(timers->store, args->operands[0], &instance);
    if (code != CLI_OK)
        return code;
    find_both(timers, &instance);
    instance_close(&instance);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct pending_list timers;
    struct cli_store store;
    uint64_t limit = LIMIT_DEFAULT;
    int code;

    if (args->values[OPTION_LIMIT] &&
        !cli_args_number(cli, "limit", args->values[OPTION_LIMIT], 1, PENDING_MAX, &limit))
        return CLI_USAGE;
    pending_init(&timers, &store, cli->allocator, DET_DUE_TIMERS, (size_t)limit);
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = find(&timers, args);
    if (code == CLI_OK)
        code = print(&timers);
    cli_store_close(&store);
    pending_deinit(&timers);
    return code;
}

extern const struct cli_command cli_command_timers;
const struct cli_command cli_command_timers = {
    .name = "timers",
    .summary = "show armed timers and dead letters",
    .about = "Prints the timers of an instance, or those of the whole store, ordered by time. A\n"
             "timer that is overdue fires as soon as a program serves the store. A timer that\n"
             "failed too often is a dead letter; 'detent retry' makes it due again.",
    .operand = { .form = "[ID]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
