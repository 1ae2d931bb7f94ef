/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_section.c - the section 'workers' of detent.yaml. The library
 * reads the values of its keys from the same tree. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/config_internal.h"
#include "worker/application.h"
#include "worker/limits.h"
#include "worker/spec.h"

#define KINDS_MAX 256

enum {
    KEY_NAME,
    KEY_VARIABLES,
    KEY_LOCATION,
    KEY_GLOBALS,
    KEY_LIMITS,
    KEY_MODULES,
    KEY_CHILDREN,
    KEY_COUNT
};

static const char *const words[KEY_COUNT] = {
    "name", "variables", "location", "globals", "limits", "modules", "children",
};

/* Reports an error of the library about a part of this file, at the place that its text names. */
static int fail_inside(
    struct cli_reader *reader, const struct det_datum *node, const struct det_error *error)
{
    const char *place = strstr(error->text, ", line ");
    struct det_datum at = *node;
    int used = 0;

    if (error->code == DET_ERR_NO_MEMORY)
        return reader_no_memory(reader, node);
    if (!place || sscanf(place, ", line %u, column %u: %n", &at.line, &at.column, &used) != 2 ||
        !used)
        return reader_fail(reader, node, "%s", error->text);
    return reader_fail(reader, &at, "%s", place + used);
}

/* Limits. */

static int take_large(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    uint64_t number;
    int r = reader_number(reader, node, &number);

    if (r == 0 && (number < key->least || number > key->most))
        r = reader_fail(
            reader, node, "'%s' is %llu to %llu", key->name, (unsigned long long)key->least,
            (unsigned long long)key->most);
    if (r == 0)
        memcpy(target, &number, sizeof number);
    return r;
}

#define TAKE_SPAN  config_take_span
#define TAKE_COUNT config_take_number
#define TAKE_LARGE take_large
#define TAKE_SIZE  config_take_size

static int take_limits(
    struct cli_reader *reader, const struct det_datum *node, struct det_worker_limits *limits)
{
#define IN(member) offsetof(struct det_worker_limits, member)
    static const struct config_key keys[] = {
#define WORKER_LIMIT(member, type, least, most, unit, about) \
    CONFIG_RANGE(#member, TAKE_##type, IN(member), least, most),
#define WORKER_BACKOFF(member, about)   CONFIG_KEY(#member, config_take_backoff, IN(member)),
#define WORKER_INTENSITY(member, about) CONFIG_KEY(#member, config_take_intensity, IN(member)),
#include "config/worker_limits.def"
#undef WORKER_LIMIT
#undef WORKER_BACKOFF
#undef WORKER_INTENSITY
    };
#undef IN
    struct det_worker_limits resolved;
    struct det_error error = { 0 };
    int r;

    r = config_take_mapping(
        reader, node, CONFIG_TABLE("'limits' of 'workers'", keys), limits, NULL);
    if (r == 0 && det_worker_limits_resolve(limits, &resolved, &error) < 0)
        r = reader_fail(reader, node, "%s", error.text);
    return r;
}

/* Modules. */

static int take_isolate(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    bool *is_isolated = target;
    int r = reader_want(reader, node, DET_DATUM_TEXT, "'isolate'");

    (void)key;
    if (r == 0 && strcmp(node->text, "process") != 0 && strcmp(node->text, "none") != 0)
        r = reader_fail(reader, node, "'isolate' is 'process' or 'none'");
    if (r == 0)
        *is_isolated = strcmp(node->text, "process") == 0;
    return r;
}

static int take_module(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    static const struct config_key key = { .name = "modules" };
    static const struct config_key keys[] = {
        CONFIG_KEY("path", config_take_text, offsetof(struct config_kinds, path)),
        CONFIG_KEY("isolate", take_isolate, offsetof(struct config_kinds, is_isolated)),
    };
    struct config_kinds *module = &workers->modules[workers->module_count++];
    int r;

    det_assert(!module->path && !module->node);
    module->node = node;
    if (node->kind != DET_DATUM_MAP)
        return config_take_text(reader, node, &key, &module->path);
    r = config_take_mapping(reader, node, CONFIG_TABLE("a module", keys), module, NULL);
    if (r == 0 && !module->path)
        r = reader_fail(reader, node, "a module needs a 'path', like {path: ./valve.so}");
    return r;
}

static int take_modules(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    bool is_one = node->kind != DET_DATUM_LIST;
    int r = 0;

    workers->modules = det_arena_array(reader->arena, node->count + 1, sizeof *workers->modules);
    if (!workers->modules)
        return reader_no_memory(reader, node);
    if (is_one)
        return take_module(reader, node, workers);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, take_module(reader, item, workers));
    return r;
}

/* Parts that the library reads. */

/* Returns a mapping at the same place with these keys only; NULL: no memory. */
static struct det_datum *pick_keys(
    struct det_arena *arena, const struct det_datum *mapping, const char *const *keys)
{
    struct det_datum *picked = det_datum_new(arena, DET_DATUM_MAP), *item;

