/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_machines.c - the machines of a store: their definitions, and lookup of an instance's
 * machine. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/store_internal.h"

/* Limit of ids compared with an unknown one. */
#define NEAR_MAX 2000
/* Names in one message. */
#define NAMES_TEXT 200

/* The place of a name in the list, which is in order. */
static struct store_machine **place_of(struct cli_store *store, const char *name)
{
    struct store_machine **place = &store->machines;

    while (*place && strcmp((*place)->name, name) < 0)
        place = &(*place)->next;
    return place;
}

static struct store_machine *find_machine(struct cli_store *store, const char *name)
{
    struct store_machine *found = *place_of(store, name);

    return found && strcmp(found->name, name) == 0 ? found : NULL;
}

/* The one of this name, made if need be; NULL: no memory. */
static struct store_machine *add_machine(struct cli_store *store, const char *name)
{
    struct store_machine *machine = find_machine(store, name), **place;

    if (machine)
        return machine;
    machine = det_arena_alloc(&store->arena, sizeof *machine);
    if (machine)
        machine->name = det_arena_copy(&store->arena, name);
    if (!machine || !machine->name)
        return NULL;
    place = place_of(store, name);
    machine->next = *place;
    *place = machine;
    det_assert(!machine->next || strcmp(name, machine->next->name) < 0);
    return machine;
}

static int add_stored(void *context, const char *name, uint32_t version, const char *spec)
{
    struct cli_store *store = context;
    struct store_machine *machine = add_machine(store, name);

    if (!machine)
        return DET_ERR_NO_MEMORY;
    machine->is_stored = true;
    machine->version = version;
    machine->text = spec && *spec ? det_arena_copy(&store->arena, spec) : NULL;
    return spec && *spec && !machine->text ? DET_ERR_NO_MEMORY : 0;
}

