/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - `detent check`: what is wrong with definitions.
 *
 * All files are read before any is reported, since a file without FSM_NAME is a mistake unless
 * another one includes it. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "config/project_file.h"
#include "config/worker_file.h"
#include "terminal/command.h"
#include "terminal/file_search.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "testing/table_print.h"

enum { OPTION_STRICT, OPTION_UNHANDLED };

static const struct cli_option option_table[] = {
    [OPTION_STRICT] = { "strict", 0, NULL, NULL, "warnings are failures too" },
    [OPTION_UNHANDLED] = { "unhandled", 0, NULL, NULL, "also show which state takes which event" },
    { NULL, 0, NULL, NULL, NULL },
};

struct subject {
    const char *path;
    struct det_spec *spec; /* NULL: it could not be read */
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

static bool is_included(const struct check *check, const struct subject *subject)
{
    for (size_t i = 0; i < check->count; i++) {
        const char *file;

        if (!check->subjects[i].spec || &check->subjects[i] == subject)
            continue;
        for (size_t k = 1; (file = det_spec_file(check->subjects[i].spec, k)); k++) {
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

/* A detent.yaml stands alone, and its problems are told while it is read. */
static void check_config(struct check *check, const struct subject *subject)
{
    struct config_file file;
    int code = config_file_open(check->cli, subject->path, &file);

    if (code != CLI_OK && file.problem_count == 0)
        check->unread++;
    else
        check->checked++;
    check->errors += file.problem_count;
    raise_exit(check, code);
    config_file_close(check->cli, &file);
}

/* A worker stands alone too, with its sources. */
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

/* C is looked at with the worker whose source it is; whether there is one. */
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
    cli_complain(
        check->cli, "%s is C: name the .worker file whose source it is as well", subject->path);
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
        /* The matrix shows these in one piece. */
        if (!has_matrix || findings->items[i].rule != DET_RULE_UNHANDLED_PAIR)
            cli_report(check->cli, subject->path, &findings->items[i]);
    }
    if (findings->is_cut)
        cli_say(
            check->cli, "%s: more was found; only the gravest %d are shown\n", subject->path,
            DET_DIAGNOSTICS_MAX);
    if (has_matrix && det_spec_machine(subject->spec))
        raise_exit(check, cli_matrix_print(check->cli, det_spec_machine(subject->spec)));
    if (findings->error_count || (check->args->values[OPTION_STRICT] && findings->warning_count))
        raise_exit(check, CLI_USAGE);
}

static int add_subjects(struct check *check)
{
    static const char *const suffixes[] = { CLI_SPEC_SUFFIX, CLI_WORKER_SUFFIX, CONFIG_FILE_NAME,
                                            NULL };
    int code = cli_files_list(check->cli, check->args->operands, suffixes, &check->names);

    check->subjects = DET_NEW_ARRAY(check->cli->allocator, check->names.count + 1, struct subject);
    if (!check->subjects)
        return cli_no_memory(check->cli);
    for (; check->count < check->names.count; check->count++)
        check->subjects[check->count].path = check->names.items[check->count];
    return code;
}

/* By the user, not found in a folder. */
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
        else
            load(check, &check->subjects[i]);
    }
    for (size_t i = 0; i < check->count && !cli_is_stopped(check->cli); i++) {
        const struct subject *subject = &check->subjects[i];

        if (!subject->spec)
            continue;
        if (!subject->is_fragment || !is_included(check, subject))
            report(check, subject);
        else if (is_named(check, subject))
            cli_say(
                check->cli, "%s: note: a fragment, checked where it is included\n", subject->path);
    }
}

static void summarize(struct check *check)
{
    struct cli *cli = check->cli;
    const char *plural = det_plural(check->checked);

    if (cli->is_json) {
        cli_json(
            cli,
            json_pack(
                "{s:s, s:b, s:I, s:I, s:I, s:I}", "type", "summary", "ok", check->worst == CLI_OK,
                "definitions", (json_int_t)check->checked, "errors", (json_int_t)check->errors,
                "warnings", (json_int_t)check->warnings, "unread", (json_int_t)check->unread));
        return;
    }
    if (check->errors + check->warnings == 0 && check->worst == CLI_OK) {
        cli_say_in(cli, CLI_GREEN, "%zu definition%s checked: ok\n", check->checked, plural);
        return;
    }
    cli_say(
        cli, "%zu definition%s checked: %zu error%s, %zu warning%s", check->checked, plural,
        check->errors, det_plural(check->errors), check->warnings, det_plural(check->warnings));
    if (check->unread)
        cli_say_in(
            cli, CLI_RED, "; %zu file%s could not be read", check->unread,
            det_plural(check->unread));
    cli_say(cli, "\n");
}

static int run(struct cli *cli, const struct cli_args *args)
{
    struct check check = { .cli = cli, .args = args };

    check.worst = add_subjects(&check);
    if (check.count) {
        check_all(&check);
        summarize(&check);
    }
    for (size_t i = 0; i < check.count; i++)
        det_spec_close(check.subjects[i].spec);
    DET_DELETE_ARRAY(cli->allocator, check.subjects, check.names.count + 1);
    cli_names_free(cli, &check.names);
    return check.worst;
}

extern const struct cli_command cli_command_check;
const struct cli_command cli_command_check = {
    .name = "check",
    .summary = "find what is wrong with definitions",
    .about =
        "Reads specs and reports errors, warnings and information, each with its place, the line\n"
        "and the id of the rule ('detent help rules'); a file that ends in .yaml is read as a\n"
        "detent.yaml. A folder stands for the .fsm and .worker files and every detent.yaml in it\n"
        "and below, but for what is hidden, build and node_modules; '-' is standard input. A\n"
        "fragment is checked in the files that include it. Exits 2 when a definition is not "
        "valid.\n"
        "\n"
        "With a .worker file its C source is checked as well, for what a compiler cannot see: the\n"
        "file beside it with the same name, and every .c file that is named. 'detent help rules'\n"
        "lists those rules too. A comment on the line, or on the one before, is an exception:\n"
        "/* detent: allow RULE because ... */.",
    .operand = { .form = "FILE|FOLDER...", .least = 1, .most = CLI_OPERANDS_ANY, .suffix = ".fsm" },
    .options = option_table,
    .run = run,
};
