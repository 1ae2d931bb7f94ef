/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql_sink.c - the table of a database sink and the mapping of its columns. */
#include "connectors/sql_sink.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

const char *const sql_mapping_trees[] = { "columns", NULL };

/* Names are unique without regard to case: databases compare them so, at least without quotes. */
static const struct sql_target *find_target(const struct sql_mapping *mapping, const char *name)
{
    for (size_t i = 0; i < mapping->target_count; i++)
        if (strcasecmp(mapping->targets[i].name, name) == 0)
            return &mapping->targets[i];
    return NULL;
}

static int add_target(
    struct sql_mapping *mapping, const struct settings *settings, const struct det_datum *datum,
    const char *name, const struct column *column, struct det_error *reterr)
{
    char *target = mapping->names[mapping->target_count];

    if (!sql_name_is_valid(name, strlen(name)))
        return settings_fail(
            settings, datum, reterr,
            "'%s' is not a name of a column: use letters, digits and _, at most %d bytes", name,
            SQL_NAME_MAX);
    if (find_target(mapping, name))
        return settings_fail(settings, datum, reterr, "duplicate column '%s'", name);
    memcpy(target, name, strlen(name) + 1);
    mapping->targets[mapping->target_count++] =
        (struct sql_target){ .name = target, .column = column };
    return 0;
}

/* "place.city" is the column place_city. */
static int add_field(
    struct sql_mapping *mapping, const struct settings *settings, const struct column *column,
    struct det_error *reterr)
{
    char name[256];

    (void)det_text_copy(name, sizeof name, column->name);
    for (char *at = name; (at = strchr(at, '.'));)
        *at = '_';
    return add_target(mapping, settings, NULL, name, column, reterr);
}

static int fail_field(
    const struct sql_mapping *mapping, const struct settings *settings,
    const struct det_datum *item, struct det_error *reterr)
{
    char names[160];

    return settings_fail(
        settings, item, reterr, "unknown field '%s' for the column '%s'; the fields are %s",
        item->text ? item->text : det_datum_kind_text(item->kind), item->key,
        columns_names(&mapping->columns, names, sizeof names));
}

static int add_pairs(
    struct sql_mapping *mapping, const struct settings *settings, const struct det_datum *pairs,
    struct det_error *reterr)
{
    int r = 0;

    if (pairs->kind != DET_DATUM_MAP || pairs->count == 0)
        return settings_fail(
            settings, pairs, reterr, "expected a map of columns to fields, found %s",
            det_datum_kind_text(pairs->kind));
    for (const struct det_datum *item = pairs->first; item && r == 0; item = item->next) {
        const struct column *column =
            item->text ? columns_find(&mapping->columns, item->text) : NULL;

        if (!column)
            return fail_field(mapping, settings, item, reterr);
        r = add_target(mapping, settings, item, item->key, column, reterr);
    }
    return r;
}

static int add_keys(
    struct sql_mapping *mapping, const struct settings *settings,
    const struct sql_mapping_settings *wanted, struct det_error *reterr)
{
    for (size_t i = 0; i < wanted->key_count; i++) {
        const char *name = wanted->keys + i * wanted->key_size;
        struct sql_target *target = NULL;

        for (size_t j = 0; j < mapping->target_count; j++)
            if (strcmp(mapping->targets[j].name, name) == 0)
                target = &mapping->targets[j];
        if (!target)
            return settings_fail_key(
                settings, "key", reterr, "'%s' is not a column that is written", name);
        if (target->is_key)
            return settings_fail_key(settings, "key", reterr, "duplicate column '%s'", name);
        target->is_key = true;
        mapping->table.key_count++;
    }
    return 0;
}

static int allocate(
    struct sql_mapping *mapping, const struct settings *settings, const struct det_datum *pairs,
    struct det_error *reterr)
{
    size_t count = pairs ? pairs->count : mapping->columns.count;

    if (count > SQL_COLUMNS_MAX)
        return settings_fail(
            settings, pairs, reterr,
            "more than %d columns; select some with columns:", SQL_COLUMNS_MAX);
    mapping->targets = DET_NEW_ARRAY(mapping->allocator, count, struct sql_target);
    mapping->names = det_alloc_array(mapping->allocator, count, sizeof *mapping->names);
    mapping->table.target_count = count;
    if (mapping->targets && mapping->names)
        return 0;
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", settings->what);
}

static int fill(
    struct sql_mapping *mapping, const struct settings *settings,
    const struct sql_mapping_settings *wanted, struct det_error *reterr)
{
    const struct det_datum *pairs = det_datum_get(settings->root, "columns");
    int r;

    r = settings_need(settings, "table", wanted->table, "table: readings", reterr);
    if (r < 0)
        return r;
    if (!sql_table_name_is_valid(wanted->dialect, wanted->table))
        return settings_fail_key(
            settings, "table", reterr,
            "'%s' is not a name of a table: use letters, digits and _, at most %d bytes%s",
            wanted->table, SQL_NAME_MAX,
            wanted->dialect == SQL_POSTGRES ? ", with a schema and a point before it, or without"
                                            : "");
    r = columns_init(&mapping->columns, mapping->allocator, det_record_of(settings->stage->in), 0);
    if (r < 0)
        return det_error_set(reterr, r, "%s: out of memory", settings->what);
    r = allocate(mapping, settings, pairs, reterr);
    if (r == 0 && pairs)
        r = add_pairs(mapping, settings, pairs, reterr);
    for (size_t i = 0; r == 0 && !pairs && i < mapping->columns.count; i++)
        r = add_field(mapping, settings, &mapping->columns.list[i], reterr);
    return r < 0 ? r : add_keys(mapping, settings, wanted, reterr);
}

int sql_mapping_init(
    struct sql_mapping *mapping, const struct det_allocator *allocator,
    const struct settings *settings, const struct sql_mapping_settings *wanted,
    struct det_error *reterr)
{
    int r;

    *mapping = (struct sql_mapping){ .allocator = allocator };
    mapping->table = (struct sql_table){ .dialect = wanted->dialect, .name = wanted->table };
    r = fill(mapping, settings, wanted, reterr);
    if (r < 0) {
        sql_mapping_deinit(mapping);
        return r;
    }
    mapping->table.targets = mapping->targets;
    det_assert(mapping->table.target_count == mapping->target_count);
    return 0;
}

void sql_mapping_deinit(struct sql_mapping *mapping)
{
    size_t count = mapping->table.target_count;

    if (mapping->targets)
        DET_DELETE_ARRAY(mapping->allocator, mapping->targets, count);
    if (mapping->names)
        det_free(mapping->allocator, mapping->names, count * sizeof *mapping->names);
    columns_deinit(&mapping->columns);
    *mapping = (struct sql_mapping){ 0 };
}
