/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* report.c - prints findings: place, sentence, source line, underline, hint. */
#include "terminal/report.h"

#include <stdarg.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "terminal/input.h"
#include "json/writer.h"

/* Part of a long source line that is shown before the place, and in total, unless the terminal is
 * narrower. */
#define BEFORE_MAX 60
#define LINE_MAX   160
/* Width of the line number before the source. */
#define MARGIN 8
#define DOTS   3
/* No terminal is too narrow for this. */
#define LINE_MIN 24

struct severity_check {
    const char *name;
    enum cli_style style;
};

static struct severity_check look_of(enum det_severity severity)
{
    switch (severity) {
    case DET_SEVERITY_INFO:
        return (struct severity_check){ "info", CLI_BLUE };
    case DET_SEVERITY_WARNING:
        return (struct severity_check){ "warning", CLI_YELLOW };
    case DET_SEVERITY_BROKEN:
        break;
    }
    return (struct severity_check){ "error", CLI_RED };
}

/* Moves a cut to the start of a character. */
static size_t at_character(const char *text, size_t offset)
{
    det_assert(offset <= strlen(text));
    while (offset > 0 && ((unsigned char)text[offset] & 0xC0) == 0x80)
        offset--;
    return offset;
}

/* Prints spaces as wide as the text, so that the underline matches; tabs stay tabs. */
static void print_gap(struct cli *cli, const char *text, size_t size)
{
    for (size_t from = 0, to; from < size; from = to + 1) {
        const char *tab = memchr(text + from, '\t', size - from);

        to = tab ? (size_t)(tab - text) : size;
        cli_print(cli, "%*s%s", (int)cli_width(text + from, to - from), "", tab ? "\t" : "");
    }
}

/* The part of a source line that is shown. */
struct excerpt {
    size_t from, to;
};

static struct excerpt excerpt_of(const struct cli *cli, const char *source, size_t column)
{
    size_t size = strlen(source), room = LINE_MAX, before = BEFORE_MAX;
    struct excerpt part = { 0, size };

    if (cli->out_columns)
        room = cli->out_columns > MARGIN + LINE_MIN ? cli->out_columns - MARGIN : LINE_MIN;
    if (size <= room)
        return part;
    room -= (size_t)2 * DOTS;
    before = before < room / 2 ? before : room / 2;
    /* Do not replace fewer characters than the dots take. */
    if (column > before + DOTS)
        part.from = at_character(source, column - before);
    /* At the end of the line there is more room before the place. */
    if (size - part.from < room)
        part.from = at_character(source, size - room);
    if (size - part.from > room)
        part.to = at_character(source, part.from + room);
    return part;
}

/* Returns the width of the underline; of truncated text only the visible part. */
static size_t underline_width(const struct det_place *place, size_t column, size_t to)
{
    size_t width = place->width ? place->width : 1;

    if (column >= to)
        return 1;
    return cli_width(place->source + column, width < to - column ? width : to - column);
}

static void print_source(struct cli *cli, const struct det_place *place, enum cli_style style)
{
    static const char waves[] = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";
    size_t size = strlen(place->source);
    size_t column = place->column ? place->column - 1 : 0;
    struct excerpt part;
    size_t wide;

    column = column < size ? column : size;
    part = excerpt_of(cli, place->source, column);
    det_assert(part.from <= column && part.from <= part.to && part.to <= size);
    cli_print_in(cli, CLI_FAINT, "%5u | ", place->line);
    cli_print(
        cli, "%s%.*s%s\n", part.from ? "..." : "", (int)(part.to - part.from),
        place->source + part.from, part.to < size ? "..." : "");
    cli_print_in(cli, CLI_FAINT, "      | ");
    cli_print(cli, "%s", part.from ? "   " : "");
    print_gap(cli, place->source + part.from, column - part.from);
    wide = underline_width(place, column, part.to);
    wide = wide > sizeof waves ? sizeof waves : wide;
    cli_print_in(cli, style, "^%.*s\n", wide > 1 ? (int)wide - 1 : 0, waves);
}

