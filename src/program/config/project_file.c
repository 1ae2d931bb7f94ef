/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_file.c - loads a detent.yaml for the commands that need one. */
#include <detent/driver/schedule.h>

#include "config/project_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "config/file_reader.h"
#include "config/flow_file.h"
#include "os/os.h"
#include "terminal/report.h"

bool config_file_is_one(const char *path)
{
    return (cli_has_suffix(path, ".yaml") || cli_has_suffix(path, ".yml")) &&
           !cli_has_suffix(path, CLI_CASES_SUFFIX);
}

static void report(struct cli *cli, struct config_file *file, const struct cli_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct det_yaml_error *error = &problems->items[i];
        struct cli_problem problem = {
            .path = file->path,
            .text = file->text.data,
            .size = file->text.size,
            .line = error->line,
            .column = error->column,
            .column_is_characters = true,
        };

        cli_report_problem(cli, &problem, "%s", error->text);
    }
    if (problems->is_cut)
        cli_print_error(
            cli, "%s: only the first %d problems are shown\n", file->path, CLI_PROBLEMS_MAX);
    file->problem_count = problems->count;
}

static int check(struct config_file *file, struct cli_problems *problems)
{
    char folder[DET_PATH_MAX];
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets the environment */
    const char *path = getenv("PATH");
    struct config_site site = { .folder = folder, .path = path, .parse_cron = det_cron_parse };
    int r = det_file_folder(file->path, folder);

    return r < 0 ? r : config_check(&file->config, &site, problems);
}

/* A wrong definition was reported; a missing one too, with its place. */
static int check_definition(
    struct cli *cli, const struct config_machine *machine, const char *folder,
    struct cli_problems *problems)
{
    bool is_here = machine->spec[0] == '/' || strcmp(folder, ".") == 0;
    char path[2 * DET_PATH_MAX];
    struct det_spec *spec = NULL;
    int r;

    snprintf(path, sizeof path, "%s%s%s", is_here ? "" : folder, is_here ? "" : "/", machine->spec);
    if (!cli_is_there(path) || cli_is_folder(path))
        return DET_ERR_MALFORMED;
    if (cli_machine_load(cli, path, &spec) != CLI_OK)
        return DET_ERR_DEFINITION;
    r = config_check_machine(machine, det_spec_machine(spec), problems);
    det_spec_close(spec);
    return r;
}

/* The same for a flow; the paths of `config` are still as in the file. */
static int check_flow(struct cli *cli, const struct config_flow *config, const char *folder)
{
    bool is_here = config->file[0] == '/' || strcmp(folder, ".") == 0;
    struct flow_definition *definition = NULL;
    struct config_flow copy = *config;
    char path[2 * DET_PATH_MAX];

    snprintf(path, sizeof path, "%s%s%s", is_here ? "" : folder, is_here ? "" : "/", config->file);
    copy.file = path;
    if (!cli_is_there(path) || cli_is_folder(path))
        return DET_ERR_MALFORMED;
    if (flow_definition_open_for(cli, &copy, FLOW_TO_CHECK, &definition) != CLI_OK)
        return DET_ERR_DEFINITION;
    flow_definition_close(definition);
    return 0;
}

static int check_definitions(struct cli *cli, struct config_file *file, struct cli_problems *all)
{
    char folder[DET_PATH_MAX];
    int r = det_file_folder(file->path, folder);

    for (size_t i = 0; r != DET_ERR_NO_MEMORY && i < file->config.flow_count; i++)
        r = reader_both(r, check_flow(cli, &file->config.flows[i], folder));

    for (size_t i = 0; r != DET_ERR_NO_MEMORY && i < file->config.machine_count; i++)
        r = reader_both(r, check_definition(cli, &file->config.machines[i], folder, all));
    return r;
}

static int read_all(
    struct cli *cli, struct config_file *file, bool is_checked, struct cli_problems *problems)
{
    struct det_datum *root = NULL;
    int r;

    r = det_yaml_read(&file->arena, file->text.data, file->text.size, &root, &problems->items[0]);
    if (r < 0) {
        problems->count = 1;
        return r;
    }
    file->root = root;
    r = config_read(&file->arena, root, &file->config, problems);
    if (r < 0 || !is_checked)
        return r;
    /* Both, so that all problems are reported at once. */
    r = check(file, problems);
    return r == DET_ERR_NO_MEMORY ? r : reader_both(r, check_definitions(cli, file, problems));
}

static int open_text(struct cli *cli, const char *path, bool is_checked, struct config_file *file)
{
    struct cli_problems problems = { .count = 0 };
    int code = cli_text_read(cli, path, DET_DATUM_READ_MAX, &file->text);
    int r;

    if (code != CLI_OK)
        return code;
    r = read_all(cli, file, is_checked, &problems);
    det_assert(r < 0 || problems.count == 0);
    if (r == 0)
        return CLI_OK;
    report(cli, file, &problems);
    return r == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
}

static int open_file(struct cli *cli, const char *path, bool is_checked, struct config_file *file)
{
    char folder[DET_PATH_MAX];
    struct stat status;
    int code;

    *file = (struct config_file){ .path = path };
    if (stat(path, &status) == 0)
        file->config.owner = status.st_uid;
    det_arena_init(&file->arena, cli->allocator);
    file->config.may_be_bare =
        det_file_folder(path, folder) == 0 && config_folder_has_specs(folder);
    code = open_text(cli, path, is_checked, file);
    if (code == CLI_OK && file->config.may_be_bare && !file->config.lists_machines)
        code = config_folder_add(cli, folder, is_checked, file);
    return code;
}

int config_project_open(
    struct cli *cli, const char *path, bool is_checked, struct config_file *file)
{
    char folder[DET_PATH_MAX];

    if (cli_is_there(path) || det_file_folder(path, folder) < 0 || !config_folder_has_specs(folder))
        return open_file(cli, path, is_checked, file);
    *file = (struct config_file){ .path = path, .config.is_bare = true };
    det_arena_init(&file->arena, cli->allocator);
    config_http_init(&file->config.http);
    return config_folder_add(cli, folder, is_checked, file);
}

int config_file_open(struct cli *cli, const char *path, struct config_file *file)
{
    return open_file(cli, path, true, file);
}

void config_file_close(struct cli *cli, struct config_file *file)
{
    det_arena_deinit(&file->arena);
    cli_text_free(cli, &file->text);
}
