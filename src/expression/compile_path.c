/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_path.c - literals; names, fields and elements: which bytes of which input they are. */
#include <string.h>

#include "base/assert.h"
#include "expression/compile.h"
#include "record/number.h"

static int literal_number(
    struct compiler *compiler, const struct expression_token *token, struct operand *operand)
{
    char digits[DET_EXPRESSION_SIZE_MAX];
    struct det_view text = { digits, 0 };
    uint64_t natural = 0;
    int r;

    for (size_t i = 0; i < token->text.size; i++)
        if (token->text.data[i] != '_')
            digits[text.size++] = token->text.data[i];
    if (token->kind == DET_MARK_FLOAT) {
        operand->type = DET_EXPRESSION_FLOAT;
        r = det_parse_double(text, &operand->value.f);
        if (r < 0)
            return COMPILE_FAIL(compiler, r, token->start, "the number exceeds the largest float");
        return 0;
    }
    r = det_parse_u64(text, &natural);
    if (r < 0)
        return COMPILE_FAIL(compiler, r, token->start, "the number is larger than 2^64-1");
    operand->type = DET_EXPRESSION_INT;
    expression_set_wide(&operand->value, natural);
    operand->low = operand->high = natural;
    return 0;
}

static int literal_text(
    struct compiler *compiler, const struct expression_token *token, struct operand *operand)
{
    char *text = det_arena_alloc(&compiler->program->arena, token->text.size);

    if (!text)
        return DET_ERR_NO_MEMORY;
    operand->type = DET_EXPRESSION_TEXT;
    operand->value.text = det_view_of(text, det_expression_text_of(token, text));
    return 0;
}

int det_compile_literal(struct compiler *compiler, const struct expression_token *token)
{
    struct operand *operand;
    det_time span;
    int r;

    r = det_compile_push(compiler, token->start, token->end, &operand);
    if (r < 0)
        return r;
    compiler->column = token->start;
    operand->form = OPERAND_CONSTANT;
    if (token->kind == DET_MARK_TEXT)
        return literal_text(compiler, token, operand);
    if (token->kind == DET_MARK_INTEGER || token->kind == DET_MARK_FLOAT)
        return literal_number(compiler, token, operand);
    if (token->kind == DET_MARK_DURATION) {
        r = det_parse_duration(token->text, &span);
        det_assert(r == 0);
        operand->type = DET_EXPRESSION_DURATION;
        expression_set_int(&operand->value, span);
        return 0;
    }
    if (token->kind == DET_MARK_NONE) {
        operand->form = OPERAND_SLOT;
        (void)det_compile_emit(compiler, EXPRESSION_MISS, 0, 0, 0);
        det_compile_list(compiler, &operand->misses);
        return 0;
    }
    operand->type = DET_EXPRESSION_BOOL;
    operand->value.b = token->kind == DET_MARK_TRUE;
    return 0;
}

/* Fails with the nearest of the names. */
static int fail_unknown(
    struct compiler *compiler, const struct expression_token *token, const char *of,
    const char *const *names, size_t count)
{
    struct det_view name = det_expression_name_of(token);
    char word[DET_NAME_MAX + 1];
    int nearest;

    if (name.size >= sizeof word)
        name.size = sizeof word - 1;
    memcpy(word, name.data, name.size);
    word[name.size] = '\0';
    nearest = det_text_nearest(word, names, count);
    return COMPILE_FAIL(
        compiler, DET_ERR_NOT_FOUND, token->start, "'%s' is not %s%s%s%s", word, of,
        nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest],
        nearest < 0 ? "" : "'?");
}

static enum det_expression_type type_of_kind(enum det_kind kind)
{
    switch (kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return DET_EXPRESSION_INT;
    case DET_KIND_FLOAT:
        return DET_EXPRESSION_FLOAT;
    case DET_KIND_BOOL:
        return DET_EXPRESSION_BOOL;
    case DET_KIND_TIME:
        return DET_EXPRESSION_TIME;
    case DET_KIND_TEXT:
        return DET_EXPRESSION_TEXT;
    case DET_KIND_BYTES:
        return DET_EXPRESSION_BYTES;
    case DET_KIND_ENUM:
        return DET_EXPRESSION_ENUM;
    case DET_KIND_RECORD:
        break;
    }
    return DET_EXPRESSION_RECORD;
}

