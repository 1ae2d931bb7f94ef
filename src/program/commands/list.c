/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.c - `detent list`: lists the instances in a store. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "client/served_store.h"
#include "inspect/print_tasks.h"
#include "inspect/stored_instance.h"
#include "terminal/args.h"

/* Rows of a table, which is kept in memory. JSON is limited only by --limit. */
#define ROWS_MAX 1000

enum {
    OPTION_STATE,
    OPTION_OLDER,
    OPTION_ACTIVE,
    OPTION_STOPPED,
    OPTION_LIMIT,
    OPTION_AFTER,
    OPTION_MACHINE,
    OPTION_STORE,
};

static const struct cli_option option_table[] = {
    [OPTION_STATE] = { "state", 0, "STATE", NULL, "only instances in this state" },
    [OPTION_OLDER] = { "older", 0, "TIME", NULL,
                       "only instances without a transition for this long" },
    [OPTION_ACTIVE] = { "active", 0, NULL, NULL,
                        "only active instances: neither stopped nor final" },
    [OPTION_STOPPED] = { "stopped", 0, NULL, NULL, "only stopped instances" },
    [OPTION_LIMIT] = { "limit", 'n', "N", NULL, "at most N instances (default 1000 in a table)" },
    [OPTION_AFTER] = { "after", 0, "ID", NULL, "only ids after this one: the next page" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "id", 0, false },    { "machine", 1, false }, { "state", 0, false },   { "for", 2, true },
    { "events", 4, true }, { "started", 5, false }, { "stopped", 3, false },
};

struct listing {
    struct cli_store store;
    const struct cli_args *args;
    struct det_store_query query;
    struct table table;
    struct det_json_writer json;
    const struct det_machine *machine; /* of the current rows */
    bool is_one;                       /* there is only one machine */
    bool has_state;                    /* a machine has the requested state */
    size_t count, limit;               /* 0: none */
    bool is_cut;
    char last[DET_ID_MAX + 1];
    det_time now;
};

static enum cli_style style_of(const struct listing *listing, const struct det_store_listed *row)
{
    if (row->is_stopped)
        return CLI_FAINT;
    return listing->machine->states[row->state].flags & DET_STATE_FINAL ? CLI_GREEN : CLI_BLUE;
}

static void add_row(struct listing *listing, const struct det_store_listed *row)
{
    struct table *table = &listing->table;
    char span[SHOW_SPAN_TEXT], time[INSTANCE_TIME_TEXT];

    table_add(table, CLI_BOLD, "%s", row->id);
    table_add(table, CLI_PLAIN, "%s", listing->is_one ? "" : listing->machine->name);
    table_add(table, style_of(listing, row), "%s", listing->machine->states[row->state].name);
    table_add(table, CLI_PLAIN, "%s", show_span(listing->now - row->moved_at, span));
    table_add(table, CLI_PLAIN, "%llu", (unsigned long long)row->sequence);
    table_add(table, CLI_PLAIN, "%s", instance_time(row->started_at, time));
    table_add(table, CLI_FAINT, "%s", row->is_stopped ? "stopped" : "");
}

/* The store knows which instances are stopped, but not which states are final. */
static bool is_left_out(const struct listing *listing, const struct det_store_listed *row)
{
    return listing->args->values[OPTION_ACTIVE] &&
           listing->machine->states[row->state].flags & DET_STATE_FINAL;
}

/* The query has one row more than the limit, to know whether there are more. */
static int take_row(void *context, const struct det_store_listed *row)
{
    struct listing *listing = context;

    if (is_left_out(listing, row))
        return 0;
    if (listing->limit && listing->count == listing->limit) {
        listing->is_cut = true;
        return 1;
    }
    listing->count++;
    det_assert(!listing->limit || listing->count <= listing->limit);
    det_assert(row->state < listing->machine->state_count);
    snprintf(listing->last, sizeof listing->last, "%s", row->id);
    if (listing->store.cli->is_json) {
        instance_row_line(&listing->json, listing->machine, row);
        cli_print_line(listing->store.cli, &listing->json);
    } else {
        add_row(listing, row);
    }
    return cli_is_stopped(listing->store.cli) ? 1 : 0;
}

static int list_machine(void *context, struct det_machine *machine)
{
    struct listing *listing = context;
    const char *state = listing->args->values[OPTION_STATE];
    int found = state ? det_machine_find_state(machine, state) : 0, r;

    if (found < 0 || listing->is_cut)
        return CLI_OK;
    listing->has_state = true;
    listing->machine = machine;
    listing->query.has_state = state != NULL;
    listing->query.state = (uint16_t)found;
    listing->query.limit = listing->limit && !listing->args->values[OPTION_ACTIVE]
                               ? listing->limit - listing->count + 1
                               : 0;
    r = listing->store.ops->list(listing->store.store, machine, &listing->query, take_row, listing);
    return r < 0 ? cli_report_store_error(&listing->store, r, NULL) : CLI_OK;
}

