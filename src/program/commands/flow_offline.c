/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_offline.c - flows that no daemon runs: their journals are opened for reading. A process that
 * runs one (`detent flow run`) is not disturbed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "commands/flow_verbs.h"
#include "config/flow_file.h"
#include "config/project_file.h"
#include "config/socket_place.h"
#include "inspect/flow_log.h"
#include "inspect/flow_rows.h"
#include "inspect/print_tasks.h"
#include "os/os.h"
#include "terminal/args.h"
#include "terminal/input.h"

#define TAP_ROWS  10
#define WAIT_SPAN (200 * DET_MILLISECOND)
#define FLOWS_MAX 1024

/* The last run of a flow. */
struct stored_flow {
    char name[DET_TASK_NAME_MAX + 1];
    char folder[DET_PATH_MAX];
    uint64_t run;
    struct det_journal *journal;
    char stage[DET_JOURNAL_NAME_MAX + 1], reason[DET_ERROR_TEXT_MAX];
    struct det_flow_fact fact; /* the last one about the pipeline; position 0: none */
};

/* Opening. */

/* The folder with the folders of flows. */
static int find_folder(struct cli *cli, const struct cli_args *args, char *target)
{
    const char *project = args->values[FLOW_OPTION_PROJECT];
    char found[DET_PATH_MAX];
    struct det_error error;

    /* Flows of `detent flow run` may be in a folder without a detent.yaml. */
    if (!project)
        project = socket_find(".", found, &error) == 0 ? found : ".";
    if (snprintf(target, DET_PATH_MAX, "%s/" FLOW_STATE_FOLDER, project) < DET_PATH_MAX)
        return CLI_OK;
    cli_report_error(cli, "the path of the project is too long");
    return CLI_USAGE;
}

static int report(struct cli *cli, int r, const struct det_error *error)
{
    cli_report_error(cli, "%s", *error->text ? error->text : det_error_text(r));
    return cli_exit_of(r);
}

/* Reads facts until the last one that is about the pipeline. */
static int read_facts(struct stored_flow *flow, struct det_error *reterr)
{
    struct det_journal_reader_options options = { .one_stream = true };
    int stream = flow_find_stream(flow->journal, "system"), r;
    struct det_journal_reader *reader;
    struct det_flow_fact fact;
    struct det_journal_row row;

    if (stream < 0)
        return 0;
    options.stream = (uint16_t)stream;
    r = det_journal_reader_open(flow->journal, &options, &reader, reterr);
    if (r < 0)
        return r;
    while ((r = det_journal_reader_next(reader, &row, reterr)) > 0) {
        char stage[DET_JOURNAL_NAME_MAX + 1], reason[DET_ERROR_TEXT_MAX];

        if (det_flow_fact_read(&row, stage, reason, &fact, NULL) < 0 || (fact.stage && *fact.stage))
            continue;
        flow->fact = fact;
        flow->fact.position = row.position;
        flow->fact.at = row.at;
        (void)det_text_copy(flow->reason, sizeof flow->reason, fact.reason ? fact.reason : "");
        flow->fact.reason = flow->reason;
    }
    det_journal_reader_close(reader);
    return r;
}

static int open_stored(
    struct cli *cli, const char *folder, const char *name, struct stored_flow *ret)
{
    struct det_error error = { 0 };
    int r;

    memset(ret, 0, sizeof *ret);
    (void)det_text_copy(ret->name, sizeof ret->name, name);
    if (snprintf(ret->folder, sizeof ret->folder, "%s%s%s", folder, *name ? "/" : "", name) >=
        (int)sizeof ret->folder)
        r = det_error_set(&error, DET_ERR_LIMIT, "the path of the flow is too long");
    else
        r = flow_log_last(ret->folder, &ret->run, &error);
    if (r == 0)
        r = flow_log_open(ret->folder, ret->run, cli->allocator, &ret->journal, &error);
    if (r == 0)
        r = read_facts(ret, &error);
    if (r < 0) {
        det_journal_close(ret->journal);
        ret->journal = NULL;
    }
    return r < 0 ? report(cli, r, &error) : CLI_OK;
}

static void close_stored(struct stored_flow *flow)
{
    det_journal_close(flow->journal);
}

/* Lists. */

