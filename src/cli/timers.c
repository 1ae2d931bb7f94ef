/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timers.c - `detent timers`: what will happen by itself, and when. */
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/instance.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     100000

enum { OPTION_LIMIT, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_LIMIT] = { "limit", 'n', "N", NULL, "at most so many; else 100" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "id", 0, false },    { "machine", 3, false }, { "due", 0, true },
    { "event", 0, false }, { "timer", 1, false },   { "at", 2, false },
};

/* An instance that has a timer, and then a timer of one. */
struct armed {
    const char *id, *machine, *timer, *event;
    det_time due;
    uint64_t visit;
};

struct timers {
    struct cli_store store;
    struct det_arena arena;
    struct det_buffer found; /* struct armed */
    struct det_buffer ids;   /* const char *, of one machine */
    size_t limit;
};

static int by_due(const void *left, const void *right)
{
    const struct armed *a = left, *b = right;

    if (a->due != b->due)
        return a->due < b->due ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void add_timers(struct timers *timers, const struct instance *instance)
{
    const struct det_machine *machine = instance->machine;
    const char *id = det_arena_copy(&timers->arena, instance->id);

    for (const struct instance_timer *t = instance->timers; t && id; t = t->next) {
        struct armed armed = {
            .id = id,
            .machine = machine->name,
            .timer = instance_timer_name(machine, t->row.timer),
            .event = machine->events[t->row.event].name,
            .due = t->row.due,
            .visit = t->row.visit,
        };

        det_buffer_append(&timers->found, &armed, sizeof armed);
    }
    timers->store.cli->has_failed |= !id;
}

static int take_due(void *context, const struct det_store_due *row)
{
    struct timers *timers = context;
    const char *id;

    if (!row->is_timer)
        return 0;
    id = det_arena_copy(&timers->arena, row->id);
    if (!id)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&timers->ids, &id, sizeof id);
    return det_buffer_status(&timers->ids);
}

/* One that has moved or gone since has no timers to show. */
static int load_timers(struct timers *timers, struct det_machine *machine)
{
    const char **ids = (const char **)(void *)timers->ids.data;
    size_t count = timers->ids.size / sizeof *ids;
    int code = CLI_OK;

    if (count)
        qsort(ids, count, sizeof *ids, by_text);
    for (size_t i = 0; i < count && code == CLI_OK; i++) {
        struct instance instance;

        if (i && strcmp(ids[i - 1], ids[i]) == 0)
            continue;
        code = instance_open(&timers->store, machine, ids[i], &instance);
        if (code != CLI_OK)
            break;
        add_timers(timers, &instance);
        instance_close(&instance);
    }
    return code;
}

/* Effects that are due are listed among them: more is asked for until there are enough timers, or
 * no more rows. */
static int find_timers(void *context, struct det_machine *machine)
{
    struct timers *timers = context;
    struct cli_store *store = &timers->store;
    size_t asked = timers->limit, count;
    det_time next = 0;
    int r = 0;

    do {
        det_buffer_clear(&timers->ids);
        r = store->ops->due(
            store->store, machine, &(struct det_store_due_query){ DET_NEVER - 1, asked }, take_due,
            timers, &next);
        count = timers->ids.size / sizeof(const char *);
        asked *= 4;
    } while (r == 0 && next != DET_NEVER && count < timers->limit &&
             asked <= (size_t)LIMIT_MAX * 4);
    if (r < 0)
        return cli_store_complain(store, r, NULL);
    return load_timers(timers, machine);
}

static void print_object(struct cli *cli, struct line *line, const struct armed *armed)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "timer");
    line_text(line, "machine", armed->machine);
    line_text(line, "id", armed->id);
    line_text(line, "timer", armed->timer);
    line_text(line, "event", armed->event);
    line_time(line, "due", armed->due);
    line_number(line, "visit", armed->visit);
    line_close(line, '}');
    line_print(line, cli);
}

static void add_row(struct table *table, const struct armed *armed, det_time now)
{
    char when[INSTANCE_WHEN_TEXT], time[INSTANCE_TIME_TEXT];

    table_add(table, CLI_BOLD, "%s", armed->id);
    table_add(table, CLI_PLAIN, "%s", armed->machine);
    table_add(
        table, armed->due <= now ? CLI_YELLOW : CLI_PLAIN, "%s",
        instance_when(armed->due, now, when));
    table_add(table, CLI_PLAIN, "%s", armed->event);
    table_add(table, CLI_PLAIN, "%s", armed->timer);
    table_add(table, CLI_PLAIN, "%s", instance_time(armed->due, time));
}

static int print(struct timers *timers)
{
    struct cli *cli = timers->store.cli;
    const struct armed *all = (const struct armed *)(const void *)timers->found.data;
    size_t count = timers->found.size / sizeof *all;
    det_time now = timers->store.ops->now(timers->store.store);
    struct table table;
    struct line line;

    if (det_buffer_status(&timers->found) < 0)
        return cli_no_memory(cli);
    if (count)
        qsort(timers->found.data, count, sizeof *all, by_due);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    line_init(&line, cli->allocator);
    for (size_t i = 0; i < count && i < timers->limit; i++) {
        if (cli->is_json)
            print_object(cli, &line, &all[i]);
        else
            add_row(&table, &all[i], now);
    }
    if (!cli->is_json && count)
        table_print(&table, 0);
    else if (!cli->is_json)
        cli_say(cli, "No timer is armed.\n");
    if (count > timers->limit)
        cli_say(cli, "There are more: --limit shows them\n");
    line_deinit(&line);
    table_deinit(&table);
    return CLI_OK;
}

static int find(struct timers *timers, const struct cli_args *args)
{
    struct instance instance;
    int code;

    if (args->operand_count == 0)
        return cli_store_each(&timers->store, find_timers, timers);
    code = instance_find(&timers->store, args->operands[0], &instance);
    if (code != CLI_OK)
        return code;
    add_timers(timers, &instance);
    instance_close(&instance);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_wish wish = { .url = args->values[OPTION_STORE],
                                     .machine = args->values[OPTION_MACHINE] };
    struct timers timers = { .limit = LIMIT_DEFAULT };
    uint64_t limit = LIMIT_DEFAULT;
    int code;

    if (args->values[OPTION_LIMIT] &&
        !cli_args_number(cli, "limit", args->values[OPTION_LIMIT], 1, LIMIT_MAX, &limit))
        return CLI_USAGE;
    timers.limit = (size_t)limit;
    det_arena_init(&timers.arena, cli->allocator);
    det_buffer_init(&timers.found, cli->allocator);
    det_buffer_init(&timers.ids, cli->allocator);
    code = cli_store_open(cli, &wish, &timers.store);
    if (code == CLI_OK)
        code = find(&timers, args);
    if (code == CLI_OK)
        code = print(&timers);
    cli_store_close(&timers.store);
    det_buffer_deinit(&timers.ids);
    det_buffer_deinit(&timers.found);
    det_arena_deinit(&timers.arena);
    return code;
}

extern const struct cli_command cli_command_timers;
const struct cli_command cli_command_timers = {
    .name = "timers",
    .summary = "show the timers that are armed",
    .about = "The timers of an instance, or those of the whole store, the first due first. One "
             "that is due\n"
             "and stays fires as soon as a program serves the store.",
    .operand = { .form = "[ID]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
