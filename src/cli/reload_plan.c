/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_plan.c - what is different between the file that runs and the one that was read, and what
 * of it can be done now. Sections are compared as they are written, definitions by what they say.
 */
#include <string.h>

#include <detent/spec.h>

#include "base/buffer.h"
#include "cli/evolve.h"
#include "cli/reload.h"
#include "cli/up_machines.h"

/* A pair of nodes whose children are compared. */
struct pair {
    const struct cli_yaml *a, *b;
};

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The two alone, without their children. */
static bool is_same_node(const struct cli_yaml *a, const struct cli_yaml *b)
{
    return a && b && a->kind == b->kind && a->count == b->count && is_same_text(a->key, b->key) &&
           (a->kind != CLI_YAML_SCALAR || is_same_text(a->text, b->text));
}

bool reload_is_same(const struct cli_yaml *a, const struct cli_yaml *b)
{
    struct pair stack[CLI_YAML_DEPTH_MAX + 1];
    size_t depth = 0;

    if (!a || !b)
        return a == b;
    if (!is_same_node(a, b))
        return false;
    stack[depth++] = (struct pair){ a->first, b->first };
    while (depth) {
        struct pair *top = &stack[depth - 1];
        struct pair at = *top;

        if (!at.a || !at.b) {
            depth--;
            continue;
        }
        if (!is_same_node(at.a, at.b))
            return false;
        *top = (struct pair){ at.a->next, at.b->next };
        if (at.a->first && depth < CLI_YAML_DEPTH_MAX + 1)
            stack[depth++] = (struct pair){ at.a->first, at.b->first };
    }
    return true;
}

static int put(
    struct reload *reload, enum reload_change change, const char *subject, const char *name,
    bool needs_restart)
{
    struct reload_item *item = det_arena_array(&reload->next.file.arena, 1, sizeof *item);

    if (!item)
        return cli_no_memory(&reload->cli);
    *item = (struct reload_item){
        .change = change, .subject = subject, .name = name, .needs_restart = needs_restart
    };
    *reload->end = item;
    reload->end = &item->next;
    reload->count++;
    return CLI_OK;
}

static const struct cli_yaml *section(const struct config_file *file, const char *key)
{
    return file->root ? cli_yaml_get(file->root, key) : NULL;
}

/* Sections of named things. */

/* Whether this change of one can be done now. */
typedef bool can_fn(
    const struct reload *reload, enum reload_change change, const struct cli_yaml *old,
    const struct cli_yaml *new);

static bool can_task(
    const struct reload *reload, enum reload_change change, const struct cli_yaml *old,
    const struct cli_yaml *new)
{
    (void)reload;
    (void)change;
    (void)old;
    (void)new;
    return true;
}

/* A group is made once; who its members are is said by these. */
static bool can_group(
    const struct reload *reload, enum reload_change change, const struct cli_yaml *old,
    const struct cli_yaml *new)
{
    (void)reload;
    (void)old;
    (void)new;
    return change == RELOAD_ADDED;
}

static bool is_durable(const struct cli_yaml *slot)
{
    const struct cli_yaml *durable = slot ? cli_yaml_get(slot, "durable") : NULL;

    return durable && is_same_text(durable->text, "yes");
}

static bool can_slot(
    const struct reload *reload, enum reload_change change, const struct cli_yaml *old,
    const struct cli_yaml *new)
{
    (void)reload;
    return change != RELOAD_REMOVED && !is_durable(old) && !is_durable(new);
}

static const struct cli_yaml *child(const struct cli_yaml *mapping, const char *key)
{
    return mapping ? cli_yaml_get(mapping, key) : NULL;
}

static int compare_names(struct reload *reload, const char *key, const char *subject, can_fn *can)
{
    const struct cli_yaml *old = section(&reload->up->file, key);
    const struct cli_yaml *new = section(&reload->next.file, key);
    int code = CLI_OK;

    for (const struct cli_yaml *item = new ? new->first : NULL; item &&code == CLI_OK;
         item = item->next) {
        const struct cli_yaml *before = child(old, item->key);
        enum reload_change change = before ? RELOAD_CHANGED : RELOAD_ADDED;

        if (!reload_is_same(before, item))
            code = put(reload, change, subject, item->key, !can(reload, change, before, item));
    }
    for (const struct cli_yaml *item = old ? old->first : NULL; item && code == CLI_OK;
         item = item->next) {
        if (!child(new, item->key))
            code =
                put(reload, RELOAD_REMOVED, subject, item->key,
                    !can(reload, RELOAD_REMOVED, item, NULL));
    }
    return code;
}

/* Whole sections. */

static int compare_section(struct reload *reload, const char *key, bool needs_restart)
{
    const struct cli_yaml *old = section(&reload->up->file, key);
    const struct cli_yaml *new = section(&reload->next.file, key);

    if (reload_is_same(old, new))
        return CLI_OK;
    return put(
        reload,
        !old   ? RELOAD_ADDED
        : !new ? RELOAD_REMOVED
               : RELOAD_CHANGED,
        key, NULL, needs_restart);
}

/* The parts of 'http' one by one: where it listens cannot change. */
static int compare_http(struct reload *reload, bool can_reopen)
{
    static const char *const keys[] = { "listen", "socket", "hosts", "tls", "rate", "limits" };
    const struct cli_yaml *old = section(&reload->up->file, "http");
    const struct cli_yaml *new = section(&reload->next.file, "http");
    int code = CLI_OK;

    for (size_t i = 0; i < sizeof keys / sizeof *keys && code == CLI_OK; i++) {
        const struct cli_yaml *before = child(old, keys[i]), *after = child(new, keys[i]);
        bool needs_restart = i == 0 || !can_reopen;

        if (reload_is_same(before, after))
            continue;
        reload->is_core = reload->is_core || !needs_restart;
        code =
            put(reload,
                !before  ? RELOAD_ADDED
                : !after ? RELOAD_REMOVED
                         : RELOAD_CHANGED,
                "http", keys[i], needs_restart);
    }
    return code;
}

