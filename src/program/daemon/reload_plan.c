/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_plan.c - compares the running file with the new one, and finds which changes can be
 * applied now. Sections are compared as written, definitions by their meaning. */
#include <string.h>

#include <detent/tool/spec.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "config/flow_file.h"
#include "daemon/flows.h"
#include "daemon/machines.h"
#include "daemon/reload_plan.h"
#include "daemon/slots.h"
#include "daemon/workers.h"
#include "transfer/evolve.h"

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Writes a node in canonical form: equal nodes give equal text. */

static void write_node(struct det_buffer *text, const struct det_datum *node)
{
    char kind = node->kind == DET_DATUM_LIST ? '[' : node->kind == DET_DATUM_MAP ? '{' : '=';
    const char *key = node->key ? node->key : "";
    const char *value = det_datum_is_scalar(node) && node->text ? node->text : "";

    det_buffer_format(text, "%zu:%s%c%zu:%s", strlen(key), key, kind, strlen(value), value);
}

/* Writes NULL for NULL. */
static int write_tree(struct reload *reload, const struct det_datum *root, const char **ret)
{
    const struct det_datum *stack[DET_DATUM_DEPTH_MAX + 1];
    struct det_buffer text;
    size_t depth = 0;

    *ret = NULL;
    if (!root)
        return CLI_OK;
    det_buffer_init(&text, reload->cli.allocator);
    write_node(&text, root);
    stack[depth++] = root->first;
    while (depth) {
        const struct det_datum *node = stack[depth - 1];

        if (!node) {
            det_buffer_append_char(&text, '.');
            depth--;
            continue;
        }
        write_node(&text, node);
        stack[depth - 1] = node->next;
        if (!det_datum_is_scalar(node) && depth < DET_DATUM_DEPTH_MAX + 1)
            stack[depth++] = node->first;
    }
    if (det_buffer_status(&text) == 0)
        *ret = det_arena_copy(&reload->next.file.arena, det_buffer_text(&text));
    det_buffer_deinit(&text);
    return *ret ? CLI_OK : cli_no_memory(&reload->cli);
}

static int put_item(struct reload *reload, const struct reload_item *from)
{
    struct reload_item *item = det_arena_array(&reload->next.file.arena, 1, sizeof *item);

    if (!item)
        return cli_no_memory(&reload->cli);
    *item = *from;
    item->next = NULL;
    /* It may point into a file that is freed before the next plan. */
    item->name = from->name ? det_arena_copy(&reload->next.file.arena, from->name) : NULL;
    if (from->name && !item->name)
        return cli_no_memory(&reload->cli);
    *reload->end = item;
    reload->end = &item->next;
    reload->count++;
    return CLI_OK;
}

/* Running and desired sections. */

static const struct det_datum *section_of(const struct config_file *file, const char *key)
{
    return file->root ? det_datum_get(file->root, key) : NULL;
}

static const struct det_datum *child_of(const struct det_datum *mapping, const char *key)
{
    return mapping ? det_datum_get(mapping, key) : NULL;
}

/* The item of an earlier plan that needs a restart; NULL: none. */
static const struct reload_item *find_standing(
    const struct up *up, const char *subject, const char *name)
{
    const struct reload_item *item = up_standing_items(up);

    while (item && (strcmp(item->subject, subject) != 0 || !is_same_text(item->name, name)))
        item = item->next;
    return item;
}

/* True if this change can be applied now. */
typedef bool can_fn(const struct reload *reload, enum reload_change change, const char *name);

struct comparison {
    const char *subject, *name;
    const struct det_datum *old, *new; /* in the old file, and in the new one */
    can_fn *can;
};

static int compare_part(struct reload *reload, const struct comparison *comparison)
{
    const char *subject = comparison->subject, *name = comparison->name;
    const struct reload_item *standing = find_standing(reload->up, subject, name);
    struct reload_item item = { .subject = subject, .name = name };
    const char *wanted;
    int code = write_tree(reload, comparison->new, &wanted);

    if (code == CLI_OK && !standing)
        code = write_tree(reload, comparison->old, &item.runs);
    else if (code == CLI_OK && standing->runs) {
        item.runs = det_arena_copy(&reload->next.file.arena, standing->runs);
        code = item.runs ? CLI_OK : cli_no_memory(&reload->cli);
    }
    if (code != CLI_OK || is_same_text(item.runs, wanted))
        return code;
    det_assert(item.runs || wanted);
    item.change = !item.runs ? RELOAD_ADDED : !wanted ? RELOAD_REMOVED : RELOAD_CHANGED;
    item.needs_restart = !comparison->can(reload, item.change, name);
    return put_item(reload, &item);
}

