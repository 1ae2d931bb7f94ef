/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order.c - gives an order, waits for it if that is wanted, and tells what came of it. */
#include "client/task_order.h"

#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "inspect/print_tasks.h"
#include "terminal/args.h"

/* One run of such a command. */
struct giving {
    struct remote remote;
    const struct order *order;
    bool waits;
    det_time timeout; /* DET_NEVER: none */
};

/* About one name: "web: stopping", "back: 3 tasks stopping". */
static void tell(const struct giving *giving, const char *name, const json_t *done)
{
    const char *word = giving->waits ? giving->order->done : giving->order->doing;
    json_int_t count = show_number(done, "count");

    if (count == 0 && !giving->waits)
        cli_say(giving->remote.cli, "%s: nothing to do\n", name);
    else if (count <= 1)
        cli_say(giving->remote.cli, "%s: %s\n", name, word);
    else
        cli_say(
            giving->remote.cli, "%s: %lld task%s %s\n", name, (long long)count,
            det_plural((uint64_t)count), word);
}

static void tell_all(const struct giving *giving, const json_t *done)
{
    json_int_t count = show_number(done, "count");

    if (giving->waits)
        cli_say(giving->remote.cli, "%s\n", giving->order->all_done);
    else
        cli_say(
            giving->remote.cli, "%s (%lld task%s)\n", giving->order->all_doing, (long long)count,
            det_plural((uint64_t)count));
}

/* Asks for the nearest name, unless the other side has named it, or what is missing is something
 * else. */
static int complain_of_name(struct giving *giving, const char *name, const struct det_error *error)
{
    char hint[REMOTE_HINT_TEXT] = "";
    json_t *all = NULL;

    if (!strstr(error->text, "did you mean") && remote_tree(&giving->remote, &all) == CLI_OK &&
        !remote_find(all, name))
        remote_hint(giving->remote.cli, all, name, hint);
    cli_complain(giving->remote.cli, "%s%s", error->text, hint);
    json_decref(all);
    return CLI_NOT_FOUND;
}

static int complain_of_time(const struct giving *giving, const char *name)
{
    char text[DET_DURATION_TEXT];

    cli_complain(
        giving->remote.cli, "%s%snot %s after %s; it goes on", name ? name : "", name ? ": " : "",
        giving->order->done, det_format_duration(giving->timeout, text, sizeof text));
    return CLI_TIMEOUT;
}

static int fail(struct giving *giving, const char *name, int code, const struct det_error *error)
{
    if (code == DET_ERR_NOT_FOUND && name)
        return complain_of_name(giving, name, error);
    if (code == DET_ERR_TIMEOUT && giving->waits)
        return complain_of_time(giving, name);
    if (code == DET_ERR_CANCELLED && giving->waits)
        cli_say(giving->remote.cli, "The order stands.\n");
    return remote_complain(&giving->remote, code, error);
}

/* What was ended is gone when this is over. */
static int wait_for_end(
    struct giving *giving, det_time deadline, json_t **done, struct det_error *reterr)
{
    int r;

    r = daemon_client_next(giving->remote.client, deadline, done, reterr);
    if (r < 0 && r != DET_ERR_CLOSED)
        return r;
    return daemon_client_wait_gone(giving->remote.client, deadline, reterr);
}

static int ask_order(struct giving *giving, const char *name, struct det_error *reterr)
{
    const struct order *order = giving->order;
    json_t *body = json_pack("{s:b}", "wait", giving->waits);
    struct det_buffer path;
    int r;

    det_buffer_init(&path, giving->remote.cli->allocator);
    det_buffer_append_text(&path, name ? "/v1/tasks/" : "/v1/");
    if (name) {
        daemon_path_add(&path, name);
        det_buffer_append_char(&path, '/');
    }
    det_buffer_append_text(&path, order->verb);
    if (!body || (name && order->purges && json_object_set_new(body, "purge", json_true()) < 0)) {
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
        json_decref(body);
    } else {
        r = daemon_client_ask(giving->remote.client, "POST", daemon_path_text(&path), body, reterr);
    }
    det_buffer_deinit(&path);
    return r;
}

static int give(struct giving *giving, const char *name)
{
    det_time deadline = !giving->waits                 ? remote_within(REMOTE_PATIENCE)
                        : giving->timeout == DET_NEVER ? DET_NEVER
                                                       : remote_within(giving->timeout);
    struct det_error error = { 0 };
    json_t *done = NULL;
    int r;

    r = ask_order(giving, name, &error);
    if (r == 0 && giving->waits && !name)
        r = wait_for_end(giving, deadline, &done, &error);
    else if (r == 0)
        r = daemon_client_next(giving->remote.client, deadline, &done, &error);
    if (r < 0) {
        json_decref(done);
        return fail(giving, name, r, &error);
    }
    if (giving->remote.cli->is_json)
        cli_json(giving->remote.cli, done ? json_incref(done) : json_pack("{s:s}", "kind", "done"));
    else if (name)
        tell(giving, name, done);
    else
        tell_all(giving, done);
    json_decref(done);
    return CLI_OK;
}

static bool read_options(struct giving *giving, struct cli *cli, const struct cli_args *args)
{
    const char *timeout = args->values[ORDER_OPTION_TIMEOUT];

    giving->waits = args->values[ORDER_OPTION_WAIT] != NULL;
    giving->timeout = DET_NEVER;
    if (!timeout)
        return true;
    if (!giving->waits) {
        cli_complain(cli, "--timeout is for --wait");
        return false;
    }
    return cli_args_span(cli, "timeout", timeout, 0, &giving->timeout);
}

int order_run(struct cli *cli, const struct cli_args *args, const struct order *order)
{
    struct giving giving = { .order = order };
    int code, worst = CLI_OK;

    if (!read_options(&giving, cli, args))
        return CLI_USAGE;
    code = remote_open(cli, args->values[ORDER_OPTION_PROJECT], &giving.remote);
    if (code != CLI_OK)
        return code;
    if (args->operand_count == 0)
        worst = give(&giving, NULL);
    for (size_t i = 0; i < args->operand_count && !cli_is_stopped(cli); i++) {
        code = give(&giving, args->operands[i]);
        worst = worst == CLI_OK ? code : worst;
        /* An answer that did not come might come to the next question. */
        if (code == CLI_TIMEOUT || code == CLI_FAILURE)
            break;
    }
    remote_close(&giving.remote);
    return worst;
}
