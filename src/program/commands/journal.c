/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal.c - `detent journal`: reads a journal, also while another process writes it. */
#include <detent/journal.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "terminal/args.h"
#include "terminal/input.h"
#include "terminal/table.h"
#include "json/writer.h"

enum { OPTION_STREAM, OPTION_FROM, OPTION_UNTIL, OPTION_FOLLOW, OPTION_ACCEPT_LOSS };

static const struct cli_option option_table[] = {
    [OPTION_STREAM] = { "stream", 's', "NAME", NULL, "only rows of this stream" },
    [OPTION_FROM] = { "from", 0, "POSITION", NULL, "begin with this row" },
    [OPTION_UNTIL] = { "until", 0, "POSITION", NULL, "end with this row" },
    [OPTION_FOLLOW] = { "follow", 'f', NULL, NULL, "cat: go on as rows are appended" },
    [OPTION_ACCEPT_LOSS] = { "accept-loss", 0, NULL, NULL, "go on after damaged rows" },
    { NULL, 0, NULL, NULL, NULL },
};

#define WORDS "cat verify export top"

/* A run of the command. */
struct view {
    struct cli *cli;
    const struct cli_args *args;
    struct det_journal *journal;
    struct det_journal_reader *reader;
    struct det_buffer text; /* of a row */
    struct det_json_writer json;
    uint64_t rows, bytes;
};

static int fail(struct view *view, int code, const struct det_error *error)
{
    cli_report_error(view->cli, "%s", error->text[0] ? error->text : det_error_text(code));
    return cli_exit_of(code);
}

static const char *row_text(struct view *view, const struct det_journal_row *row)
{
    det_buffer_clear(&view->text);
    det_escape(&view->text, row->data, row->size);
    return det_buffer_text(&view->text);
}

static void print_row(struct view *view, const struct det_journal_row *row)
{
    char at[DET_TIME_TEXT];

    cli_print_in(view->cli, CLI_BOLD, "%" PRIu64, row->position);
    cli_print_in(view->cli, CLI_FAINT, "  %s  ", det_format_time(row->at, at, sizeof at));
    cli_print(
        view->cli, "%s %" PRIu64 "  ", det_journal_stream_name(view->journal, row->stream),
        row->sequence);
    if (row->kind)
        cli_print(view->cli, "kind %u  ", row->kind);
    if (row->parent)
        cli_print(view->cli, "from %" PRIu64 "  ", row->parent);
    cli_print(view->cli, "%s\n", row_text(view, row));
}

/* Data that is text is "text"; other data is "hex". */
static void write_row(struct view *view, const struct det_journal_row *row)
{
    struct det_json_writer *json = &view->json;
    const unsigned char *data = row->data;

    det_json_writer_clear(json);
    det_json_open(json, NULL, '{');
    det_json_text(json, "type", "row");
    det_json_number(json, "position", row->position);
    det_json_text(json, "stream", det_journal_stream_name(view->journal, row->stream));
    det_json_number(json, "sequence", row->sequence);
    det_json_time(json, "at", row->at);
    det_json_number(json, "kind", row->kind);
    det_json_number(json, "parent", row->parent);
    det_json_bool(json, "is_cause_unknown", row->is_cause_unknown);
    det_json_number(json, "correlation", row->correlation);
    det_json_time(json, "event_time", row->event_time);
    det_json_bool(json, "is_group_end", row->is_group_end);
    if (det_utf8_check(row->data, row->size) == row->size) {
        det_json_bytes(json, "text", row->data, row->size);
    } else {
        det_buffer_clear(&view->text);
        for (uint32_t i = 0; i < row->size; i++)
            det_buffer_format(&view->text, "%02x", data[i]);
        det_json_text(json, "hex", det_buffer_text(&view->text));
    }
    det_json_close(json, '}');
    cli_print_line(view->cli, json);
}

static bool read_position(const struct view *view, int option, uint64_t *ret)
{
    const char *text = view->args->values[option];

    *ret = 0;
    return !text || cli_args_number(view->cli, option_table[option].name, text, 1, UINT64_MAX, ret);
}

