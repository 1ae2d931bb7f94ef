/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* finish.c - fits the result to what it is for, and completes the steps. */
#include "base/assert.h"
#include "expression/compile.h"
#include "record/field_value.h"

#include <string.h>

/* The field of the target, by its path. Records on the way must always be there. */
static int find_target(struct compiler *compiler, const struct det_field **ret, uint32_t *ret_base)
{
    const char *path = compiler->options->field;
    const struct det_record *record = compiler->options->target;
    const struct det_field *field = NULL;
    uint32_t base = 0;

    while (*path) {
        struct det_view name = det_view_of(path, strcspn(path, "."));
        const char *names[DET_RECORD_FIELD_MAX];
        int nearest;

        if (field && (field->kind != DET_KIND_RECORD ||
                      (field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY))))
            return det_error_set(
                compiler->reterr, DET_ERR_NOT_FOUND,
                "'%s' is not a record that is always present; store in the whole field",
                field->name);
        if (field) {
            base += field->offset;
            record = det_record_of(field->record);
        }
        field = NULL;
        det_assert(record != NULL);
        for (size_t i = 0; i < record->field_count; i++) {
            names[i] = record->fields[i].name;
            if (det_view_is(name, names[i]))
                field = &record->fields[i];
        }
        nearest = det_text_nearest(path, names, record->field_count);
        if (!field)
            return det_error_set(
                compiler->reterr, DET_ERR_NOT_FOUND, "'%s' is not a field of %s%s%s%s", path,
                record->name, nearest < 0 ? "" : "; did you mean '",
                nearest < 0 ? "" : names[nearest], nearest < 0 ? "" : "'?");
        path += name.size + (path[name.size] == '.');
    }
    if (!field)
        return det_error_set(compiler->reterr, DET_ERR_NOT_FOUND, "the target has no field");
    *ret = field;
    *ret_base = base;
    return 0;
}

static int fail_target(struct compiler *compiler, const char *wanted)
{
    const struct operand *operand = compile_top(compiler);
    bool is_duration = operand->type == DET_EXPRESSION_DURATION;

    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, operand->start, "the field '%s' takes %s, this is %s%s",
        compiler->options->field, wanted, det_compile_type(compiler, operand),
        is_duration                             ? "; divide by a unit: x / 1s"
        : operand->type == DET_EXPRESSION_ENUM  ? "; convert it: text(x)"
        : operand->type == DET_EXPRESSION_FLOAT ? "; convert it: round(x) or int(x)"
        : strcmp(wanted, "text") == 0           ? "; convert it: text(x)"
                                                : "");
}

/* The values that an integer field holds. */
static void field_range(const struct det_field *field, det_i128 *ret_low, det_i128 *ret_high)
{
    unsigned bits = 8 * field->size;

    *ret_low = field->kind == DET_KIND_UNSIGNED ? 0 : -((det_i128)1 << (bits - 1));
    *ret_high = ((det_i128)1 << (field->kind == DET_KIND_UNSIGNED ? bits : bits - 1)) - 1;
}

static int fit_integer(struct compiler *compiler, const struct det_field *field)
{
    const struct operand *operand = compile_top(compiler);
    det_i128 low, high;

    if (operand->type != DET_EXPRESSION_INT)
        return fail_target(compiler, "int");
    field_range(field, &low, &high);
    if (operand->high < low || operand->low > high)
        return COMPILE_FAIL(
            compiler, DET_ERR_RANGE, operand->start,
            "this never fits the field '%s', which is %c%u", compiler->options->field,
            field->kind == DET_KIND_UNSIGNED ? 'u' : 'i', 8 * field->size);
    compiler->program->target.is_checked = operand->low < low || operand->high > high;
    return 0;
}

static int fit_text(struct compiler *compiler, const struct det_field *field)
{
    const struct operand *operand = compile_top(compiler);

    if (operand->type != DET_EXPRESSION_TEXT)
        return fail_target(compiler, "text");
    if (operand->form == OPERAND_CONSTANT && operand->value.text.size > field->capacity)
        return COMPILE_FAIL(
            compiler, DET_ERR_RANGE, operand->start,
            "the field '%s' is str(%u), this text is longer", compiler->options->field,
            field->capacity);
    return 0;
}

static int fit_enum(struct compiler *compiler, const struct det_field *field)
{
    const struct operand *operand = compile_top(compiler);
    const struct det_enum *enumeration = det_enum_of(field->enumeration);

    if (operand->type == DET_EXPRESSION_TEXT) {
        if (compile_is_literal(operand))
            return det_compile_to_enum(compiler, compiler->depth - 1, enumeration);
        return 0;
    }
    if (operand->type != DET_EXPRESSION_ENUM ||
        !det_compile_same_enum(operand->enumeration, enumeration))
        return fail_target(compiler, "a value of its enum");
    return 0;
}

