/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dump.c - `detent dump`: the documents of workers in a store, and their changes. */
#include "client/served_store.h"
#include "inspect/document_print.h"
#include "inspect/document_read.h"
#include "inspect/store_url.h"
#include "terminal/args.h"

enum { OPTION_SINCE, OPTION_BELOW, OPTION_REVEAL, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_SINCE] = { "since", 0, "N", NULL, "only changes after this sync id" },
    [OPTION_BELOW] = { "below", 0, "ID", NULL, "only this worker and its descendants" },
    [OPTION_REVEAL] = { "reveal", 0, NULL, NULL,
                        "also show configs and variables of manually created workers" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE] };
    struct det_document_query query = { .below = args->values[OPTION_BELOW] };
    struct cli_store store;
    int code, r;

    if (args->values[OPTION_SINCE] &&
        !cli_args_number(cli, "since", args->values[OPTION_SINCE], 0, INT64_MAX, &query.after))
        return CLI_USAGE;
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK) {
        r = cli_dump_print(cli, store.store, &query, args->values[OPTION_REVEAL] != NULL);
        if (r < 0 && r != DET_ERR_CANCELLED)
            code = cli_report_store_error(&store, r, NULL);
    }
    cli_store_close(&store);
    return code;
}

extern const struct cli_command cli_command_dump;
const struct cli_command cli_command_dump = {
    .name = "dump",
    .summary = "show the recorded state and changes of workers",
    .about = "Prints every stored change of an identity, a desired state or an observed state,\n"
             "in order, and then their current versions. Each change has a sync id, which grows\n"
             "over all documents and restarts; --since prints the changes after one. The store\n"
             "is opened for reading only, and a running daemon is not disturbed. Configs and\n"
             "variables of manually created workers may contain secrets, and are\n"
             "" DOCUMENT_REDACTED " without --reveal.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
