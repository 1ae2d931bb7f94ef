/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow.c - `detent flow`: runs a flow, and shows and stops flows. */
#include <string.h>

#include "client/remote.h"
#include "commands/flow_verbs.h"
#include "terminal/args.h"

static const struct cli_option option_table[FLOW_OPTION_COUNT + 1] = {
    [FLOW_OPTION_FRESH] = { "fresh", 0, NULL, NULL,
                            "run: begin a new run, although the last one can be resumed" },
    [FLOW_OPTION_DURABILITY] = { "durability", 0, "LEVEL", "disk os memory",
                                 "run: when a row counts (default disk)" },
    [FLOW_OPTION_STATE] = { "state", 0, "FOLDER", NULL,
                            "folder of the journals (default .detent/flows/NAME beside the "
                            "file)" },
    [FLOW_OPTION_MODULE] = { "module", 0, "FILE", NULL,
                             "run, tap: shared object with functions of stages" },
    [FLOW_OPTION_FILE] = { "file", 0, "FILE", NULL,
                           "tap: .flow file of a flow that is not in detent.yaml" },
    [FLOW_OPTION_FOLLOW] = { "follow", 'f', NULL, NULL, "tap: keep printing new rows" },
    [FLOW_OPTION_FROM] = { "from", 0, "POSITION", NULL,
                           "tap: rows from this position (default: the last 10 rows)" },
    [FLOW_OPTION_CANCEL] = { "cancel", 0, NULL, NULL,
                             "stop: at once; the next run processes what is in flight" },
    [FLOW_OPTION_TIMEOUT] = { "timeout", 0, "TIME", NULL,
                              "stop: time for rows in flight, then it is cancelled" },
    [FLOW_OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

#define WORDS "run ls tap top lag stop connectors"
static const struct verb {
    const char *word;
    flow_verb_fn *run;
    size_t least, most; /* number of its operands */
    const char *form;
    unsigned options; /* bits of the options that it takes, besides --project */
} verbs[] = {
    { "run", flow_run, 1, CLI_OPERANDS_ANY, "FILE [STAGE.KEY=VALUE...]",
      1u << FLOW_OPTION_FRESH | 1u << FLOW_OPTION_DURABILITY | 1u << FLOW_OPTION_STATE |
          1u << FLOW_OPTION_MODULE },
    { "ls", flow_list, 0, 0, "", 1u << FLOW_OPTION_STATE },
    { "tap", flow_tap, 1, 2, "[NAME] STAGE",
      1u << FLOW_OPTION_STATE | 1u << FLOW_OPTION_FILE | 1u << FLOW_OPTION_FOLLOW |
          1u << FLOW_OPTION_FROM | 1u << FLOW_OPTION_MODULE },
    { "top", flow_top, 0, 1, "[NAME]", 0 },
    { "lag", flow_lag, 0, 1, "[NAME]", 1u << FLOW_OPTION_STATE },
    { "stop", flow_stop, 1, 1, "NAME", 1u << FLOW_OPTION_CANCEL | 1u << FLOW_OPTION_TIMEOUT },
    { "connectors", flow_connectors, 0, 0, "", 0 },
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

static bool check_options(struct cli *cli, const struct verb *verb, const struct cli_args *args)
{
    for (unsigned i = 0; i < FLOW_OPTION_PROJECT; i++) {
        if (!args->values[i] || verb->options >> i & 1)
            continue;
        cli_report_error(
            cli, "'detent flow %s' does not take --%s", verb->word, option_table[i].name);
        return false;
    }
    return true;
}

static const struct verb *read_verb(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = find_verb(args->operands[0]);
    size_t count = args->operand_count - 1;
    char hint[CLI_CHOICE_TEXT];

    if (!verb) {
        cli_report_error(
            cli, "unknown verb '%s': use run, ls, tap, top, lag, stop or connectors%s",
            args->operands[0], cli_choice_hint(WORDS, args->operands[0], hint));
        return NULL;
    }
    if (count < verb->least)
        cli_report_error(
            cli, "flow %s needs an operand: detent flow %s %s", verb->word, verb->word, verb->form);
    else if (count > verb->most)
        cli_report_error(cli, "flow %s takes no '%s'", verb->word, args->operands[verb->most + 1]);
    else if (check_options(cli, verb, args))
        return verb;
    return NULL;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = read_verb(cli, args);

    return verb ? verb->run(cli, args) : CLI_USAGE;
}

extern const struct cli_command cli_command_flow;
const struct cli_command cli_command_flow = {
    .name = "flow",
    .summary = "run a flow; show and stop the flows of the running daemon",
    .about = "A VERB is run, ls, tap, top, lag, stop or connectors.\n"
             "\n"
             "'flow run FILE' runs a .flow file in this process until its sources end, and\n"
             "prints a summary. Its stages use connectors, or functions of a --module.\n"
             "STAGE.KEY=VALUE replaces a setting of a stage, such as read.path=other.csv.\n"
             "Ctrl-C stops it after the rows in flight were processed, a second one at once. An\n"
             "interrupted run is resumed by the next 'flow run': no row is lost or emitted\n"
             "twice. A completed run begins a new one. 'flow run NAME' orders the running daemon\n"
             "to run a flow of detent.yaml.\n"
             "\n"
             "'flow ls' lists the flows of the project, 'flow lag' the rows that wait between\n"
             "their stages, 'flow top' both, continuously on a terminal. 'flow tap' prints the\n"
             "rows that a stage has emitted, and those that it has rejected because of what is in\n"
             "them, with the reason. STAGE.errors are rejected rows of another kind, such as\n"
             "lines that a source cannot read; system is the life of the flow. ls, tap and lag\n"
             "read the journals themselves if no daemon runs. 'flow stop' stops a flow until an\n"
             "order or a restart of the daemon. 'flow connectors' lists stages without C.\n"
             "\n"
             "'flow run' exits with 0 when the flow has completed, 1 when it has failed, 2 when\n"
             "its definition is invalid, 4 when the last run is of another definition or another\n"
             "process runs it, 130 when it was interrupted.",
    .operand = { .form = "VERB [...]",
                 .least = 1,
                 .most = CLI_OPERANDS_ANY,
                 .suffix = ".flow",
                 .words = WORDS },
    .options = option_table,
    .run = run_command,
};
