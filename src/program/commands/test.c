/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test.c - `detent test`: runs the cases of test files in virtual time. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "terminal/args.h"
#include "terminal/command.h"
#include "terminal/file_search.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "testing/case_internal.h"
#include "testing/play.h"
#include "testing/stubs.h"

enum { OPTION_FILTER, OPTION_TRACE, OPTION_NO_COVERAGE, OPTION_STEPS };

static const struct cli_option option_table[] = {
    [OPTION_FILTER] = { "filter", 0, "TEXT", NULL, "only cases whose name has this text in it" },
    [OPTION_TRACE] = { "trace", 0, "FILE", NULL,
                       "write what happened as JSON Lines, for 'diagram'; with '-' the results go "
                       "to the error stream" },
    [OPTION_NO_COVERAGE] = { "no-coverage", 0, NULL, NULL, "do not say what was never tried" },
    [OPTION_STEPS] = { "steps-max", 0, "N", NULL,
                       "break a case off after so many steps of the simulation; 20000000 when left "
                       "out" },
    { NULL, 0, NULL, NULL, NULL },
};

#define SHEET_SIZE_MAX 262144 /* bytes of a test file */

/* A machine with what all files about it have covered. */
struct subject {
    struct subject *next;
    char *path;
    struct det_spec *spec;
    struct cli_coverage coverage;
};

struct run {
    struct cli *cli;       /* where the results go */
    struct cli *trace_cli; /* where a trace to "-" goes */
    const struct cli_args *args;
    struct subject *subjects, **subjects_tail;
    struct cli_trace_writer trace;
    uint64_t steps_max;
    size_t cases, passed, failed, broken;
    det_time virtual_time;
    int worst;
};

/* One test file on its way. */
struct sheet {
    const char *path;
    struct cli_text text;
    struct det_arena arena;
    struct subject *subject;
    struct case_file file;
};

/* A file that cannot be run outranks a case that fails. */
static void raise_exit(struct run *run, int code)
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

static void refuse_file(
    struct run *run, const struct sheet *sheet, const struct cli_problems *problems, int code)
{
    for (size_t i = 0; i < problems->count; i++)
        report_problem(run, sheet, &problems->items[i]);
    if (problems->is_cut)
        cli_say(
            run->cli, "%s: more is wrong; the first %d problems are shown\n", sheet->path,
            CLI_PROBLEMS_MAX);
    run->broken++;
    raise_exit(run, code);
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
        cli_complain(run->cli, "%s: %s", subject->path, error.text);
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
    raise_exit(run, code);
    if (subject)
        close_subject(run, subject);
    return NULL;
}

/* `name` seen from the folder of the file `from`. */
static bool join(const char *from, const char *name, char *target)
{
    const char *slash = strrchr(from, '/');
    int folder = slash && *name != '/' ? (int)(slash - from) + 1 : 0;

    return snprintf(target, DET_PATH_MAX, "%.*s%s", folder, from, name) < DET_PATH_MAX;
}

/* Says where the test file names a machine that is not there, and which one may be meant. */
static void report_no_machine(
    struct run *run, const struct sheet *sheet, const struct det_datum *node, const char *path)
{
    struct cli_problems problems = { .count = 0 };
    struct cli_reader reader = { .problems = &problems };
    const char *slash = strrchr(node->text, '/');
    int folder = slash ? (int)(slash - node->text) + 1 : 0;
    char near[DET_PATH_MAX];

