/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.c - `detent store`: maintains a store. */
#include <string.h>

#include "commands/store_verbs.h"
#include "terminal/args.h"
#include "transfer/export.h"
#include "transfer/import.h"

enum { OPTION_STORE, OPTION_MACHINE, OPTION_DRY_RUN, OPTION_ACCEPT_LOSS };

static const struct cli_option option_table[] = {
    [OPTION_STORE] = STORE_OPTION_URL,
    [OPTION_MACHINE] = { "machine", 'm', "NAME", NULL, "export or repair only this machine" },
    [OPTION_DRY_RUN] = { "dry-run", 'n', NULL, NULL, "only report what repair would do" },
    [OPTION_ACCEPT_LOSS] = { "accept-loss", 0, NULL, NULL,
                             "backup, export: also copy a store that has lost data" },
    { NULL, 0, NULL, NULL, NULL },
};

/* WORDS for the completion. */
#define WORDS "info verify repair upgrade compact backup export import"
static const struct verb {
    const char *word;
    int (*run)(struct cli_store *store, const char *path);
    size_t least, most; /* number of its operands */
    bool is_writing, may_make, may_be_dry, is_copying;
} verbs[] = {
    { "info", store_info, 0, 0, false, false, false, false },
    { "verify", store_verify, 0, 0, false, false, false, false },
    { "repair", store_repair, 0, 1, true, false, true, false },
    { "upgrade", store_info, 0, 0, true, false, false, false },
    { "compact", store_compact, 0, 0, true, false, false, false },
    { "backup", store_backup, 1, 1, false, false, false, true },
    { "export", store_export, 0, 1, false, false, false, true },
    { "import", store_import, 1, 1, true, true, false, false },
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static const struct verb *find_verb(const char *word)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].word, word) == 0)
            return &verbs[i];
    }
    return NULL;
}

static const struct verb *read_verb(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = find_verb(args->operands[0]);
    size_t count = args->operand_count - 1;
    char hint[CLI_CHOICE_TEXT];

    if (!verb) {
        cli_report_error(
            cli,
            "unknown verb '%s': use info, verify, repair, upgrade, compact, backup, export or "
            "import%s",
            args->operands[0], cli_choice_hint(WORDS, args->operands[0], hint));
        return NULL;
    }
    if (count < verb->least)
        cli_report_error(
            cli, "store %s needs a file: detent store %s FILE", verb->word, verb->word);
    else if (count > verb->most)
        cli_report_error(cli, "store %s takes no '%s'", verb->word, args->operands[verb->most + 1]);
    else if (args->values[OPTION_DRY_RUN] && !verb->may_be_dry)
        cli_report_error(cli, "'detent store %s' does not take --dry-run", verb->word);
    else if (args->values[OPTION_ACCEPT_LOSS] && !verb->is_copying)
        cli_report_error(cli, "'detent store %s' does not take --accept-loss", verb->word);
    else
        return verb;
    return NULL;
}

/* Only an import creates a store. */
static int may_create(void *context, struct cli_store *store)
{
    const char *const *path = context;

    return store_import_validate(store, *path);
}

/* A copy has no mark, so the loss could not be detected in it. */
static int check_loss(const struct cli_store *store, const struct verb *verb)
{
    if (!verb->is_copying || !store->has_loss || store->request.accepts_loss)
        return CLI_OK;
    cli_print_error(store->cli, "'store %s --accept-loss' copies what is left.\n", verb->word);
    return CLI_FAILURE;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *path = args->operand_count > 1 ? args->operands[1] : NULL;
    const struct verb *verb = read_verb(cli, args);
    struct store_request request = { .url = args->values[OPTION_STORE],
                                     .machine = args->values[OPTION_MACHINE] };
    struct cli_store store;
    int code;

    if (!verb)
        return CLI_USAGE;
    request.is_writing = verb->is_writing && !args->values[OPTION_DRY_RUN];
    request.is_alone = true;
    request.may_make = verb->may_make;
    request.may_be_damaged = verb->run == store_verify;
    request.accepts_loss = args->values[OPTION_ACCEPT_LOSS] != NULL;
    request.validate = may_create;
    request.validate_context = &path;
    code = cli_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = check_loss(&store, verb);
    if (code == CLI_OK)
        code = verb->run(&store, path);
    cli_store_close(&store);
    return code;
}

extern const struct cli_command cli_command_store;
const struct cli_command cli_command_store = {
    .name = "store",
    .summary = "maintain a store: verify, repair, backup, export, import",
    .about = "A VERB is info, verify, repair, upgrade, compact, backup, export or import.\n"
             "\n"
             "'store info' identifies the store and counts its contents. 'store verify' checks\n"
             "the file or database itself, the hash chain of every instance, every checksum, and\n"
             "all references; it prints a line per finding and then exits with 1. 'store backup'\n"
             "makes a consistent copy while others use the store. It refuses a store that has\n"
             "lost acknowledged data, and so does 'store export', unless --accept-loss is given.\n"
             "'store upgrade' updates the tables of an older detent, as every command that\n"
             "writes does. 'store compact' releases unused space; no other process may have the\n"
             "store open for writing.\n"
             "\n"
             "'store repair' takes the instances that 'store verify' finds damaged, or the one\n"
             "with this ID, derives the head of each again from its snapshot or start and the\n"
             "later events, and writes it if its checksum proves that it is the original. It\n"
             "reports what is restored, and what is not and why, and exits with 1 if something\n"
             "is not. With --dry-run it only reports. Nothing is ever deleted by a repair, and\n"
             "nothing is repaired automatically.\n"
             "\n"
             "'store export' writes all instances with their events as lines of JSON, sealed by\n"
             "hashes. 'store import' adds them to another store of any kind: it checks the whole\n"
             "file first, and can be repeated after an interruption. The file contains sensitive\n"
             "fields.",
    .operand = { .form = "VERB [FILE|ID]", .least = 1, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