    if (!picked)
        return NULL;
    picked->line = mapping->line;
    picked->column = mapping->column;
    for (; *keys; keys++) {
        const struct det_datum *found = det_datum_get(mapping, *keys);

        if (!found)
            continue;
        item = det_datum_new(arena, DET_DATUM_NULL);
        if (item)
            *item = *found;
        if (!det_datum_append(arena, picked, *keys, item))
            return NULL;
    }
    return picked;
}

static int take_spec(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    static const char *const keys[] = { "variables", "location", "children", NULL };
    struct det_error error = { 0 };
    struct det_spec spec;
    int r;

    workers->spec = pick_keys(reader->arena, node, keys);
    if (!workers->spec)
        return reader_no_memory(reader, node);
    r = det_workers_spec_read_data(&spec, reader->arena->allocator, workers->spec, &error);
    if (r < 0)
        return fail_inside(reader, node, &error);
    det_spec_deinit(&spec);
    return 0;
}

static int take_globals(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    struct det_scope_values scope;
    struct det_error error = { 0 };
    int r;

    r = reader_want(reader, node, DET_DATUM_MAP, "'globals'");
    if (r < 0)
        return r;
    workers->globals = node;
    r = det_scope_values_init_data(&scope, reader->arena->allocator, node, &error);
    if (r < 0)
        return fail_inside(reader, node, &error);
    det_scope_values_deinit(&scope);
    return 0;
}

static int take_name(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    static const struct config_key key = { .name = "name" };
    int r = config_take_text(reader, node, &key, &workers->name);

    if (r == 0 && (!det_name_is_valid(workers->name) || strlen(node->text) > DET_WORKER_NAME_MAX))
        r = reader_fail(
            reader, node, "'name' is 1 to %d letters, digits, '.', '_' and '-'",
            DET_WORKER_NAME_MAX);
    return r;
}

int config_take_workers(
    struct cli_reader *reader, const struct det_datum *node, struct config_workers *workers)
{
    const struct det_datum *nodes[KEY_COUNT];
    int r;

    workers->node = node;
    r = reader_keys(reader, node, words, KEY_COUNT, nodes, "'workers'");
    if (node->kind != DET_DATUM_MAP)
        return r;
    if (nodes[KEY_NAME])
        r = reader_both(r, take_name(reader, nodes[KEY_NAME], workers));
    if (nodes[KEY_LIMITS])
        r = reader_both(r, take_limits(reader, nodes[KEY_LIMITS], &workers->limits));
    if (nodes[KEY_MODULES])
        r = reader_both(r, take_modules(reader, nodes[KEY_MODULES], workers));
    if (nodes[KEY_GLOBALS])
        r = reader_both(r, take_globals(reader, nodes[KEY_GLOBALS], workers));
    /* The library reports the same in other words. */
    if (nodes[KEY_VARIABLES] && nodes[KEY_VARIABLES]->kind != DET_DATUM_MAP)
        return reader_both(
            r, reader_want(reader, nodes[KEY_VARIABLES], DET_DATUM_MAP, "'variables'"));
    return r == DET_ERR_NO_MEMORY ? r : reader_both(r, take_spec(reader, node, workers));
}

/* Checks against the available kinds. */

struct checking {
    struct cli_reader reader;
    const struct config_workers *workers;
    const struct det_worker_kind *const *kinds;
    const struct det_allocator *allocator;
    struct det_spec spec;
    struct det_scope_values *scopes; /* by index of the children: what theirs are in */
    struct det_scope_values top, below_root;
    const struct det_datum **nodes; /* by index of the children */
    const struct det_datum **last;  /* by index of the parent, the root first: its last child */
};

static const struct det_worker_kind *find_kind(const struct checking *checking, const char *name)
{
    const struct det_worker_kind *const *kind = checking->kinds;

    if (strcmp(det_application()->name, name) == 0)
        return det_application();
    while (*kind && strcmp((*kind)->name, name) != 0)
        kind++;
    return *kind;
}

static int fail_kind(struct checking *checking, const struct det_datum *node, const char *name)
{
    const char *names[KINDS_MAX] = { det_application()->name };
    size_t count = 1;

    for (; checking->kinds[count - 1] && count < KINDS_MAX; count++)
        names[count] = checking->kinds[count - 1]->name;
    det_assert(count <= KINDS_MAX);
    return reader_fail_near(
        &checking->reader, node, name, names, count, "there is no kind of worker '%s'", name);
}

/* Children of one parent are in the order of the file, so each follows the previous one. */
static const struct det_datum *find_node(
    struct checking *checking, const struct det_spec_child *child)
{
    bool is_top = child->parent == DET_SPEC_ROOT;
    const struct det_datum **last = &checking->last[is_top ? 0 : child->parent + 1];
    const struct det_datum *parent =
        is_top ? checking->workers->node : checking->nodes[child->parent];
    const struct det_datum *list = det_datum_get(parent, "children");

