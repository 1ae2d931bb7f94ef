/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_remote.c - the flows of the running daemon: lists, rows, orders. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/remote.h"
#include "commands/flow_verbs.h"
#include "connectors/connectors.h"
#include "inspect/print_tasks.h"
#include "os/os.h"
#include "terminal/args.h"

#define TOP_EVERY  DET_SECOND
#define TAP_ROWS   10
#define STOP_AFTER (24 * DET_HOUR) /* patience of a stop without --timeout */

/* Returns true if no daemon runs, so that the journals can be read instead. */
static bool is_offline(struct cli *cli, const struct cli_args *args)
{
    const char *project = args->values[FLOW_OPTION_PROJECT];
    struct daemon_client *client = NULL;
    struct det_error error = { 0 };
    char found[DET_PATH_MAX];
    int r = 0;

    if (args->values[FLOW_OPTION_STATE])
        return true;
    if (!project && socket_find(".", found, &error) < 0)
        return true;
    r = daemon_client_open(project ? project : found, cli->allocator, &client, &error);
    daemon_client_close(client);
    return r == DET_ERR_NOT_FOUND;
}

static int open_remote(struct cli *cli, const struct cli_args *args, struct remote *ret)
{
    return remote_open(cli, args->values[FLOW_OPTION_PROJECT], ret);
}

/* Lists. */

static struct show_state show_flow_state(const struct det_json_value *flow)
{
    static const struct show_state styles[] = {
        { "running", CLI_GREEN },    { "source_completed", CLI_GREEN },
        { "completed", CLI_GREEN },  { "failed", CLI_RED },
        { "backing_off", CLI_RED },  { "abort_requested", CLI_RED },
        { "draining", CLI_YELLOW },  { "stopped", CLI_YELLOW },
        { "cancelled", CLI_YELLOW },
    };
    const char *word = show_text(flow, "state");

    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        if (strcmp(styles[i].word, word) == 0)
            return (struct show_state){ word, styles[i].style };
    }
    return (struct show_state){ word, CLI_PLAIN };
}

static double number_of(const struct det_json_value *object, const char *key)
{
    const struct det_json_value *value = det_json_get(object, key);
    double number = 0;

    if (det_json_is(value, DET_JSON_NUMBER) && sscanf(value->text.data, "%lf", &number) != 1)
        number = 0;
    return number;
}

static void add_count(struct table *table, const struct det_json_value *object, const char *key)
{
    char text[FLOW_COUNT_TEXT];

    table_add(table, CLI_PLAIN, "%s", flow_count_text(det_json_get_number(object, key), text));
}

static void add_count_unless_zero(
    struct table *table, const struct det_json_value *object, const char *key)
{
    if (det_json_get_number(object, key))
        add_count(table, object, key);
    else
        table_add(table, CLI_PLAIN, "%s", "");
}

static void add_rate(struct table *table, const struct det_json_value *object)
{
    double rate = number_of(object, "rate");
    char text[FLOW_COUNT_TEXT];

    table_add(table, CLI_PLAIN, "%s", rate > 0 ? flow_rate_text(rate, text) : "");
}

static void add_flow(struct table *table, const struct det_json_value *flow, det_time now)
{
    table_add(table, CLI_BOLD, "%s", show_text(flow, "name"));
    show_state_cell(table, show_flow_state(flow));
    show_age_cell(table, flow, now);
    add_count_unless_zero(table, flow, "run");
    add_count(table, flow, "rows_in");
    add_count(table, flow, "rows_out");
    add_count_unless_zero(table, flow, "rejected");
    add_rate(table, flow);
    add_count_unless_zero(table, flow, "lag");
    table_add(table, CLI_PLAIN, "%s", show_text(flow, "reason"));
}

static const struct table_column flow_columns[] = {
    { "flow", 0, false }, { "state", 0, false }, { "for", 4, true },      { "run", 5, true },
    { "in", 1, true },    { "out", 0, true },    { "rejected", 2, true }, { "rate", 1, true },
    { "lag", 2, true },   { "why", 0, false },
};

int flow_list(struct cli *cli, const struct cli_args *args)
{
    static const struct remote_table form = {
        flow_columns, sizeof flow_columns / sizeof *flow_columns, add_flow,
        "The project has no flows: detent.yaml has no 'flows'.\n"
    };
    struct remote remote;
    int code;

    if (is_offline(cli, args))
        return flow_offline_list(cli, args);
    code = open_remote(cli, args, &remote);
    if (code != CLI_OK)
        return code;
    code = remote_print_table(&remote, "/v1/flows", &form);
    remote_close(&remote);
    return code;
}