static int fit_array(struct compiler *compiler, const struct det_field *field)
{
    const struct operand *operand = compile_top(compiler);
    const struct det_field *from = operand->field;

    if (operand->type != DET_EXPRESSION_ARRAY || from->kind != field->kind ||
        from->size != field->size || from->capacity != field->capacity ||
        det_record_of(from->record) != det_record_of(field->record) ||
        (field->kind == DET_KIND_ENUM &&
         !det_compile_same_enum(det_enum_of(from->enumeration), det_enum_of(field->enumeration))))
        return fail_target(compiler, "an array of the same elements");
    return 0;
}

/* One value of the kind of the field. */
static int fit_value(struct compiler *compiler, const struct det_field *field)
{
    struct operand *operand = compile_top(compiler);

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return fit_integer(compiler, field);
    case DET_KIND_FLOAT:
        det_compile_to_float(compiler, compiler->depth - 1);
        return operand->type == DET_EXPRESSION_FLOAT ? 0 : fail_target(compiler, "float");
    case DET_KIND_BOOL:
        return operand->type == DET_EXPRESSION_BOOL ? 0 : fail_target(compiler, "bool");
    case DET_KIND_TIME:
        return operand->type == DET_EXPRESSION_TIME ? 0 : fail_target(compiler, "time");
    case DET_KIND_TEXT:
        return fit_text(compiler, field);
    case DET_KIND_BYTES:
        return operand->type == DET_EXPRESSION_BYTES ? 0 : fail_target(compiler, "bytes");
    case DET_KIND_ENUM:
        return fit_enum(compiler, field);
    case DET_KIND_RECORD:
        return operand->type == DET_EXPRESSION_RECORD &&
                       operand->record == det_record_of(field->record)
                   ? 0
                   : fail_target(compiler, "the same record");
    }
    return 0;
}

int det_compile_target(struct compiler *compiler)
{
    struct expression_target *target = &compiler->program->target;
    const struct det_field *field = NULL;
    int r;

    r = find_target(compiler, &field, &target->base);
    if (r < 0)
        return r;
    det_assert(field != NULL);
    target->field = field;
    if (compile_top(compiler)->type == DET_EXPRESSION_ANY)
        return 0;
    return field->flags & DET_FIELD_ARRAY ? fit_array(compiler, field) : fit_value(compiler, field);
}

static int fit_type(struct compiler *compiler)
{
    enum det_expression_type wanted = compiler->options->type;
    const struct operand *operand = compile_top(compiler);

    if (operand->type == DET_EXPRESSION_ANY)
        return 0;
    if (wanted == DET_EXPRESSION_FLOAT)
        det_compile_to_float(compiler, compiler->depth - 1);
    if (wanted == DET_EXPRESSION_ANY || operand->type == wanted)
        return 0;
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, operand->start, "this must be %s %s, it is %s",
        det_article(det_expression_type_name(wanted)), det_expression_type_name(wanted),
        det_compile_type(compiler, operand));
}

static bool is_jump(const struct expression_step *step)
{
    return step->jump != 0 && step->operation != EXPRESSION_NOTHING;
}

/* Where a jump leads after the steps that only lead on. */
static uint16_t final_step(const struct compiler *compiler, uint16_t index)
{
    while (compiler->steps[index].operation == EXPRESSION_NOTHING ||
           compiler->steps[index].operation == EXPRESSION_JUMP)
        index = compiler->steps[index].operation == EXPRESSION_JUMP ? compiler->steps[index].jump
                                                                    : (uint16_t)(index + 1);
    return index;
}

/* Steps that do nothing are left out, and jumps lead to the final step. */
static int copy_steps(struct compiler *compiler)
{
    struct det_expression *program = compiler->program;
    size_t count = compiler->step_count, kept = 0;
    uint16_t *places = det_arena_array(&compiler->work, count, sizeof *places);

    program->steps = det_arena_array(&program->arena, count, sizeof *program->steps);
    program->columns = det_arena_array(&program->arena, count, sizeof *program->columns);
    if (!places || !program->steps || !program->columns)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (is_jump(&compiler->steps[i]))
            compiler->steps[i].jump = final_step(compiler, compiler->steps[i].jump);
        det_assert(compiler->steps[i].jump == 0 || compiler->steps[i].jump > i);
    }
    for (size_t i = 0; i < count; i++) {
        places[i] = (uint16_t)kept;
        if (compiler->steps[i].operation == EXPRESSION_NOTHING)
            continue;
        program->steps[kept] = compiler->steps[i];
        program->columns[kept++] = compiler->columns[i];
    }
    for (size_t i = 0; i < kept; i++)
        program->steps[i].jump = places[program->steps[i].jump];
    program->step_count = kept;
    return 0;
}