/* Sets the type of a place of this kind, and the range of an integer. */
static void set_kind(struct operand *operand, enum det_kind kind, uint32_t size)
{
    operand->kind = kind;
    operand->size = size;
    operand->type = type_of_kind(kind);
    if (kind == DET_KIND_UNSIGNED)
        det_compile_int_range(operand, 0, ((det_i128)1 << (8 * size)) - 1);
    if (kind == DET_KIND_SIGNED)
        det_compile_int_range(
            operand, -((det_i128)1 << (8 * size - 1)), ((det_i128)1 << (8 * size - 1)) - 1);
}

/* The value of a field, or one element of it. */
static void set_value(struct operand *operand, const struct det_field *field)
{
    set_kind(operand, field->kind, field->size);
    operand->capacity = field->capacity;
    operand->record = det_record_of(field->record);
    operand->enumeration = det_enum_of(field->enumeration);
}

/* Who asked for a path has asked for the records around it. */
static bool is_known(const struct compiler *compiler, uint32_t start, uint32_t end)
{
    const char *text = compiler->text.data;
    uint32_t size = end - start;

    for (const struct fact *fact = compiler->known; fact; fact = fact->next) {
        uint32_t known = fact->end - fact->start;

        if (known >= size && memcmp(text + fact->start, text + start, size) == 0 &&
            (known == size || text[fact->start + size] == '.' || text[fact->start + size] == '['))
            return true;
    }
    return false;
}

/* The step that asks whether an optional field is present. */
static void ask_presence(struct compiler *compiler, const struct det_field *field)
{
    struct operand *operand = compile_top(compiler);
    struct expression_step *step;

    if (is_known(compiler, operand->start, operand->end)) {
        operand->is_asked = true;
        return;
    }
    compiler->column = operand->start;
    step = det_compile_emit(
        compiler, operand->is_at ? EXPRESSION_PRESENT_AT : EXPRESSION_PRESENT, compiler->depth - 1,
        compiler->depth - 1, 0);
    step->input = operand->input;
    step->k.place.offset = operand->offset + field->presence;
    det_compile_list(compiler, &operand->misses);
    operand->is_untested = true;
}

/* The last operand, a record in memory, becomes one of its fields. */
static int enter_field(struct compiler *compiler, const struct det_field *field)
{
    struct operand *operand = compile_top(compiler);
    struct expression_array *array;

    operand->path = operand->path && operand->path[0]
                        ? det_arena_format(&compiler->work, "%s.%s", operand->path, field->name)
                        : field->name;
    if (!operand->path)
        return DET_ERR_NO_MEMORY;
    if (field->flags & DET_FIELD_OPTIONAL)
        ask_presence(compiler, field);
    operand->field = field;
    if (!(field->flags & DET_FIELD_ARRAY)) {
        operand->offset += field->offset;
        set_value(operand, field);
        return 0;
    }
    array = det_arena_alloc(&compiler->program->arena, sizeof *array);
    if (!array)
        return DET_ERR_NO_MEMORY;
    *array = (struct expression_array){ .offset = operand->offset + field->offset,
                                        .presence = operand->offset + field->presence,
                                        .size = field->size,
                                        .count_max = field->count_max,
                                        .field = field };
    operand->array = array;
    operand->type = DET_EXPRESSION_ARRAY;
    return 0;
}

static const struct det_field *find_field(const struct det_record *record, struct det_view name)
{
    for (size_t i = 0; i < record->field_count; i++)
        if (det_view_is(name, record->fields[i].name))
            return &record->fields[i];
    return NULL;
}

/* The operand of an input as a whole. */
static void set_input(struct operand *operand, const struct det_expression_input *input, size_t i)
{
    operand->form = OPERAND_PLACE;
    operand->input = (uint8_t)i;
    operand->path = "";
    operand->record = input->record;
    operand->kind = DET_KIND_RECORD;
    operand->type = DET_EXPRESSION_RECORD;
    if (input->record)
        return;
    set_kind(operand, input->kind, input->kind == DET_KIND_BOOL ? 1 : 8);
}