/* Machines. */

static int find_machine(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->machine_count; i++) {
        if (strcmp(config->machines[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static int write_text(
    const struct det_machine *machine, const struct det_allocator *allocator,
    struct det_buffer *ret)
{
    int64_t size = det_machine_write(machine, allocator, NULL, 0, NULL);
    char *target = size < 0 ? NULL : det_buffer_extend(ret, (size_t)size + 1);

    if (target)
        size = det_machine_write(machine, allocator, target, (size_t)size + 1, NULL);
    return size < 0 || !target ? DET_ERR_NO_MEMORY : 0;
}

/* What it would strand was printed, if anything. */
static int check_stranded(struct reload *reload, const struct config_machine *machine)
{
    static const char *const renames[DET_COMPARE_KINDS] = { NULL };
    const struct evolve_wish wish = {
        .new_path = machine->spec,
        .url = reload->up->machines->address,
        .needs_store = true,
        .renames = renames,
    };
    struct evolve evolve;
    int code = evolve_open(&reload->cli, &wish, &evolve);

    if (code == CLI_OK)
        code = evolve_compare(&evolve);
    if (code == CLI_OK && evolve.stranded) {
        evolve_print_hazards(&evolve);
        cli_complain(
            &reload->cli, "%s would strand what runs; 'detent migrate %s' brings it along",
            machine->spec, machine->spec);
        code = CLI_REFUSED;
    }
    evolve_close(&evolve);
    return code;
}

/* Whether the definition is another one than that which is served. */
static int compare_definition(
    struct reload *reload, const struct config_machine *machine, const struct det_machine *served,
    bool *ret)
{
    const struct det_allocator *allocator = reload->cli.allocator;
    struct det_spec *spec = NULL;
    struct det_buffer old, new;
    int code = cli_machine_load(&reload->cli, machine->spec, &spec);

    if (code != CLI_OK)
        return code;
    det_buffer_init(&old, allocator);
    det_buffer_init(&new, allocator);
    if (write_text(served, allocator, &old) < 0 ||
        write_text(det_spec_machine(spec), allocator, &new) < 0)
        code = cli_no_memory(&reload->cli);
    else
        *ret = strcmp(det_buffer_text(&old), det_buffer_text(&new)) != 0;
    det_buffer_deinit(&old);
    det_buffer_deinit(&new);
    det_spec_close(spec);
    return code == CLI_OK && *ret ? check_stranded(reload, machine) : code;
}

static int compare_machine(
    struct reload *reload, const struct config_machine *machine, bool needs_restart)
{
    const struct up *up = reload->up;
    int index = find_machine(&up->file.config, machine->name), code = CLI_OK;
    const struct config_machine *before = index < 0 ? NULL : &up->file.config.machines[index];
    const struct det_machine *served = before && up->machines ? up->machines->served[index] : NULL;
    bool is_other = false;

    if (served && machine->is_served)
        code = compare_definition(reload, machine, served, &is_other);
    if (code != CLI_OK)
        return code;
    if (before && !is_other && reload_is_same(before->node, machine->node) &&
        (!machine->module || modules_is_same(&up->machines->effects.modules, machine->module)))
        return CLI_OK;
    reload->is_core = reload->is_core || !needs_restart;
    return put(
        reload, before ? RELOAD_CHANGED : RELOAD_ADDED, "machine", machine->name, needs_restart);
}

static int compare_machines(struct reload *reload, bool can_reopen)
{
    const struct config *old = &reload->up->file.config, *new = &reload->next.file.config;
    int code = CLI_OK;

    for (size_t i = 0; i < new->machine_count &&code == CLI_OK; i++)
        code = compare_machine(reload, &new->machines[i], !can_reopen);
    for (size_t i = 0; i < old->machine_count && code == CLI_OK; i++) {
        if (find_machine(new, old->machines[i].name) >= 0)
            continue;
        reload->is_core = reload->is_core || can_reopen;
        code = put(reload, RELOAD_REMOVED, "machine", old->machines[i].name, !can_reopen);
    }
    return code;
}

int reload_plan(struct reload *reload)
{
    /* Durable slots are on the store of the machines, and their jobs are not to be cut off. */
    bool can_reopen = reload->up->durable_count == 0 &&
                      is_same_text(reload->up->file.config.store, reload->next.file.config.store);
    int code = compare_names(reload, "groups", "group", can_group);

    if (code == CLI_OK)
        code = compare_names(reload, "slots", "slot", can_slot);
    if (code == CLI_OK)
        code = compare_names(reload, "tasks", "task", can_task);
    if (code == CLI_OK)
        code = compare_machines(reload, can_reopen);
    if (code == CLI_OK)
        code = compare_http(reload, can_reopen);
    if (code == CLI_OK)
        code = compare_section(reload, "store", true);
    if (code == CLI_OK)
        code = compare_section(reload, "defaults", true);
    if (code == CLI_OK)
        code = compare_section(reload, "limits", true);
    if (code == CLI_OK)
        code = compare_section(reload, "log", false);
    return code == CLI_OK ? compare_section(reload, "traces", true) : code;
}