static int add_project(struct cli_store *store)
{
    const struct config *config = &store->project.config;

    for (size_t i = 0; i < config->machine_count; i++) {
        struct store_machine *machine = add_machine(store, config->machines[i].name);

        if (machine)
            machine->path = store_in_project(store, config->machines[i].spec);
        if (!machine || !machine->path)
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

/* --machine FILE: this definition, whatever others there are. */
static int add_file(struct cli_store *store, const char *path)
{
    struct store_machine *machine;
    struct det_spec *spec;
    int code = cli_machine_load(store->cli, path, &spec);

    if (code != CLI_OK)
        return code;
    machine = add_machine(store, det_spec_machine(spec)->name);
    if (!machine) {
        det_spec_close(spec);
        return cli_no_memory(store->cli);
    }
    det_assert(!machine->spec && !machine->it);
    machine->spec = spec;
    store->wanted = machine->name;
    return CLI_OK;
}

int store_list_files(struct cli_store *store)
{
    const char *wanted = store->request.machine;

    if (add_project(store) < 0)
        return cli_no_memory(store->cli);
    if (wanted && cli_has_suffix(wanted, CLI_SPEC_SUFFIX))
        return add_file(store, wanted);
    store->wanted = wanted;
    return CLI_OK;
}

int store_list_machines(struct cli_store *store)
{
    int r = store->ops->machines ? store->ops->machines(store->store, add_stored, store) : 0;

    if (r == DET_ERR_CORRUPT && store->request.may_be_damaged)
        return CLI_OK;
    return r < 0 ? cli_report_store_error(store, r, NULL) : CLI_OK;
}

/* Writes "order, parcel", as far as they fit. */
static const char *list_names(
    const struct store_machine *first, bool (*is_listed)(const struct store_machine *),
    char *target)
{
    size_t used = 0;

    *target = '\0';
    for (const struct store_machine *m = first; m; m = m->next) {
        if (!is_listed(m))
            continue;
        used +=
            (size_t)snprintf(target + used, NAMES_TEXT - used, "%s%s", used ? ", " : "", m->name);
        if (used >= NAMES_TEXT) {
            snprintf(target + NAMES_TEXT - 4, 4, "...");
            break;
        }
    }
    return target;
}

static bool is_any(const struct store_machine *machine)
{
    (void)machine;
    return true;
}

static int report_unknown(struct cli_store *store, const char *name)
{
    const char *names[64] = { NULL };
    size_t count = 0;
    int nearest;
    char all[NAMES_TEXT];

    for (struct store_machine *m = store->machines; m && count < 64; m = m->next)
        names[count++] = m->name;
    nearest = det_text_nearest(name, names, count);
    if (nearest >= 0)
        cli_report_error(
            store->cli, "there is no machine '%s'; did you mean '%s'?", name, names[nearest]);
    else if (count == 0)
        cli_report_error(
            store->cli, "there is no machine '%s', and %s has no machines; pass its spec: %s.fsm",
            name, store->url, name);
    else
        cli_report_error(
            store->cli, "there is no machine '%s'; there is %s; or pass its spec: %s.fsm", name,
            list_names(store->machines, is_any, all), name);
    return CLI_NOT_FOUND;
}

static int read_text(struct cli_store *store, struct store_machine *machine)
{
    struct det_spec_options options = { .allocator = store->cli->allocator };
    int r;

    r = det_spec_read(
        machine->name, machine->text, strlen(machine->text), &options, &machine->spec);
    if (r < 0)
        return cli_no_memory(store->cli);
    if (det_spec_machine(machine->spec))
        return CLI_OK;
    cli_report_error(
        store->cli,
        "the definition of %s in %s cannot be read by this program; pass its file: --machine "
        "%s.fsm",
        machine->name, store->url, machine->name);
    det_spec_close(machine->spec);
    machine->spec = NULL;
    return CLI_FAILURE;
}

/* A file of the project must define the machine of its key. */
static int read_path(struct cli_store *store, struct store_machine *machine)
{
    const char *name;
    int code = cli_machine_load(store->cli, machine->path, &machine->spec);

    if (code != CLI_OK)
        return code;
    name = det_spec_machine(machine->spec)->name;
    if (strcmp(name, machine->name) == 0)
        return CLI_OK;
    cli_report_error(
        store->cli, "%s defines '%s', and " CONFIG_FILE_NAME " calls it '%s'", machine->path, name,
        machine->name);
    return CLI_USAGE;
}

static int read_definition(struct cli_store *store, struct store_machine *machine)
{
    bool is_ours = machine->path && (store->request.is_writing || !machine->text);

    if (machine->spec)
        return CLI_OK;
    if (is_ours)
        return read_path(store, machine);
    if (machine->text)
        return read_text(store, machine);
    cli_report_error(
        store->cli, "%s has no definition of '%s'; pass its file: --machine %s.fsm", store->url,
        machine->name, machine->name);
    return CLI_NOT_FOUND;
}

static int serve_machine(struct cli_store *store, struct store_machine *machine)
{
    struct det_error error = { 0 };
    int code, r;

    det_assert(!machine->it || machine->spec);
    if (machine->it)
        return CLI_OK;
    code = read_definition(store, machine);
    if (code == CLI_OK && store->request.bind)
        code = store->request.bind(store->request.bind_context, det_spec_machine(machine->spec));
    if (code != CLI_OK)
        return code;
    r = store->ops->serve(store->store, det_spec_machine(machine->spec), &error);
    if (r < 0)
        return cli_report_store_error(store, r, &error);
    machine->it = det_spec_machine(machine->spec);
    return CLI_OK;
}

int cli_store_machine(struct cli_store *store, const char *name, struct det_machine **ret)
{
    struct store_machine *machine = find_machine(store, name);
    int code = machine ? serve_machine(store, machine) : report_unknown(store, name);

    if (code == CLI_OK)
        *ret = machine->it;
    return code;
}

int cli_store_definition(struct cli_store *store, const char *name, struct det_machine **ret)
{
    struct store_machine *machine;
    int code;

    name = name ? name : store->wanted;
    machine = find_machine(store, name);
    code = machine ? read_definition(store, machine) : report_unknown(store, name);
    if (code == CLI_OK)
        *ret = det_spec_machine(machine->spec);
    return code;
}

int cli_store_define(
    struct cli_store *store, const char *name, const char *text, struct det_machine **ret)
{
    struct store_machine *machine = add_machine(store, name);
    int code;

    if (machine)
        machine->text = det_arena_copy(&store->arena, text);
    if (!machine || !machine->text)
        return cli_no_memory(store->cli);
    machine->path = NULL;
    machine->is_stored = true;
    code = serve_machine(store, machine);
    if (code == CLI_OK)
        *ret = machine->it;
    return code;
}

int cli_store_only_machine(struct cli_store *store, struct det_machine **ret)
{
    const struct store_machine *first = store->machines;
    char all[NAMES_TEXT];

    if (store->wanted)
        return cli_store_machine(store, store->wanted, ret);
    if (!first) {
        cli_report_error(store->cli, "%s has no machines", store->url);
        return CLI_NOT_FOUND;
    }
    if (!first->next)
        return cli_store_machine(store, first->name, ret);
    cli_report_error(
        store->cli, "which machine? --machine is one of %s",
        list_names(store->machines, is_any, all));
    return CLI_USAGE;
}

static bool is_wanted(const struct cli_store *store, const struct store_machine *machine)
{
    return store->wanted ? strcmp(store->wanted, machine->name) == 0 : machine->is_stored;
}

int cli_store_each(struct cli_store *store, cli_store_each_fn *each, void *context)
{
    int code = CLI_OK;

    if (store->wanted && !find_machine(store, store->wanted))
        return report_unknown(store, store->wanted);
    for (struct store_machine *m = store->machines; m && code == CLI_OK; m = m->next) {
        if (!is_wanted(store, m))
            continue;
        code = serve_machine(store, m);
        if (code == CLI_OK)
            code = each(context, m->it);
    }
    return code;
}

/* The search for an instance. */

struct search {
    struct cli_store *store;
    const char *id;
    struct det_machine *found;
    size_t count;
    char names[NAMES_TEXT];
    /* Ids that look like it. */
    struct det_arena arena;
    const char *near[NEAR_MAX];
    size_t near_count;
};

/* Returns 1 if it has the instance, 0 if not, or an error. */
static int has_instance(struct cli_store *store, struct det_machine *machine, const char *id)
{
    static const struct det_store_rows none = { 0 };
    const struct det_allocator *allocator = store->cli->allocator;
    size_t size = det_machine_data(machine)->size;
    struct det_store_loaded loaded = { .data = det_alloc(allocator, size) };
    int r;

    if (!loaded.data)
        return DET_ERR_NO_MEMORY;
    r = store->ops->load(store->store, machine, id, &none, &loaded);
    if (r == 0)
        store->ops->release(store->store, loaded.instance);
    det_free(allocator, loaded.data, size);
    /* An unreadable instance exists: reading it reports the reason. */
    if (r == 0 || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION)
        return 1;
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static int search_in(void *context, struct det_machine *machine)
{
    struct search *search = context;
    size_t used = strlen(search->names);
    int r;

    r = has_instance(search->store, machine, search->id);
    if (r < 0)
        return cli_report_store_error(search->store, r, NULL);
    if (r == 0)
        return CLI_OK;
    det_assert((search->count > 0) == (search->found != NULL));
    search->found = machine;
    snprintf(
        search->names + used, sizeof search->names - used, "%s%s", search->count ? ", " : "",
        machine->name);
    search->count++;
    return CLI_OK;
}

static int take_near(void *context, const struct det_store_listed *row)
{
    struct search *search = context;
    char *copy;

    if (search->near_count == NEAR_MAX)
        return 0;
    copy = det_arena_copy(&search->arena, row->id);
    if (!copy)
        return DET_ERR_NO_MEMORY;
    search->near[search->near_count++] = copy;
    return 0;
}

/* Collects ids with the longest common prefixes, and the first ones: enough for typing errors in
 * large stores. */
static int look_near(void *context, struct det_machine *machine)
{
    struct search *search = context;
    struct cli_store *store = search->store;
    const size_t length = strlen(search->id);
    const size_t lengths[] = { length > 1 ? length - 1 : 0, length > 2 ? length - 2 : 0, length / 2,
                               0 };
    char prefix[DET_ID_MAX + 1];
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof lengths / sizeof *lengths; i++) {
        struct det_store_query query = { .after = prefix, .limit = NEAR_MAX / 8 };

        snprintf(prefix, sizeof prefix, "%.*s", (int)lengths[i], search->id);
        r = store->ops->list(store->store, machine, &query, take_near, search);
    }
    return r < 0 ? cli_report_store_error(store, r, NULL) : CLI_OK;
}

static int report_missing(struct search *search)
{
    struct cli_store *store = search->store;
    const char *of = store->wanted ? store->wanted : "";
    int nearest = -1, code;

    det_arena_init(&search->arena, store->cli->allocator);
    code = cli_store_each(store, look_near, search);
    if (code == CLI_OK)
        nearest = det_text_nearest(search->id, search->near, search->near_count);
    det_assert(search->near_count <= NEAR_MAX && nearest < (int)search->near_count);
    if (code == CLI_OK && nearest >= 0)
        cli_report_error(
            store->cli, "there is no %s%s'%s' in %s; did you mean '%s'?", of, *of ? " " : "",
            search->id, store->url, search->near[nearest]);
    else if (code == CLI_OK)
        cli_report_error(
            store->cli, "there is no %s%s'%s' in %s; 'detent list' shows all", of, *of ? " " : "",
            search->id, store->url);
    det_arena_deinit(&search->arena);
    return code == CLI_OK ? CLI_NOT_FOUND : code;
}

int cli_store_find(struct cli_store *store, const char *id, struct det_machine **ret)
{
    struct search *search = DET_NEW(store->cli->allocator, struct search);
    int code;

    if (!search)
        return cli_no_memory(store->cli);
    search->store = store;
    search->id = id;
    code = cli_store_each(store, search_in, search);
    if (code == CLI_OK && search->count == 0)
        code = report_missing(search);
    if (code == CLI_OK && search->count > 1) {
        cli_report_error(
            store->cli, "'%s' exists in several machines: %s; select one with --machine", id,
            search->names);
        code = CLI_USAGE;
    }
    det_assert(code != CLI_OK || (search->count == 1 && search->found));
    if (code == CLI_OK)
        *ret = search->found;
    DET_DELETE(store->cli->allocator, search);
    return code;
}