static int open_reader(struct view *view)
{
    struct det_journal_reader_options options = { .from = 0 };
    const char *stream = view->args->values[OPTION_STREAM];
    struct det_error error = { 0 };
    int r = 0;

    if (!read_position(view, OPTION_FROM, &options.from) ||
        !read_position(view, OPTION_UNTIL, &options.until))
        return CLI_USAGE;
    options.one_stream = stream != NULL;
    if (stream)
        r = det_journal_stream(view->journal, stream, &options.stream, &error);
    if (r == 0)
        r = det_journal_reader_open(view->journal, &options, &view->reader, &error);
    return r < 0 ? fail(view, r, &error) : CLI_OK;
}

/* Gives rows to `visit`; waits for more with --follow. */
static int each_row(struct view *view, void (*visit)(struct view *, const struct det_journal_row *))
{
    bool follows = view->args->values[OPTION_FOLLOW] != NULL;
    struct det_journal_row row;
    struct det_error error = { 0 };
    int r;

    for (;;) {
        r = det_journal_reader_next(view->reader, &row, &error);
        if (r == 1) {
            view->rows++;
            view->bytes += row.size;
            visit(view, &row);
            if (view->cli->out_error)
                return CLI_OK;
            continue;
        }
        if (r < 0)
            return fail(view, r, &error);
        if (!follows)
            return CLI_OK;
        cli_flush(view->cli);
        r = det_journal_reader_wait(view->reader, DET_NEVER);
        if (r == DET_ERR_RANGE)
            return CLI_OK; /* up to --until */
        if (r < 0)
            return fail(view, r, &error);
    }
}

static int cat_rows(struct view *view)
{
    int code = open_reader(view);

    return code != CLI_OK ? code : each_row(view, view->cli->is_json ? write_row : print_row);
}

static int export_rows(struct view *view)
{
    int code = open_reader(view);

    return code != CLI_OK ? code : each_row(view, write_row);
}

static void count_row(struct view *view, const struct det_journal_row *row)
{
    (void)row;
    if (view->rows % 100000 == 0)
        cli_progress(view->cli, "rows", view->rows, det_journal_end(view->journal));
}

static int verify_rows(struct view *view)
{
    struct det_journal_counts counts = det_journal_counts(view->journal);
    struct det_json_writer json;
    int code = open_reader(view);

    if (code == CLI_OK)
        code = each_row(view, count_row);
    cli_progress_end(view->cli);
    if (view->cli->is_json) {
        cli_json_begin(view->cli, &json, "journal");
        det_json_bool(&json, "is_whole", code == CLI_OK);
        det_json_number(&json, "rows", view->rows);
        det_json_number(&json, "bytes", view->bytes);
        det_json_number(&json, "first", det_journal_begin(view->journal));
        det_json_number(&json, "last", det_journal_end(view->journal));
        det_json_number(&json, "segments", counts.segments);
        cli_json_end(view->cli, &json);
    } else if (code == CLI_OK) {
        cli_print(
            view->cli,
            "%" PRIu64 " row%s, position %" PRIu64 " to %" PRIu64 ", in %" PRIu64
            " segment%s: every checksum is right\n",
            view->rows, det_plural(view->rows), det_journal_begin(view->journal),
            det_journal_end(view->journal), counts.segments, det_plural(counts.segments));
    }
    return code;
}

static void write_stream(struct view *view, uint16_t stream, uint64_t sequence, uint64_t position)
{
    struct det_json_writer json;

    cli_json_begin(view->cli, &json, "stream");
    det_json_text(&json, "stream", det_journal_stream_name(view->journal, stream));
    det_json_number(&json, "sequence", sequence);
    det_json_number(&json, "position", position);
    cli_json_end(view->cli, &json);
}

