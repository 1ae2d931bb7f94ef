/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* variables.c - the variables of a template. */
#include "worker/variables.h"

#include <string.h>

#include "base/text.h"

static const struct {
    const char *name, *is;
} taken[] = {
    { "global", "the map of the variables of all workers" },
    { "internal", "the map of the facts about the worker" },
    { "location_path", "the path of the location" },
};

static int check_map(const char *what, const struct det_datum *datum, struct det_error *reterr)
{
    if (!datum || datum->kind == DET_DATUM_NULL || datum->kind == DET_DATUM_MAP)
        return 0;
    return det_datum_fail(
        reterr, DET_ERR_INVALID, what, datum->line, datum->column,
        "expected a map of names and values, found %s", det_datum_kind_text(datum->kind));
}

int det_variables_check(
    const char *what, const struct det_datum *variables, struct det_error *reterr)
{
    int r;

    r = check_map(what, variables, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        const struct det_datum *item = det_datum_get(variables, taken[i].name);

        if (item)
            return det_datum_fail(
                reterr, DET_ERR_INVALID, what, item->key_line, item->key_column,
                "the name '%s' is reserved: {{ .%s }} is %s; choose another name", taken[i].name,
                taken[i].name, taken[i].is);
    }
    return 0;
}

static int read_map(
    struct det_arena *arena, const char *what, const char *yaml, struct det_datum **ret,
    struct det_error *reterr)
{
    struct det_datum *map;
    int r;

    r = det_datum_from_yaml(arena, what, yaml ? yaml : "", yaml ? strlen(yaml) : 0, &map, reterr);
    if (r == 0)
        r = check_map(what, map, reterr);
    if (r == 0)
        *ret = map->kind == DET_DATUM_MAP ? map : NULL;
    return r;
}

int det_variables_read(
    struct det_arena *arena, const char *what, const char *yaml, struct det_datum **ret,
    struct det_error *reterr)
{
    struct det_datum *map;
    int r;

    r = read_map(arena, what, yaml, &map, reterr);
    if (r == 0)
        r = det_variables_check(what, map, reterr);
    if (r == 0)
        *ret = map;
    return r;
}

int det_globals_read(
    struct det_arena *arena, const char *yaml, struct det_datum **ret, struct det_error *reterr)
{
    return read_map(arena, "globals", yaml, ret, reterr);
}

int det_globals_copy(
    struct det_arena *arena, const struct det_datum *globals, struct det_datum **ret,
    struct det_error *reterr)
{
    int r;

    *ret = NULL;
    r = check_map("globals", globals, reterr);
    if (r == 0)
        r = det_datum_check_numbers(globals, "globals", reterr);
    if (r < 0 || globals->kind != DET_DATUM_MAP)
        return r;
    *ret = det_datum_copy(arena, globals);
    return *ret ? 0 : det_error_set(reterr, DET_ERR_NO_MEMORY, "globals: out of memory");
}

/* A copy of the node under another key, sharing the elements. */
static bool put_variable(
    struct det_arena *arena, struct det_datum *root, const char *key, const struct det_datum *datum)
{
    struct det_datum *item = det_datum_new(arena, DET_DATUM_NULL);

    if (!item)
        return false;
    *item = *datum;
    item->next = NULL;
    return det_datum_append(arena, root, key, item) != NULL;
}

static struct det_datum *make_internals(
    struct det_arena *arena, const struct det_internals *internals)
{
    struct det_datum *map = det_datum_new(arena, DET_DATUM_MAP);
    char created[DET_TIME_TEXT];

    det_format_time(internals->created_at, created, sizeof created);
    if (!map || !det_datum_append(arena, map, "id", det_datum_new_text(arena, internals->id)) ||
        !det_datum_append(arena, map, "_created_at", det_datum_new_text(arena, created)) ||
        !det_datum_append(
            arena, map, "parent_id",
            det_datum_new_text(arena, internals->parent_id ? internals->parent_id : "")))
        return NULL;
    return map;
}

const struct det_datum *det_variables_root(
    struct det_arena *arena, const struct det_datum *user, const struct det_datum *globals,
    const char *location_path, const struct det_internals *internals)
{
    static const struct det_datum nothing = { .kind = DET_DATUM_MAP };
    struct det_datum *root = det_datum_new(arena, DET_DATUM_MAP);
    const struct det_datum *item = user ? user->first : NULL, *twice;

    if (!root)
        return NULL;
    for (; item; item = item->next)
        if (!put_variable(arena, root, item->key, item))
            return NULL;
    if (!put_variable(arena, root, "global", globals ? globals : &nothing) ||
        !det_datum_append(arena, root, "internal", make_internals(arena, internals)) ||
        !det_datum_append(arena, root, "location_path", det_datum_new_text(arena, location_path)) ||
        det_datum_seal(arena, root, &twice) < 0)
        return NULL;
    return root;
}