    *last = *last ? (*last)->next : list ? list->first : NULL;
    return *last ? *last : checking->workers->node;
}

static int derive(
    struct checking *checking, const struct det_spec_child *child,
    const struct det_worker_kind *kind, const struct det_scope_values *scope)
{
    const struct det_datum *node = checking->nodes[child - checking->spec.children];
    const struct det_datum *config = det_datum_get(node, "config");
    const struct det_record *record = det_record_of(kind->desired);
    size_t size = record ? record->size : sizeof(struct det_empty);
    const struct det_worker_identity identity = { child->name, child->name, kind->name,
                                                  child->name };
    const struct det_derivation what = {
        .kind = kind, .identity = &identity, .spec = &child->spec, .scope = scope, .parent_id = ""
    };
    struct det_error error = { 0 };
    void *desired = det_alloc_zero(checking->allocator, size);
    int r;

    if (!desired)
        return reader_no_memory(&checking->reader, node);
    r = det_derive_desired(checking->allocator, &what, desired, NULL, &error);
    det_free(checking->allocator, desired, size);
    if (r == DET_ERR_NO_MEMORY)
        return reader_no_memory(&checking->reader, node);
    return r == 0 ? 0
                  : reader_fail(
                        &checking->reader, config ? config : node, "worker %s: %s", child->name,
                        error.text);
}

static int check_child(struct checking *checking, uint32_t index)
{
    const struct det_spec_child *child = &checking->spec.children[index], *all;
    bool is_top = child->parent == DET_SPEC_ROOT;
    const struct det_scope_values *scope =
        is_top ? &checking->below_root : &checking->scopes[child->parent];
    const struct det_worker_kind *kind = find_kind(checking, child->kind), *parent;
    const struct det_datum *node = find_node(checking, child), *kind_node, *run_in;
    struct det_error error = { 0 };
    uint64_t states;
    int r = 0;

    det_assert(is_top || child->parent < index);
    all = checking->spec.children;
    checking->nodes[index] = node;
    kind_node = det_datum_get(node, "kind");
    run_in = det_datum_get(node, "run_in");
    parent = is_top ? det_application() : find_kind(checking, all[child->parent].kind);
    if (det_scope_values_below(&checking->scopes[index], checking->allocator, scope, &child->spec) <
        0)
        return reader_no_memory(&checking->reader, node);
    if (!kind)
        r = fail_kind(checking, kind_node ? kind_node : node, child->kind);
    if (parent && det_spec_run_in(child, parent, &states, &error) < 0)
        r = reader_fail(&checking->reader, run_in ? run_in : node, "%s", error.text);
    return kind ? reader_both(r, derive(checking, child, kind, scope)) : r;
}

static int check_children(struct checking *checking)
{
    uint32_t count = checking->spec.count, done = 0;
    int r = 0;

    checking->scopes =
        DET_NEW_ARRAY(checking->allocator, (size_t)count + 1, struct det_scope_values);
    checking->nodes =
        DET_NEW_ARRAY(checking->allocator, (size_t)count + 1, const struct det_datum *);
    checking->last =
        DET_NEW_ARRAY(checking->allocator, (size_t)count + 1, const struct det_datum *);
    if (!checking->scopes || !checking->nodes || !checking->last)
        r = reader_no_memory(&checking->reader, checking->workers->node);
    for (; done < count && reader_can_continue(&checking->reader, r); done++)
        r = reader_both(r, check_child(checking, done));
    for (uint32_t i = 0; i < done; i++)
        det_scope_values_deinit(&checking->scopes[i]);
    if (checking->scopes)
        DET_DELETE_ARRAY(checking->allocator, checking->scopes, (size_t)count + 1);
    if (checking->nodes)
        DET_DELETE_ARRAY(checking->allocator, checking->nodes, (size_t)count + 1);
    if (checking->last)
        DET_DELETE_ARRAY(checking->allocator, checking->last, (size_t)count + 1);
    return r;
}

int config_check_workers(
    const struct config_workers *workers, const struct det_worker_kind *const *kinds,
    const struct det_allocator *allocator, struct cli_problems *problems)
{
    struct checking checking = { .reader = { .problems = problems },
                                 .workers = workers,
                                 .kinds = kinds,
                                 .allocator = allocator };
    struct det_error error = { 0 };
    int r;

    r = det_workers_spec_read_data(&checking.spec, allocator, workers->spec, &error);
    if (r < 0)
        return fail_inside(&checking.reader, workers->node, &error);
    r = det_scope_values_init_data(&checking.top, allocator, workers->globals, &error);
    if (r == 0)
        r = det_scope_values_below(
            &checking.below_root, allocator, &checking.top, &checking.spec.root);
    r = r < 0 ? reader_no_memory(&checking.reader, workers->node) : check_children(&checking);
    det_scope_values_deinit(&checking.below_root);
    det_scope_values_deinit(&checking.top);
    det_spec_deinit(&checking.spec);
    return r;
}