static int list_streams(struct view *view)
{
    static const struct table_column columns[] = { { "stream", 0, false },
                                                   { "rows", 0, true },
                                                   { "last position", 0, true } };
    struct table table;
    uint64_t sequence, position;

    table_init(&table, view->cli, columns, sizeof columns / sizeof *columns);
    for (uint16_t i = 0; det_journal_stream_name(view->journal, i); i++) {
        (void)det_journal_last(view->journal, i, &sequence, &position);
        if (view->cli->is_json) {
            write_stream(view, i, sequence, position);
            continue;
        }
        table_add(&table, CLI_BOLD, "%s", det_journal_stream_name(view->journal, i));
        table_add(&table, CLI_PLAIN, "%" PRIu64, sequence);
        table_add(&table, CLI_PLAIN, "%" PRIu64, position);
    }
    if (!view->cli->is_json)
        table_show(&table, NULL);
    table_deinit(&table);
    return CLI_OK;
}

static const struct verb {
    const char *word;
    int (*run)(struct view *view);
} verbs[] = {
    { "cat", cat_rows },
    { "verify", verify_rows },
    { "export", export_rows },
    { "top", list_streams },
};

static const struct verb *find_verb(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].word, word) == 0)
            return &verbs[i];
    }
    return NULL;
}

static int open_journal(struct view *view, const char *place)
{
    struct det_journal_options options = {
        .world = view->cli->world,
        .allocator = view->cli->allocator,
        .is_read_only = true,
        .accepts_loss = view->args->values[OPTION_ACCEPT_LOSS] != NULL,
    };
    struct det_error error = { 0 };
    struct det_buffer url;
    int r;

    if (strncmp(place, "file:", 5) == 0)
        place += 5;
    det_buffer_init(&url, view->cli->allocator);
    det_buffer_format(&url, "file:%s", place);
    r = det_buffer_status(&url);
    if (r == 0)
        r = det_journal_open(det_buffer_text(&url), &options, &view->journal, &error);
    det_buffer_deinit(&url);
    if (r == DET_ERR_NOT_FOUND) {
        cli_report_error(
            view->cli, "%s is no journal: %s", place,
            cli_is_there(place) ? error.text : "there is no such folder");
        return cli_exit_of(r);
    }
    return r < 0 ? fail(view, r, &error) : CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct verb *verb = find_verb(args->operands[0]);
    struct view view = { .cli = cli, .args = args };
    char hint[CLI_CHOICE_TEXT];
    int code;

    if (!verb) {
        cli_report_error(
            cli, "unknown verb '%s': use cat, verify, export or top%s", args->operands[0],
            cli_choice_hint(WORDS, args->operands[0], hint));
        return CLI_USAGE;
    }
    if (args->values[OPTION_FOLLOW] && verb->run != cat_rows) {
        cli_report_error(cli, "'detent journal %s' does not take --follow", verb->word);
        return CLI_USAGE;
    }
    det_buffer_init(&view.text, cli->allocator);
    det_json_writer_init(&view.json, cli->allocator);
    code = open_journal(&view, args->operands[1]);
    if (code == CLI_OK)
        code = verb->run(&view);
    if (code == CLI_OK && (det_buffer_status(&view.text) < 0))
        code = cli_no_memory(cli);
    det_journal_reader_close(view.reader);
    det_journal_close(view.journal);
    det_json_writer_deinit(&view.json);
    det_buffer_deinit(&view.text);
    return code;
}

extern const struct cli_command cli_command_journal;
const struct cli_command cli_command_journal = {
    .name = "journal",
    .summary = "read a journal: rows, streams, checksums",
    .about =
        "A VERB is cat, verify, export or top; FOLDER is that of the journal. Another process\n"
        "may write it meanwhile; only acknowledged rows are shown.\n"
        "\n"
        "'journal cat' prints rows: position, time of the append, stream and sequence, and\n"
        "the data; other bytes are escaped. With --follow it goes on.\n"
        "'journal export' prints each row as an object of JSON, with all that is known of\n"
        "it; data that is not text is in hexadecimal. 'journal verify' reads all rows and\n"
        "checks every checksum; it exits with 1 and the file and offset of the first\n"
        "damage. 'journal top' lists the streams with their last rows.\n"
        "\n"
        "With --accept-loss the other rows of a damaged journal are read.",
    .operand = { .form = "VERB FOLDER", .least = 2, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