static int copy_reads(struct compiler *compiler)
{
    struct det_expression *program = compiler->program;

    program->reads =
        det_arena_array(&program->arena, compiler->read_count + 1, sizeof *program->reads);
    if (!program->reads)
        return DET_ERR_NO_MEMORY;
    memcpy(program->reads, compiler->reads, compiler->read_count * sizeof *program->reads);
    program->read_count = compiler->read_count;
    return 0;
}

static enum expression_operation store_of(
    const struct expression_target *target, const struct det_field *field)
{
    bool is_natural = field->kind == DET_KIND_UNSIGNED;

    if (field->flags & DET_FIELD_ARRAY)
        return EXPRESSION_STORE_VALUE;
    if (field->kind == DET_KIND_FLOAT)
        return EXPRESSION_STORE_F64;
    if (field->kind == DET_KIND_BOOL)
        return EXPRESSION_STORE_BOOL;
    if (field->kind == DET_KIND_TIME)
        return EXPRESSION_STORE_64;
    if (!is_natural && field->kind != DET_KIND_SIGNED)
        return EXPRESSION_STORE_VALUE;
    if (target->is_checked && field->size == 8)
        return is_natural ? EXPRESSION_STORE_U64 : EXPRESSION_STORE_I64;
    if (target->is_checked)
        return EXPRESSION_STORE_VALUE;
    return field->size == 1   ? EXPRESSION_STORE_8
           : field->size == 2 ? EXPRESSION_STORE_16
           : field->size == 4 ? EXPRESSION_STORE_32
                              : EXPRESSION_STORE_64;
}

static void emit_store(struct compiler *compiler, enum expression_operation operation)
{
    const struct expression_target *target = &compiler->program->target;
    struct expression_step *step = det_compile_emit(compiler, operation, 0, 0, 0);

    if (operation == EXPRESSION_STORE_VALUE)
        step->k.target = target;
    else if (operation == EXPRESSION_STORE_PRESENT || operation == EXPRESSION_STORE_ABSENT)
        step->k.place.offset = target->base + target->field->presence;
    else
        step->k.place.offset = target->base + target->field->offset;
}

/* The steps after the value is in its slot, and those of an absent one. */
static void end_program(struct compiler *compiler, uint16_t misses)
{
    struct expression_target *target = &compiler->program->target;
    bool is_optional = target->field && (target->field->flags & DET_FIELD_OPTIONAL);

    target->type = compile_top(compiler)->type;
    if (target->field && target->type != DET_EXPRESSION_ANY)
        emit_store(compiler, store_of(target, target->field));
    if (is_optional)
        emit_store(compiler, EXPRESSION_STORE_PRESENT);
    (void)det_compile_emit(
        compiler, target->field ? EXPRESSION_STORED : EXPRESSION_RETURN, 0, 0, 0);
    det_compile_land(compiler, &misses);
    if (is_optional)
        emit_store(compiler, EXPRESSION_STORE_ABSENT);
    (void)det_compile_emit(compiler, EXPRESSION_ABSENT, 0, 0, 0);
}

int det_compile_finish(struct compiler *compiler)
{
    struct det_expression *program = compiler->program;
    struct operand *operand = compile_top(compiler);
    bool is_optional = compiler->options->is_optional;
    uint16_t misses = operand->misses;
    int r = 0;

    det_assert(compiler->depth == 1);
    if (compiler->options->target)
        r = det_compile_target(compiler);
    if (r < 0)
        return r;
    if (program->target.field)
        is_optional = (program->target.field->flags & DET_FIELD_OPTIONAL) != 0;
    if (!is_optional)
        r = det_compile_require(compiler, 0);
    if (r == 0)
        r = fit_type(compiler);
    if (r < 0)
        return r;
    program->type = operand->type;
    compiler->column = operand->start;
    if (operand->type != DET_EXPRESSION_ANY)
        det_compile_load(compiler, 0);
    end_program(compiler, is_optional ? misses : NO_STEP);
    if (compiler->has_no_memory)
        return DET_ERR_NO_MEMORY;
    r = copy_steps(compiler);
    return r < 0 ? r : copy_reads(compiler);
}
