/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* user_spec.c - the spec of one worker, and the scope that it passes to its children. */
#include <string.h>

#include <detent/worker.h>

#include "base/assert.h"
#include "base/hash.h"
#include "worker/derive.h"
#include "worker/template_data.h"
#include "yaml/datum_text.h"

/* Each part with its place, so that parts cannot be confused. */
static uint64_t hash_parts(
    uint64_t seed, uint64_t config_hash, const struct det_datum *first,
    const struct det_datum *second, const struct det_location *location)
{
    uint64_t hash = det_hash_mix(seed, config_hash);

    hash = det_hash_mix(hash, first ? det_datum_hash(first) : 0);
    hash = det_hash_mix(hash, second ? det_datum_hash(second) : 0);
    return det_hash_mix(hash, det_location_hash(location));
}

static int no_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "spec: out of memory");
}

/* An empty map equals none. */
static const struct det_datum *or_nothing(const struct det_datum *map)
{
    return map && map->kind == DET_DATUM_MAP && map->count ? map : NULL;
}

static void seal(struct det_user_spec *spec)
{
    if (spec->config && !*spec->config)
        spec->config = NULL;
    spec->variables = or_nothing(spec->variables);
    if (!spec->config)
        spec->config_hash = 0;
    else if (!spec->is_config_data)
        spec->config_hash = det_hash64(spec->config, strlen(spec->config), 1);
    spec->hash = hash_parts(1, spec->config_hash, spec->variables, NULL, &spec->location);
}

static int finish(
    struct det_user_spec *spec, int result, struct det_user_spec *ret, struct det_error *reterr)
{
    if (result == DET_ERR_NO_MEMORY)
        no_memory(reterr);
    if (result < 0) {
        det_user_spec_deinit(spec);
        return result;
    }
    seal(spec);
    *ret = *spec;
    return 0;
}

static int read_location(
    struct det_arena *arena, const char *yaml, struct det_location *ret, struct det_error *reterr)
{
    struct det_datum *datum;
    int r;

    if (!yaml)
        return 0;
    r = det_datum_from_yaml(arena, "location", yaml, strlen(yaml), &datum, reterr);
    return r < 0 ? r : det_location_read(arena, datum, ret, reterr);
}

static int read_child(
    struct det_user_spec *spec, const struct det_child_spec *child, struct det_error *reterr)
{
    struct det_datum *variables = NULL;
    int r;

    if (child->config) {
        spec->config = det_arena_copy(&spec->arena, child->config);
        if (!spec->config)
            return DET_ERR_NO_MEMORY;
    }
    r = read_location(&spec->arena, child->location, &spec->location, reterr);
    if (r < 0 || !child->variables)
        return r;
    r = det_variables_read(&spec->arena, "variables", child->variables, &variables, reterr);
    spec->variables = variables;
    return r;
}

int det_user_spec_init(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_child_spec *child, struct det_error *reterr)
{
    struct det_user_spec spec = { .hash = 0 };

    memset(ret, 0, sizeof *ret);
    det_arena_init(&spec.arena, allocator);
    return finish(&spec, read_child(&spec, child, reterr), ret, reterr);
}

/* Independent of the order of keys. */
static void set_config_data(struct det_user_spec *spec, const struct det_datum *config)
{
    spec->is_config_data = true;
    spec->config_hash = det_datum_hash(config);
}

/* In a template the order of keys may matter, so its text is compared as it is. */
int det_user_spec_parse_config(struct det_user_spec *spec)
{
    struct det_arena arena;
    struct det_error error;
    struct det_datum *data;
    int r;

    if (!spec->config || spec->is_config_data || strstr(spec->config, "{{"))
        return 0;
    det_arena_init(&arena, spec->arena.allocator);
    r = det_datum_from_yaml(&arena, "config", spec->config, strlen(spec->config), &data, &error);
    if (r == 0 && or_nothing(data)) {
        set_config_data(spec, data);
        seal(spec);
    }
    det_arena_deinit(&arena);
    return r == DET_ERR_NO_MEMORY ? r : 0;
}

/* A map becomes a template of YAML. */
static int set_config(
    struct det_user_spec *spec, const struct det_datum *config, struct det_error *reterr)
{
    struct det_buffer buffer = { .allocator = spec->arena.allocator, .limit = DET_DATUM_SIZE_MAX };
    int r;

    if (config->kind == DET_DATUM_TEXT) {
        spec->config = det_arena_copy(&spec->arena, config->text);
        return spec->config ? det_user_spec_parse_config(spec) : DET_ERR_NO_MEMORY;
    }
    if (config->kind != DET_DATUM_MAP && config->kind != DET_DATUM_NULL)
        return det_datum_fail(
            reterr, DET_ERR_INVALID, "config", config->line, config->column,
            "expected a map or a text, found %s", det_datum_kind_text(config->kind));
    if (!or_nothing(config))
        return 0;
    set_config_data(spec, config);
    det_template_from_data(config, &buffer);
    r = det_buffer_status(&buffer);
    if (r == 0) {
        spec->config = det_arena_copy(&spec->arena, det_buffer_text(&buffer));
        r = spec->config ? 0 : DET_ERR_NO_MEMORY;
    } else if (r == DET_ERR_LIMIT) {
        det_datum_fail(
            reterr, r, "config", config->line, config->column, "it is larger than %d KiB; split it",
            DET_DATUM_SIZE_MAX / 1024);
    }
    det_buffer_deinit(&buffer);
    return r;
}

