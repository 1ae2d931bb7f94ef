/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fmt.c - `detent fmt`: formats specs. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "config/worker_file.h"
#include "terminal/command.h"
#include "terminal/file_search.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "json/writer.h"

enum { OPTION_CHECK, OPTION_WRITE };

static const struct cli_option option_table[] = {
    [OPTION_CHECK] = { "check", 0, NULL, NULL, "change nothing; list the files that would change" },
    [OPTION_WRITE] = { "write", 'w', NULL, NULL, "write the result back to the files" },
    { NULL, 0, NULL, NULL, NULL },
};

/* Converts an offset to a line and column, for the message. */
static void find_line(
    const struct cli_text *text, uint64_t offset, uint32_t *line, uint32_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < text->size && i < offset; i++) {
        *column = text->data[i] == '\n' ? 1 : *column + 1;
        *line += text->data[i] == '\n';
    }
}

/* Skips the "line:column: " of the library: the caller prints the place. */
static const char *sentence_of(const char *text)
{
    size_t line = strspn(text, "0123456789");
    size_t column = line && text[line] == ':' ? strspn(text + line + 1, "0123456789") : 0;
    const char *rest = text + line + 1 + column;

    return column && strncmp(rest, ": ", 2) == 0 ? rest + 2 : text;
}

static int fail_format(
    struct cli *cli, const char *path, const struct cli_text *text, const struct det_error *error)
{
    struct cli_problem problem = { .path = path, .text = text->data, .size = text->size };

    find_line(text, error->offset, &problem.line, &problem.column);
    cli_report_problem(cli, &problem, "%s", sentence_of(error->text));
    return CLI_USAGE;
}

/* Reports the result for a file: `member` is a text, or a boolean if `text` is NULL. */
static void print_file(
    struct cli *cli, const char *path, const char *member, const char *text, bool is_true)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, "file");
    det_json_text(&json, "file", path);
    if (text)
        det_json_text(&json, member, text);
    else
        det_json_bool(&json, member, is_true);
    cli_json_end(cli, &json);
}

static int deliver(
    struct cli *cli, const struct cli_args *args, const char *path, const struct cli_text *before,
    const struct cli_text *after)
{
    bool is_same =
        before->size == after->size && memcmp(before->data, after->data, after->size) == 0;

    if (args->values[OPTION_CHECK]) {
        if (cli->is_json)
            print_file(cli, path, "formatted", NULL, is_same);
        else if (!is_same)
            cli_print(cli, "%s\n", path);
        return is_same ? CLI_OK : CLI_FAILURE;
    }
    if (args->values[OPTION_WRITE] && strcmp(path, CLI_STDIN_NAME) != 0) {
        if (cli->is_json)
            print_file(cli, path, "changed", NULL, !is_same);
        return is_same ? CLI_OK : cli_file_write(cli, path, after->data, after->size);
    }
    if (cli->is_json)
        print_file(cli, path, "text", after->data, false);
    else
        cli_write(cli, after->data, after->size);
    return CLI_OK;
}

static int format_text(
    struct cli *cli, const struct cli_args *args, const char *path, const struct cli_text *text)
{
    struct det_error error = { 0 };
    struct cli_text result;
    int64_t size = det_spec_format(text->data, text->size, NULL, 0, &error), written;
    int code;

    if (size < 0)
        return fail_format(cli, path, text, &error);
    result = (struct cli_text){ det_alloc(cli->allocator, (size_t)size + 1), (size_t)size };
    if (!result.data)
        return cli_no_memory(cli);
    written = det_spec_format(text->data, text->size, result.data, result.size + 1, &error);
    det_assert(written < 0 || written == size);
    code = written < 0 ? fail_format(cli, path, text, &error)
                       : deliver(cli, args, path, text, &result);
    cli_text_free(cli, &result);
    return code;
}

static int format_file(struct cli *cli, const struct cli_args *args, const char *path)
{
    struct cli_text text;
    int code = cli_spec_text_load(cli, path, &text);

    if (code != CLI_OK)
        return code;
    code = format_text(cli, args, strcmp(path, "-") == 0 ? CLI_STDIN_NAME : path, &text);
    cli_text_free(cli, &text);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const char *const suffixes[] = { CLI_SPEC_SUFFIX, CLI_WORKER_SUFFIX, CLI_FLOW_SUFFIX,
                                            CLI_RECORDS_SUFFIX, NULL };
    struct cli_names names = { 0 };
    int worst;

    if (args->values[OPTION_CHECK] && args->values[OPTION_WRITE]) {
        cli_report_error(cli, "--check and --write exclude each other");
        return CLI_USAGE;
    }
    worst = cli_files_list(cli, args->operands, suffixes, &names);
    for (size_t i = 0; i < names.count && !cli_is_stopped(cli); i++) {
        int code = format_file(cli, args, names.items[i]);

        worst = code > worst ? code : worst;
    }
    cli_names_free(cli, &names);
    return worst;
}

extern const struct cli_command cli_command_fmt;
const struct cli_command cli_command_fmt = {
    .name = "fmt",
    .summary = "format specs",
    .about =
        "Prints specs with one row per line and adjacent rows of a kind aligned; comments\n"
        "and empty lines are kept. A folder stands for the .fsm, .worker, .flow and .rec\n"
        "files in it and below, except in hidden folders, build and node_modules; '-' is standard\n"
        "input. With --check, exits with 1 if a file is not formatted.",
    .operand = { .form = "FILE|FOLDER...", .least = 1, .most = CLI_OPERANDS_ANY, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