static void print_place(struct cli *cli, const struct det_place *place)
{
    if (place->file && place->line)
        cli_print_in(cli, CLI_BOLD, "%s:%u:%u: ", place->file, place->line, place->column);
    else if (place->file)
        cli_print_in(cli, CLI_BOLD, "%s: ", place->file);
}

/* Returns the note for the other place of a finding. */
static const char *note_of(const struct det_diagnostic *finding)
{
    enum det_rule rule = finding->rule;

    if (rule == DET_RULE_OVERRIDES)
        return "this is replaced";
    if (rule == DET_RULE_OVERRIDE_ELSE)
        return "this ELSE comes before it";
    if (rule != DET_RULE_UNKNOWN_STATE && rule != DET_RULE_UNKNOWN_EVENT &&
        rule != DET_RULE_UNKNOWN_EFFECT && rule != DET_RULE_UNKNOWN_TIMER)
        return "first said here";
    /* Swapped words are in one row, a list and its use are not. */
    return finding->other.line == finding->place.line ? "and this" : "the list is used here";
}

static void print_finding(struct cli *cli, const struct det_diagnostic *finding)
{
    struct severity_check look = look_of(finding->severity);

    print_place(cli, &finding->place);
    cli_print_in(cli, look.style, "%s: ", look.name);
    cli_print(cli, "%s ", finding->text);
    cli_print_in(cli, CLI_FAINT, "[%s]\n", det_rule_id(finding->rule));
    if (finding->place.source)
        print_source(cli, &finding->place, look.style);
    if (finding->other.line) {
        print_place(cli, &finding->other);
        cli_print_in(cli, CLI_BLUE, "note: ");
        cli_print(cli, "%s\n", note_of(finding));
        if (finding->other.source)
            print_source(cli, &finding->other, CLI_BLUE);
    }
    if (finding->hint)
        cli_print(cli, "      = hint: %s\n", finding->hint);
}

/* Prints each line of a text after a margin. */
static void print_lines(struct cli *cli, const char *label, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");

        cli_print(cli, "      %s %.*s\n", label, (int)length, text);
        text += length + (text[length] == '\n');
        label = "        ";
    }
}

static void print_remark(struct cli *cli, const struct cli_remark *remark)
{
    struct severity_check look = look_of(remark->severity);

    print_place(cli, &remark->place);
    cli_print_in(cli, look.style, "%s: ", look.name);
    cli_print(cli, "%s ", remark->text);
    cli_print_in(cli, CLI_FAINT, "[%s]\n", remark->rule);
    if (remark->place.source)
        print_source(cli, &remark->place, look.style);
    print_lines(cli, "= why:  ", remark->why);
    print_lines(cli, "= right:", remark->example);
}

static void put_place(struct det_json_writer *json, const char *key, const struct det_place *place)
{
    if (!place->line && !place->file) {
        det_json_null(json, key);
        return;
    }
    det_json_open(json, key, '{');
    det_json_text(json, "file", place->file);
    det_json_number(json, "line", place->line);
    det_json_number(json, "column", place->column);
    det_json_number(json, "width", place->width);
    det_json_close(json, '}');
}

static void print_json(struct cli *cli, const struct det_diagnostic *finding)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, "finding");
    det_json_text(&json, "severity", look_of(finding->severity).name);
    det_json_text(&json, "rule", det_rule_id(finding->rule));
    put_place(&json, "place", &finding->place);
    put_place(&json, "other", finding->other.line ? &finding->other : &(struct det_place){ 0 });
    det_json_text(&json, "text", finding->text);
    det_json_text(&json, "hint", finding->hint);
    cli_json_end(cli, &json);
}

void cli_report_remark(struct cli *cli, const struct cli_remark *remark)
{
    struct det_json_writer json;

    if (!cli->is_json) {
        print_remark(cli, remark);
        return;
    }
    cli_json_begin(cli, &json, "remark");
    det_json_text(&json, "severity", look_of(remark->severity).name);
    det_json_text(&json, "rule", remark->rule);
    put_place(&json, "place", &remark->place);
    det_json_text(&json, "text", remark->text);
    det_json_text(&json, "why", remark->why);
    det_json_text(&json, "right", remark->example);
    cli_json_end(cli, &json);
}

