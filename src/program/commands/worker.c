/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.c - `detent worker`: puts workers beside those of the file, takes them away, and gives
 * orders to all of them. */
#include <string.h>

#include "base/text.h"
#include "client/worker_print.h"
#include "terminal/input.h"

#define WORDS "put rm restart disable enable"
/* Of a config. */
#define SIZE_MAX_CONFIG (1 << 20)

enum {
    OPTION_KIND,
    OPTION_CONFIG,
    OPTION_VARIABLES,
    OPTION_LOCATION,
    OPTION_RUN_IN,
    OPTION_DISABLED,
    OPTION_PROJECT,
};

static const struct cli_option option_table[] = {
    [OPTION_KIND] = { "kind", 'k', "NAME", NULL, "of put: the kind of worker" },
    [OPTION_CONFIG] = { "config", 'c', "FILE", NULL, "of put: YAML, a template; - is the input" },
    [OPTION_VARIABLES] = { "variables", 0, "YAML", NULL, "of put: such as '{PORT: 502}'" },
    [OPTION_LOCATION] = { "location", 0, "YAML", NULL, "of put: such as '{line: a}'" },
    [OPTION_RUN_IN] = { "run-in", 0, "STATES", NULL,
                        "of put: runs only in these of its parent; several with commas" },
    [OPTION_DISABLED] = { "disabled", 0, NULL, NULL, "of put: made, but rests" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct verb {
    const char *word, *method, *rest, *done;
} verbs[] = {
    { "put", "PUT", "", "is put" },
    { "rm", "DELETE", "", "goes" },
    { "restart", "POST", "/order", "begins anew" },
    { "disable", "POST", "/order", "stops and rests" },
    { "enable", "POST", "/order", "runs again" },
};

/* What is given with a verb that has no use for it; NULL: nothing is. */
static const char *useless_option(const struct cli_args *args)
{
    for (size_t i = OPTION_KIND; i <= OPTION_DISABLED; i++) {
        if (args->values[i])
            return option_table[i].name;
    }
    return NULL;
}

static const struct verb *read_verb(struct cli *cli, const struct cli_args *args)
{
    const size_t count = sizeof verbs / sizeof *verbs;
    const char *useless = useless_option(args);
    size_t i = 0;

    while (i < count && strcmp(verbs[i].word, args->operands[0]) != 0)
        i++;
    if (i == count)
        cli_complain(cli, "there is no 'worker %s': " WORDS, args->operands[0]);
    else if (i == 0 && !args->values[OPTION_KIND])
        cli_complain(cli, "worker put needs --kind: detent worker put ID --kind NAME");
    else if (i > 0 && useless)
        cli_complain(cli, "worker %s has no --%s", args->operands[0], useless);
    else
        return &verbs[i];
    return NULL;
}

static void set(struct cli *cli, json_t *object, const char *key, json_t *value_take)
{
    if (json_object_set_new(object, key, value_take) < 0)
        cli->has_failed = true;
}

static json_t *states_of(const char *text)
{
    json_t *list = json_array();

    while (*text) {
        size_t size = strcspn(text, ",");

        if (size)
            (void)json_array_append_new(list, cli_json_text_n(text, size));
        text += size + (text[size] == ',');
    }
    return list;
}

/* 0 or an exit code. */
static int read_put(struct cli *cli, const struct cli_args *args, json_t *object)
{
    const char *path = args->values[OPTION_CONFIG];
    struct det_error error = { 0 };
    struct cli_text text;
    int r;

    set(cli, object, "kind", cli_json_text(args->values[OPTION_KIND]));
    if (args->values[OPTION_VARIABLES])
        set(cli, object, "variables", cli_json_text(args->values[OPTION_VARIABLES]));
    if (args->values[OPTION_LOCATION])
        set(cli, object, "location", cli_json_text(args->values[OPTION_LOCATION]));
    if (args->values[OPTION_RUN_IN])
        set(cli, object, "run_in", states_of(args->values[OPTION_RUN_IN]));
    if (args->values[OPTION_DISABLED])
        set(cli, object, "disabled", json_true());
    if (!path)
        return CLI_OK;
    r = cli_text_load(cli, path, SIZE_MAX_CONFIG, &text, &error);
    if (r < 0) {
        cli_complain(cli, "%s", error.text);
        return cli_exit_of(r);
    }
    if (text.size)
        set(cli, object, "config", cli_json_text_n(text.data, text.size));
    cli_text_free(cli, &text);
    return CLI_OK;
}

static int ask(struct remote *remote, const struct verb *verb, const char *id, json_t *body_take)
{
    struct det_error error = { 0 };
    struct det_buffer path;
    json_t *answer = NULL;
    int r;

    det_buffer_init(&path, remote->cli->allocator);
    worker_path(&path, id, verb->rest);
    r = daemon_client_call(
        remote->client, verb->method, daemon_path_text(&path), body_take, REMOTE_PATIENCE, &answer,
        &error);
    det_buffer_deinit(&path);
    if (r < 0)
        return remote_complain(remote, r, &error);
    if (remote->cli->is_json)
        cli_json(remote->cli, answer);
    else {
        cli_say(remote->cli, "%s: %s\n", show_text(answer, "id"), verb->done);
        json_decref(answer);
    }
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = read_verb(cli, args);
    struct remote remote;
    json_t *body = NULL;
    int code = CLI_OK;

    if (!verb)
        return CLI_USAGE;
    if (strcmp(verb->method, "DELETE") != 0) {
        body = json_object();
        if (!body)
            return cli_no_memory(cli);
    }
    if (verb == verbs)
        code = read_put(cli, args, body);
    else if (body)
        set(cli, body, "order", json_string(verb->word));
    if (code == CLI_OK && cli->has_failed)
        code = cli_no_memory(cli);
    if (code == CLI_OK)
        code = remote_open(cli, args->values[OPTION_PROJECT], &remote);
    if (code != CLI_OK) {
        json_decref(body);
        return code;
    }
    code = ask(&remote, verb, args->operands[1], body);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_worker;
const struct cli_command cli_command_worker = {
    .name = "worker",
    .summary = "add, remove, restart, disable or enable a worker",
    .about =
        "A VERB is put, rm, restart, disable or enable.\n"
        "\n"
        "'worker put' makes a worker below another one, or changes one that was made so; its id is "
        "the\n"
        "id of that other one, a slash and its own name. It is on record when the command returns, "
        "and\n"
        "there again after a restart. A worker of detent.yaml, or one that its parent wants by "
        "itself,\n"
        "cannot be changed by hand. 'worker rm' takes such a worker away again.\n"
        "\n"
        "'worker restart' lets any worker begin anew, with all that is below it. 'worker disable' "
        "lets it\n"
        "stop and rest until 'worker enable'; with a store, over restarts of detent, too.",
    .operand = { .form = "VERB ID", .least = 2, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
