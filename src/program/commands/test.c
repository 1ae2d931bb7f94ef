/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test.c - `detent test`: runs the cases of test files in virtual time. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "commands/test_run.h"
#include "os/os.h"
#include "terminal/args.h"
#include "terminal/command.h"
#include "terminal/file_search.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "testing/case_internal.h"
#include "testing/flow_case.h"
#include "testing/play.h"
#include "testing/stubs.h"
#include "json/writer.h"

enum { OPTION_FILTER, OPTION_TRACE, OPTION_NO_COVERAGE, OPTION_STEPS };

static const struct cli_option option_table[] = {
    [OPTION_FILTER] = { "filter", 0, "TEXT", NULL, "only cases whose names contain this text" },
    [OPTION_TRACE] = { "trace", 0, "FILE", NULL,
                       "write the run as JSON Lines, for 'diagram'; with '-' the results go to the "
                       "error stream" },
    [OPTION_NO_COVERAGE] = { "no-coverage", 0, NULL, NULL, "do not report coverage" },
    [OPTION_STEPS] = { "steps-max", 0, "N", NULL,
                       "abort a case after N steps of the simulation (default 20000000)" },
    { NULL, 0, NULL, NULL, NULL },
};

void test_raise_exit(struct run *run, int code)
{
    if (run->worst == CLI_OK || run->worst == CLI_FAILURE)
        run->worst = code;
}

static void report_problem(
    struct run *run, const struct sheet *sheet, const struct det_yaml_error *error)
{
    struct cli_problem problem = {
        .path = sheet->path,
        .text = sheet->text.data,
        .size = sheet->text.size,
        .line = error->line,
        .column = error->column,
        .column_is_characters = true,
    };

    cli_report_problem(run->cli, &problem, "%s", error->text);
}

void test_refuse_file(
    struct run *run, const struct sheet *sheet, const struct cli_problems *problems, int code)
{
    for (size_t i = 0; i < problems->count; i++)
        report_problem(run, sheet, &problems->items[i]);
    if (problems->is_cut)
        cli_print_error(
            run->cli, "%s: only the first %d problems are shown\n", sheet->path, CLI_PROBLEMS_MAX);
    run->broken++;
    test_raise_exit(run, code);
}

static int open_subject(struct run *run, struct subject *subject)
{
    struct det_error error = { 0 };
    int code, r;

    code = cli_machine_load(run->cli, subject->path, &subject->spec);
    if (code != CLI_OK)
        return code;
    r = cli_stubs_bind(det_spec_machine(subject->spec), &error);
    if (r < 0) {
        cli_report_error(run->cli, "%s: %s", subject->path, error.text);
        return CLI_USAGE;
    }
    r = cli_coverage_init(&subject->coverage, det_spec_machine(subject->spec), run->cli->allocator);
    return r < 0 ? cli_no_memory(run->cli) : CLI_OK;
}

static void close_subject(struct run *run, struct subject *subject)
{
    cli_coverage_deinit(&subject->coverage, run->cli->allocator);
    det_spec_close(subject->spec);
    det_free_string(run->cli->allocator, subject->path);
    DET_DELETE(run->cli->allocator, subject);
}

/* The machine at this path, loaded once. NULL, with the exit code raised, when it cannot be. */
static struct subject *find_subject(struct run *run, const char *path)
{
    struct subject *subject;
    int code;

    for (subject = run->subjects; subject; subject = subject->next) {
        if (cli_is_same_file(subject->path, path))
            return subject;
    }
    subject = DET_NEW(run->cli->allocator, struct subject);
    if (subject)
        subject->path = det_string_copy(run->cli->allocator, path);
    code = subject && subject->path ? open_subject(run, subject) : cli_no_memory(run->cli);
    if (code == CLI_OK) {
        *run->subjects_tail = subject;
        run->subjects_tail = &subject->next;
        return subject;
    }
    test_raise_exit(run, code);
    if (subject)
        close_subject(run, subject);
    return NULL;
}

bool test_join_path(const char *from, const char *name, char *target)
{
    const char *slash = strrchr(from, '/');
    int folder = slash && *name != '/' ? (int)(slash - from) + 1 : 0;

    return snprintf(target, DET_PATH_MAX, "%.*s%s", folder, from, name) < DET_PATH_MAX;
}

