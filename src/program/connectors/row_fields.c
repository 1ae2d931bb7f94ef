/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_fields.c - compiles the fields of a row, and fills it. */
#include "connectors/row_fields.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

void row_inputs(const struct det_record *in, struct det_expression_input target[ROW_INPUTS])
{
    target[0] = (struct det_expression_input){ .record = in };
    target[1] = (struct det_expression_input){ .name = "now", .kind = DET_KIND_TIME };
    target[2] = (struct det_expression_input){ .name = "event_time", .kind = DET_KIND_TIME };
}

void row_pointers(const struct det_stage_call *call, const void *in, const void *target[ROW_INPUTS])
{
    target[0] = in;
    target[1] = &call->now;
    target[2] = &call->row.event_time;
}

void row_fields_close(struct row_fields *fields)
{
    for (uint32_t i = 0; i < fields->formula_count; i++) {
        det_expression_close(fields->formulas[i].expression);
        det_free_string(fields->allocator, fields->formulas[i].field);
    }
    fields->copy_count = fields->formula_count = 0;
}

int row_fields_add(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_datum *datum, const char *field, const char *text, struct det_error *reterr)
{
    struct row_formula *formula = &fields->formulas[fields->formula_count];
    struct det_expression_options wanted = { .inputs = options->inputs,
                                             .input_count = options->input_count,
                                             .target = options->target,
                                             .allocator = fields->allocator };
    struct det_error error;
    int r;

    if (fields->formula_count == DET_RECORD_FIELD_MAX)
        return settings_fail(
            options->settings, datum, reterr, "more than %d fields", DET_RECORD_FIELD_MAX);
    formula->field = det_string_copy(fields->allocator, field);
    if (!formula->field)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", field);
    wanted.field = formula->field;
    r = det_expression_open(text, strlen(text), &wanted, &formula->expression, &error);
    if (r == 0) {
        fields->formula_count++;
        return 0;
    }
    det_free_string(fields->allocator, formula->field);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    return settings_fail(options->settings, datum, reterr, "%.64s: %s", field, error.text);
}

int row_fields_add_map(
    struct row_fields *fields, const struct row_fields_options *options, const char *key,
    struct det_error *reterr)
{
    const struct det_datum *map = det_datum_get(options->settings->root, key);
    int r = 0;

    if (!map || map->kind == DET_DATUM_NULL)
        return 0;
    if (map->kind != DET_DATUM_MAP)
        return settings_fail(
            options->settings, map, reterr,
            "%s: expected a map from fields to expressions, such as {total: \"price * amount\"}",
            key);
    for (const struct det_datum *item = map->first; item && r == 0; item = item->next) {
        if (!det_datum_is_scalar(item) || !item->text)
            return settings_fail(
                options->settings, item, reterr, "%.64s: expected an expression, found %s",
                item->key, det_datum_kind_text(item->kind));
        r = row_fields_add(fields, options, item, item->key, item->text, reterr);
    }
    return r;
}

bool row_fields_have(const struct row_fields *fields, const struct det_field *field)
{
    size_t size = strlen(field->name);

    for (uint32_t i = 0; i < fields->copy_count; i++)
        if (fields->copies[i].to == field->offset)
            return true;
    for (uint32_t i = 0; i < fields->formula_count; i++) {
        const char *path = fields->formulas[i].field;

        if (strncmp(path, field->name, size) == 0 &&
            (path[size] == 0 || path[size] == '.' || path[size] == '['))
            return true;
    }
    return false;
}

static bool is_same_type(const struct det_field *a, const struct det_field *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->size == b->size &&
           a->capacity == b->capacity && a->count_max == b->count_max &&
           det_record_of(a->record) == det_record_of(b->record) &&
           det_enum_of(a->enumeration) == det_enum_of(b->enumeration);
}

static void add_bytes(struct row_fields *fields, uint32_t from, uint32_t to, size_t size)
{
    det_assert(fields->copy_count < 2 * DET_RECORD_FIELD_MAX);
    fields->copies[fields->copy_count++] = (struct row_copy){ from, to, (uint32_t)size };
}

void row_fields_reserve(struct row_fields *fields, const struct det_field *field)
{
    add_bytes(fields, 0, field->offset, 0);
}

int row_fields_add_copy(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_field *from, const struct det_field *to, struct det_error *reterr)
{
    uint32_t count = to->flags & DET_FIELD_ARRAY ? to->count_max : 1;

    if (!is_same_type(from, to))
        return row_fields_add(fields, options, NULL, to->name, from->name, reterr);
    add_bytes(fields, from->offset, to->offset, (size_t)to->size * count);
    if (to->flags & DET_FIELD_ARRAY)
        add_bytes(fields, from->presence, to->presence, sizeof(uint32_t));
    else if (to->flags & DET_FIELD_OPTIONAL)
        add_bytes(fields, from->presence, to->presence, sizeof(bool));
    return 0;
}

int row_fields_add_copies(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_record *in, bool is_complete, struct det_error *reterr)
{
    const struct det_record *out = options->target;
    int r;

    if (in == out && fields->copy_count == 0) {
        add_bytes(fields, 0, 0, out->size);
        return 0;
    }
    for (size_t i = 0; i < out->field_count; i++) {
        const struct det_field *to = &out->fields[i];
        const struct det_field *from = det_record_field(in, to->name);

        if (row_fields_have(fields, to))
            continue;
        if (!from && is_complete && !(to->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY)))
            return settings_fail(
                options->settings, NULL, reterr,
                "the field '%s' of %s gets no value: %s has no such field; set it, or make it "
                "OPTIONAL",
                to->name, out->name, in->name);
        if (!from)
            continue;
        r = row_fields_add_copy(fields, options, from, to, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int row_fields_fill(
    const struct row_fields *fields, const void *in, const void *const *inputs,
    struct det_expression_scratch *scratch, void *row, struct det_error *reterr)
{
    struct det_error error;
    int r;

    for (uint32_t i = 0; i < fields->copy_count; i++)
        memcpy(
            (char *)row + fields->copies[i].to, (const char *)in + fields->copies[i].from,
            fields->copies[i].size);
    for (uint32_t i = 0; i < fields->formula_count; i++) {
        r = det_expression_store(fields->formulas[i].expression, inputs, scratch, row, &error);
        if (r < 0)
            return det_error_set(reterr, r, "%s: %s", fields->formulas[i].field, error.text);
    }
    return 0;
}

int row_expression(
    const struct row_fields_options *options, const char *key, const char *text,
    enum det_expression_type type, const struct det_allocator *allocator,
    struct det_expression **ret, struct det_error *reterr)
{
    struct det_expression_options wanted = { .inputs = options->inputs,
                                             .input_count = options->input_count,
                                             .type = type,
                                             .allocator = allocator };
    struct det_error error;
    int r;

    r = det_expression_open(text, strlen(text), &wanted, ret, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    if (r < 0)
        return settings_fail(
            options->settings, det_datum_get(options->settings->root, key), reterr, "%s: %s", key,
            error.text);
    return 0;
}