/* All names that an expression can begin with. */
static int fail_name(struct compiler *compiler, const struct expression_token *token)
{
    const struct det_expression_options *options = compiler->options;
    const char **names;
    size_t count = 0;

    names = det_arena_array(
        &compiler->work, (size_t)DET_EXPRESSION_INPUT_MAX * (DET_RECORD_FIELD_MAX + 1),
        sizeof *names);
    if (!names)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < options->input_count; i++) {
        const struct det_expression_input *input = &options->inputs[i];

        if (input->name)
            names[count++] = input->name;
        for (size_t k = 0; !input->name && k < input->record->field_count; k++)
            names[count++] = input->record->fields[k].name;
    }
    return fail_unknown(compiler, token, "a field or an input", names, count);
}

int det_compile_name(struct compiler *compiler, const struct expression_token *token)
{
    const struct det_expression_options *options = compiler->options;
    struct det_view name = det_expression_name_of(token);
    struct operand *operand;
    int r;

    r = det_compile_push(compiler, token->start, token->end, &operand);
    if (r < 0)
        return r;
    for (size_t i = 0; i < options->input_count; i++) {
        const struct det_expression_input *input = &options->inputs[i];
        const struct det_field *field = input->name ? NULL : find_field(input->record, name);

        if (!field)
            continue;
        set_input(operand, input, i);
        return enter_field(compiler, field);
    }
    for (size_t i = 0; i < options->input_count; i++) {
        if (options->inputs[i].name && det_view_is(name, options->inputs[i].name)) {
            set_input(operand, &options->inputs[i], i);
            return 0;
        }
    }
    return fail_name(compiler, token);
}

int det_compile_field(struct compiler *compiler, const struct expression_token *token)
{
    struct operand *operand = compile_top(compiler);
    const struct det_record *record = operand->record;
    const struct det_field *field;
    const char *names[DET_RECORD_FIELD_MAX], *of;

    if (operand->form != OPERAND_PLACE || operand->type != DET_EXPRESSION_RECORD)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, token->start, "only a record has fields; this is %s %s%s",
            det_article(det_compile_type(compiler, operand)), det_compile_type(compiler, operand),
            operand->type == DET_EXPRESSION_ARRAY ? ": take an element, lines[0].name" : "");
    operand->end = token->end;
    field = find_field(record, det_expression_name_of(token));
    if (field)
        return enter_field(compiler, field);
    for (size_t i = 0; i < record->field_count; i++)
        names[i] = record->fields[i].name;
    of = det_arena_format(&compiler->work, "a field of %s", record->name);
    return of ? fail_unknown(compiler, token, of, names, record->field_count) : DET_ERR_NO_MEMORY;
}

int det_compile_index(struct compiler *compiler, uint32_t end)
{
    unsigned depth = compiler->depth - 2;
    struct operand *array = &compiler->operands[depth], *index = compile_top(compiler);
    struct expression_step *step;
    int r;

    if (array->form != OPERAND_PLACE || array->type != DET_EXPRESSION_ARRAY)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, array->start, "only an array has elements; this is %s %s",
            det_article(det_compile_type(compiler, array)), det_compile_type(compiler, array));
    if (index->type != DET_EXPRESSION_INT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, index->start, "an index is an int; this is %s %s",
            det_article(det_compile_type(compiler, index)), det_compile_type(compiler, index));
    r = det_compile_require(compiler, depth + 1);
    if (r < 0)
        return r;
    compiler->column = index->start;
    det_compile_load(compiler, depth + 1);
    det_compile_load_place(compiler, depth);
    step = det_compile_emit(compiler, EXPRESSION_INDEX, depth, depth, depth + 1);
    step->k.array = array->array;
    det_compile_list(compiler, &array->misses);
    compiler->depth--;
    array->is_at = true;
    array->offset = 0;
    array->end = end;
    set_value(array, array->field);
    return 0;
}

