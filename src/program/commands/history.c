/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history.c - `detent history`: the recorded events of an instance. */
#include <detent/tool/machine.h>

#include "client/served_store.h"
#include "inspect/event_print.h"

#include "base/memory.h"
#include "terminal/args.h"

enum { OPTION_AFTER, OPTION_LAST, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_AFTER] = { "after", 0, "N", NULL, "only events after this number" },
    [OPTION_LAST] = { "last", 'n', "N", NULL, "only the last N events" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "event", 0, true }, { "at", 2, false }, { "what", 0, false },    { "from", 3, false },
    { "to", 0, false },   { "by", 1, false }, { "payload", 0, false },
};

/* Rows printed with the same column widths. */
#define PAGE_ROWS 5000

struct walk {
    struct instance instance;
    struct table table;
    uint64_t first; /* number of the first event found; 0: none */
};

static void add_row(struct walk *walk, const struct det_store_event *row)
{
    const struct det_machine *machine = walk->instance.machine;
    char time[INSTANCE_TIME_TEXT], text[INSTANCE_RECORD_TEXT];
    bool is_lost = row->outcome == DET_OUTCOME_DEAD_LETTER;

    table_add(&walk->table, CLI_FAINT, "%llu", (unsigned long long)row->sequence);
    table_add(&walk->table, CLI_PLAIN, "%s", instance_time(row->at, time));
    table_add(&walk->table, CLI_BOLD, "%s", event_print_name(machine, row));
    table_add(&walk->table, CLI_PLAIN, "%s", machine->states[row->from].name);
    table_add(&walk->table, is_lost ? CLI_RED : CLI_PLAIN, "%s", event_print_target(machine, row));
    table_add(&walk->table, CLI_PLAIN, "%s", instance_sender(row));
    table_add(&walk->table, CLI_PLAIN, "%s", instance_payload(machine, row->value, text));
}

/* A long history is printed in pages, each with separate column widths. */
static void print_page(struct walk *walk)
{
    table_print(&walk->table, 0);
    table_deinit(&walk->table);
    table_init(&walk->table, walk->instance.store->cli, columns, sizeof columns / sizeof *columns);
}

static int take_event(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    struct cli *cli = walk->instance.store->cli;

    if (!walk->first)
        walk->first = row->sequence;
    if (cli->is_json)
        event_print_object(cli, &walk->instance, row);
    else
        add_row(walk, row);
    if (table_rows(&walk->table) >= PAGE_ROWS)
        print_page(walk);
    return cli_is_stopped(cli) ? 1 : 0;
}

static void print_start(struct walk *walk, const struct det_store_start *start)
{
    const struct det_machine *machine = walk->instance.machine;
    struct cli *cli = walk->instance.store->cli;
    struct det_json_writer json;

    det_json_writer_init(&json, cli->allocator);
    instance_item_begin(&json, "start", machine->name, walk->instance.id);
    instance_start_line(&json, machine, start);
    cli_json_end(cli, &json);
}

static void add_start(struct walk *walk, const struct det_store_start *start)
{
    const struct det_machine *machine = walk->instance.machine;
    char time[INSTANCE_TIME_TEXT], text[INSTANCE_RECORD_TEXT];

    table_add(&walk->table, CLI_FAINT, "%d", 0);
    table_add(&walk->table, CLI_PLAIN, "%s", instance_time(start->at, time));
    table_add(&walk->table, CLI_PLAIN, "%s", "(started)");
    table_add(&walk->table, CLI_PLAIN, "%s", "");
    table_add(&walk->table, CLI_PLAIN, "%s", machine->states[start->state].name);
    table_add(&walk->table, CLI_PLAIN, "%s", "");
    table_add(
        &walk->table, CLI_PLAIN, "%s",
        instance_record(det_machine_data(machine), start->data, text));
}

/* Prints the start, if it is kept. */
static int take_start(struct walk *walk)
{
    const struct cli_store *store = walk->instance.store;
    size_t size = det_machine_data(walk->instance.machine)->size;
    struct det_store_start start = { .data = det_alloc_zero(store->cli->allocator, size) };
    int r;

    if (!start.data)
        return DET_ERR_NO_MEMORY;
    r = store->ops->start(store->store, walk->instance.loaded.instance, &start);
    if (r == 0 && store->cli->is_json)
        print_start(walk, &start);
    else if (r == 0)
        add_start(walk, &start);
    det_free(store->cli->allocator, start.data, size);
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static int print(struct walk *walk, uint64_t after)
{
    struct cli_store *store = walk->instance.store;
    uint64_t sequence = walk->instance.loaded.head.sequence;
    int r = 0;

    if (after == 0)
        r = take_start(walk);
    if (r < 0)
        return cli_report_store_error(store, r, NULL);
    r = store->ops->events(store->store, walk->instance.loaded.instance, after, take_event, walk);
    if (r < 0)
        return cli_report_store_error(store, r, NULL);
    if (store->cli->is_json)
        return CLI_OK;
    if (table_rows(&walk->table) > 0)
        table_print(&walk->table, 0);
    if (sequence == 0)
        cli_print_error(store->cli, "There are no events yet.\n");
    else if (after >= sequence)
        cli_print_error(
            store->cli, "There are no events after %llu.\n", (unsigned long long)sequence);
    else if (walk->first != after + 1)
        cli_print_error(
            store->cli, "Events up to %llu were deleted.\n",
            (unsigned long long)(walk->first ? walk->first - 1 : sequence));
    return CLI_OK;
}

static int show(struct walk *walk, uint64_t after, uint64_t last)
{
    uint64_t sequence = walk->instance.loaded.head.sequence;
    struct cli *cli = walk->instance.store->cli;
    int code;

    if (last && last < sequence && sequence - last > after)
        after = sequence - last;
    table_init(&walk->table, cli, columns, sizeof columns / sizeof *columns);
    code = print(walk, after);
    table_deinit(&walk->table);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    uint64_t after = 0, last = 0;
    struct walk walk = { .first = 0 };
    struct cli_store store;
    int code;

    if (args->values[OPTION_AFTER] &&
        !cli_args_number(cli, "after", args->values[OPTION_AFTER], 0, INT64_MAX, &after))
        return CLI_USAGE;
    if (args->values[OPTION_LAST] &&
        !cli_args_number(cli, "last", args->values[OPTION_LAST], 1, INT64_MAX, &last))
        return CLI_USAGE;
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = instance_find(&store, args->operands[0], &walk.instance);
    if (code == CLI_OK) {
        code = show(&walk, after, last);
        instance_close(&walk.instance);
    }
    cli_store_close(&store);
    return code;
}

extern const struct cli_command cli_command_history;
const struct cli_command cli_command_history = {
    .name = "history",
    .summary = "show the recorded events of an instance",
    .about = "Prints the start of the instance with the number 0, as long as its first event is\n"
             "kept, then one line per event, oldest first: its time, the state that it led to,\n"
             "its sender (a timer, an effect by its key, or the event id that the sender gave),\n"
             "and its payload without sensitive fields.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = option_table,
    .run = run_command,
};
