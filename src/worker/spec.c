/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec.c - reads the YAML of a tree of workers into specs, parents before children, without
 * recursion. */
#include "worker/spec.h"

#include <stdio.h>
#include <string.h>

#include <detent/worker.h>

#include "base/hash.h"
#include "base/text.h"

/* Keys of the root, and those of a child. */
static const char *const root_keys[] = { "variables", "location", "children" };
#define SPEC_KEYS(X) \
    X(name) X(kind) X(config) X(variables) X(location) X(run_in) X(disabled) X(children)
enum child_key {
#define SPEC_KEY(name) KEY_##name,
    SPEC_KEYS(SPEC_KEY)
#undef SPEC_KEY
        KEY_COUNT
};
static const char *const child_keys[] = {
#define SPEC_KEY(name) #name,
    SPEC_KEYS(SPEC_KEY)
#undef SPEC_KEY
};

struct reader {
    const struct det_allocator *allocator;
    struct det_arena arena; /* of the parsed tree */
    struct det_spec *spec;
    struct det_error *error;
    uint32_t capacity; /* of spec->children */
};

/* A list of children to read, and its level. */
struct pending {
    const struct det_datum *next;
    uint32_t parent;
};

#define FAIL_AT(reader, line, column, ...) \
    det_datum_fail((reader)->error, DET_ERR_INVALID, "workers", line, column, __VA_ARGS__)
#define FAIL(reader, datum, ...) FAIL_AT(reader, (datum)->line, (datum)->column, __VA_ARGS__)

static int no_memory(struct reader *reader)
{
    return det_error_set(reader->error, DET_ERR_NO_MEMORY, "workers: out of memory");
}

static int fail_key(
    struct reader *reader, const struct det_datum *item, const char *const *keys, size_t count)
{
    const char *what = count == KEY_COUNT ? "a child" : "the root";
    int nearest = det_text_nearest(item->key, keys, count);

    if (nearest >= 0)
        return FAIL_AT(
            reader, item->key_line, item->key_column, "%s has no key '%.64s'; did you mean '%s'?",
            what, item->key, keys[nearest]);
    return FAIL_AT(
        reader, item->key_line, item->key_column, "%s has no key '%.64s'; it has %s", what,
        item->key,
        count == KEY_COUNT ? "name, kind, config, variables, location, run_in, disabled, children"
                           : "variables, location, children");
}

/* The values by the index of their keys; NULL: missing. */
static int read_keys(
    struct reader *reader, const struct det_datum *map, const char *const *keys, size_t count,
    const struct det_datum **ret)
{
    for (size_t i = 0; i < count; i++)
        ret[i] = NULL;
    for (const struct det_datum *item = map->first; item; item = item->next) {
        size_t i = 0;

        while (i < count && strcmp(item->key, keys[i]) != 0)
            i++;
        if (i == count)
            return fail_key(reader, item, keys, count);
        if (item->kind != DET_DATUM_NULL)
            ret[i] = item;
    }
    return 0;
}

static int read_word(
    struct reader *reader, const struct det_datum *child, const struct det_datum *datum,
    const char *key, const char **ret)
{
    if (!datum)
        return FAIL(reader, child, "a child has a name and a kind; say '%s: ...'", key);
    if (datum->kind != DET_DATUM_TEXT)
        return FAIL(
            reader, datum, "%s: expected text, found %s; put quotes around it", key,
            det_datum_kind_text(datum->kind));
    if (!det_name_is_valid(datum->text) || strlen(datum->text) > DET_WORKER_NAME_MAX)
        return FAIL(
            reader, datum, "%s has 1 to %d of the characters A-Z a-z 0-9 . _ -", key,
            DET_WORKER_NAME_MAX);
    *ret = det_arena_copy(&reader->spec->arena, datum->text);
    return *ret ? 0 : no_memory(reader);
}

static int check_state(
    struct reader *reader, const struct det_datum *list, const struct det_datum *item)
{
    if (item->kind != DET_DATUM_TEXT || !*item->text)
        return FAIL(reader, item, "run_in is a list of names of states: run_in: [running]");
    for (const struct det_datum *other = list->first; other != item; other = other->next)
        if (strcmp(other->text, item->text) == 0)
            return FAIL(reader, item, "duplicate state '%.64s'; remove one", item->text);
    return 0;
}

static int read_run_in(
    struct reader *reader, const struct det_datum *list, struct det_spec_child *child)
{
    const char **names;
    int r;

