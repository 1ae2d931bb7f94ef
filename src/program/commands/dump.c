/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dump.c - `detent dump`: the documents of workers in a store, and what has changed in them. */
#include "inspect/document_print.h"
#include "inspect/document_read.h"
#include "inspect/store_url.h"
#include "terminal/args.h"

enum { OPTION_SINCE, OPTION_BELOW, OPTION_REVEAL, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_SINCE] = { "since", 0, "N", NULL, "only changes behind this sync id" },
    [OPTION_BELOW] = { "below", 0, "ID", NULL, "only this worker and those below it" },
    [OPTION_REVEAL] = { "reveal", 0, NULL, NULL,
                        "also configs and variables of what was put by hand" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_wish wish = { .url = args->values[OPTION_STORE] };
    struct det_document_query query = { .below = args->values[OPTION_BELOW] };
    struct cli_store store;
    int code, r;

    if (args->values[OPTION_SINCE] &&
        !cli_args_number(cli, "since", args->values[OPTION_SINCE], 0, INT64_MAX, &query.after))
        return CLI_USAGE;
    code = cli_store_open(cli, &wish, &store);
    if (code == CLI_OK) {
        r = cli_dump_print(cli, store.store, &query, args->values[OPTION_REVEAL] != NULL);
        if (r < 0 && r != DET_ERR_CANCELLED)
            code = cli_store_complain(&store, r, NULL);
    }
    cli_store_close(&store);
    return code;
}

extern const struct cli_command cli_command_dump;
const struct cli_command cli_command_dump = {
    .name = "dump",
    .summary = "show the recorded state and changes of workers",
    .about = "Every change of an identity, a desired or an observed state that is kept, in order, "
             "and then all\n"
             "of them as they are now. Each change has a sync id, which grows over all documents "
             "and all\n"
             "restarts: --since shows what is new behind one. The store is only read: a detent "
             "that works\n"
             "on it is not disturbed. Configs and variables of workers that were put by hand may "
             "have secrets\n"
             "in them, and are " DOCUMENT_REDACTED " without --reveal.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