static bool can_always(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)reload;
    (void)change;
    (void)name;
    return true;
}

static bool can_never(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)reload;
    (void)change;
    (void)name;
    return false;
}

/* Sections of named items. */

/* A group can only be added; its tasks name it, so members change with them. */
static bool can_group(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)reload;
    (void)name;
    return change == RELOAD_ADDED;
}

static bool can_slot(const struct reload *reload, enum reload_change change, const char *name)
{
    const struct config *config = &reload->next.file.config;
    bool is_durable = up_durable_find(reload->up, name) != NULL;

    for (size_t i = 0; i < config->slot_count; i++)
        is_durable |= strcmp(config->slots[i].name, name) == 0 && config->slots[i].is_durable;
    return change != RELOAD_REMOVED && !is_durable;
}

/* A run of named tasks has no flows. */
static bool can_flow(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)change;
    (void)name;
    return !up_options(reload->up)->name_count;
}

static int compare_names(struct reload *reload, const char *key, const char *subject, can_fn *can)
{
    const struct det_datum *old = section_of(&up_project(reload->up)->file, key);
    const struct det_datum *new = section_of(&reload->next.file, key);
    const struct det_datum *node;
    const struct reload_item *standing;
    struct comparison it = { .subject = subject, .can = can };
    int code = CLI_OK;

    for (node = new ? new->first : NULL; node &&code == CLI_OK; node = node->next) {
        it.name = node->key;
        it.old = child_of(old, node->key);
        it.new = node;
        code = compare_part(reload, &it);
    }
    it.new = NULL;
    for (node = old ? old->first : NULL; node && code == CLI_OK; node = node->next) {
        it.name = node->key;
        it.old = node;
        code = child_of(new, node->key) ? CLI_OK : compare_part(reload, &it);
    }
    it.old = NULL;
    for (standing = up_standing_items(reload->up); standing && code == CLI_OK;
         standing = standing->next) {
        it.name = standing->name;
        if (strcmp(standing->subject, subject) == 0 && !child_of(new, it.name) &&
            !child_of(old, it.name))
            code = compare_part(reload, &it);
    }
    return code;
}

/* Whole sections. */

static bool can_store(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)change;
    (void)name;
    return !up_machines(reload->up) && !up_durable_count(reload->up) && !up_has_workers(reload->up);
}

/* A new supervisor of workers must open the store before all other parts. */
static bool can_begin_workers(const struct reload *reload)
{
    const struct up *up = reload->up;

    return !up_has_workers(up) && !up_machines(up) && !up_durable_count(up) &&
           !up_options(up)->name_count;
}

/* A running supervisor accepts another tree, */
static bool can_workers(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)change;
    (void)name;
    return up_has_workers(reload->up) || can_begin_workers(reload);
}

/* but not other options. */
static bool can_supervisor(const struct reload *reload, enum reload_change change, const char *name)
{
    (void)change;
    (void)name;
    return can_begin_workers(reload);
}

static int compare_section(struct reload *reload, const char *key, can_fn *can)
{
    return compare_part(
        reload, &(struct comparison){ .subject = key,
                                      .old = section_of(&up_project(reload->up)->file, key),
                                      .new = section_of(&reload->next.file, key),
                                      .can = can });
}