void test_report_missing(
    struct run *run, const struct sheet *sheet, const struct det_datum *node, const char *path,
    const char *suffix)
{
    struct cli_problems problems = { .count = 0 };
    struct cli_reader reader = { .problems = &problems };
    const char *slash = strrchr(node->text, '/');
    int folder = slash ? (int)(slash - node->text) + 1 : 0;
    char near[DET_PATH_MAX];

    if (cli_nearest_file(run->cli, path, suffix, near))
        reader_fail(
            &reader, node, "%s: there is no such file; did you mean %.*s%s?", node->text, folder,
            node->text, near);
    else
        reader_fail(&reader, node, "%s: there is no such file", node->text);
    test_refuse_file(run, sheet, &problems, CLI_NOT_FOUND);
}

static bool load_cases(struct run *run, struct sheet *sheet)
{
    struct cli_problems problems = { .count = 0 };
    char path[DET_PATH_MAX];
    struct det_datum *root;
    const char *name = "";
    int r;

    r = det_yaml_read(&sheet->arena, sheet->text.data, sheet->text.size, &root, &problems.items[0]);
    problems.count = r < 0 ? 1u : 0u;
    if (r == 0 && flow_case_is_one(root)) {
        test_flow(run, sheet, root);
        return false;
    }
    if (r == 0)
        r = case_machine_path(root, &name, &problems);
    if (r < 0) {
        test_refuse_file(run, sheet, &problems, CLI_USAGE);
        return false;
    }
    if (!test_join_path(sheet->path, name, path)) {
        cli_report_error(run->cli, "%s: the path of the machine is too long", sheet->path);
        test_raise_exit(run, CLI_USAGE);
        return false;
    }
    if (!cli_is_there(path)) {
        test_report_missing(run, sheet, det_datum_get(root, "machine"), path, CLI_SPEC_SUFFIX);
        return false;
    }
    sheet->subject = find_subject(run, path);
    if (!sheet->subject) {
        run->broken++;
        return false;
    }
    r = case_file_read(
        &sheet->arena, root, det_spec_machine(sheet->subject->spec), &sheet->file, &problems);
    if (r < 0)
        test_refuse_file(run, sheet, &problems, CLI_USAGE);
    return r == 0;
}

static void print_failure(
    struct run *run, const struct sheet *sheet, const struct play_failure *failure, size_t step)
{
    struct cli *cli = run->cli;

    cli_print_in(cli, CLI_BOLD, "  %s:%u:%u: ", sheet->path, failure->line, failure->column);
    if (step)
        cli_print(cli, "step %zu: ", step);
    cli_print(cli, "%s\n", failure->text);
    if (*failure->expected || *failure->actual) {
        cli_print(cli, "    expected: %s\n", failure->expected);
        cli_print(cli, "    actual:   %s\n", failure->actual);
    }
}

static size_t shown_count(const struct play_result *result)
{
    return result->failure_count < PLAY_FAILURES_MAX ? result->failure_count : PLAY_FAILURES_MAX;
}

static void print_failures(
    struct run *run, const struct sheet *sheet, const struct play_result *result)
{
    size_t shown = shown_count(result);

    for (size_t i = 0; i < shown; i++)
        print_failure(run, sheet, &result->failures[i], result->step);
    if (result->failure_count > shown)
        cli_print(run->cli, "    and %zu more\n", result->failure_count - shown);
    if (*result->note)
        cli_print(run->cli, "    note:     %s\n", result->note);
}

static void print_case(
    struct run *run, const struct sheet *sheet, const char *name, const struct play_result *result)
{
    struct cli *cli = run->cli;

    cli_print_in(
        cli, result->is_ok ? CLI_GREEN : CLI_RED, "%s", result->is_ok ? "ok      " : "not ok  ");
    cli_print(cli, "%s: %s\n", sheet->path, name);
    if (!result->is_ok)
        print_failures(run, sheet, result);
}

static void write_failure(struct det_json_writer *json, const struct play_failure *failure)
{
    det_json_number(json, "line", failure->line);
    det_json_number(json, "column", failure->column);
    det_json_text(json, "text", failure->text);
    if (*failure->expected || *failure->actual) {
        det_json_text(json, "expected", failure->expected);
        det_json_text(json, "actual", failure->actual);
    }
}