/* One flow with its stages and edges. */

/* Appends "/v1/flows/NAME" and the rest. */
static void append_path(struct det_buffer *path, const char *name, const char *rest)
{
    det_buffer_append_text(path, "/v1/flows/");
    daemon_path_add(path, name);
    det_buffer_append_text(path, rest);
}

/* Calls `each` with every flow, or with the named one. */
static int each_flow(struct remote *remote, const char *name, remote_each_fn *each, void *user)
{
    struct remote_list flows = { 0 };
    struct det_buffer path;
    int code = name ? CLI_OK : remote_list(remote, "/v1/flows", &flows);

    for (size_t i = 0; code == CLI_OK && i < (name ? 1 : flows.count); i++) {
        det_buffer_init(&path, remote->cli->allocator);
        append_path(&path, name ? name : show_text(flows.items[i], "name"), "");
        code = remote_each(remote, daemon_path_text(&path), each, user);
        det_buffer_deinit(&path);
    }
    remote_list_free(&flows);
    return code;
}

static const struct table_column lag_columns[] = {
    { "flow", 0, false },  { "from", 0, false },  { "to", 0, false },  { "lag", 0, true },
    { "credit", 1, true }, { "window", 2, true }, { "rate", 3, true }, { "kind", 4, false },
};

static void print_edge(
    struct cli *cli, const struct det_json_value *flow, const struct det_json_value *edge)
{
    static const char *const counts[] = { "lag", "credit", "window", "written", "read" };
    struct det_json_writer json;

    cli_json_begin(cli, &json, "edge");
    det_json_text(&json, "flow", show_text(flow, "name"));
    det_json_text(&json, "from", show_text(edge, "from"));
    det_json_text(&json, "to", show_text(edge, "to"));
    det_json_text(&json, "kind", show_text(edge, "kind"));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        det_json_number(&json, counts[i], det_json_get_number(edge, counts[i]));
    cli_json_end(cli, &json);
}

static void add_edge(
    struct table *table, const struct det_json_value *flow, const struct det_json_value *edge)
{
    const char *kind = show_text(edge, "kind");

    table_add(table, CLI_BOLD, "%s", show_text(flow, "name"));
    table_add(table, CLI_PLAIN, "%s", show_text(edge, "from"));
    table_add(table, CLI_PLAIN, "%s", show_text(edge, "to"));
    add_count(table, edge, "lag");
    add_count(table, edge, "credit");
    add_count(table, edge, "window");
    add_rate(table, edge);
    table_add(table, CLI_PLAIN, "%s", strcmp(kind, "data") == 0 ? "" : kind);
}

static int add_edges(void *user, const struct det_json_value *flow)
{
    struct table *table = user;

    DET_JSON_EACH (edge, det_json_get(flow, "edges")) {
        if (table->cli->is_json)
            print_edge(table->cli, flow, edge);
        else
            add_edge(table, flow, edge);
    }
    return CLI_OK;
}

int flow_lag(struct cli *cli, const struct cli_args *args)
{
    struct remote remote;
    struct table table;
    int code;

    if (is_offline(cli, args))
        return flow_offline_lag(cli, args);
    code = open_remote(cli, args, &remote);
    if (code != CLI_OK)
        return code;
    table_init(&table, cli, lag_columns, sizeof lag_columns / sizeof *lag_columns);
    code = each_flow(&remote, args->operands[1], add_edges, &table);
    if (code == CLI_OK && !cli->is_json)
        table_show(&table, "There are no flows.\n");
    table_deinit(&table);
    remote_close(&remote);
    return code;
}

/* The stages, continuously. */

static const struct table_column stage_columns[] = {
    { "stage", 0, false }, { "kind", 4, false },   { "connector", 3, false }, { "state", 1, false },
    { "in", 1, true },     { "out", 0, true },     { "rejected", 2, true },   { "rate", 0, true },
    { "lag", 0, true },    { "blocked", 5, true }, { "why", 0, false },
};

struct top {
    struct remote remote;
    const char *name;
    size_t lines; /* of the last table on the terminal */
    size_t printed;
};

/* Rows that wait for the stage. */
static uint64_t lag_of(const struct det_json_value *flow, const char *stage)
{
    uint64_t lag = 0;

    DET_JSON_EACH (edge, det_json_get(flow, "edges")) {
        if (strcmp(show_text(edge, "to"), stage) == 0)
            lag += det_json_get_number(edge, "lag");
    }
    return lag;
}