/* Compares the parts of 'http': its addresses cannot change. */
static int compare_http(struct reload *reload)
{
    static const char *const keys[] = { "listen", "socket", "hosts", "tls", "rate", "limits" };
    const struct det_datum *old = section_of(&up_project(reload->up)->file, "http");
    const struct det_datum *new = section_of(&reload->next.file, "http");
    size_t before = reload->count;
    int code = CLI_OK;

    for (size_t i = 0; i < sizeof keys / sizeof *keys && code == CLI_OK; i++) {
        code = compare_part(
            reload, &(struct comparison){ .subject = "http",
                                          .name = keys[i],
                                          .old = child_of(old, keys[i]),
                                          .new = child_of(new, keys[i]),
                                          .can = i == 0 ? can_never : can_always });
        if (i == 0)
            before = reload->count;
    }
    reload->has_new_http = reload->count > before;
    reload->pauses_api = reload->pauses_api || reload->has_new_http;
    /* The TLS files may have changed; they apply to new connections only. */
    if (code == CLI_OK && !reload->pauses_api &&
        up_options(reload->up)->front->has_new_files(reload->up))
        code = put_item(
            reload, &(struct reload_item){
                        .change = RELOAD_CHANGED, .subject = "http", .name = "tls files" });
    return code;
}

/* Compares the parts of 'workers': the options of the supervisor cannot change. */
static int compare_workers(struct reload *reload)
{
    static const struct {
        const char *key;
        can_fn *can;
    } parts[] = {
        { "children", can_workers },   { "variables", can_workers }, { "location", can_workers },
        { "globals", can_workers },    { "name", can_supervisor },   { "limits", can_supervisor },
        { "modules", can_supervisor },
    };
    const struct det_datum *old = section_of(&up_project(reload->up)->file, "workers");
    const struct det_datum *new = section_of(&reload->next.file, "workers");
    int code = CLI_OK;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && code == CLI_OK; i++)
        code = compare_part(
            reload, &(struct comparison){ .subject = "workers",
                                          .name = parts[i].key,
                                          .old = child_of(old, parts[i].key),
                                          .new = child_of(new, parts[i].key),
                                          .can = parts[i].can });
    return code;
}

/* Flows: also those whose section is the same, since their .flow files may differ. */

static bool has_flow_item(const struct reload *reload, const char *name)
{
    const struct reload_item *item = reload->first;

    while (item && (strcmp(item->subject, "flow") != 0 || strcmp(item->name, name) != 0))
        item = item->next;
    return item != NULL;
}

static int compare_flow(struct reload *reload, const struct config_flow *config)
{
    struct flow_definition *definition = NULL;
    int code;

    if (has_flow_item(reload, config->name))
        return CLI_OK;
    code = flow_definition_open(&reload->cli, config, &definition);
    if (code == CLI_OK && up_flow_would_change(reload->up, config->name, definition))
        code = put_item(
            reload, &(struct reload_item){
                        .change = RELOAD_CHANGED, .subject = "flow", .name = config->name });
    flow_definition_close(definition);
    return code;
}