/* Writes the first failure, with the others in `more`. */
static void write_failures(struct det_json_writer *json, const struct play_result *result)
{
    det_json_open(json, "failure", '{');
    write_failure(json, &result->failures[0]);
    det_json_number(json, "step", result->step);
    if (*result->note)
        det_json_text(json, "note", result->note);
    if (result->failure_count > 1) {
        det_json_open(json, "more", '[');
        for (size_t i = 1; i < shown_count(result); i++) {
            det_json_open(json, NULL, '{');
            write_failure(json, &result->failures[i]);
            det_json_close(json, '}');
        }
        det_json_close(json, ']');
    }
    det_json_close(json, '}');
}

static void print_case_json(
    struct run *run, const struct sheet *sheet, const char *name, size_t steps,
    const struct play_result *result)
{
    struct det_json_writer json;

    cli_json_begin(run->cli, &json, "case");
    det_json_text(&json, "file", sheet->path);
    det_json_text(&json, "name", name);
    det_json_bool(&json, "ok", result->is_ok);
    det_json_number(&json, "steps", steps);
    if (!result->is_ok)
        write_failures(&json, result);
    cli_json_end(run->cli, &json);
}

void test_take_result(
    struct run *run, const struct sheet *sheet, const char *name, size_t steps,
    const struct play_result *result)
{
    run->cases++;
    run->passed += result->is_ok;
    run->failed += !result->is_ok;
    run->virtual_time += result->virtual_time;
    det_assert(run->passed + run->failed == run->cases);
    det_assert(result->is_ok == (result->failure_count == 0));
    if (!result->is_ok)
        test_raise_exit(run, CLI_FAILURE);
    if (run->cli->is_json)
        print_case_json(run, sheet, name, steps, result);
    else
        print_case(run, sheet, name, result);
}

const char *test_filter(const struct run *run)
{
    return run->args->values[OPTION_FILTER];
}

bool test_wants_coverage(const struct run *run)
{
    return !run->args->values[OPTION_NO_COVERAGE];
}

static void run_case(struct run *run, const struct sheet *sheet, const struct case_case *one)
{
    struct play_options options = {
        .allocator = run->cli->allocator,
        .coverage = &sheet->subject->coverage,
        .trace = &run->trace,
        .steps_max = run->steps_max,
    };
    struct play_result result;
    int r;

    r = play_case(&sheet->file, one, det_spec_machine(sheet->subject->spec), &options, &result);
    if (r < 0)
        test_raise_exit(run, cli_no_memory(run->cli));
    else
        test_take_result(run, sheet, one->name, one->step_count, &result);
}

static void run_cases(struct run *run, const struct sheet *sheet)
{
    const char *filter = run->args->values[OPTION_FILTER];
    size_t done = 0;

    for (const struct case_case *one = sheet->file.cases; one && !cli_is_stopped(run->cli);
         one = one->next) {
        if (!filter || strstr(one->name, filter))
            run_case(run, sheet, one);
        cli_progress(run->cli, "cases", ++done, sheet->file.case_count);
    }
}

static void refuse_spec(struct run *run, const char *path)
{
    cli_report_error(run->cli, "this is a spec: detent check %s", path);
    run->broken++;
    test_raise_exit(run, CLI_USAGE);
}

static void run_file(struct run *run, const char *path)
{
    struct sheet sheet = { .path = path };
    int code = cli_text_read(run->cli, path, SHEET_SIZE_MAX, &sheet.text);

    if (code != CLI_OK) {
        run->broken++;
        test_raise_exit(run, code);
        return;
    }
    if (strcmp(path, "-") == 0)
        sheet.path = CLI_STDIN_NAME;
    det_arena_init(&sheet.arena, run->cli->allocator);
    if (cli_has_suffix(path, CLI_SPEC_SUFFIX))
        refuse_spec(run, path);
    else if (load_cases(run, &sheet))
        run_cases(run, &sheet);
    det_arena_deinit(&sheet.arena);
    cli_text_free(run->cli, &sheet.text);
}

