/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve.c - `detent serve`: `up` as a daemon. */
#include "daemon/host.h"

#include "api/api.h"
#include "daemon/daemon.h"
#include "terminal/command.h"

enum { OPTION_FILE, OPTION_LISTEN, OPTION_LOG, OPTION_USER, OPTION_ROOT, OPTION_JOURNAL };

static const struct cli_option option_table[] = {
    [OPTION_FILE] = { "file", 'f', "FILE", NULL,
                      "configuration file (default detent.yaml of the folder)" },
    [OPTION_LISTEN] = SERVE_OPTION_LISTEN,
    [OPTION_LOG] = { "log", 0, "FORMAT", "text json",
                     "log format (default json if the output is not a terminal)" },
    [OPTION_USER] = { "user", 'u', "NAME", NULL, "become this user once the sockets are open" },
    [OPTION_ROOT] = { "allow-root", 0, NULL, NULL, "permit running as root, with all tasks" },
    [OPTION_JOURNAL] = { "journal", 0, "FILE", NULL, "append every event to a journal" },
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const char *const none[] = { NULL };
    struct up_options options = {
        .front = &api_front,
        .path = args->values[OPTION_FILE],
        .names = none,
        .journal = args->values[OPTION_JOURNAL],
        .has_times = true,
        .listen = args->values[OPTION_LISTEN],
        .log = args->values[OPTION_LOG],
        .user = args->values[OPTION_USER],
        .is_serving = true,
        .may_be_root = args->values[OPTION_ROOT] != NULL,
    };
    const char *folder = args->operand_count ? args->operands[0] : NULL;
    struct det_error error = { 0 };

    if (folder && serve_go(folder, &error) < 0) {
        cli_report_error(cli, "%s", error.text);
        return CLI_NOT_FOUND;
    }
    return up_run(cli, &options);
}

extern const struct cli_command cli_command_serve;
const struct cli_command cli_command_serve = {
    .name = "serve",
    .summary = "run a project as a daemon",
    .about = "Runs 'detent up' without a user: it continues until SIGTERM even when nothing is\n"
             "left to run, logs JSON if its output is not a terminal, and refuses what is\n"
             "unsafe: running as root without --user, a folder that everybody may write to, an\n"
             "address that other machines can reach without TLS and a token, a key or token file\n"
             "that others can read.\n"
             "\n"
             "Under systemd it reports when it is ready, stops and reloads, feeds the watchdog\n"
             "and accepts inherited sockets. SIGTERM stops all tasks, and a second one kills the\n"
             "rest.",
    .operand = { .form = "[FOLDER]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
