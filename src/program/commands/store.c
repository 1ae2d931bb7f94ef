/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.c - `detent store`: keeping a store. */
#include <string.h>

#include "commands/store_verbs.h"
#include "terminal/args.h"
#include "transfer/export.h"
#include "transfer/import.h"

enum { OPTION_STORE, OPTION_MACHINE, OPTION_DRY_RUN, OPTION_ACCEPT_LOSS };

static const struct cli_option option_table[] = {
    [OPTION_STORE] = STORE_OPTION_URL,
    [OPTION_MACHINE] = { "machine", 'm', "NAME", NULL, "export or repair only this one" },
    [OPTION_DRY_RUN] = { "dry-run", 'n', NULL, NULL, "only say what repair would do" },
    [OPTION_ACCEPT_LOSS] = { "accept-loss", 0, NULL, NULL,
                             "backup, export: copy a store that has lost data, too" },
    { NULL, 0, NULL, NULL, NULL },
};

/* WORDS for the completion. */
#define WORDS "info verify repair upgrade compact backup export import"
static const struct verb {
    const char *word;
    int (*run)(struct cli_store *store, const char *path);
    size_t least, most; /* operands behind it */
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
        cli_complain(
            cli,
            "store can info, verify, repair, upgrade, compact, backup, export and import, not "
            "'%s'%s",
            args->operands[0], cli_choice_hint(WORDS, args->operands[0], hint));
        return NULL;
    }
    if (count < verb->least)
        cli_complain(cli, "store %s needs a file: detent store %s FILE", verb->word, verb->word);
    else if (count > verb->most)
        cli_complain(cli, "store %s takes no '%s'", verb->word, args->operands[verb->most + 1]);
    else if (args->values[OPTION_DRY_RUN] && !verb->may_be_dry)
        cli_complain(cli, "store %s has no --dry-run", verb->word);
    else if (args->values[OPTION_ACCEPT_LOSS] && !verb->is_copying)
        cli_complain(cli, "store %s has no --accept-loss", verb->word);
    else
        return verb;
    return NULL;
}

/* Only an import makes a store. */
static int judge(void *context, struct cli_store *store)
{
    const char *const *path = context;

    return store_import_judge(store, *path);
}

/* A copy carries no mark, so nobody could detect the loss in it. */
static int check_loss(const struct cli_store *store, const struct verb *verb)
{
    if (!verb->is_copying || !store->has_loss || store->wish.accepts_loss)
        return CLI_OK;
    cli_say(store->cli, "'store %s --accept-loss' copies what is there.\n", verb->word);
    return CLI_FAILURE;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *path = args->operand_count > 1 ? args->operands[1] : NULL;
    const struct verb *verb = read_verb(cli, args);
    struct store_wish wish = { .url = args->values[OPTION_STORE],
                               .machine = args->values[OPTION_MACHINE] };
    struct cli_store store;
    int code;

    if (!verb)
        return CLI_USAGE;
    wish.is_writing = verb->is_writing && !args->values[OPTION_DRY_RUN];
    wish.is_alone = true;
    wish.may_make = verb->may_make;
    wish.may_be_damaged = verb->run == store_verify;
    wish.accepts_loss = args->values[OPTION_ACCEPT_LOSS] != NULL;
    wish.judge = judge;
    wish.judge_context = &path;
    code = cli_store_open(cli, &wish, &store);
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
    .summary = "look after a store: verify, backup, export, import",
    .about =
        "A VERB is info, verify, repair, upgrade, compact, backup, export or import.\n"
        "\n"
        "'store info' says which store it is, and what is in it. 'store verify' checks the file "
        "or\n"
        "database itself, the chain of hashes of every instance, every checksum, and that what "
        "belongs\n"
        "together is there; each finding is a line, and the exit code then is 1. 'store backup' "
        "makes a\n"
        "consistent copy while others work on it. It refuses a store that has lost what it had\n"
        "acknowledged, and so does 'store export', unless --accept-loss is given. 'store "
        "upgrade' brings the tables of an older "
        "detent\n"
        "up to date, as every command does that writes to it. 'store compact' gives back what is "
        "not used; "
        "nobody\n"
        "else may have it open for writing.\n"
        "\n"
        "'store repair' takes the instances that 'store verify' finds damaged, or the one with "
        "this ID,\n"
        "derives the head of each again from its snapshot or its start and the events behind "
        "that, and\n"
        "writes it if its checksum proves that it is what was there; it says what is restored, "
        "and what\n"
        "is not and why, and the exit code then is 1. With --dry-run it only says so. Nothing is "
        "ever\n"
        "deleted to repair something, and nothing is repaired by itself.\n"
        "\n"
        "'store export' writes all instances with their events as lines of JSON, sealed by "
        "hashes, and\n"
        "'store import' takes them into another store, of any kind: it checks the whole file "
        "first, and\n"
        "can be repeated when it was broken off. The file holds sensitive fields, too.",
    .operand = { .form = "VERB [FILE|ID]", .least = 1, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
