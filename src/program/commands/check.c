/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - `detent check`: checks definitions.
 *
 * All files are read before any is reported, since a file without FSM_NAME is an error unless
 * another one includes it. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/flow_spec_file.h"
#include "config/project_file.h"
#include "config/worker_file.h"
#include "terminal/command.h"
#include "terminal/file_search.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "testing/table_print.h"
#include "json/writer.h"

enum { OPTION_STRICT, OPTION_UNHANDLED };

static const struct cli_option option_table[] = {
    [OPTION_STRICT] = { "strict", 0, NULL, NULL, "treat warnings as failures" },
    [OPTION_UNHANDLED] = { "unhandled", 0, NULL, NULL,
                           "also show which state handles which event" },
    { NULL, 0, NULL, NULL, NULL },
};

struct subject {
    const char *path;
    struct det_spec *spec;      /* NULL: no machine, or it could not be read */
    struct det_flow_spec *flow; /* NULL: no flow, or it could not be read */
    bool is_fragment;
};

struct check {
    struct cli *cli;
    const struct cli_args *args;
    struct cli_names names; /* of the files */
    struct subject *subjects;
    size_t count;
    size_t checked, errors, warnings;
    size_t unread; /* files that could not be read */
    int worst;
};

static void raise_exit(struct check *check, int code)
{
    /* A broken definition outranks a missing file. */
    if (check->worst == CLI_OK || code == CLI_USAGE)
        check->worst = code;
}

static bool has_rule(const struct det_diagnostics *findings, enum det_rule rule)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].rule == rule)
            return true;
    }
    return false;
}

static const char *file_of(const struct subject *subject, size_t index)
{
    return subject->spec ? det_spec_file(subject->spec, index)
                         : det_flow_spec_file(subject->flow, index);
}

static bool is_included(const struct check *check, const struct subject *subject)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct subject *other = &check->subjects[i];
        const char *file;

        if ((!other->spec && !other->flow) || other == subject)
            continue;
        for (size_t k = 1; (file = file_of(other, k)); k++) {
            if (cli_is_same_file(file, subject->path))
                return true;
        }
    }
    return false;
}

static void load(struct check *check, struct subject *subject)
{
    struct cli_spec spec = { .is_unhandled_wanted = check->args->values[OPTION_UNHANDLED] != NULL };
    int code = cli_spec_load(check->cli, subject->path, &spec);

    if (code != CLI_OK) {
        check->unread++;
        raise_exit(check, code);
        return;
    }
    subject->spec = spec.spec;
    subject->is_fragment = has_rule(det_spec_diagnostics(spec.spec), DET_RULE_NO_NAME);
}

static void load_flow(struct check *check, struct subject *subject)
{
    int code = cli_flow_spec_load(check->cli, subject->path, &subject->flow);

    if (code != CLI_OK) {
        check->unread++;
        raise_exit(check, code);
        return;
    }
    subject->is_fragment = has_rule(det_flow_spec_diagnostics(subject->flow), DET_RULE_NO_NAME);
}

/* That may be meant: commands on its store find the machine. */
static void note_unserved(const struct check *check, const struct config_file *file)
{
    char text[CONFIG_UNSERVED_TEXT];

    for (size_t i = 0; file->config.lists_machines && i < file->config.machine_count; i++) {
        const struct config_machine *machine = &file->config.machines[i];

        if (!machine->is_served)
            cli_print_error(
                check->cli, "%s:%u:%u: note: %s\n", file->path, machine->node->key_line,
                machine->node->key_column, config_unserved_text(machine, text));
    }
}

/* The problems of a detent.yaml are reported while it is read. */
static void check_config(struct check *check, const struct subject *subject)
{
    struct config_file file;
    int code = config_file_open(check->cli, subject->path, &file);

    if (code != CLI_OK && file.problem_count == 0)
        check->unread++;
    else
        check->checked++;
    if (code == CLI_OK)
        note_unserved(check, &file);
    check->errors += file.problem_count;
    raise_exit(check, code);
    config_file_close(check->cli, &file);
}