typedef int each_stored_fn(void *user, struct stored_flow *flow);

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the folders, in order. */
static size_t list_names(const char *folder, struct det_arena *arena, const char **names)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    size_t count = 0;

    if (!listing)
        return 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this listing is ours alone */
    while (count < FLOWS_MAX && (entry = readdir(listing))) {
        if (!config_is_name(entry->d_name))
            continue;
        names[count] = det_arena_copy(arena, entry->d_name);
        if (names[count])
            count++;
    }
    closedir(listing);
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

static int visit_stored(
    struct cli *cli, const char *folder, const char *name, each_stored_fn *each, void *user)
{
    struct stored_flow flow;
    int code = open_stored(cli, folder, name, &flow);

    if (code != CLI_OK)
        return code;
    code = each(user, &flow);
    close_stored(&flow);
    return code;
}

/* The named flow, the one of --state, or all. */
static int each_stored(
    struct cli *cli, const struct cli_args *args, const char *name, each_stored_fn *each,
    void *user)
{
    const char *state = args->values[FLOW_OPTION_STATE], **names;
    char folder[DET_PATH_MAX];
    struct det_arena arena;
    size_t count = 0;
    int code;

    if (state)
        return visit_stored(cli, state, "", each, user);
    code = find_folder(cli, args, folder);
    if (code != CLI_OK || name)
        return code == CLI_OK ? visit_stored(cli, folder, name, each, user) : code;
    det_arena_init(&arena, cli->allocator);
    names = det_arena_array(&arena, FLOWS_MAX, sizeof *names);
    if (names)
        count = list_names(folder, &arena, names);
    else
        code = cli_no_memory(cli);
    for (size_t i = 0; i < count; i++) {
        int one = visit_stored(cli, folder, names[i], each, user);

        code = code == CLI_OK ? one : code;
    }
    det_arena_deinit(&arena);
    return code;
}

/* "open": another process runs it, or was killed. */
static const char *state_of(const struct stored_flow *flow)
{
    enum det_flow_fact_kind kind = flow->fact.kind;

    if (!flow->fact.position)
        return "idle";
    if (kind == DET_FLOW_FACT_FAILED || kind == DET_FLOW_FACT_ABORTED)
        return "failed";
    if (kind == DET_FLOW_FACT_COMPLETED)
        return "completed";
    return kind == DET_FLOW_FACT_CANCELLED ? "stopped" : "open";
}

struct listing {
    struct cli *cli;
    struct table table;
    const struct cli_args *args;
};

static int list_flow(void *user, struct stored_flow *flow)
{
    struct listing *listing = user;
    struct table *table = &listing->table;
    char in[FLOW_COUNT_TEXT], out[FLOW_COUNT_TEXT], at[FLOW_COUNT_TEXT];
    char span[SHOW_SPAN_TEXT];
    det_time now = det_world_now(listing->cli->world, DET_CLOCK_WALL);
    struct det_json_writer json;

    if (listing->cli->is_json) {
        cli_json_begin(listing->cli, &json, NULL);
        det_json_text(&json, "kind", "flow");
        det_json_text(&json, "name", *flow->name ? flow->name : flow->folder);
        det_json_text(&json, "state", state_of(flow));
        det_json_text(&json, "reason", *flow->reason ? flow->reason : NULL);
        det_json_time(&json, "since", flow->fact.at);
        det_json_number(&json, "run", flow->run);
        det_json_number(&json, "rows_in", flow->fact.rows_in);
        det_json_number(&json, "rows_out", flow->fact.rows_out);
        det_json_number(&json, "rejected", flow->fact.errors);
        det_json_number(&json, "position", det_journal_end(flow->journal));
        det_json_text(&json, "folder", flow->folder);
        cli_json_end(listing->cli, &json);
        return CLI_OK;
    }
    table_add(table, CLI_BOLD, "%s", *flow->name ? flow->name : flow->folder);
    table_add(table, CLI_PLAIN, "%s", state_of(flow));
    table_add(table, CLI_FAINT, "%s", flow->fact.at ? show_span(now - flow->fact.at, span) : "");
    table_add(table, CLI_PLAIN, "%llu", (unsigned long long)flow->run);
    table_add(table, CLI_PLAIN, "%s", flow_count_text(flow->fact.rows_in, in));
    table_add(table, CLI_PLAIN, "%s", flow_count_text(flow->fact.rows_out, out));
    table_add(table, CLI_PLAIN, "%s", flow_count_text(det_journal_end(flow->journal), at));
    table_add(table, CLI_PLAIN, "%s", flow->reason);
    return CLI_OK;
}