static int copy_parts(
    struct det_user_spec *spec, const struct det_datum *variables,
    const struct det_location *location)
{
    if (variables) {
        spec->variables = det_datum_copy(&spec->arena, variables);
        if (!spec->variables)
            return DET_ERR_NO_MEMORY;
    }
    return det_location_copy(&spec->arena, location, &spec->location);
}

int det_user_spec_init_data(
    struct det_user_spec *ret, const struct det_allocator *allocator,
    const struct det_datum *config, const struct det_datum *variables,
    const struct det_datum *location, struct det_error *reterr)
{
    struct det_user_spec spec = { .hash = 0 };
    struct det_location borrowed = { { NULL } };
    int r;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&spec.arena, allocator);
    r = det_variables_check("variables", variables, reterr);
    if (r == 0)
        r = det_location_read(&spec.arena, location, &borrowed, reterr);
    if (r == 0)
        r = copy_parts(&spec, or_nothing(variables), &borrowed);
    if (r == 0 && config)
        r = set_config(&spec, config, reterr);
    return finish(&spec, r, ret, reterr);
}

void det_user_spec_deinit(struct det_user_spec *spec)
{
    det_arena_deinit(&spec->arena);
    memset(spec, 0, sizeof *spec);
}

/* The same text, or the same data with its keys in another order. */
static bool are_configs_equal(const struct det_user_spec *a, const struct det_user_spec *b)
{
    if (!a->config || !b->config)
        return !a->config == !b->config;
    return strcmp(a->config, b->config) == 0 ||
           (a->is_config_data && b->is_config_data && a->config_hash == b->config_hash);
}

bool det_user_spec_equal(const struct det_user_spec *a, const struct det_user_spec *b)
{
    if (a->hash != b->hash || !a->variables != !b->variables)
        return false;
    return are_configs_equal(a, b) &&
           (!a->variables || det_datum_equal(a->variables, b->variables)) &&
           det_location_equal(&a->location, &b->location);
}

bool det_user_spec_is_plain(const struct det_user_spec *spec)
{
    return !spec->variables && det_location_is_empty(&spec->location);
}

static void finish_scope(struct det_scope_values *scope, const struct det_datum *globals)
{
    scope->globals = or_nothing(globals);
    scope->hash = hash_parts(2, 0, NULL, scope->globals, &scope->location);
}

int det_scope_values_init(
    struct det_scope_values *ret, const struct det_allocator *allocator, const char *globals,
    struct det_error *reterr)
{
    struct det_datum *map = NULL;
    int r;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&ret->arena, allocator);
    r = globals ? det_globals_read(&ret->arena, globals, &map, reterr) : 0;
    if (r < 0)
        det_scope_values_deinit(ret);
    else
        finish_scope(ret, map);
    return r;
}

int det_scope_values_init_data(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_datum *globals, struct det_error *reterr)
{
    struct det_datum *map = NULL;
    int r = 0;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&ret->arena, allocator);
    if (globals)
        r = det_globals_copy(&ret->arena, globals, &map, reterr);
    if (r < 0)
        det_scope_values_deinit(ret);
    else
        finish_scope(ret, map);
    return r;
}

static int merge_scope(
    struct det_scope_values *scope, const struct det_scope_values *parent,
    const struct det_user_spec *spec)
{
    struct det_location location = det_location_merge(&parent->location, &spec->location);

    if (parent->variables || spec->variables) {
        scope->variables = det_datum_merge(&scope->arena, parent->variables, spec->variables);
        if (!scope->variables)
            return DET_ERR_NO_MEMORY;
    }
    if (parent->globals) {
        scope->globals = det_datum_copy(&scope->arena, parent->globals);
        if (!scope->globals)
            return DET_ERR_NO_MEMORY;
    }
    return det_location_copy(&scope->arena, &location, &scope->location);
}

int det_scope_values_below(
    struct det_scope_values *ret, const struct det_allocator *allocator,
    const struct det_scope_values *parent, const struct det_user_spec *spec)
{
    struct det_scope_values scope = { .hash = 0 };
    int r;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&scope.arena, allocator);
    r = merge_scope(&scope, parent, spec);
    if (r < 0) {
        det_scope_values_deinit(&scope);
        return r;
    }
    scope.hash = hash_parts(2, 0, scope.variables, scope.globals, &scope.location);
    *ret = scope;
    return 0;
}

void det_scope_values_deinit(struct det_scope_values *scope)
{
    det_arena_deinit(&scope->arena);
    memset(scope, 0, sizeof *scope);
}

uint64_t det_derive_hash(const struct det_user_spec *spec, const struct det_scope_values *scope)
{
    return det_hash_mix(spec->hash, scope ? scope->hash : 0);
}