/* A worker is checked with its sources. */
static void check_worker(struct check *check, const struct subject *subject)
{
    struct cli_worker_count count = { 0, 0 };
    struct cli_worker worker;
    bool is_strict = check->args->values[OPTION_STRICT] != NULL;
    int code = cli_worker_open(check->cli, subject->path, check->args->operands, &worker);

    raise_exit(check, code);
    if (code == CLI_OK) {
        check->checked++;
        if (cli_worker_report(check->cli, subject->path, &worker, is_strict, &count))
            raise_exit(check, CLI_USAGE);
        check->errors += count.errors;
        check->warnings += count.warnings;
    } else {
        check->unread++;
    }
    cli_worker_close(check->cli, &worker);
}

static bool is_worker(const char *path)
{
    return cli_has_suffix(path, CLI_WORKER_SUFFIX);
}

/* C source is checked with its worker; returns true if one is named. */
static bool has_worker(const struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        if (is_worker(check->subjects[i].path))
            return true;
    }
    return false;
}

static void check_source(struct check *check, const struct subject *subject)
{
    if (has_worker(check))
        return;
    cli_report_error(check->cli, "%s is C source: also name its .worker file", subject->path);
    raise_exit(check, CLI_USAGE);
}

static void report(struct check *check, const struct subject *subject)
{
    const struct det_diagnostics *findings = det_spec_diagnostics(subject->spec);
    bool has_matrix = check->args->values[OPTION_UNHANDLED] && !check->cli->is_json;

    check->checked++;
    check->errors += findings->error_count;
    check->warnings += findings->warning_count;
    for (size_t i = 0; i < findings->count; i++) {
        /* The matrix shows these. */
        if (!has_matrix || findings->items[i].rule != DET_RULE_UNHANDLED_PAIR)
            cli_report(check->cli, subject->path, &findings->items[i]);
    }
    if (findings->is_cut)
        cli_print_error(
            check->cli, "%s: only the %d most severe findings are shown\n", subject->path,
            DET_DIAGNOSTICS_MAX);
    if (has_matrix && det_spec_machine(subject->spec))
        raise_exit(check, cli_matrix_print(check->cli, det_spec_machine(subject->spec)));
    if (findings->error_count || (check->args->values[OPTION_STRICT] && findings->warning_count))
        raise_exit(check, CLI_USAGE);
}

static void report_flow(struct check *check, const struct subject *subject)
{
    struct cli_flow_count count = cli_flow_spec_report(check->cli, subject->path, subject->flow);

    check->checked++;
    check->errors += count.errors;
    check->warnings += count.warnings;
    if (count.errors || (check->args->values[OPTION_STRICT] && count.warnings))
        raise_exit(check, CLI_USAGE);
}

static void report_definition(struct check *check, const struct subject *subject)
{
    if (subject->flow)
        report_flow(check, subject);
    else
        report(check, subject);
}

static int add_subjects(struct check *check)
{
    static const char *const suffixes[] = { CLI_SPEC_SUFFIX, CLI_WORKER_SUFFIX, CLI_FLOW_SUFFIX,
                                            CONFIG_FILE_NAME, NULL };
    int code = cli_files_list(check->cli, check->args->operands, suffixes, &check->names);

    check->subjects = DET_NEW_ARRAY(check->cli->allocator, check->names.count + 1, struct subject);
    if (!check->subjects)
        return cli_no_memory(check->cli);
    for (; check->count < check->names.count; check->count++)
        check->subjects[check->count].path = check->names.items[check->count];
    det_assert(check->count == check->names.count);
    return code;
}

/* Returns true if the user named the file, false if a folder contained it. */
static bool is_named(const struct check *check, const struct subject *subject)
{
    const char *const *operand = check->args->operands;

    while (*operand && strcmp(*operand, subject->path) != 0)
        operand++;
    return *operand != NULL;
}