static void add_stage(
    struct table *table, const struct det_json_value *flow, const struct det_json_value *stage)
{
    uint64_t lag = lag_of(flow, show_text(stage, "name"));
    char text[FLOW_COUNT_TEXT];

    table_add(table, CLI_BOLD, "%s", show_text(stage, "name"));
    table_add(table, CLI_PLAIN, "%s", show_text(stage, "kind"));
    table_add(table, CLI_PLAIN, "%s", show_text(stage, "connector"));
    show_state_cell(table, show_flow_state(stage));
    add_count_unless_zero(table, stage, "in");
    add_count_unless_zero(table, stage, "out");
    add_count_unless_zero(table, stage, "rejected");
    add_rate(table, stage);
    table_add(table, CLI_PLAIN, "%s", lag ? flow_count_text(lag, text) : "");
    add_count_unless_zero(table, stage, "blocked");
    table_add(table, CLI_PLAIN, "%s", show_text(stage, "reason"));
}

static void print_head(struct cli *cli, const struct det_json_value *flow)
{
    const struct det_json_value *journal = det_json_get(flow, "journal");
    char in[FLOW_COUNT_TEXT], out[FLOW_COUNT_TEXT], rate[FLOW_COUNT_TEXT], at[FLOW_COUNT_TEXT];
    struct show_state state = show_flow_state(flow);

    cli_print_in(cli, CLI_BOLD, "%s", show_text(flow, "name"));
    cli_print_in(cli, state.style, "  %s", state.word);
    cli_print(
        cli, "  %s in  %s out  %s", flow_count_text(det_json_get_number(flow, "rows_in"), in),
        flow_count_text(det_json_get_number(flow, "rows_out"), out),
        flow_rate_text(number_of(flow, "rate"), rate));
    if (det_json_is(journal, DET_JSON_OBJECT))
        cli_print(
            cli, "  run %llu  position %s", (unsigned long long)det_json_get_number(flow, "run"),
            flow_count_text(det_json_get_number(journal, "position"), at));
    cli_print(cli, "%s%s\n", *show_text(flow, "reason") ? "  " : "", show_text(flow, "reason"));
}

static int print_top(void *user, const struct det_json_value *flow)
{
    struct top *top = user;
    struct cli *cli = top->remote.cli;
    struct table table;

    if (cli->is_json) {
        cli_print_value(cli, flow);
        return CLI_OK;
    }
    if (top->printed) {
        cli_print(cli, "\n");
        top->lines++;
    }
    print_head(cli, flow);
    table_init(&table, cli, stage_columns, sizeof stage_columns / sizeof *stage_columns);
    DET_JSON_EACH (stage, det_json_get(flow, "stages"))
        add_stage(&table, flow, stage);
    top->lines += 1 + table_print(&table, 0);
    top->printed++;
    table_deinit(&table);
    return CLI_OK;
}

static void wipe_top(struct top *top)
{
    char text[64];
    int size;

    if (top->lines == 0)
        return;
    size = snprintf(text, sizeof text, "\033[%zuA\033[J", top->lines);
    cli_write(top->remote.cli, text, (size_t)size);
    top->lines = 0;
}

static int show_top(struct top *top)
{
    int code;

    cli_measure(top->remote.cli);
    wipe_top(top);
    top->printed = 0;
    code = each_flow(&top->remote, top->name, print_top, top);
    if (code == CLI_OK && !top->printed && !top->remote.cli->is_json)
        cli_print_error(top->remote.cli, "There are no flows.\n");
    cli_flush(top->remote.cli);
    return code;
}

/* Ctrl-C ends it. */
static void pause_top(void)
{
    (void)poll(NULL, 0, (int)(TOP_EVERY / DET_MILLISECOND));
}

int flow_top(struct cli *cli, const struct cli_args *args)
{
    struct top top = { .name = args->operands[1] };
    int code = open_remote(cli, args, &top.remote);

    if (code != CLI_OK)
        return code;
    code = show_top(&top);
    while (code == CLI_OK && cli->out_is_terminal && !cli->is_json && !cli_is_stopped(cli)) {
        pause_top();
        if (!cli_is_stopped(cli))
            code = show_top(&top);
    }
    remote_close(&top.remote);
    return cli_is_interrupted() ? CLI_INTERRUPTED : code;
}

/* Orders. */

static int report_order(struct cli *cli, const struct det_json_value *flow)
{
    if (cli->is_json)
        cli_print_value(cli, flow);
    else
        cli_print_error(
            cli, "%s: %s%s%s\n", show_text(flow, "name"), show_text(flow, "state"),
            *show_text(flow, "reason") ? ": " : "", show_text(flow, "reason"));
    return CLI_OK;
}