int flow_offline_list(struct cli *cli, const struct cli_args *args)
{
    static const struct table_column columns[] = {
        { "flow", 0, false }, { "state", 0, false }, { "ago", 3, true },      { "run", 4, true },
        { "in", 0, true },    { "out", 0, true },    { "position", 2, true }, { "why", 0, false },
    };
    struct listing listing = { .cli = cli, .args = args };
    int code;

    table_init(&listing.table, cli, columns, sizeof columns / sizeof *columns);
    code = each_stored(cli, args, NULL, list_flow, &listing);
    if (!cli->is_json)
        table_show(&listing.table, "No flow has run here.\n");
    table_deinit(&listing.table);
    return code;
}

/* Definitions: that of --file, or of the flow in detent.yaml. Without one, values are not shown. */

static const struct config_flow *find_flow(const struct config_file *file, const char *name)
{
    for (size_t i = 0; i < file->config.flow_count; i++) {
        if (strcmp(file->config.flows[i].name, name) == 0)
            return &file->config.flows[i];
    }
    return NULL;
}

static int view_of_project(
    struct cli *cli, const char *folder, const char *name, struct flow_definition **ret)
{
    size_t size = strlen(folder) - strlen("/" FLOW_STATE_FOLDER);
    char path[DET_PATH_MAX + sizeof CONFIG_FILE_NAME], spec[2 * DET_PATH_MAX];
    const struct config_flow *found;
    struct config_flow config;
    struct config_file file;
    int code = CLI_OK;

    (void)snprintf(path, sizeof path, "%.*s/" CONFIG_FILE_NAME, (int)size, folder);
    if (!cli_is_there(path))
        return CLI_OK;
    code = config_project_open(cli, path, false, &file);
    found = code == CLI_OK ? find_flow(&file, name) : NULL;
    if (found) {
        config = *found;
        (void)snprintf(
            spec, sizeof spec, "%.*s/%s", found->file[0] == '/' ? 0 : (int)size, folder,
            found->file);
        config.file = spec[0] == '/' && found->file[0] == '/' ? found->file : spec;
        code = flow_definition_open_for(cli, &config, FLOW_TO_VIEW, ret);
    }
    config_file_close(cli, &file);
    return code;
}

static int find_definition(
    struct cli *cli, const struct cli_args *args, const struct stored_flow *flow,
    struct flow_definition **ret)
{
    const char *file = args->values[FLOW_OPTION_FILE];
    char folder[DET_PATH_MAX];
    int code;

    *ret = NULL;
    if (file)
        return flow_definition_open_for(
            cli, &(struct config_flow){ .name = flow->name, .file = file }, FLOW_TO_VIEW, ret);
    if (args->values[FLOW_OPTION_STATE])
        return CLI_OK;
    code = find_folder(cli, args, folder);
    return code == CLI_OK ? view_of_project(cli, folder, flow->name, ret) : code;
}

/* Lag. */

static uint64_t last_sequence(const struct stored_flow *flow, const char *stage)
{
    int stream = flow_find_stream(flow->journal, stage);
    uint64_t sequence = 0;

    if (stream >= 0)
        (void)det_journal_last(flow->journal, (uint16_t)stream, &sequence, NULL);
    return sequence;
}

/* The number of edges into the same stage before this one: the index of the input. */
static uint32_t input_index(const struct det_flow *spec, size_t edge)
{
    uint32_t index = 0;

    for (size_t i = 0; i < edge; i++)
        index += spec->edges[i].to == spec->edges[edge].to;
    return index;
}