static void check_all(struct check *check)
{
    for (size_t i = 0; i < check->count && !cli_is_stopped(check->cli); i++) {
        if (config_file_is_one(check->subjects[i].path))
            check_config(check, &check->subjects[i]);
        else if (is_worker(check->subjects[i].path))
            check_worker(check, &check->subjects[i]);
        else if (cli_has_suffix(check->subjects[i].path, CLI_SOURCE_SUFFIX))
            check_source(check, &check->subjects[i]);
        else if (cli_has_suffix(check->subjects[i].path, CLI_FLOW_SUFFIX))
            load_flow(check, &check->subjects[i]);
        else
            load(check, &check->subjects[i]);
    }
    for (size_t i = 0; i < check->count && !cli_is_stopped(check->cli); i++) {
        const struct subject *subject = &check->subjects[i];

        if (!subject->spec && !subject->flow)
            continue;
        if (!subject->is_fragment || !is_included(check, subject))
            report_definition(check, subject);
        else if (is_named(check, subject))
            cli_print_error(
                check->cli, "%s: note: a fragment, checked where it is included\n", subject->path);
    }
}

static void summarize(struct check *check)
{
    struct cli *cli = check->cli;
    const char *plural = det_plural(check->checked);
    struct det_json_writer json;

    det_assert(check->checked + check->unread <= check->count);
    det_assert(check->errors == 0 || check->worst != CLI_OK);
    if (cli->is_json) {
        cli_json_begin(cli, &json, "summary");
        det_json_bool(&json, "ok", check->worst == CLI_OK);
        det_json_number(&json, "definitions", check->checked);
        det_json_number(&json, "errors", check->errors);
        det_json_number(&json, "warnings", check->warnings);
        det_json_number(&json, "unread", check->unread);
        cli_json_end(cli, &json);
        return;
    }
    if (check->errors + check->warnings == 0 && check->worst == CLI_OK) {
        cli_print_error_in(
            cli, CLI_GREEN, "%zu definition%s checked: ok\n", check->checked, plural);
        return;
    }
    cli_print_error(
        cli, "%zu definition%s checked: %zu error%s, %zu warning%s", check->checked, plural,
        check->errors, det_plural(check->errors), check->warnings, det_plural(check->warnings));
    if (check->unread)
        cli_print_error_in(
            cli, CLI_RED, "; %zu file%s could not be read", check->unread,
            det_plural(check->unread));
    cli_print_error(cli, "\n");
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct check check = { .cli = cli, .args = args };

    check.worst = add_subjects(&check);
    if (check.count) {
        check_all(&check);
        summarize(&check);
    }
    for (size_t i = 0; i < check.count; i++) {
        det_spec_close(check.subjects[i].spec);
        det_flow_spec_close(check.subjects[i].flow);
    }
    DET_DELETE_ARRAY(cli->allocator, check.subjects, check.names.count + 1);
    cli_names_free(cli, &check.names);
    return check.worst;
}

extern const struct cli_command cli_command_check;
const struct cli_command cli_command_check = {
    .name = "check",
    .summary = "check definitions for errors",
    .about =
        "Reads specs and reports errors, warnings and information, each with its place, its\n"
        "line and the id of its rule ('detent help rules'). A file that ends in .yaml is\n"
        "read as a detent.yaml. A folder stands for the .fsm, .worker and .flow files and\n"
        "every detent.yaml in it and below, except in hidden folders, build and node_modules; '-'\n"
        "is standard input. A fragment is checked in the files that include it. Exits with\n"
        "2 if a definition is invalid.\n"
        "\n"
        "With a .worker file, its C source is checked for errors that a compiler cannot\n"
        "find: the file beside it with the same name, and every .c file that is named.\n"
        "'detent help rules' also lists these rules. A comment on the same line or the line\n"
        "before permits an exception: /* detent: allow RULE because ... */.",
    .operand = { .form = "FILE|FOLDER...", .least = 1, .most = CLI_OPERANDS_ANY, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