static int give_order(
    struct cli *cli, const struct cli_args *args, const char *order, bool waits, det_time timeout)
{
    const struct det_json_value *flow = NULL;
    struct det_json_writer body;
    struct det_buffer path;
    struct remote remote;
    char rest[16];
    int code = open_remote(cli, args, &remote);

    if (code != CLI_OK)
        return code;
    body = daemon_body(remote.client);
    if (waits)
        det_json_bool(&body, "wait", true);
    if (timeout)
        det_json_signed(&body, "timeout_ns", timeout);
    snprintf(rest, sizeof rest, "/%s", order);
    det_buffer_init(&path, cli->allocator);
    append_path(&path, args->operands[1], rest);
    code = remote_call(
        &remote, "POST", daemon_path_text(&path), &body, waits ? STOP_AFTER : REMOTE_PATIENCE,
        &flow);
    det_buffer_deinit(&path);
    if (code == CLI_OK)
        code = report_order(cli, flow);
    remote_close(&remote);
    return code;
}

int flow_order_run(struct cli *cli, const struct cli_args *args)
{
    static const unsigned local[] = { FLOW_OPTION_FRESH, FLOW_OPTION_DURABILITY, FLOW_OPTION_STATE,
                                      FLOW_OPTION_MODULE };

    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if (!args->values[local[i]])
            continue;
        cli_report_error(
            cli, "'%s' is not a .flow file: a flow of detent.yaml runs with its own settings",
            args->operands[1]);
        return CLI_USAGE;
    }
    if (args->operand_count > 2) {
        cli_report_error(cli, "flow run takes settings of stages only with a .flow file");
        return CLI_USAGE;
    }
    return give_order(cli, args, "run", false, 0);
}

int flow_stop(struct cli *cli, const struct cli_args *args)
{
    bool is_cancel = args->values[FLOW_OPTION_CANCEL] != NULL;
    const char *text = args->values[FLOW_OPTION_TIMEOUT];
    det_time timeout = 0;

    if (text && is_cancel) {
        cli_report_error(cli, "--timeout does not go with --cancel, which stops at once");
        return CLI_USAGE;
    }
    if (text && !cli_args_span(cli, "timeout", text, 1, &timeout))
        return CLI_USAGE;
    return give_order(cli, args, is_cancel ? "cancel" : "drain", true, timeout);
}

/* Rows. */

struct tap {
    struct remote remote;
    const char *name, *stream;
    uint64_t run, position; /* after the rows that were printed */
};

static int print_row(void *user, const struct det_json_value *row)
{
    struct tap *tap = user;

    /* "hello", "run" and "lost" are events without a kind. */
    if (!det_json_get(row, "kind"))
        return CLI_OK;
    if (tap->remote.cli->is_json)
        cli_print_value(tap->remote.cli, row);
    else
        flow_print_row(tap->remote.cli, row);
    cli_flush(tap->remote.cli);
    return CLI_OK;
}

static void append_rows_path(const struct tap *tap, struct det_buffer *path, const char *query)
{
    append_path(path, tap->name, "/rows?stream=");
    daemon_path_add(path, tap->stream);
    det_buffer_append_text(path, query);
}

static void note_place(struct tap *tap)
{
    const struct det_json_value *page = daemon_client_page(tap->remote.client);

    if (!page)
        return;
    tap->run = det_json_get_number(page, "run");
    tap->position = det_json_get_number(page, "position");
}

/* The answer has the newest first. */
static int print_last(struct tap *tap)
{
    struct remote_list rows;
    struct det_buffer path;
    size_t shown;
    int code;

    det_buffer_init(&path, tap->remote.cli->allocator);
    append_rows_path(tap, &path, "&backward=true");
    code = remote_list(&tap->remote, daemon_path_text(&path), &rows);
    if (code == CLI_OK)
        note_place(tap);
    shown = rows.count < TAP_ROWS ? rows.count : TAP_ROWS;
    for (size_t i = shown; code == CLI_OK && i > 0; i--)
        code = print_row(tap, rows.items[i - 1]);
    remote_list_free(&rows);
    det_buffer_deinit(&path);
    return code;
}

static int print_from(struct tap *tap, uint64_t from)
{
    struct det_buffer path;
    int code;

    det_buffer_init(&path, tap->remote.cli->allocator);
    append_rows_path(tap, &path, "&limit=1000");
    det_buffer_format(&path, "&after=%llu", (unsigned long long)(from ? from - 1 : 0));
    code = remote_each(&tap->remote, daemon_path_text(&path), print_row, tap);
    if (code == CLI_OK)
        note_place(tap);
    det_buffer_deinit(&path);
    return code;
}

