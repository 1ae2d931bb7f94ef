/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* default_machines.c - the machines of a folder whose detent.yaml lists none: all of its specs.
 *
 * They are served like a machine with `effects: {}`. A spec for which that is not sufficient is
 * refused, with what to write instead; beside tasks or durable slots, which run anyway, it is
 * skipped. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "config/project_file.h"
#include "os/os.h"

static int is_spec(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && cli_has_suffix(entry->d_name, CLI_SPEC_SUFFIX);
}

/* Returns their names in order, allocated by malloc(); the number of them, or -1. */
static int list_folder(const char *folder, struct dirent ***ret)
{
    return scandir(folder, ret, is_spec, alphasort);
}

static void free_list(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
}

bool config_folder_has_specs(const char *folder)
{
    struct dirent **entries = NULL;
    int count = list_folder(folder, &entries);

    free_list(entries, count);
    return count > 0;
}

/* Shows what to write for an effect without a command. */
static int report_effects(struct cli *cli, const char *path, const struct det_machine *machine)
{
    struct det_buffer text;

    det_buffer_init(&text, cli->allocator);
    for (size_t i = 0; i < machine->effect_count; i++)
        det_buffer_format(
            &text, "      %s: {command: [./%s]}\n", machine->effects[i].name,
            machine->effects[i].name);
    if (det_buffer_status(&text) < 0)
        cli->has_failed = true;
    else
        cli_report_error(
            cli,
            "%s requests effects, but no commands are configured for them; write "
            "a " CONFIG_FILE_NAME " such as\n"
            "version: 1\nmachines:\n  %s:\n    effects:\n%s",
            path, machine->name, det_buffer_text(&text));
    det_buffer_deinit(&text);
    return CLI_USAGE;
}

/* Skips a spec that may be here for other programs. */
static int leave_out(struct cli *cli, const char *path, const char *why)
{
    cli_print_error(
        cli,
        "%s is not served: %s. List it in 'machines' of " CONFIG_FILE_NAME
        ", or write 'machines: {}' to leave specs alone.\n",
        path, why);
    return CLI_OK;
}

/* Checks that it can be served unchanged. If there is nothing else to run, a failure is an
 * error. */
static int validate_machine(
    struct cli *cli, const char *path, const struct det_machine *definition, bool is_alone,
    struct config_machine *machine)
{
    struct cli_problems problems = { .count = 0 };

    if (!definition->effect_count && config_check_machine(machine, definition, &problems) == 0)
        return CLI_OK;
    machine->is_served = false;
    det_assert(definition->effect_count || problems.count > 0);
    if (definition->effect_count)
        return is_alone ? report_effects(cli, path, definition)
                        : leave_out(cli, path, "its effects have no commands");
    if (!is_alone)
        return leave_out(cli, path, problems.items[0].text);
    cli_report_error(cli, "%s: %s", path, problems.items[0].text);
    return CLI_USAGE;
}

/* Returns the definition of a spec; a broken one is skipped, unless that is an error. */
static int load_spec(
    struct cli *cli, const char *path, bool is_checked, const struct config_file *file,
    struct det_spec **ret)
{
    struct cli_spec spec = { .spec = NULL };
    int code;

    if (is_checked && file->config.is_bare)
        return cli_machine_load(cli, path, ret);
    code = cli_spec_load(cli, path, &spec);
    if (code == CLI_OK && !det_spec_machine(spec.spec)) {
        det_spec_close(spec.spec);
        spec.spec = NULL;
        if (is_checked)
            code = leave_out(
                cli, path, "it is not a valid definition; run 'detent check' for details");
    }
    *ret = spec.spec;
    return code;
}

static struct config_machine *find_machine(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->machine_count; i++) {
        if (strcmp(config->machines[i].name, name) == 0)
            return &config->machines[i];
    }
    return NULL;
}

/* Ambiguous: neither is served. */
static int refuse_both(
    struct cli *cli, const char *name, struct config_machine *other, const struct config_file *file)
{
    if (!file->config.is_bare) {
        other->is_served = false;
        return leave_out(cli, name, "another spec here has a definition of the same name");
    }
    cli_report_error(
        cli, "%s and %s both define '%s'; list in a " CONFIG_FILE_NAME " which one is meant",
        other->spec, name, other->name);
    return CLI_USAGE;
}

static int add_definition(
    struct cli *cli, const char *path, const struct det_machine *definition, bool is_checked,
    struct config_file *file)
{
    static const struct det_datum nowhere = { .kind = DET_DATUM_TEXT };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct config *config = &file->config;
    struct config_machine *machine = &config->machines[config->machine_count], *other;
    int code = CLI_OK;

    *machine = (struct config_machine){
        .name = det_arena_copy(&file->arena, definition->name),
        .spec = det_arena_copy(&file->arena, name),
        .is_served = true,
        .node = &nowhere,
    };
    if (!machine->name || !machine->spec)
        return cli_no_memory(cli);
    other = find_machine(config, machine->name);
    if (other)
        return refuse_both(cli, name, other, file);
    if (is_checked)
        code = validate_machine(cli, path, definition, config->is_bare, machine);
    config->machine_count += code == CLI_OK;
    return code;
}

static int add_machine(struct cli *cli, const char *path, bool is_checked, struct config_file *file)
{
    struct det_spec *spec = NULL;
    int code = load_spec(cli, path, is_checked, file, &spec);

    if (code == CLI_OK && spec)
        code = add_definition(cli, path, det_spec_machine(spec), is_checked, file);
    det_spec_close(spec);
    return code;
}

int config_folder_add(
    struct cli *cli, const char *folder, bool is_checked, struct config_file *file)
{
    bool is_here = strcmp(folder, ".") == 0;
    struct dirent **entries = NULL;
    int count = list_folder(folder, &entries), code = CLI_OK;

    det_assert(!file->config.machine_count && !file->config.lists_machines);
    file->config.machines = det_arena_array(
        &file->arena, (size_t)(count > 0 ? count : 0) + 1, sizeof *file->config.machines);
    if (!file->config.machines)
        code = cli_no_memory(cli);
    for (int i = 0; file->config.machines && code == CLI_OK && i < count; i++) {
        char path[2 * DET_PATH_MAX];

        snprintf(
            path, sizeof path, "%s%s%s", is_here ? "" : folder, is_here ? "" : "/",
            entries[i]->d_name);
        code = add_machine(cli, path, is_checked, file);
    }
    det_assert(file->config.machine_count <= (size_t)(count > 0 ? count : 0));
    free_list(entries, count);
    if (code == CLI_OK && file->config.machine_count && !file->config.store)
        file->config.store = CONFIG_STORE_DEFAULT;
    return code;
}
