/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.c - `detent worker`: creates, changes and removes manual workers, and restarts, disables
 * or enables any worker. */
#include <string.h>

#include "base/text.h"
#include "client/worker_print.h"
#include "terminal/input.h"

#define WORDS "put rm restart disable enable"
/* Maximum size of a config. */
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
    [OPTION_KIND] = { "kind", 'k', "NAME", NULL, "with put: kind of the worker" },
    [OPTION_CONFIG] = { "config", 'c', "FILE", NULL,
                        "with put: config, a YAML template; - is standard input" },
    [OPTION_VARIABLES] = { "variables", 0, "YAML", NULL,
                           "with put: variables such as '{PORT: 502}'" },
    [OPTION_LOCATION] = { "location", 0, "YAML", NULL, "with put: location such as '{line: a}'" },
    [OPTION_RUN_IN] = { "run-in", 0, "STATES", NULL,
                        "with put: run only in these states of the parent, separated by commas" },
    [OPTION_DISABLED] = { "disabled", 0, NULL, NULL, "with put: create it disabled" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct verb {
    const char *word, *method, *rest, *done;
} verbs[] = {
    { "put", "PUT", "", "is stored" },
    { "rm", "DELETE", "", "is being removed" },
    { "restart", "POST", "/order", "is restarting" },
    { "disable", "POST", "/order", "is disabled" },
    { "enable", "POST", "/order", "is enabled" },
};

/* Returns an option that the verb does not have, or NULL. */
static const char *unsupported_option(const struct cli_args *args)
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
    const char *unsupported = unsupported_option(args);
    size_t i = 0;

    while (i < count && strcmp(verbs[i].word, args->operands[0]) != 0)
        i++;
    if (i == count)
        cli_report_error(cli, "unknown verb '%s': use one of " WORDS, args->operands[0]);
    else if (i == 0 && !args->values[OPTION_KIND])
        cli_report_error(cli, "worker put needs --kind: detent worker put ID --kind NAME");
    else if (i > 0 && unsupported)
        cli_report_error(
            cli, "'detent worker %s' does not take --%s", args->operands[0], unsupported);
    else
        return &verbs[i];
    return NULL;
}

static void add_states(struct det_json_writer *body, const char *text)
{
    det_json_open(body, "run_in", '[');
    while (*text) {
        size_t size = strcspn(text, ",");

        if (size)
            det_json_bytes(body, NULL, text, size);
        text += size + (text[size] == ',');
    }
    det_json_close(body, ']');
}

static void add_put(
    struct det_json_writer *body, const struct cli_args *args, const struct cli_text *config)
{
    static const struct {
        int option;
        const char *key;
    } texts[] = { { OPTION_KIND, "kind" },
                  { OPTION_VARIABLES, "variables" },
                  { OPTION_LOCATION, "location" } };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (args->values[texts[i].option])
            det_json_text(body, texts[i].key, args->values[texts[i].option]);
    }
    if (args->values[OPTION_RUN_IN])
        add_states(body, args->values[OPTION_RUN_IN]);
    if (args->values[OPTION_DISABLED])
        det_json_bool(body, "disabled", true);
    if (config->size)
        det_json_bytes(body, "config", config->data, config->size);
}

static int ask(
    struct remote *remote, const struct verb *verb, const struct cli_args *args,
    const struct cli_text *config)
{
    bool has_body = strcmp(verb->method, "DELETE") != 0;
    struct det_json_writer body = daemon_body(remote->client);
    const struct det_json_value *answer = NULL;
    struct det_buffer path;
    int code;

    if (verb == verbs)
        add_put(&body, args, config);
    else
        det_json_text(&body, "order", verb->word);
    det_buffer_init(&path, remote->cli->allocator);
    worker_path(&path, args->operands[1], verb->rest);
    code = remote_call(
        remote, verb->method, daemon_path_text(&path), has_body ? &body : NULL, REMOTE_PATIENCE,
        &answer);
    det_buffer_deinit(&path);
    if (!has_body)
        det_json_writer_deinit(&body);
    if (code == CLI_OK && remote->cli->is_json)
        cli_print_value(remote->cli, answer);
    else if (code == CLI_OK)
        cli_print_error(remote->cli, "%s: %s\n", show_text(answer, "id"), verb->done);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = read_verb(cli, args);
    const char *path = args->values[OPTION_CONFIG];
    struct cli_text config = { 0 };
    struct remote remote;
    int code;

    if (!verb)
        return CLI_USAGE;
    code = path ? cli_text_read(cli, path, SIZE_MAX_CONFIG, &config) : CLI_OK;
    if (code != CLI_OK)
        return code;
    code = remote_open(cli, args->values[OPTION_PROJECT], &remote);
    if (code == CLI_OK) {
        code = ask(&remote, verb, args, &config);
        remote_close(&remote);
    }
    if (path)
        cli_text_free(cli, &config);
    return code;
}

extern const struct cli_command cli_command_worker;
const struct cli_command cli_command_worker = {
    .name = "worker",
    .summary = "add, remove, restart, disable or enable a worker",
    .about = "A VERB is put, rm, restart, disable or enable.\n"
             "\n"
             "'worker put' creates a worker below another one, or changes one created in this\n"
             "way. Its id is the id of the parent, a slash and its own name. It is stored when\n"
             "the command returns, and survives restarts. A worker of detent.yaml, or one that\n"
             "its parent requests, cannot be changed in this way. 'worker rm' removes such a\n"
             "worker.\n"
             "\n"
             "'worker restart' restarts any worker with all of its descendants. 'worker disable'\n"
             "stops a worker until 'worker enable'; with a store, also across restarts of\n"
             "detent.",
    .operand = { .form = "VERB ID", .least = 2, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