static void list_edge(
    struct listing *listing, const struct stored_flow *flow, const struct det_flow *spec,
    size_t edge)
{
    const char *from = spec->stages[spec->edges[edge].from].name;
    const char *to = spec->stages[spec->edges[edge].to].name;
    uint64_t written = last_sequence(flow, from), read = 0;
    struct det_json_writer json;
    char text[FLOW_COUNT_TEXT];

    (void)flow_read_place(flow->journal, to, input_index(spec, edge), &read);
    if (listing->cli->is_json) {
        cli_json_begin(listing->cli, &json, "edge");
        det_json_text(&json, "flow", flow->name);
        det_json_text(&json, "from", from);
        det_json_text(&json, "to", to);
        det_json_number(&json, "lag", written - read);
        det_json_number(&json, "written", written);
        det_json_number(&json, "read", read);
        cli_json_end(listing->cli, &json);
        return;
    }
    table_add(&listing->table, CLI_BOLD, "%s", flow->name);
    table_add(&listing->table, CLI_PLAIN, "%s", from);
    table_add(&listing->table, CLI_PLAIN, "%s", to);
    table_add(&listing->table, CLI_PLAIN, "%s", flow_count_text(written - read, text));
}

static int list_edges(void *user, struct stored_flow *flow)
{
    struct listing *listing = user;
    struct flow_definition *definition = NULL;
    int code = find_definition(listing->cli, listing->args, flow, &definition);

    if (code != CLI_OK)
        return code;
    if (!definition) {
        cli_report_error(
            listing->cli,
            "%s: its stages are unknown: it is not in detent.yaml; ask the process "
            "that runs it",
            *flow->name ? flow->name : flow->folder);
        return CLI_NOT_FOUND;
    }
    for (size_t i = 0; i < definition->flow->edge_count; i++)
        list_edge(listing, flow, definition->flow, i);
    flow_definition_close(definition);
    return CLI_OK;
}

int flow_offline_lag(struct cli *cli, const struct cli_args *args)
{
    static const struct table_column columns[] = {
        { "flow", 0, false }, { "from", 0, false }, { "to", 0, false }, { "lag", 0, true }
    };
    struct listing listing = { .cli = cli, .args = args };
    int code;

    table_init(&listing.table, cli, columns, sizeof columns / sizeof *columns);
    code = each_stored(
        cli, args, args->operand_count > 1 ? args->operands[1] : NULL, list_edges, &listing);
    if (!cli->is_json)
        table_show(&listing.table, code == CLI_OK ? "No flow has run here.\n" : NULL);
    table_deinit(&listing.table);
    return code;
}

/* Rows. */

struct offline_tap {
    struct cli *cli;
    const struct cli_args *args;
    const char *stream;
    uint64_t from;
    bool has_from;
    struct flow_view view;
    struct det_json_writer json;
};

/* Prints what the API would answer. */
static int print_stored(void *user, struct flow_view *view, const struct det_journal_row *row)
{
    struct offline_tap *tap = user;
    const struct det_json_value *value;
    struct det_error error;
    struct det_arena arena;
    int r;

    det_buffer_clear(&tap->json.text);
    tap->json.needs_comma = false;
    flow_row_write(view, &tap->json, NULL, row);
    r = det_buffer_status(&tap->json.text);
    if (r < 0)
        return r;
    det_arena_init(&arena, tap->cli->allocator);
    r = det_json_read(
        &arena, det_view_of(tap->json.text.data, tap->json.text.size), &value, &error);
    if (r == 0 && tap->cli->is_json)
        cli_print_value(tap->cli, value);
    else if (r == 0)
        flow_print_row(tap->cli, value);
    det_arena_deinit(&arena);
    return r < 0 ? r : cli_is_stopped(tap->cli) ? 1 : 0;
}

struct newest {
    uint64_t position;
    size_t count;
};

static int note_position(void *user, struct flow_view *view, const struct det_journal_row *row)
{
    struct newest *newest = user;

    (void)view;
    newest->position = row->position;
    newest->count++;
    return 0;
}

/* The position before the last TAP_ROWS rows. */
static int find_begin(struct offline_tap *tap, uint64_t *ret, struct det_error *reterr)
{
    const struct flow_rows_query query = { .stream = tap->stream,
                                           .limit = TAP_ROWS,
                                           .is_backward = true };
    struct newest newest = { 0 };
    struct flow_rows_page page;
    int r = flow_rows_read(&tap->view, &query, note_position, &newest, &page, reterr);

    *ret = newest.count ? newest.position - 1 : page.position;
    return r;
}