    if (cli_nearest_file(run->cli, path, CLI_SPEC_SUFFIX, near))
        reader_fail(
            &reader, node, "%s: there is no such file; did you mean %.*s%s?", node->text, folder,
            node->text, near);
    else
        reader_fail(&reader, node, "%s: there is no such file", node->text);
    refuse_file(run, sheet, &problems, CLI_NOT_FOUND);
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
    if (r == 0)
        r = case_machine_path(root, &name, &problems);
    if (r < 0) {
        refuse_file(run, sheet, &problems, CLI_USAGE);
        return false;
    }
    if (!join(sheet->path, name, path)) {
        cli_complain(run->cli, "%s: the path of the machine is too long", sheet->path);
        raise_exit(run, CLI_USAGE);
        return false;
    }
    if (!cli_is_there(path)) {
        report_no_machine(run, sheet, det_datum_get(root, "machine"), path);
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
        refuse_file(run, sheet, &problems, CLI_USAGE);
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
    struct run *run, const struct sheet *sheet, const struct case_case *one,
    const struct play_result *result)
{
    struct cli *cli = run->cli;

    cli_print_in(
        cli, result->is_ok ? CLI_GREEN : CLI_RED, "%s", result->is_ok ? "ok      " : "not ok  ");
    cli_print(cli, "%s: %s\n", sheet->path, one->name);
    if (!result->is_ok)
        print_failures(run, sheet, result);
}

static json_t *json_failure(const struct play_failure *failure)
{
    json_t *object = json_pack(
        "{s:I, s:I, s:o}", "line", (json_int_t)failure->line, "column", (json_int_t)failure->column,
        "text", cli_json_text(failure->text));

    if (*failure->expected || *failure->actual) {
        json_object_set_new(object, "expected", cli_json_text(failure->expected));
        json_object_set_new(object, "actual", cli_json_text(failure->actual));
    }
    return object;
}

/* The first one, with those behind it in `more`. */
static json_t *json_failures(const struct play_result *result)
{
    json_t *object = json_failure(&result->failures[0]);
    json_t *more = json_array();

    json_object_set_new(object, "step", json_integer((json_int_t)result->step));
    if (*result->note)
        json_object_set_new(object, "note", cli_json_text(result->note));
    for (size_t i = 1; i < shown_count(result); i++)
        json_array_append_new(more, json_failure(&result->failures[i]));
    if (result->failure_count > 1)
        json_object_set(object, "more", more);
    json_decref(more);
    return object;
}

static void print_case_json(
    struct run *run, const struct sheet *sheet, const struct case_case *one,
    const struct play_result *result)
{
    json_t *object = json_pack(
        "{s:s, s:o, s:o, s:b, s:I}", "type", "case", "file", cli_json_text(sheet->path), "name",
        cli_json_text(one->name), "ok", result->is_ok, "steps", (json_int_t)one->step_count);

    if (object && !result->is_ok)
        json_object_set_new(object, "failure", json_failures(result));
    cli_json(run->cli, object);
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
    if (r < 0) {
        raise_exit(run, cli_no_memory(run->cli));
        return;
    }
    run->cases++;
    run->passed += result.is_ok;
    run->failed += !result.is_ok;
    run->virtual_time += result.virtual_time;
    if (!result.is_ok)
        raise_exit(run, CLI_FAILURE);
    if (run->cli->is_json)
        print_case_json(run, sheet, one, &result);
    else
        print_case(run, sheet, one, &result);
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
    cli_complain(run->cli, "this is a spec: detent check %s", path);
    run->broken++;
    raise_exit(run, CLI_USAGE);
}

static void run_file(struct run *run, const char *path)
{
    struct sheet sheet = { .path = path };
    struct det_error error;
    int r;

    r = cli_text_load(run->cli, path, SHEET_SIZE_MAX, &sheet.text, &error);
    if (r < 0) {
        cli_complain(run->cli, "%s", error.text);
        run->broken++;
        raise_exit(run, cli_exit_of(r));
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

    if (cli->is_json) {
        cli_json(
            cli, json_pack(
                     "{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "type", "summary", "cases",
                     (json_int_t)run->cases, "passed", (json_int_t)run->passed, "failed",
                     (json_int_t)run->failed, "broken", (json_int_t)run->broken, "virtual_ms",
                     (json_int_t)(run->virtual_time / DET_MILLISECOND), "real_ms",
                     (json_int_t)(real / DET_MILLISECOND)));
        return;
    }
    cli_say_in(
        cli, run->failed + run->broken ? CLI_RED : CLI_GREEN, "%zu case%s: %zu passed, %zu failed",
        run->cases, det_plural(run->cases), run->passed, run->failed);
    if (run->broken)
        cli_say(cli, "; %zu file%s not run", run->broken, det_plural(run->broken));
    if (run->cases)
        cli_say(
            cli, "; %s of virtual time in %s",
            det_format_duration(
                run->virtual_time / DET_MILLISECOND * DET_MILLISECOND, virtual_text,
                sizeof virtual_text),
            det_format_duration(
                real / DET_MILLISECOND * DET_MILLISECOND, real_text, sizeof real_text));
    cli_say(cli, "\n");
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
        cli_complain(run->cli, "no case has '%s' in its name", run->args->values[OPTION_FILTER]);
        raise_exit(run, CLI_NOT_FOUND);
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
            raise_exit(run, code);
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
    .about =
        "Runs the cases of the given test files, or of all *.test.yaml in the given folders, or\n"
        "the current one, and below, but for what is hidden, build and node_modules. Days pass in "
        "milliseconds. What a case does not take is reported as\n"
        "coverage of states and transitions. Exits 1 when a case fails.",
    .operand = { .form = "[FILE|FOLDER...]", .most = CLI_OPERANDS_ANY, .suffix = ".yaml" },
    .options = option_table,
    .run = run_command,
};