    if (!list)
        return 0;
    if (list->kind != DET_DATUM_LIST)
        return FAIL(
            reader, list, "run_in: expected a list of names of states, [running], found %s",
            det_datum_kind_text(list->kind));
    if (list->count > DET_WORKER_STATES_MAX)
        return FAIL(reader, list, "a worker has at most %d states", DET_WORKER_STATES_MAX);
    names = det_arena_array(&reader->spec->arena, list->count, sizeof *names);
    if (!names)
        return no_memory(reader);
    for (const struct det_datum *item = list->first; item; item = item->next) {
        r = check_state(reader, list, item);
        if (r < 0)
            return r;
        names[child->run_in_count] = det_arena_copy(&reader->spec->arena, item->text);
        if (!names[child->run_in_count++])
            return no_memory(reader);
    }
    child->run_in = names;
    return 0;
}

static int read_disabled(
    struct reader *reader, const struct det_datum *datum, struct det_spec_child *child)
{
    if (!datum)
        return 0;
    if (datum->kind != DET_DATUM_BOOL)
        return FAIL(
            reader, datum, "disabled: expected true or false, found %s",
            det_datum_kind_text(datum->kind));
    child->is_disabled = datum->as.truth;
    return 0;
}

static uint64_t hash_child(const struct det_spec_child *child)
{
    uint64_t hash = det_hash_mix(child->spec.hash, child->is_disabled), states = 0;

    hash = det_hash_mix(hash, det_hash64(child->name, strlen(child->name), 1));
    hash = det_hash_mix(hash, det_hash64(child->kind, strlen(child->kind), 2));
    hash = det_hash_mix(hash, child->run_in_count);
    /* A set: its order does not count. */
    for (uint32_t i = 0; i < child->run_in_count; i++)
        states += det_hash64(child->run_in[i], strlen(child->run_in[i]), 3);
    return det_hash_mix(hash, states);
}

/* Room for one more; the array has its own memory, since it moves. */
static struct det_spec_child *add_child(struct reader *reader)
{
    struct det_spec *spec = reader->spec;
    struct det_spec_child *children;
    uint32_t capacity = reader->capacity ? 2 * reader->capacity : 16;

    if (spec->count == reader->capacity) {
        children = det_arena_array(&spec->arena, capacity, sizeof *children);
        if (!children)
            return NULL;
        if (spec->count)
            memcpy(children, spec->children, spec->count * sizeof *children);
        spec->children = children;
        reader->capacity = capacity;
    }
    return &spec->children[spec->count++];
}

/* Returns the list of its children, if it has one. */
static int read_child(
    struct reader *reader, const struct det_datum *datum, uint32_t parent,
    const struct det_datum **ret_children)
{
    const struct det_datum *parts[KEY_COUNT];
    struct det_spec_child *child;
    int r;

    if (datum->kind != DET_DATUM_MAP)
        return FAIL(
            reader, datum, "a child: expected a map, {name: a, kind: b}, found %s",
            det_datum_kind_text(datum->kind));
    r = read_keys(reader, datum, child_keys, KEY_COUNT, parts);
    if (r < 0)
        return r;
    child = add_child(reader);
    if (!child)
        return no_memory(reader);
    child->parent = parent;
    child->line = datum->line;
    child->column = datum->column;
    *ret_children = parts[KEY_children];
    r = read_word(reader, datum, parts[KEY_name], "name", &child->name);
    if (r == 0)
        r = read_word(reader, datum, parts[KEY_kind], "kind", &child->kind);
    if (r == 0)
        r = read_run_in(reader, parts[KEY_run_in], child);
    if (r == 0)
        r = read_disabled(reader, parts[KEY_disabled], child);
    if (r == 0)
        r = det_user_spec_init_data(
            &child->spec, reader->allocator, parts[KEY_config], parts[KEY_variables],
            parts[KEY_location], reader->error);
    if (r == 0)
        child->hash = hash_child(child);
    return r;
}

/* Names are unique among siblings: a map of them finds a duplicate. */
static int check_names(struct reader *reader, const struct det_datum *list)
{
    struct det_datum *names = det_datum_new(&reader->arena, DET_DATUM_MAP), *item;
    const struct det_datum *twice, *name;
    int r;

    for (const struct det_datum *child = list->first; names && child; child = child->next) {
        name = det_datum_get(child, "name");
        if (!name || name->kind != DET_DATUM_TEXT)
            continue;
        item = det_datum_append(
            &reader->arena, names, name->text, det_datum_new(&reader->arena, DET_DATUM_NULL));
        if (!item)
            return no_memory(reader);
        item->line = name->line;
        item->column = name->column;
    }
    r = names ? det_datum_seal(&reader->arena, names, &twice) : DET_ERR_NO_MEMORY;
    if (r == DET_ERR_EXISTS)
        return FAIL(
            reader, twice, "the name '%.64s' is used by a sibling, on line %u; choose another",
            twice->key, det_datum_get(names, twice->key)->line);
    return r < 0 ? no_memory(reader) : 0;
}