static bool read_query(struct listing *listing, struct cli *cli)
{
    const struct cli_args *args = listing->args;
    det_time older;
    uint64_t limit = cli->is_json ? 0 : ROWS_MAX;

    if (args->values[OPTION_ACTIVE] && args->values[OPTION_STOPPED]) {
        cli_report_error(cli, "--active and --stopped exclude each other");
        return false;
    }
    if (args->values[OPTION_LIMIT] &&
        !cli_args_number(cli, "limit", args->values[OPTION_LIMIT], 1, UINT32_MAX, &limit))
        return false;
    listing->limit = (size_t)limit;
    listing->query.after = args->values[OPTION_AFTER];
    listing->query.stopped = args->values[OPTION_ACTIVE]    ? DET_STORE_RUNNING
                             : args->values[OPTION_STOPPED] ? DET_STORE_STOPPED
                                                            : DET_STORE_ANY;
    if (!args->values[OPTION_OLDER])
        return true;
    if (!cli_args_span(cli, "older", args->values[OPTION_OLDER], 1, &older))
        return false;
    /* The store's clock is known once it is open. */
    listing->query.moved_before = older;
    return true;
}

/* Searches the nearest name of a state, for the hint. */
struct nearest_state {
    const char *wanted;
    char found[128];
};

static int find_state(void *context, struct det_machine *machine)
{
    struct nearest_state *nearest = context;
    const char *names[DET_STATES_MAX];
    int found;

    det_assert(machine->state_count <= DET_STATES_MAX);
    for (size_t i = 0; i < machine->state_count; i++)
        names[i] = machine->states[i].name;
    found = det_text_nearest(nearest->wanted, names, machine->state_count);
    if (found >= 0)
        snprintf(nearest->found, sizeof nearest->found, "; did you mean '%s'?", names[found]);
    return CLI_OK;
}

static int report_state(struct listing *listing)
{
    struct nearest_state nearest = { .wanted = listing->args->values[OPTION_STATE] };
    int code = cli_store_each(&listing->store, find_state, &nearest);

    if (code != CLI_OK)
        return code;
    cli_report_error(listing->store.cli, "there is no state '%s'%s", nearest.wanted, nearest.found);
    return CLI_NOT_FOUND;
}

static int list_all(struct listing *listing)
{
    struct cli_store *store = &listing->store;
    int code;

    if (listing->query.after && !listing->is_one) {
        cli_report_error(store->cli, "--after needs --machine: ids belong to one machine");
        return CLI_USAGE;
    }
    code = cli_store_each(store, list_machine, listing);
    if (code != CLI_OK)
        return code;
    if (listing->args->values[OPTION_STATE] && !listing->has_state && store->machines)
        return report_state(listing);
    if (store->cli->is_json)
        return CLI_OK;
    table_show(&listing->table, "There are no such instances.");
    if (listing->is_cut && listing->is_one)
        cli_print_error(store->cli, "There are more: --after %s\n", listing->last);
    else if (listing->is_cut)
        cli_print_error(store->cli, "There are more: --machine lists one machine, page by page\n");
    return CLI_OK;
}

static bool has_one_machine(const struct cli_store *store)
{
    size_t count = 0;

    for (const struct store_machine *m = store->machines; m; m = m->next)
        count += m->is_stored;
    return store->wanted || count <= 1;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct listing listing = { .args = args };
    int code;

    if (!read_query(&listing, cli))
        return CLI_USAGE;
    code = served_store_open(cli, &request, &listing.store);
    table_init(&listing.table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&listing.json, cli->allocator);
    if (code == CLI_OK) {
        listing.now = listing.store.ops->now(listing.store.store);
        if (listing.query.moved_before)
            listing.query.moved_before = listing.now - listing.query.moved_before;
        listing.is_one = has_one_machine(&listing.store);
        code = list_all(&listing);
    }
    det_json_writer_deinit(&listing.json);
    table_deinit(&listing.table);
    cli_store_close(&listing.store);
    return code;
}

extern const struct cli_command cli_command_list;
const struct cli_command cli_command_list = {
    .name = "list",
    .summary = "list the instances in a store",
    .about = "Prints one line per instance, in the order of ids: its state, how long it has been\n"
             "in it, and its number of events.\n"
             "\n"
             "    detent list --state charging --older 1h\n"
             "\n"
             "finds stuck instances; 'detent why ID' explains one.",
    .operand = { .form = "", .least = 0, .most = 0 },
    .options = option_table,
    .run = run_command,
};