static int follow_rows(struct tap *tap)
{
    struct remote_stream stream = { .each = print_row, .deadline = DET_NEVER, .user = tap };
    struct det_buffer path;
    int code;

    det_buffer_init(&path, tap->remote.cli->allocator);
    append_path(&path, tap->name, "/stream?stream=");
    daemon_path_add(&path, tap->stream);
    if (tap->run)
        det_buffer_format(
            &path, "&after=%llu~%llu", (unsigned long long)tap->run,
            (unsigned long long)tap->position);
    stream.path = daemon_path_text(&path);
    tap->remote.follows = true;
    code = remote_follow(&tap->remote, &stream);
    det_buffer_deinit(&path);
    return code;
}

/* The only flow of the project, for `tap STAGE`. */
static int find_only(struct tap *tap, struct det_arena *arena)
{
    struct remote_list flows;
    int code = remote_list(&tap->remote, "/v1/flows", &flows);

    if (code != CLI_OK)
        return code;
    if (flows.count == 1)
        tap->name = det_arena_copy(arena, show_text(flows.items[0], "name"));
    else {
        cli_report_error(
            tap->remote.cli, "the project has %zu flow%s: detent flow tap NAME %s", flows.count,
            det_plural(flows.count), tap->stream);
        code = CLI_USAGE;
    }
    remote_list_free(&flows);
    return code == CLI_OK && !tap->name ? cli_no_memory(tap->remote.cli) : code;
}

static int tap_stream(struct tap *tap, const struct cli_args *args, struct det_arena *arena)
{
    const char *text = args->values[FLOW_OPTION_FROM];
    uint64_t from = 0;
    int code = CLI_OK;

    if (text && !cli_args_number(tap->remote.cli, "from", text, 0, INT64_MAX, &from))
        return CLI_USAGE;
    if (!tap->name)
        code = find_only(tap, arena);
    if (code == CLI_OK)
        code = text ? print_from(tap, from) : print_last(tap);
    if (code == CLI_OK && args->values[FLOW_OPTION_FOLLOW])
        code = follow_rows(tap);
    return code;
}

int flow_tap(struct cli *cli, const struct cli_args *args)
{
    struct tap tap = { .stream = args->operands[args->operand_count - 1] };
    struct det_arena arena;
    int code;

    if (args->operand_count > 2)
        tap.name = args->operands[1];
    if (is_offline(cli, args))
        return flow_offline_tap(cli, args);
    if (args->values[FLOW_OPTION_FILE] || args->values[FLOW_OPTION_MODULE]) {
        cli_report_error(cli, "the running daemon knows the file of the flow: leave out --file");
        return CLI_USAGE;
    }
    code = open_remote(cli, args, &tap.remote);
    if (code != CLI_OK)
        return code;
    det_arena_init(&arena, cli->allocator);
    code = tap_stream(&tap, args, &arena);
    det_arena_deinit(&arena);
    remote_close(&tap.remote);
    return code;
}

/* The connectors of the program. */

static void write_kinds(const struct det_connector *connector, char *target, size_t size)
{
    size_t used = 0;

    *target = '\0';
    for (unsigned kind = 0; kind < DET_STAGE_KINDS; kind++) {
        if (connector->kinds >> kind & 1)
            used += (size_t)snprintf(
                target + used, size - used, "%s%s", used ? ", " : "",
                det_stage_kind_text((enum det_stage_kind)kind));
    }
}

int flow_connectors(struct cli *cli, const struct cli_args *args)
{
    static const struct table_column columns[] = { { "connector", 0, false },
                                                   { "kind", 0, false },
                                                   { "description", 0, false } };
    struct det_json_writer json;
    struct table table;
    char kinds[80];

    (void)args;
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    for (const struct det_connector *const *list = det_connectors_all(); *list; list++) {
        write_kinds(*list, kinds, sizeof kinds);
        if (cli->is_json) {
            cli_json_begin(cli, &json, "connector");
            det_json_text(&json, "name", (*list)->name);
            det_json_text(&json, "kind", kinds);
            det_json_text(&json, "about", (*list)->about);
            cli_json_end(cli, &json);
            continue;
        }
        table_add(&table, CLI_BOLD, "%s", (*list)->name);
        table_add(&table, CLI_PLAIN, "%s", kinds);
        table_add(&table, CLI_PLAIN, "%s", (*list)->about);
    }
    if (!cli->is_json)
        table_show(&table, NULL);
    table_deinit(&table);
    return CLI_OK;
}
