/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up.c - `detent up`: runs the tasks, workers and machines of a detent.yaml. */
#include "api/api.h"
#include "daemon/daemon.h"
#include "terminal/command.h"

enum { OPTION_FILE, OPTION_TIMES, OPTION_QUIET, OPTION_JOURNAL, OPTION_LISTEN };

static const struct cli_option option_table[] = {
    [OPTION_FILE] = { "file", 'f', "FILE", NULL,
                      "configuration file (default detent.yaml here or in a parent folder)" },
    [OPTION_TIMES] = { "times", 't', NULL, NULL, "print the time of each line" },
    [OPTION_QUIET] = { "quiet", 'q', NULL, NULL, "print only failures and the output of tasks" },
    [OPTION_JOURNAL] = { "journal", 0, "FILE", NULL, "append every event to a journal" },
    [OPTION_LISTEN] = SERVE_OPTION_LISTEN,
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct up_options options = {
        .front = &api_front,
        .path = args->values[OPTION_FILE],
        .names = (const char *const *)args->operands,
        .name_count = args->operand_count,
        .journal = args->values[OPTION_JOURNAL],
        .has_times = args->values[OPTION_TIMES] != NULL,
        .is_quiet = args->values[OPTION_QUIET] != NULL,
        .listen = args->values[OPTION_LISTEN],
    };
    struct det_error error = { 0 };
    bool is_folder = false;

    if (!options.path && options.name_count &&
        serve_enter(options.names[0], &is_folder, &error) < 0) {
        cli_report_error(cli, "%s", error.text);
        return CLI_NOT_FOUND;
    }
    if (is_folder) {
        options.names++;
        options.name_count--;
    }
    return up_run(cli, &options);
}

extern const struct cli_command cli_command_up;
const struct cli_command cli_command_up = {
    .name = "up",
    .summary = "run the tasks, workers and machines of a detent.yaml",
    .about = "Checks the file, starts its tasks, and prints their output, each line with the\n"
             "name of its task: | for output, ! for the error stream, = for messages of detent.\n"
             "With names, it starts only these tasks, or the tasks of these groups, and their\n"
             "dependencies. If the first name is a folder, it is the project; without a\n"
             "detent.yaml, its specs are served.\n"
             "\n"
             "Ctrl-C stops all tasks, dependents first; a second one kills the rest. detent up\n"
             "exits when no task is left, or when all that are left wait for failed ones. While\n"
             "it runs, the commands tree, tasks, slots, submit, restart, drain, stop and logs\n"
             "control it from another terminal.\n"
             "\n"
             "Exits with 0 when all tasks have completed or were stopped, 1 when one has failed\n"
             "permanently, 5 when one had to be killed at the end, 4 when it already runs.\n"
             "\n"
             "Workers of the file are supervised until it is stopped; the commands workers,\n"
             "worker, desired and observed show and control them.\n"
             "\n"
             "Machines of the file with 'effects' are served from its store: their timers fire\n"
             "and their effects run until it is stopped, and start, send, cancel and retry use\n"
             "it. Exits with 74 when the store fails.",
    .operand = { .form = "[FOLDER] [NAME...]", .least = 0, .most = CLI_OPERANDS_ANY },
    .options = option_table,
    .run = run_command,
};