static int compare_flows(struct reload *reload)
{
    const struct config *new = &reload->next.file.config;
    int code = compare_names(reload, "flows", "flow", can_flow);

    for (size_t i = 0; i < new->flow_count &&code == CLI_OK; i++)
        code = compare_flow(reload, &new->flows[i]);
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

/* Fails, after messages, if a new definition would strand instances. */
static int check_stranded(struct reload *reload, const struct config_machine *machine)
{
    static const char *const renames[DET_COMPARE_KINDS] = { NULL };
    const struct evolve_request request = {
        .new_path = machine->spec,
        .url = up_machines(reload->up)->address,
        .needs_store = true,
        .renames = renames,
    };
    struct evolve evolve;
    int code;

    if (!reload->may_ask_store) {
        reload->asks_store = true;
        return CLI_OK;
    }
    code = evolve_open(&reload->cli, &request, &evolve);
    if (code == CLI_OK)
        code = evolve_compare(&evolve);
    reload->is_store_failed = code != CLI_OK && code != CLI_USAGE;
    if (code == CLI_OK && evolve.stranded) {
        evolve_print_hazards(&evolve);
        cli_report_error(
            &reload->cli,
            "%s would strand stored instances. Restore the old names, or migrate while nothing "
            "serves the store: 'detent stop --wait', then 'detent migrate %s' with the --rename "
            "options of the hints, then 'detent up'",
            machine->spec, machine->spec);
        reload->is_stranding = true;
        code = CLI_REFUSED;
    }
    evolve_close(&evolve);
    return code;
}

/* Sets `*ret` if the definition differs from the served one. */
static int compare_definition(
    struct reload *reload, const struct config_machine *machine, const struct det_machine *served,
    bool *ret)
{
    struct det_error error = { 0 };
    struct det_spec *spec = NULL;
    bool is_same = true;
    int code = cli_machine_load(&reload->cli, machine->spec, &spec);

    if (code != CLI_OK)
        return code;
    if (module_is_same_machine(
            served, det_spec_machine(spec), reload->cli.allocator, &is_same, &error) < 0)
        code = cli_no_memory(&reload->cli);
    *ret = !is_same;
    det_spec_close(spec);
    return code == CLI_OK && *ret ? check_stranded(reload, machine) : code;
}

/* Sets `*ret` if the settings of the machine or the file of its module differ. */
static int compare_settings(
    struct reload *reload, const struct config_machine *before,
    const struct config_machine *machine, bool *ret)
{
    const struct up_machines *machines = up_machines(reload->up);
    const char *runs, *wanted;
    int code = write_tree(reload, before->node, &runs);

    if (code == CLI_OK)
        code = write_tree(reload, machine->node, &wanted);
    if (code == CLI_OK)
        *ret = !is_same_text(runs, wanted) ||
               (machine->module && machines &&
                !modules_is_same(&machines->effects.modules, machine->module));
    return code;
}

static int compare_machine(
    struct reload *reload, const struct config_machine *machine, bool can_reopen)
{
    const struct up *up = reload->up;
    int index = find_machine(up_config(up), machine->name), code = CLI_OK;
    const struct config_machine *before =
        index < 0 ? NULL : &up_project(up)->file.config.machines[index];
    const struct det_machine *served =
        before && up_machines(up) ? up_machines(up)->served[index] : NULL;
    bool is_other = !before || before->is_served != machine->is_served;

    if (served && machine->is_served)
        code = compare_definition(reload, machine, served, &is_other);
    if (code == CLI_OK && !is_other)
        code = compare_settings(reload, before, machine, &is_other);
    if (code != CLI_OK || !is_other)
        return code;
    reload->reopens_machines = reload->reopens_machines || can_reopen;
    return put_item(
        reload, &(struct reload_item){ .change = before ? RELOAD_CHANGED : RELOAD_ADDED,
                                       .subject = "machine",
                                       .name = machine->name,
                                       .needs_restart = !can_reopen });
}

static int compare_machines(struct reload *reload)
{
    const struct up *up = reload->up;
    const struct config *old = up_config(up), *new = &reload->next.file.config;
    /* Durable slots use the store of the machines, and their jobs must not be interrupted. */
    bool can_reopen =
        !up_durable_count(up) && (!up_machines(up) || is_same_text(old->store, new->store));
    int code = CLI_OK;

    for (size_t i = 0; i < new->machine_count &&code == CLI_OK; i++)
        code = compare_machine(reload, &new->machines[i], can_reopen);
    for (size_t i = 0; i < old->machine_count && code == CLI_OK; i++) {
        if (find_machine(new, old->machines[i].name) >= 0)
            continue;
        reload->reopens_machines = reload->reopens_machines || can_reopen;
        code = put_item(
            reload, &(struct reload_item){ .change = RELOAD_REMOVED,
                                           .subject = "machine",
                                           .name = old->machines[i].name,
                                           .needs_restart = !can_reopen });
    }
    det_assert(code != CLI_OK || !reload->reopens_machines || reload->count > 0);
    reload->pauses_api = reload->reopens_machines;
    return code;
}

int reload_plan(struct reload *reload)
{
    int code = compare_names(reload, "groups", "group", can_group);

    if (code == CLI_OK)
        code = compare_names(reload, "slots", "slot", can_slot);
    if (code == CLI_OK)
        code = compare_names(reload, "tasks", "task", can_always);
    if (code == CLI_OK)
        code = compare_flows(reload);
    if (code == CLI_OK)
        code = compare_machines(reload);
    if (code == CLI_OK)
        code = compare_workers(reload);
    if (code == CLI_OK)
        code = compare_http(reload);
    if (code == CLI_OK)
        code = compare_section(reload, "store", can_store);
    if (code == CLI_OK)
        code = compare_section(reload, "defaults", can_never);
    if (code == CLI_OK)
        code = compare_section(reload, "limits", can_never);
    if (code == CLI_OK)
        code = compare_section(reload, "log", can_always);
    return code == CLI_OK ? compare_section(reload, "traces", can_never) : code;
}
