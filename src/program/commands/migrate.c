/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate.c - `detent migrate`: applies a changed definition to a store: checks that it strands no
 * instance, then renames what is stored. */
#include "base/text.h"
#include "transfer/evolve.h"
#include "json/writer.h"

enum {
    OPTION_RENAMES, /* four of them */
    OPTION_DRY_RUN = OPTION_RENAMES + (int)DET_COMPARE_KINDS,
    OPTION_STORE,
};

static const struct cli_option option_table[] = {
    EVOLVE_OPTIONS,
    [OPTION_DRY_RUN] = { "dry-run", 'n', NULL, NULL, "only report what it would do" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

struct migration {
    struct evolve evolve;
    bool is_dry;
    uint64_t rows; /* changed */
};

static const enum det_hazard_kind users[] = {
    [DET_NAME_STATE] = DET_HAZARD_STATE,
    [DET_NAME_EVENT] = DET_HAZARD_EVENT,
    [DET_NAME_EFFECT] = DET_HAZARD_EFFECT,
    [DET_NAME_TIMER] = DET_HAZARD_TIMER,
};

static const char *const nouns[] = {
    [DET_NAME_STATE] = "state",
    [DET_NAME_EVENT] = "event",
    [DET_NAME_EFFECT] = "effect",
    [DET_NAME_TIMER] = "timer",
};

static void print_rename(struct migration *migration, const struct det_rename *rename)
{
    struct evolve *evolve = &migration->evolve;
    uint64_t stopped, count = evolve_count_of(evolve, users[rename->kind], rename->from, &stopped);
    struct det_json_writer json;

    if (!evolve->cli->is_json) {
        cli_print_in(evolve->cli, CLI_BLUE, "> ");
        cli_print(
            evolve->cli, "%s %s becomes %s: %llu stored\n", nouns[rename->kind], rename->from,
            rename->to, (unsigned long long)count + stopped);
        return;
    }
    cli_json_begin(evolve->cli, &json, "rename");
    det_json_text(&json, "subject", nouns[rename->kind]);
    det_json_text(&json, "from", rename->from);
    det_json_text(&json, "to", rename->to);
    det_json_number(&json, "stored", count + stopped);
    cli_json_end(evolve->cli, &json);
}

static void print_summary(struct migration *migration)
{
    struct evolve *evolve = &migration->evolve;
    struct cli *cli = evolve->cli;
    bool is_fine = evolve->stranded == 0;
    struct det_json_writer json;

    if (!cli->is_json) {
        if (!is_fine)
            cli_print_error_in(
                cli, CLI_RED,
                "cannot migrate %s: the new definition lacks the marked names. Map them with "
                "--rename, restore them, or wait until these instances have left those states "
                "('detent list')\n",
                evolve->new->name);
        else if (migration->is_dry)
            cli_print_error_in(
                cli, CLI_GREEN, "%s can be migrated; dry run, nothing was changed\n",
                evolve->new->name);
        else
            cli_print_error_in(
                cli, CLI_GREEN, "%s: version %u is in the store, %llu row%s changed\n",
                evolve->new->name, evolve->new->version, (unsigned long long)migration->rows,
                det_plural(migration->rows));
        return;
    }
    cli_json_begin(cli, &json, "summary");
    det_json_text(&json, "machine", evolve->new->name);
    det_json_bool(&json, "ok", is_fine);
    det_json_bool(&json, "dry_run", migration->is_dry);
    det_json_number(&json, "stranded", evolve->stranded);
    det_json_number(&json, "rows", migration->rows);
    cli_json_end(cli, &json);
}

/* Checks with a store opened for reading, so that an impossible migration interrupts no process. */
static int check_migration(
    struct cli *cli, const struct evolve_request *request, struct migration *migration)
{
    struct evolve *evolve = &migration->evolve;
    int code = evolve_open(cli, request, evolve);

    if (code == CLI_OK)
        code = evolve_compare(evolve);
    if (code != CLI_OK)
        return code;
    evolve->hides_renames = true;
    evolve_print_changes(evolve);
    for (size_t i = 0; i < evolve->rename_count; i++)
        print_rename(migration, &evolve->renames[i]);
    evolve_print_hazards(evolve);
    return CLI_OK;
}

/* The store checks the definition again, in the transaction. */
static int apply_migration(
    struct cli *cli, const struct evolve_request *request, struct migration *migration)
{
    struct evolve_request writing = *request;
    struct det_error error = { 0 };
    struct evolve evolve;
    const struct det_store_ops *ops;
    int code, r = 0;

    writing.is_writing = true;
    code = evolve_open(cli, &writing, &evolve);
    ops = evolve.store.ops;
    if (code == CLI_OK && evolve.rename_count && !ops->migrate)
        r = det_error_set(
            &error, DET_ERR_UNSUPPORTED, "%s does not support renaming", evolve.store.url);
    else if (code == CLI_OK && evolve.rename_count)
        r = ops->migrate(
            evolve.store.store, evolve.new, evolve.renames, evolve.rename_count, &migration->rows,
            &error);
    else if (code == CLI_OK)
        r = ops->serve(evolve.store.store, evolve.new, &error);
    if (code == CLI_OK && r < 0)
        code = cli_report_store_error(&evolve.store, r, &error);
    evolve_close(&evolve);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct evolve_request request = {
        .new_path = args->operands[0],
        .url = args->values[OPTION_STORE],
        .needs_store = true,
        .renames = &args->values[OPTION_RENAMES],
    };
    struct migration migration = { .is_dry = args->values[OPTION_DRY_RUN] != NULL };
    int code = check_migration(cli, &request, &migration);

    if (code == CLI_OK && migration.evolve.stranded == 0 && !migration.is_dry)
        code = apply_migration(cli, &request, &migration);
    if (code == CLI_OK) {
        print_summary(&migration);
        code = migration.evolve.stranded > 0 ? CLI_FAILURE : CLI_OK;
    }
    evolve_close(&migration.evolve);
    return code;
}

extern const struct cli_command cli_command_migrate;
const struct cli_command cli_command_migrate = {
    .name = "migrate",
    .summary = "apply a changed definition to the instances in a store",
    .about = "Compares the definition with that of the store and counts what it would strand. If\n"
             "it strands nothing, renames what is stored in one transaction and stores the\n"
             "definition. Recorded events stay as they are; the store knows them by both names.\n"
             "Stop the program that serves the machine first. Exits with 1, and changes nothing,\n"
             "if something would be stranded.",
    .operand = { .form = "NEW.fsm", .least = 1, .most = 1, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