void cli_report(struct cli *cli, const char *path, const struct det_diagnostic *finding)
{
    struct det_diagnostic placed = *finding;

    if (!placed.place.file)
        placed.place = (struct det_place){ .file = path };
    if (cli->is_json)
        print_json(cli, &placed);
    else
        print_finding(cli, &placed);
}

void cli_report_broken(struct cli *cli, const char *path, const struct det_diagnostics *findings)
{
    struct cli talk = cli_aside(cli);

    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].severity == DET_SEVERITY_BROKEN)
            cli_report(cli->is_json ? cli : &talk, path, &findings->items[i]);
    }
    cli_aside_end(cli, &talk);
}

/* The line of the problem as a string; "" when the text is shorter. */
static char *copy_line(struct cli *cli, const struct cli_problem *problem)
{
    const char *at = problem->text, *end = problem->text + problem->size, *newline;

    for (uint32_t line = 1; line < problem->line && at < end; line++) {
        newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    newline = memchr(at, '\n', (size_t)(end - at));
    return det_string_copy_n(cli->allocator, at, (size_t)((newline ? newline : end) - at));
}

/* The column in bytes of a column in characters. */
static uint32_t byte_column(const char *line, uint32_t column)
{
    uint32_t bytes = 0;

    for (uint32_t seen = 0; line[bytes]; bytes++) {
        seen += ((unsigned char)line[bytes] & 0xC0) != 0x80;
        if (seen == column)
            break;
    }
    return bytes + 1;
}

static void print_problem(struct cli *cli, const struct cli_problem *problem, const char *text)
{
    struct cli talk = cli_aside(cli);
    struct det_place place = { problem->path, problem->line, problem->column, 1, NULL };
    char *line = copy_line(cli, problem);

    print_place(&talk, &place);
    cli_print_in(&talk, CLI_RED, "error: ");
    cli_print(&talk, "%s\n", text);
    place.source = line;
    if (line && problem->column_is_characters)
        place.column = byte_column(line, problem->column);
    if (line && *line)
        print_source(&talk, &place, CLI_RED);
    det_free_string(cli->allocator, line);
    cli_aside_end(cli, &talk);
    cli->has_failed = cli->has_failed || !line;
}

static void print_problem_json(struct cli *cli, const struct cli_problem *problem, const char *text)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, "problem");
    det_json_text(&json, "file", problem->path);
    det_json_number(&json, "line", problem->line);
    det_json_number(&json, "column", problem->column);
    det_json_text(&json, "text", text);
    cli_json_end(cli, &json);
}

void cli_report_problem(struct cli *cli, const struct cli_problem *problem, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (cli->is_json)
        print_problem_json(cli, problem, text);
    else
        print_problem(cli, problem, text);
}

void cli_report_file(struct cli *cli, const char *path, const char *state, bool is_talk)
{
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, "file");
        det_json_text(&json, "file", path);
        det_json_text(&json, "state", state);
        cli_json_end(cli, &json);
    } else if (is_talk) {
        cli_print_error(cli, "%s: %s\n", path, state);
    } else {
        cli_print(cli, "%s\n", path);
    }
}

int cli_report_text(struct cli *cli, const char *path, const char *data, size_t size)
{
    bool is_output = !path || strcmp(path, "-") == 0;
    struct det_json_writer json;
    int code;

    if (is_output && cli->is_json) {
        cli_json_begin(cli, &json, "text");
        det_json_text(&json, "command", cli->command);
        det_json_text(&json, "text", data);
        cli_json_end(cli, &json);
        return CLI_OK;
    }
    code = cli_write_to(cli, path, data, size);
    if (code == CLI_OK && !is_output && cli->is_json)
        cli_report_file(cli, path, "written", false);
    return code;
}
