/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order.c - sends an order, waits for it if requested, and reports the result. */
#include "client/task_order.h"

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

/* Reports the result for one name: "web: stopping", "back: 3 tasks stopping". */
static void report_result(
    const struct giving *giving, const char *name, const struct det_json_value *done)
{
    const char *word = giving->waits ? giving->order->done : giving->order->doing;
    uint64_t count = det_json_get_number(done, "count");

    if (count == 0 && !giving->waits)
        cli_print_error(giving->remote.cli, "%s: nothing to do\n", name);
    else if (count <= 1)
        cli_print_error(giving->remote.cli, "%s: %s\n", name, word);
    else
        cli_print_error(
            giving->remote.cli, "%s: %llu task%s %s\n", name, (unsigned long long)count,
            det_plural(count), word);
}

static void report_all(const struct giving *giving, const struct det_json_value *done)
{
    uint64_t count = det_json_get_number(done, "count");

    if (giving->waits)
        cli_print_error(giving->remote.cli, "%s\n", giving->order->all_done);
    else
        cli_print_error(
            giving->remote.cli, "%s (%llu task%s)\n", giving->order->all_doing,
            (unsigned long long)count, det_plural(count));
}

static int report_timeout(const struct giving *giving, const char *name)
{
    char text[DET_DURATION_TEXT];

    cli_report_error(
        giving->remote.cli, "%s%snot %s after %s; still in progress", name ? name : "",
        name ? ": " : "", giving->order->done,
        det_format_duration(giving->timeout, text, sizeof text));
    return CLI_TIMEOUT;
}

static int fail(struct giving *giving, const char *name, int code, const struct det_error *error)
{
    if (code == DET_ERR_TIMEOUT && giving->waits)
        return report_timeout(giving, name);
    if (code == DET_ERR_CANCELLED && giving->waits)
        cli_print_error(giving->remote.cli, "The order remains in effect.\n");
    return remote_report_error(&giving->remote, code, error);
}

/* Waits until the tasks, or the daemon, have ended. */
static int wait_for_end(
    struct giving *giving, det_time deadline, const struct det_json_value **done,
    struct det_error *reterr)
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
    struct det_json_writer body = daemon_body(giving->remote.client);
    struct det_buffer path;
    int r;

    det_buffer_init(&path, giving->remote.cli->allocator);
    det_buffer_append_text(&path, name ? "/v1/tasks/" : "/v1/");
    if (name) {
        daemon_path_add(&path, name);
        det_buffer_append_char(&path, '/');
    }
    det_buffer_append_text(&path, order->verb);
    det_json_bool(&body, "wait", giving->waits);
    if (name && order->purges)
        det_json_bool(&body, "purge", true);
    r = daemon_client_ask(
        giving->remote.client, "POST", daemon_path_text(&path), &body, NULL, reterr);
    det_buffer_deinit(&path);
    return r;
}

/* For --json. */
static void print_done(struct cli *cli, const struct det_json_value *done)
{
    struct det_json_writer json;

    if (done) {
        cli_print_value(cli, done);
        return;
    }
    cli_json_begin(cli, &json, NULL);
    det_json_text(&json, "kind", "done");
    cli_json_end(cli, &json);
}

static int give(struct giving *giving, const char *name)
{
    det_time deadline = !giving->waits                 ? remote_within(REMOTE_PATIENCE)
                        : giving->timeout == DET_NEVER ? DET_NEVER
                                                       : remote_within(giving->timeout);
    const struct det_json_value *done = NULL;
    struct det_error error = { 0 };
    int r;

    r = ask_order(giving, name, &error);
    if (r == 0 && giving->waits && !name)
        r = wait_for_end(giving, deadline, &done, &error);
    else if (r == 0)
        r = daemon_client_next(giving->remote.client, deadline, &done, &error);
    if (r < 0)
        return fail(giving, name, r, &error);
    if (giving->remote.cli->is_json)
        print_done(giving->remote.cli, done);
    else if (name)
        report_result(giving, name, done);
    else
        report_all(giving, done);
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
        cli_report_error(cli, "--timeout needs --wait");
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
        /* A late answer could be taken for that of the next request. */
        if (code == CLI_TIMEOUT || code == CLI_FAILURE)
            break;
    }
    remote_close(&giving.remote);
    return worst;
}
