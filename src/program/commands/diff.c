/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* diff.c - `detent diff`: what a changed definition means for existing instances. */
#include "base/text.h"
#include "transfer/evolve.h"
#include "json/writer.h"

enum {
    OPTION_RENAMES, /* four of them */
    OPTION_MACHINE = OPTION_RENAMES + (int)DET_COMPARE_KINDS,
    OPTION_STORE,
};

static const struct cli_option option_table[] = {
    EVOLVE_OPTIONS,
    [OPTION_MACHINE] = { "machine", 'm', "NAME", NULL, "name in the store, if it differs" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_summary_object(struct evolve *evolve)
{
    struct det_json_writer json;

    cli_json_begin(evolve->cli, &json, "summary");
    det_json_text(&json, "machine", evolve->new->name);
    det_json_bool(&json, "ok", evolve->stranded == 0);
    det_json_number(&json, "changes", evolve->change_count);
    det_json_number(&json, "hazards", evolve->hazard_count);
    det_json_number(&json, "stranded", evolve->stranded);
    cli_json_end(evolve->cli, &json);
}

static void print_summary(struct evolve *evolve)
{
    struct cli *cli = evolve->cli;

    if (cli->is_json)
        print_summary_object(evolve);
    else if (evolve->change_count == 0)
        cli_print_error_in(cli, CLI_GREEN, "%s: no change\n", evolve->new->name);
    else if (evolve->stranded == 0)
        cli_print_error_in(
            cli, CLI_GREEN, "%s: %zu change%s, nothing would be stranded\n", evolve->new->name,
            evolve->change_count, det_plural(evolve->change_count));
    else
        cli_print_error_in(
            cli, CLI_RED, "%s: %zu change%s, %llu of which %s strand instances\n",
            evolve->new->name, evolve->change_count, det_plural(evolve->change_count),
            (unsigned long long)evolve->stranded, evolve->has_store ? "would" : "could");
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    bool has_old = args->operand_count == 2;
    const struct evolve_request request = {
        .old_path = has_old ? args->operands[0] : NULL,
        .new_path = args->operands[has_old ? 1 : 0],
        .machine = args->values[OPTION_MACHINE],
        .url = args->values[OPTION_STORE],
        .needs_store = !has_old,
        .renames = &args->values[OPTION_RENAMES],
    };
    struct evolve evolve;
    int code = evolve_open(cli, &request, &evolve);

    if (code == CLI_OK)
        code = evolve_compare(&evolve);
    if (code == CLI_OK) {
        evolve_print_changes(&evolve);
        evolve_print_hazards(&evolve);
        print_summary(&evolve);
        code = evolve.stranded > 0 ? CLI_FAILURE : CLI_OK;
    }
    evolve_close(&evolve);
    return code;
}

extern const struct cli_command cli_command_diff;
const struct cli_command cli_command_diff = {
    .name = "diff",
    .summary = "compare two definitions and find stranded instances",
    .about = "Prints the differences between an old and a new definition of a machine, and which\n"
             "of them could strand instances: removed states, events, effects and timers, states\n"
             "without a way out, timeouts that no row handles, records that can no longer be\n"
             "read. With a store it counts the stranded instances; without an old file it reads\n"
             "the old definition from the store. Exits with 1 if something would be stranded.",
    .operand = { .form = "[OLD.fsm] NEW.fsm", .least = 1, .most = 2, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