static int open_list(
    struct reader *reader, const struct det_datum *list, uint32_t parent, unsigned *depth,
    struct pending *pending)
{
    if (!list)
        return 0;
    if (list->kind != DET_DATUM_LIST)
        return FAIL(
            reader, list, "children: expected a list, - name: ..., found %s",
            det_datum_kind_text(list->kind));
    if (*depth == DET_WORKER_DEPTH_MAX)
        return FAIL(reader, list, "workers are nested more than %d deep", DET_WORKER_DEPTH_MAX);
    pending[(*depth)++] = (struct pending){ list->first, parent };
    return check_names(reader, list);
}

static int read_children(struct reader *reader, const struct det_datum *list)
{
    struct pending pending[DET_WORKER_DEPTH_MAX];
    const struct det_datum *below = NULL;
    unsigned depth = 0;
    int r;

    r = open_list(reader, list, DET_SPEC_ROOT, &depth, pending);
    while (r == 0 && depth) {
        struct pending *level = &pending[depth - 1];
        const struct det_datum *item = level->next;

        if (!item) {
            depth--;
            continue;
        }
        level->next = item->next;
        r = read_child(reader, item, level->parent, &below);
        if (r == 0)
            r = open_list(reader, below, reader->spec->count - 1, &depth, pending);
    }
    return r;
}

static int read_root(struct reader *reader, const struct det_datum *root)
{
    const struct det_datum *parts[3];
    int r;

    if (root->kind == DET_DATUM_NULL)
        return 0;
    if (root->kind != DET_DATUM_MAP)
        return FAIL(
            reader, root, "expected a map with children, found %s",
            det_datum_kind_text(root->kind));
    r = read_keys(reader, root, root_keys, 3, parts);
    if (r == 0)
        r = det_user_spec_init_data(
            &reader->spec->root, reader->allocator, NULL, parts[0], parts[1], reader->error);
    return r < 0 ? r : read_children(reader, parts[2]);
}

int det_workers_spec_read_data(
    struct det_spec *ret, const struct det_allocator *allocator, const struct det_datum *root,
    struct det_error *reterr)
{
    struct reader reader = { .allocator = allocator, .spec = ret, .error = reterr };
    int r;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&ret->arena, allocator);
    det_arena_init(&ret->root.arena, allocator);
    det_arena_init(&reader.arena, allocator);
    r = det_datum_check_numbers(root, "workers", reterr);
    if (r == 0)
        r = read_root(&reader, root);
    det_arena_deinit(&reader.arena);
    if (r < 0)
        det_spec_deinit(ret);
    return r;
}

int det_workers_spec_read(
    struct det_spec *ret, const struct det_allocator *allocator, const char *yaml, size_t size,
    struct det_error *reterr)
{
    struct det_datum *root;
    struct det_arena arena;
    int r;

    memset(ret, 0, sizeof *ret);
    det_arena_init(&arena, allocator);
    r = det_datum_from_yaml(&arena, "workers", yaml, size, &root, reterr);
    if (r == 0)
        r = det_workers_spec_read_data(ret, allocator, root, reterr);
    det_arena_deinit(&arena);
    return r;
}

void det_spec_deinit(struct det_spec *spec)
{
    for (uint32_t i = 0; i < spec->count; i++)
        det_user_spec_deinit(&spec->children[i].spec);
    det_user_spec_deinit(&spec->root);
    det_arena_deinit(&spec->arena);
    memset(spec, 0, sizeof *spec);
}

static int find_state(const struct det_worker_kind *kind, const char *name)
{
    for (uint16_t i = 0; i < kind->state_count; i++)
        if (strcmp(kind->states[i].name, name) == 0)
            return i;
    return -1;
}

/* Lists the existing states, cut if there are many. */
static int fail_state(
    const struct det_spec_child *child, const char *name, const struct det_worker_kind *parent,
    struct det_error *reterr)
{
    const char *names[DET_WORKER_STATES_MAX];
    char all[120] = "";
    size_t used = 0;
    int nearest;

    for (uint16_t i = 0; i < parent->state_count; i++) {
        names[i] = parent->states[i].name;
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    nearest = det_text_nearest(name, names, parent->state_count);
    return det_datum_fail(
        reterr, DET_ERR_INVALID, "workers", child->line, child->column,
        "run_in of %s: the parent is a %s, which has no state '%.64s'; %s%s%s", child->name,
        parent->name, name, nearest >= 0 ? "did you mean '" : "it has ",
        nearest >= 0 ? names[nearest] : all, nearest >= 0 ? "'?" : "");
}

int det_spec_run_in(
    const struct det_spec_child *child, const struct det_worker_kind *parent, uint64_t *ret,
    struct det_error *reterr)
{
    uint64_t states = 0;

    for (uint32_t i = 0; i < child->run_in_count; i++) {
        int state = find_state(parent, child->run_in[i]);

        if (state < 0)
            return fail_state(child, child->run_in[i], parent, reterr);
        states |= DET_IN(state);
    }
    *ret = states;
    return 0;
}
