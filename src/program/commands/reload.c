/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload.c - `detent reload`: makes the running daemon read its detent.yaml again. */
#include "client/remote.h"
#include "daemon/reload_outcome.h"
#include "inspect/print_tasks.h"
#include "terminal/command.h"
#include "terminal/input.h"

/* A reload may close and open machines. */
#define PATIENCE (60 * DET_SECOND)

enum { OPTION_PLAN, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PLAN] = { "plan", 'n', NULL, NULL, "only report what would be done" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_items(struct cli *cli, const struct det_json_value *answer, bool is_plan)
{
    const struct det_json_value *items = det_json_get(answer, "items");

    DET_JSON_EACH (item, items) {
        const char *name = show_text(item, "name");

        cli_print(
            cli, "%s%s%s: %s%s\n", show_text(item, "what"), *name ? " " : "", name,
            show_text(item, "change"),
            det_json_get_bool(item, "needs_restart") ? "; needs a restart" : "");
    }
    if (!det_json_first(items))
        cli_print_error(cli, "No changes.\n");
    else if (is_plan)
        cli_print_error(cli, "Nothing was changed: this is the plan.\n");
}

/* A daemon of an older version answers without `outcome`. */
static enum reload_outcome outcome_of(const struct det_json_value *answer)
{
    if (det_json_get(answer, "outcome"))
        return reload_outcome_of(show_text(answer, "outcome"));
    if (det_json_get_bool(answer, "is_right"))
        return RELOAD_DONE;
    return det_json_get_bool(answer, "is_applied") ? RELOAD_PARTIAL : RELOAD_INVALID;
}

static int print_answer(struct cli *cli, const struct det_json_value *answer, bool is_plan)
{
    enum reload_outcome outcome = outcome_of(answer);

    if (cli->is_json) {
        cli_print_value(cli, answer);
    } else if (outcome == RELOAD_DONE) {
        print_items(cli, answer, is_plan);
    } else {
        cli_print_error(cli, "%s", show_text(answer, "text"));
        cli_report_error(cli, "%s", reload_outcome_sentence(outcome));
    }
    return cli_exit_of(reload_outcome_error(outcome));
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    bool is_plan = args->values[OPTION_PLAN] != NULL;
    const struct det_json_value *answer = NULL;
    struct det_json_writer body;
    struct remote remote;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    body = daemon_body(remote.client);
    det_json_bool(&body, "plan", is_plan);
    code = remote_call(&remote, "POST", "/v1/reload", &body, PATIENCE, &answer);
    if (code == CLI_OK)
        code = print_answer(cli, answer, is_plan);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_reload;
const struct cli_command cli_command_reload = {
    .name = "reload",
    .summary = "apply a changed detent.yaml to the running daemon",
    .about = "Reads and checks the file and all that it names first; if they have errors, it\n"
             "reports them and changes nothing. Then added tasks start, removed tasks stop, and\n"
             "changed tasks are restarted with their new settings; slots get their new size;\n"
             "changes of machines, effects and the HTTP API are applied within a fraction of a\n"
             "second. A definition that would strand instances is refused. Changes that need a\n"
             "restart of the daemon are reported. SIGHUP does the same.",
    .operand = { .form = "", .least = 0, .most = 0 },
    .options = option_table,
    .run = run_command,
};
