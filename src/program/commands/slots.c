/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots.c - `detent slots`: what runs in the slots, and what waits. */
#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "slot", 0, false },    { "state", 0, false },   { "for", 2, true },
    { "running", 0, true },  { "waiting", 0, true },  { "started", 3, true },
    { "replaced", 5, true }, { "rejected", 4, true }, { "runs", 0, false },
};

/* Nothing where it is not known. */
static void add_number(
    struct table *table, enum cli_style style, const json_t *slot, const char *key)
{
    if (json_is_null(json_object_get(slot, key)))
        table_add(table, CLI_PLAIN, "%s", "");
    else
        table_add(table, style, "%lld", (long long)show_number(slot, key));
}

static void add_row(struct table *table, const json_t *slot, det_time now)
{
    json_int_t rejected = show_number(slot, "rejected"), depth = show_number(slot, "depth");
    bool is_durable = json_is_null(json_object_get(slot, "depth_max"));

    table_add(table, CLI_BOLD, "%s", show_text(slot, "name"));
    show_state_cell(table, show_slot_state(slot));
    show_age_cell(table, slot, now);
    table_add(
        table, CLI_PLAIN, "%lld of %lld", (long long)show_number(slot, "owners"),
        (long long)show_number(slot, "width"));
    if (is_durable)
        table_add(table, depth ? CLI_YELLOW : CLI_PLAIN, "%lld", (long long)depth);
    else
        table_add(
            table, depth ? CLI_YELLOW : CLI_PLAIN, "%lld of %lld", (long long)depth,
            (long long)show_number(slot, "depth_max"));
    add_number(table, CLI_PLAIN, slot, "started");
    add_number(table, CLI_PLAIN, slot, "replaced");
    add_number(table, rejected ? CLI_RED : CLI_PLAIN, slot, "rejected");
    table_add(table, CLI_PLAIN, "%s", show_text(slot, "owner_name"));
}

static int print_slots(struct remote *remote)
{
    det_time now = det_world_now(remote->cli->world, DET_CLOCK_WALL);
    struct table table;
    json_t *slots;
    int code = remote_list(remote, "/v1/slots", &slots);

    if (code != CLI_OK)
        return code;
    table_init(&table, remote->cli, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_array_size(slots); i++)
        add_row(&table, json_array_get(slots, i), now);
    if (json_array_size(slots) > 0)
        table_print(&table, 0);
    else
        cli_say(remote->cli, "There are no slots.\n");
    table_deinit(&table);
    json_decref(slots);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct remote remote;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    code = cli->is_json ? remote_print(&remote, "/v1/slots") : print_slots(&remote);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_slots;
const struct cli_command cli_command_slots = {
    .name = "slots",
    .summary = "show what runs in the slots of a detent that is up, and what waits",
    .about =
        "One line for each slot: how many of its places are taken and how many wait, out of how "
        "many\n"
        "may; how many it has started, replaced and refused; and the name of the one that has run\n"
        "longest. Slots that are not in detent.yaml are there while something runs in them. "
        "Durable\n"
        "ones are shown as the store has them, over all that share it; at most 1000 that wait are\n"
        "counted.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
