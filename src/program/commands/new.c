/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* new.c - `detent new`: creates a folder with a machine that passes check and test. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <detent/tool/flow_spec.h>
#include <detent/tool/spec.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/text.h"
#include "codegen/project_files.h"
#include "os/os.h"
#include "terminal/command.h"
#include "terminal/input.h"
#include "terminal/report.h"

/* The templates. The default is the template of the same name, else a job. */
#define JOB       "job"
#define ORDER     "order"
#define FLOW      "flow"
#define TEMPLATES JOB " " ORDER " " FLOW

/* Longer names make unreadable C. */
#define NAME_MAX_HERE 64

enum { OPTION_C, OPTION_FROM };

static const struct cli_option option_table[] = {
    [OPTION_C] = { "c", 0, NULL, NULL, "with a C program and a Makefile instead of detent.yaml" },
    [OPTION_FROM] = { "from", 0, "MACHINE", TEMPLATES,
                      "start from a job, from an order that is paid by card, or from a flow" },
    { NULL, 0, NULL, NULL, NULL },
};

struct plan {
    const char *name;
    const struct cli_new_file *files;
    bool with_c, is_flow;
};

static bool is_name(const char *name)
{
    size_t size = strlen(name);

    return size > 0 && size <= NAME_MAX_HERE && islower((unsigned char)name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

/* Converts a letter of the name to the form of a placeholder. */
static char to_form(char c, char form)
{
    if (form == '_')
        return ' ';
    /* The letters of both cases differ in one bit. */
    if (form == 'N' && c >= 'a' && c <= 'z')
        c = (char)(c & ~0x20);
    return c;
}

/* Expands a template: @n@ is the name, @N@ the name in capitals, @_@ as many spaces. */
static void expand(struct det_buffer *buffer, const char *template, const char *name)
{
    det_assert(is_name(name));
    for (; *template; template ++) {
        char form = template[1];

        if (template[0] != '@' || !form || !strchr("nN_", form) || template[2] != '@') {
            det_buffer_append_char(buffer, *template);
            continue;
        }
        for (const char *at = name; *at; at++)
            det_buffer_append_char(buffer, to_form(*at, form));
        template += 2;
    }
}

static bool file_path(struct cli *cli, const char *name, const char *template, char *target)
{
    struct det_buffer buffer;
    bool fits;

    det_buffer_init(&buffer, cli->allocator);
    expand(&buffer, template, name);
    fits = det_buffer_status(&buffer) == 0 &&
           snprintf(target, DET_PATH_MAX, "%s/%s", name, det_buffer_text(&buffer)) < DET_PATH_MAX;
    det_buffer_deinit(&buffer);
    return fits;
}

static bool is_wanted(const struct plan *plan, const struct cli_new_file *file)
{
    return file->kind == CLI_NEW_ALWAYS || (file->kind == CLI_NEW_C) == plan->with_c;
}

static void report_existing(struct cli *cli, const char *path, size_t *count)
{
    if (cli->is_json)
        cli_report_file(cli, path, "there", false);
    else
        cli_report_error(cli, "%s already exists", path);
    ++*count;
}

static void print_what_to_do(struct cli *cli, const struct plan *plan)
{
    const char *name = plan->name;
    char path[DET_PATH_MAX];

    cli_report_error(cli, "nothing was written: choose another name, or move %s away", name);
    snprintf(path, sizeof path, "%s/%s" CLI_SPEC_SUFFIX, name, name);
    if (plan->with_c && cli_is_there(path))
        cli_print_error(
            cli, "'detent gen c %s -o %s' generates C for the existing machine.\n", path, name);
}

/* Nothing is written unless everything can be written. */
static int check_free(struct cli *cli, const struct plan *plan)
{
    struct stat status;
    char path[DET_PATH_MAX];
    size_t count = 0;

    if (lstat(plan->name, &status) == 0 && !S_ISDIR(status.st_mode)) {
        cli_report_error(
            cli, "%s already exists and is not a folder: choose another name", plan->name);
        return CLI_CONFLICT;
    }
    for (const struct cli_new_file *file = plan->files; file->path; file++) {
        if (!is_wanted(plan, file))
            continue;
        if (!file_path(cli, plan->name, file->path, path))
            return cli_no_memory(cli);
        if (lstat(path, &status) == 0)
            report_existing(cli, path, &count);
    }
    if (count)
        print_what_to_do(cli, plan);
    return count ? CLI_CONFLICT : CLI_OK;
}

static int write_file(struct cli *cli, const char *name, const struct cli_new_file *file)
{
    char path[DET_PATH_MAX];
    struct det_buffer buffer;
    int code;

    if (!file_path(cli, name, file->path, path))
        return cli_no_memory(cli);
    det_buffer_init(&buffer, cli->allocator);
    expand(&buffer, file->text, name);
    code = det_buffer_status(&buffer) < 0
               ? cli_no_memory(cli)
               : cli_file_write(cli, path, det_buffer_text(&buffer), buffer.size);
    det_buffer_deinit(&buffer);
    if (code == CLI_OK)
        cli_report_file(cli, path, "written", false);
    return code;
}

/* The parser of specs finds names that are keywords of C or clash with another name. */
static int is_machine(struct cli *cli, const struct plan *plan, const struct det_buffer *text)
{
    struct det_spec_options options = { .allocator = cli->allocator };
    struct det_spec *spec = NULL;
    int r = det_spec_read(plan->name, text->data, text->size, &options, &spec);

    if (r == 0)
        r = det_spec_machine(spec) != NULL;
    det_spec_close(spec);
    return r;
}

static int is_flow(struct cli *cli, const struct plan *plan, const struct det_buffer *text)
{
    struct det_spec_options options = { .allocator = cli->allocator };
    struct det_flow_spec *spec = NULL;
    int r = det_flow_spec_read(plan->name, text->data, text->size, &options, &spec);

    if (r == 0)
        r = det_flow_spec_flow(spec) != NULL;
    det_flow_spec_close(spec);
    return r;
}

static int check_spec(struct cli *cli, const struct plan *plan)
{
    struct det_buffer buffer;
    int code = CLI_OK, r;

    det_buffer_init(&buffer, cli->allocator);
    expand(&buffer, plan->files->text, plan->name);
    r = det_buffer_status(&buffer);
    if (r == 0)
        r = plan->is_flow ? is_flow(cli, plan, &buffer) : is_machine(cli, plan, &buffer);
    if (r < 0) {
        code = cli_no_memory(cli);
    } else if (r == 0) {
        cli_report_error(
            cli, "'%s' cannot be the name of a %s: it is a keyword of C", plan->name,
            plan->is_flow ? "flow" : "machine");
        code = CLI_USAGE;
    }
    det_buffer_deinit(&buffer);
    return code;
}

static void print_next(struct cli *cli, const struct plan *plan)
{
    const char *name = plan->name;

    if (plan->is_flow)
        cli_print_error(cli, "Next: cd %s && detent flow run %s" CLI_FLOW_SUFFIX "\n", name, name);
    else
        cli_print_error(
            cli, "Next: cd %s && %s\n", name, plan->with_c ? "make run test" : "detent up");
}

static int write_files(struct cli *cli, const struct plan *plan)
{
    int code = CLI_OK;

    if (mkdir(plan->name, 0777) < 0 && errno != EEXIST) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(cli, "cannot create the folder %s: %s", plan->name, strerror(errno));
        return CLI_FAILURE;
    }
    for (const struct cli_new_file *file = plan->files; file->path && code == CLI_OK; file++) {
        if (is_wanted(plan, file))
            code = write_file(cli, plan->name, file);
    }
    if (code == CLI_OK && !cli->is_json)
        print_next(cli, plan);
    return code;
}

/* Only the job template has a C program. */
static int choose(struct cli *cli, const struct cli_args *args, struct plan *ret)
{
    const char *name = args->operands[0], *from = args->values[OPTION_FROM];
    bool with_c = args->values[OPTION_C] != NULL;

    if (with_c && from && strcmp(from, JOB) != 0) {
        cli_report_error(cli, "--c needs --from job: %s has no C program", from);
        return CLI_USAGE;
    }
    if (!from)
        from = with_c ? JOB : name;
    *ret = (struct plan){ .name = name, .with_c = with_c };
    /* A name alone selects no flow: `detent new flow` is a machine. */
    ret->is_flow = args->values[OPTION_FROM] && strcmp(from, FLOW) == 0;
    ret->files = ret->is_flow               ? cli_new_flow
                 : strcmp(from, ORDER) == 0 ? cli_new_order
                                            : cli_new_job;
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *name = args->operands[0];
    struct plan plan;
    int code;

    if (!is_name(name)) {
        cli_report_error(
            cli,
            "'%s' cannot be the name of a machine: use lowercase letters, digits and _, a letter "
            "first, at most %d",
            name, NAME_MAX_HERE);
        return CLI_USAGE;
    }
    code = choose(cli, args, &plan);
    if (code == CLI_OK)
        code = check_spec(cli, &plan);
    if (code == CLI_OK)
        code = check_free(cli, &plan);
    return code == CLI_OK ? write_files(cli, &plan) : code;
}

extern const struct cli_command cli_command_new;
const struct cli_command cli_command_new = {
    .name = "new",
    .summary = "create a machine or a flow with its tests",
    .about = "Creates a folder NAME with NAME.fsm, NAME.test.yaml, README.md, and a detent.yaml\n"
             "with which 'detent up' serves the machine; start with the README. The template is\n"
             "an order that is paid by card for 'detent new order', and a job that may fail for\n"
             "every other name; --from selects one, or a flow: NAME.flow, which filters rows of a\n"
             "CSV file, with NAME.flow.test.yaml, a detent.yaml and input. With --c it writes,\n"
             "instead of detent.yaml, a C program around a job, its test in virtual time, and a\n"
             "Makefile that uses pkg-config ('make run', 'make test'). Existing files are never\n"
             "overwritten. The result passes 'detent check' and 'detent test' unchanged.",
    .operand = { .form = "NAME", .least = 1, .most = 1 },
    .options = option_table,
    .run = run_command,
};
