/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots.c - `detent slots`: running and queued tasks of the slots. */
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

/* Adds an empty cell if the number is unknown. */
static void add_number(
    struct table *table, enum cli_style style, const struct det_json_value *slot, const char *key)
{
    if (det_json_is(det_json_get(slot, key), DET_JSON_NULL))
        table_add(table, CLI_PLAIN, "%s", "");
    else
        table_add(table, style, "%lld", (long long)det_json_get_signed(slot, key));
}

static void add_row(struct table *table, const struct det_json_value *slot, det_time now)
{
    int64_t rejected = det_json_get_signed(slot, "rejected");
    int64_t depth = det_json_get_signed(slot, "depth");
    bool is_durable = det_json_is(det_json_get(slot, "depth_max"), DET_JSON_NULL);

    table_add(table, CLI_BOLD, "%s", show_text(slot, "name"));
    show_state_cell(table, show_slot_state(slot));
    show_age_cell(table, slot, now);
    table_add(
        table, CLI_PLAIN, "%lld of %lld", (long long)det_json_get_signed(slot, "owners"),
        (long long)det_json_get_signed(slot, "width"));
    if (is_durable)
        table_add(table, depth ? CLI_YELLOW : CLI_PLAIN, "%lld", (long long)depth);
    else
        table_add(
            table, depth ? CLI_YELLOW : CLI_PLAIN, "%lld of %lld", (long long)depth,
            (long long)det_json_get_signed(slot, "depth_max"));
    add_number(table, CLI_PLAIN, slot, "started");
    add_number(table, CLI_PLAIN, slot, "replaced");
    add_number(table, rejected ? CLI_RED : CLI_PLAIN, slot, "rejected");
    table_add(table, CLI_PLAIN, "%s", show_text(slot, "owner_name"));
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const struct remote_table form = { columns, sizeof columns / sizeof *columns, add_row,
                                              "There are no slots." };
    struct remote remote;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    code = remote_print_table(&remote, "/v1/slots", &form);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_slots;
const struct cli_command cli_command_slots = {
    .name = "slots",
    .summary = "show running and queued tasks of the slots of the running daemon",
    .about = "Prints one line per slot: how many places are taken and how many tasks are queued,\n"
             "each with its maximum; how many tasks it has started, replaced and refused; and\n"
             "the task that has run longest. A slot that is not in detent.yaml exists while\n"
             "something runs in it. Durable slots are shown as in the store, for all processes\n"
             "that share it; at most 1000 queued jobs are counted.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
