/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload.c - `detent reload`: asks a detent that runs to read its file again. */
#include "daemon/reload.h"

#include "client/remote.h"
#include "inspect/print_tasks.h"
#include "terminal/command.h"

/* Machines are closed and opened again in it. */
#define PATIENCE (60 * DET_SECOND)

enum { OPTION_PLAN, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PLAN] = { "plan", 'n', NULL, NULL, "only say what would be done" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_items(struct cli *cli, const json_t *answer, bool is_plan)
{
    const json_t *items = json_object_get(answer, "items");
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        const char *name = show_text(item, "name");
        bool needs_restart = json_is_true(json_object_get(item, "needs_restart"));

        cli_print(
            cli, "%s%s%s: %s%s\n", show_text(item, "what"), *name ? " " : "", name,
            show_text(item, "change"), needs_restart ? "; needs a restart" : "");
    }
    if (json_array_size(items) == 0)
        cli_say(cli, "Nothing has changed.\n");
    else if (is_plan)
        cli_say(cli, "Nothing was done: this is the plan.\n");
}

static int print_answer(struct cli *cli, json_t *answer, bool is_plan)
{
    bool is_right = json_is_true(json_object_get(answer, "is_right"));

    if (cli->is_json)
        cli_json(cli, json_incref(answer));
    else if (is_right)
        print_items(cli, answer, is_plan);
    else
        cli_say(cli, "%s", show_text(answer, "text"));
    if (!is_right && !cli->is_json)
        cli_complain(
            cli, json_is_true(json_object_get(answer, "is_applied"))
                     ? "not all of it was taken over"
                     : "nothing has changed: the file is not right, or not safe to go on with");
    return is_right ? CLI_OK : CLI_USAGE;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    bool is_plan = args->values[OPTION_PLAN] != NULL;
    struct det_error error = { 0 };
    struct remote remote;
    json_t *answer = NULL;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote), r;

    if (code != CLI_OK)
        return code;
    r = daemon_client_call(
        remote.client, "POST", "/v1/reload", json_pack("{s:b}", "plan", is_plan), PATIENCE, &answer,
        &error);
    code = r < 0 ? remote_complain(&remote, r, &error) : print_answer(cli, answer, is_plan);
    json_decref(answer);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_reload;
const struct cli_command cli_command_reload = {
    .name = "reload",
    .summary = "let a detent that is up read its file again",
    .about =
        "The file and all that it names are read and checked first: what is wrong with it is told, "
        "and\n"
        "nothing changes. Then tasks that were added begin, those that were removed stop, those "
        "that\n"
        "were changed are stopped and begin anew by their new lines; slots get their new size; "
        "machines,\n"
        "effects and the settings of the HTTP API are taken over within a fraction of a second. A\n"
        "definition that would strand instances is refused. What needs a restart is told. SIGHUP "
        "does\n"
        "the same.",
    .operand = { .form = "", .least = 0, .most = 0 },
    .options = option_table,
    .run = run_command,
};