int det_compile_read(struct compiler *compiler, const struct operand *operand)
{
    struct det_expression_read *read = &compiler->reads[compiler->read_count];
    char *path;

    if (!operand->path)
        return 0;
    for (size_t i = 0; i < compiler->read_count; i++)
        if (compiler->reads[i].input == operand->input &&
            strcmp(compiler->reads[i].path, operand->path) == 0)
            return 0;
    path = det_arena_copy(&compiler->program->arena, operand->path);
    if (!path)
        return DET_ERR_NO_MEMORY;
    *read = (struct det_expression_read){ operand->input, operand->field, path };
    compiler->read_count++;
    return 0;
}

static enum expression_operation load_of(const struct operand *operand)
{
    static const enum expression_operation naturals[] = { EXPRESSION_LOAD_U8, EXPRESSION_LOAD_U16,
                                                          EXPRESSION_LOAD_U32,
                                                          EXPRESSION_LOAD_U64 };
    static const enum expression_operation integers[] = { EXPRESSION_LOAD_I8, EXPRESSION_LOAD_I16,
                                                          EXPRESSION_LOAD_I32,
                                                          EXPRESSION_LOAD_I64 };
    unsigned size = operand->size == 1 ? 0 : operand->size == 2 ? 1 : operand->size == 4 ? 2 : 3;

    switch (operand->kind) {
    case DET_KIND_UNSIGNED:
        return naturals[size];
    case DET_KIND_SIGNED:
        return integers[size];
    case DET_KIND_FLOAT:
        return EXPRESSION_LOAD_F64;
    case DET_KIND_BOOL:
        return EXPRESSION_LOAD_BOOL;
    case DET_KIND_TIME:
        return EXPRESSION_LOAD_I64;
    case DET_KIND_TEXT:
        return operand->field ? EXPRESSION_LOAD_TEXT : EXPRESSION_LOAD_VIEW;
    case DET_KIND_BYTES:
        return EXPRESSION_LOAD_BYTES;
    case DET_KIND_ENUM:
        return EXPRESSION_LOAD_I32;
    case DET_KIND_RECORD:
        break;
    }
    return EXPRESSION_LOAD_PLACE;
}

int det_compile_field_type(const struct operand *operand)
{
    int size = operand->size == 1 ? 0 : operand->size == 2 ? 1 : operand->size == 4 ? 2 : 3;

    if (operand->form != OPERAND_PLACE || operand->is_at || operand->type == DET_EXPRESSION_ARRAY)
        return -1;
    switch (operand->kind) {
    case DET_KIND_UNSIGNED:
        return FIELD_U8 + size;
    case DET_KIND_SIGNED:
        return FIELD_I8 + size;
    case DET_KIND_ENUM:
        return FIELD_I32;
    case DET_KIND_TIME:
        return FIELD_I64;
    case DET_KIND_FLOAT:
    case DET_KIND_BOOL:
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
    case DET_KIND_RECORD:
        break;
    }
    return -1;
}

void det_compile_load_field(
    struct compiler *compiler, unsigned depth, enum expression_operation operation)
{
    struct operand *operand = &compiler->operands[depth];
    struct expression_step *step;

    if (det_compile_read(compiler, operand) < 0)
        compiler->has_no_memory = true;
    step = det_compile_emit(compiler, operation, depth, depth, 0);
    step->input = operand->input;
    step->k.place.offset = operand->offset;
    operand->form = OPERAND_SLOT;
}

void det_compile_load_place(struct compiler *compiler, unsigned depth)
{
    struct operand *operand = &compiler->operands[depth];
    uint32_t column = compiler->column;
    struct expression_step *step;

    if (det_compile_read(compiler, operand) < 0)
        compiler->has_no_memory = true;
    compiler->column = operand->start;
    if (operand->type == DET_EXPRESSION_ARRAY) {
        step = det_compile_emit(
            compiler, operand->is_at ? EXPRESSION_ARRAY_AT : EXPRESSION_ARRAY, depth, depth, 0);
        step->k.array = operand->array;
    } else {
        step = det_compile_emit(
            compiler, (enum expression_operation)(load_of(operand) + operand->is_at), depth, depth,
            0);
        step->k.place.offset = operand->offset;
        step->k.place.capacity = operand->capacity;
    }
    step->input = operand->input;
    compiler->column = column;
}