static void summarize(struct run *run, det_time real)
{
    struct cli *cli = run->cli;
    char virtual_text[DET_DURATION_TEXT], real_text[DET_DURATION_TEXT];
    struct det_json_writer json;

    if (cli->is_json) {
        cli_json_begin(cli, &json, "summary");
        det_json_number(&json, "cases", run->cases);
        det_json_number(&json, "passed", run->passed);
        det_json_number(&json, "failed", run->failed);
        det_json_number(&json, "broken", run->broken);
        det_json_signed(&json, "virtual_ms", run->virtual_time / DET_MILLISECOND);
        det_json_signed(&json, "real_ms", real / DET_MILLISECOND);
        cli_json_end(cli, &json);
        return;
    }
    cli_print_error_in(
        cli, run->failed + run->broken ? CLI_RED : CLI_GREEN, "%zu case%s: %zu passed, %zu failed",
        run->cases, det_plural(run->cases), run->passed, run->failed);
    if (run->broken)
        cli_print_error(cli, "; %zu file%s not run", run->broken, det_plural(run->broken));
    if (run->cases)
        cli_print_error(
            cli, "; %s of virtual time in %s",
            det_format_duration(
                run->virtual_time / DET_MILLISECOND * DET_MILLISECOND, virtual_text,
                sizeof virtual_text),
            det_format_duration(
                real / DET_MILLISECOND * DET_MILLISECOND, real_text, sizeof real_text));
    cli_print_error(cli, "\n");
}

static void run_all(struct run *run)
{
    static const char *const suffixes[] = { CLI_CASES_SUFFIX, NULL };
    static const char *const here[] = { ".", NULL };
    struct cli_names names = { 0 };

    run->worst = cli_files_list(
        run->cli, run->args->operand_count ? run->args->operands : here, suffixes, &names);
    for (size_t i = 0; i < names.count && !cli_is_stopped(run->cli); i++)
        run_file(run, names.items[i]);
    cli_names_free(run->cli, &names);
    if (run->cases == 0 && run->worst == CLI_OK && run->args->values[OPTION_FILTER]) {
        cli_report_error(run->cli, "no case name contains '%s'", run->args->values[OPTION_FILTER]);
        test_raise_exit(run, CLI_NOT_FOUND);
    }
}

static void finish(struct run *run, det_time from)
{
    const char *trace = run->args->values[OPTION_TRACE];
    struct subject *next;

    for (struct subject *subject = run->subjects; subject; subject = next) {
        next = subject->next;
        if (run->cases && !run->args->values[OPTION_NO_COVERAGE] && !cli_is_stopped(run->cli))
            cli_coverage_print(run->cli, &subject->coverage, subject->spec);
        close_subject(run, subject);
    }
    if (run->cases || run->broken)
        summarize(run, det_world_now(run->cli->world, DET_CLOCK_MONOTONIC) - from);
    if (trace && run->cases) {
        int code = cli_trace_save(run->trace_cli, &run->trace, trace);

        if (code != CLI_OK)
            test_raise_exit(run, code);
    }
    det_buffer_deinit(&run->trace.lines);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    det_time from = det_world_now(cli->world, DET_CLOCK_MONOTONIC);
    struct run run = { .cli = cli, .trace_cli = cli, .args = args };
    struct cli aside;

    if (args->values[OPTION_STEPS] &&
        !cli_args_number(
            cli, "steps-max", args->values[OPTION_STEPS], 1, INT64_MAX, &run.steps_max))
        return CLI_USAGE;
    run.subjects_tail = &run.subjects;
    run.trace.is_wanted = args->values[OPTION_TRACE] != NULL;
    det_buffer_init(&run.trace.lines, cli->allocator);
    run.trace.lines.limit = CLI_TRACE_SIZE_MAX;
    if (cli_trace_is_output(args->values[OPTION_TRACE])) {
        aside = cli_aside(cli);
        run.cli = &aside;
    }
    run_all(&run);
    finish(&run, from);
    if (run.cli != cli)
        cli_aside_end(cli, &aside);
    return run.worst;
}

extern const struct cli_command cli_command_test;
const struct cli_command cli_command_test = {
    .name = "test",
    .summary = "run the cases of test files in virtual time",
    .about = "Runs the cases of the given test files, or of all *.test.yaml files in the given\n"
             "folders (default: the current one) and below, except in hidden folders, build and\n"
             "node_modules. Time is virtual: days pass in milliseconds. States and transitions\n"
             "that no case takes are reported as coverage. Exits with 1 if a case fails.",
    .operand = { .form = "[FILE|FOLDER...]", .most = CLI_OPERANDS_ANY, .suffix = ".yaml" },
    .options = option_table,
    .run = run_command,
};