static int follow_stored(struct offline_tap *tap, uint64_t after, struct det_error *reterr)
{
    int stream = flow_find_stream(tap->view.journal, tap->stream), r;
    struct det_journal_reader_options options = { .from = after + 1,
                                                  .one_stream = true,
                                                  .stream = (uint16_t)stream };
    struct det_journal_reader *reader;
    struct det_journal_row row;

    r = det_journal_reader_open(tap->view.journal, &options, &reader, reterr);
    while (r == 0 && !cli_is_stopped(tap->cli)) {
        while ((r = det_journal_reader_next(reader, &row, reterr)) > 0 &&
               print_stored(tap, &tap->view, &row) == 0)
            ;
        if (r < 0)
            break;
        cli_flush(tap->cli);
        r = det_journal_reader_wait(
            reader, det_world_now(tap->cli->world, DET_CLOCK_MONOTONIC) + WAIT_SPAN);
        r = r == DET_ERR_TIMEOUT ? 0 : r;
    }
    det_journal_reader_close(reader);
    return r < 0 ? r : 0;
}

static int print_rows(struct offline_tap *tap, struct det_error *reterr)
{
    struct flow_rows_query query = { .stream = tap->stream, .limit = SIZE_MAX };
    struct flow_rows_page page;
    int r = 0;

    if (tap->has_from)
        query.after = tap->from ? tap->from - 1 : 0;
    else
        r = find_begin(tap, &query.after, reterr);
    if (r == 0)
        r = flow_rows_read(&tap->view, &query, print_stored, tap, &page, reterr);
    if (r == 0 && tap->args->values[FLOW_OPTION_FOLLOW])
        r = follow_stored(tap, page.next, reterr);
    return r;
}

static int tap_stored(void *user, struct stored_flow *flow)
{
    struct offline_tap *tap = user;
    struct flow_definition *definition = NULL;
    struct det_error error = { 0 };
    int code = find_definition(tap->cli, tap->args, flow, &definition), r;

    if (code != CLI_OK)
        return code;
    r = flow_view_init(
        &tap->view, tap->cli->allocator, definition ? definition->flow : NULL, flow->journal,
        flow->run);
    det_json_writer_init(&tap->json, tap->cli->allocator);
    if (!definition && strcmp(tap->stream, "system") != 0 &&
        flow_find_stream(flow->journal, tap->stream) >= 0)
        cli_print_error(
            tap->cli, "%s: no values are shown: the definition is unknown: add --file\n",
            *flow->name ? flow->name : flow->folder);
    if (r == 0)
        r = print_rows(tap, &error);
    det_json_writer_deinit(&tap->json);
    flow_view_deinit(&tap->view);
    flow_definition_close(definition);
    if (r < 0)
        return report(tap->cli, r, &error);
    return cli_is_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

/* The only flow of the project; "": none or several, which was reported. */
static int find_only(struct cli *cli, const struct cli_args *args, char *target, size_t size)
{
    const char **names;
    char folder[DET_PATH_MAX];
    struct det_arena arena;
    size_t count = 0;
    int code = find_folder(cli, args, folder);

    if (code != CLI_OK)
        return code;
    det_arena_init(&arena, cli->allocator);
    names = det_arena_array(&arena, FLOWS_MAX, sizeof *names);
    if (names)
        count = list_names(folder, &arena, names);
    if (count == 1)
        (void)det_text_copy(target, size, names[0]);
    det_arena_deinit(&arena);
    if (count == 1)
        return CLI_OK;
    if (count == 0)
        cli_report_error(cli, "no flow has run here");
    else
        cli_report_error(
            cli, "more than one flow has run here: detent flow tap NAME %s", args->operands[1]);
    return count ? CLI_USAGE : CLI_NOT_FOUND;
}

int flow_offline_tap(struct cli *cli, const struct cli_args *args)
{
    struct offline_tap tap = { .cli = cli, .args = args };
    const char *from = args->values[FLOW_OPTION_FROM];
    char name[DET_TASK_NAME_MAX + 1] = "";
    int code = CLI_OK;

    tap.stream = args->operands[args->operand_count - 1];
    tap.has_from = from != NULL;
    if (from && !cli_args_number(cli, "from", from, 0, INT64_MAX, &tap.from))
        return CLI_USAGE;
    if (args->operand_count > 2)
        (void)det_text_copy(name, sizeof name, args->operands[1]);
    else if (!args->values[FLOW_OPTION_STATE])
        code = find_only(cli, args, name, sizeof name);
    return code == CLI_OK ? each_stored(cli, args, name, tap_stored, &tap) : code;
}
