/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_function.c - calls: the types of arguments, and the steps of a function. */
#include <string.h>

#include "base/assert.h"
#include "expression/compile.h"
#include "expression/functions.h"

typedef int make_function(struct compiler *compiler, unsigned depth, unsigned count);

struct function {
    const char *name;
    const char *form;
    /* A function with a fixed type; else `make`. */
    const char *parameters;
    enum det_expression_type result;
    det_i128 low, high;
    expression_call *call;
    make_function *make;
    unsigned least, most;
};

#define FUNCTION(name, ...)
#define SPECIAL(name, ...) static make_function make_##name;
#include "expression/functions.def"
#undef FUNCTION
#undef SPECIAL

static const struct function functions[] = {
#define FUNCTION(name, parameters, result, low, high, form, help)                              \
    { #name, form, parameters, DET_EXPRESSION_##result, low, high, det_expression_call_##name, \
      NULL,  0,    0 },
#define SPECIAL(name, least, most, form, help) \
    { #name, form, NULL, DET_EXPRESSION_ANY, 0, 0, NULL, make_##name, least, most },
#include "expression/functions.def"
#undef FUNCTION
#undef SPECIAL
};
#define FUNCTION_COUNT (sizeof functions / sizeof functions[0])

const struct function *det_compile_find_function(struct det_view name)
{
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        if (det_view_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

const char *det_compile_nearest_function(struct compiler *compiler, struct det_view name)
{
    const char *names[FUNCTION_COUNT], *text = NULL;
    char word[DET_NAME_MAX + 1];
    int nearest;

    if (name.size >= sizeof word)
        name.size = sizeof word - 1;
    memcpy(word, name.data, name.size);
    word[name.size] = '\0';
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        names[i] = functions[i].name;
    nearest = det_text_nearest(word, names, FUNCTION_COUNT);
    if (nearest >= 0)
        text = det_arena_format(&compiler->work, "; did you mean %s?", functions[nearest].form);
    return text ? text : "";
}

const char *det_compile_function_name(const struct function *function)
{
    return function->name;
}

bool det_compile_is_coalesce(const struct function *function)
{
    return function->make == make_coalesce;
}

static int fail_argument(
    struct compiler *compiler, const struct function *function, const struct operand *operand)
{
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, operand->start, "%s does not take %s", function->form,
        det_compile_type(compiler, operand));
}

/* The steps of a call whose arguments are in their slots; the result replaces the first. */
static void emit_call(
    struct compiler *compiler, expression_call *call, unsigned depth,
    enum det_expression_type result)
{
    det_compile_emit(compiler, EXPRESSION_CALL, depth, 0, 0)->k.call = call;
    det_compile_result(compiler, depth, result);
}

static enum det_expression_type type_of_letter(char letter)
{
    switch (letter) {
    case 'i':
        return DET_EXPRESSION_INT;
    case 'f':
        return DET_EXPRESSION_FLOAT;
    case 't':
        return DET_EXPRESSION_TEXT;
    case 'y':
        return DET_EXPRESSION_BYTES;
    case 'T':
        return DET_EXPRESSION_TIME;
    default:
        det_assert(letter == 'D');
        return DET_EXPRESSION_DURATION;
    }
}

static void push_largest(struct compiler *compiler, unsigned depth)
{
    det_assert(depth < EXPRESSION_SLOTS);
    det_compile_emit(compiler, EXPRESSION_INT, depth, 0, 0)->k.i = INT64_MAX;
}

static int fail_count(
    struct compiler *compiler, const struct function *function, uint32_t start, unsigned count)
{
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, start, "%u argument%s for %s", count, det_plural(count),
        function->form);
}

static int plain_call(
    struct compiler *compiler, const struct function *function, unsigned depth, unsigned count)
{
    unsigned argument = 0;
    bool is_missing_allowed = false;
    bool may_miss = function->call == det_expression_call_parse_int ||
                    function->call == det_expression_call_parse_float ||
                    function->call == det_expression_call_time;

    for (const char *letter = function->parameters; *letter; letter++) {
        struct operand *operand = &compiler->operands[depth + argument];

        if (*letter == '?') {
            is_missing_allowed = true;
            continue;
        }
        if (argument >= count && !is_missing_allowed)
            return fail_count(compiler, function, compiler->column, count);
        if (argument >= count) {
            push_largest(compiler, depth + argument);
            continue;
        }
        if (operand->type != type_of_letter(*letter))
            return fail_argument(compiler, function, operand);
        det_compile_load(compiler, depth + argument);
        argument++;
    }
    if (argument < count)
        return fail_count(compiler, function, compiler->column, count);
    emit_call(compiler, function->call, depth, function->result);
    if (may_miss)
        det_compile_list(compiler, &compiler->operands[depth].misses);
    det_compile_int_range(&compiler->operands[depth], function->low, function->high);
    return 0;
}

int det_compile_begin_call(struct compiler *compiler, const struct function *function)
{
    struct operand *operand;
    int r;

    if (function->make != make_has)
        return 0;
    /* The answer is false until the path was found; it is in the slot before that of the path. */
    r = det_compile_push(compiler, compiler->column, compiler->column, &operand);
    if (r < 0)
        return r;
    (void)det_compile_emit(compiler, EXPRESSION_SET_FALSE, compiler->depth - 1, 0, 0);
    return 0;
}

int det_compile_call(
    struct compiler *compiler, const struct function *function, unsigned count, uint32_t start,
    uint32_t end)
{
    unsigned depth = compiler->depth - count;
    uint16_t mark = compile_next(compiler);
    bool is_constant = count > 0 && function->make != make_has;
    int r = 0;

    compiler->column = start;
    if (function->make && (count < function->least || count > function->most))
        return fail_count(compiler, function, start, count);
    for (unsigned i = 0; i < count && r == 0; i++) {
        is_constant &= compiler->operands[depth + i].form == OPERAND_CONSTANT;
        if (function->make != make_has && !det_compile_is_coalesce(function))
            r = det_compile_require(compiler, depth + i);
    }
    if (r == 0)
        r = function->make ? function->make(compiler, depth, count)
                           : plain_call(compiler, function, depth, count);
    if (r < 0)
        return r;
    if (function->make == make_has)
        depth--;
    compiler->depth = depth + 1;
    compiler->operands[depth].start = start;
    compiler->operands[depth].end = end;
    return is_constant && compiler->operands[depth].form != OPERAND_CONSTANT
               ? det_compile_fold(compiler, mark, depth)
               : 0;
}

static int make_has(struct compiler *compiler, unsigned depth, unsigned count)
{
    struct operand path = compiler->operands[depth], *answer = &compiler->operands[depth - 1];
    struct fact *fact;

    (void)count;
    if (!path.path && path.misses == NO_STEP)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, path.start,
            "has asks for a path such as note or lines[0].name");
    if (det_compile_read(compiler, &path) < 0)
        return DET_ERR_NO_MEMORY;
    fact = det_arena_alloc(&compiler->work, sizeof *fact);
    if (!fact)
        return DET_ERR_NO_MEMORY;
    (void)det_compile_emit(compiler, EXPRESSION_SET_TRUE, depth - 1, 0, 0);
    det_compile_result(compiler, depth - 1, DET_EXPRESSION_BOOL);
    answer->false_jumps = path.misses;
    *fact = (struct fact){ path.start, path.end, NULL };
    answer->facts_true = fact;
    return 0;
}

/* The parser has made the steps of coalesce, as those of or_else. */
static int make_coalesce(struct compiler *compiler, unsigned depth, unsigned count)
{
    (void)compiler;
    (void)depth;
    (void)count;
    return 0;
}

static int make_count(struct compiler *compiler, unsigned depth, unsigned count)
{
    struct operand *operand = &compiler->operands[depth];
    const struct expression_array *array = operand->array;

    (void)count;
    if (operand->type != DET_EXPRESSION_ARRAY || operand->form != OPERAND_PLACE)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start,
            "count(array) does not take %s; of a text it is length(text)",
            det_compile_type(compiler, operand));
    det_compile_load(compiler, depth);
    (void)det_compile_emit(compiler, EXPRESSION_COUNT, depth, depth, 0);
    det_compile_result(compiler, depth, DET_EXPRESSION_INT);
    det_compile_int_range(operand, 0, array->count_max);
    return 0;
}

static int make_abs(struct compiler *compiler, unsigned depth, unsigned count)
{
    struct operand *operand = &compiler->operands[depth];
    enum det_expression_type type = operand->type;
    det_i128 low = operand->low, high = operand->high;
    expression_call *call = type == DET_EXPRESSION_INT        ? det_expression_abs_int
                            : type == DET_EXPRESSION_DURATION ? det_expression_abs_span
                                                              : det_expression_abs_float;

    (void)count;
    if (type != DET_EXPRESSION_INT && type != DET_EXPRESSION_DURATION &&
        type != DET_EXPRESSION_FLOAT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "abs(x) does not take %s",
            det_compile_type(compiler, operand));
    det_compile_load(compiler, depth);
    emit_call(compiler, call, depth, type);
    det_compile_int_range(operand, 0, -low > high ? -low : high);
    return 0;
}

/* Brings all arguments to one type. */
static int same_types(struct compiler *compiler, unsigned depth, unsigned count)
{
    enum det_expression_type type = compiler->operands[depth].type;
    bool has_float = false;

    for (unsigned i = 0; i < count; i++)
        has_float |= compiler->operands[depth + i].type == DET_EXPRESSION_FLOAT;
    if (has_float && type == DET_EXPRESSION_INT)
        type = DET_EXPRESSION_FLOAT;
    for (unsigned i = 0; i < count; i++) {
        struct operand *operand = &compiler->operands[depth + i];

        if (type == DET_EXPRESSION_FLOAT && operand->type == DET_EXPRESSION_INT)
            det_compile_to_float(compiler, depth + i);
        if (operand->type != type)
            return COMPILE_FAIL(
                compiler, DET_ERR_TYPE, operand->start, "this is %s, the first argument is %s",
                det_compile_type(compiler, operand), det_expression_type_name(type));
        det_compile_load(compiler, depth + i);
    }
    return 0;
}

static int make_extreme(struct compiler *compiler, unsigned depth, unsigned count, bool is_max)
{
    struct operand *first = &compiler->operands[depth];
    enum expression_operation step = is_max ? EXPRESSION_MAX_W : EXPRESSION_MIN_W;
    enum det_expression_type type;
    det_i128 low, high;
    int r = same_types(compiler, depth, count);

    if (r < 0)
        return r;
    type = first->type;
    low = first->low;
    high = first->high;
    if (type == DET_EXPRESSION_FLOAT)
        step = is_max ? EXPRESSION_MAX_F : EXPRESSION_MIN_F;
    else if (type == DET_EXPRESSION_TEXT)
        step = is_max ? EXPRESSION_MAX_TEXT : EXPRESSION_MIN_TEXT;
    else if (
        type != DET_EXPRESSION_INT && type != DET_EXPRESSION_TIME &&
        type != DET_EXPRESSION_DURATION)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, first->start, "%s does not take %s",
            is_max ? "max(a, b, ...)" : "min(a, b, ...)", det_compile_type(compiler, first));
    for (unsigned i = 1; i < count; i++) {
        const struct operand *other = &compiler->operands[depth + i];

        (void)det_compile_emit(compiler, step, depth, depth, depth + i);
        low = (other->low < low) != is_max ? other->low : low;
        high = (other->high < high) != is_max ? other->high : high;
    }
    det_compile_result(compiler, depth, type);
    det_compile_int_range(first, low, high);
    return 0;
}

static int make_min(struct compiler *compiler, unsigned depth, unsigned count)
{
    return make_extreme(compiler, depth, count, false);
}

static int make_max(struct compiler *compiler, unsigned depth, unsigned count)
{
    return make_extreme(compiler, depth, count, true);
}

/* An int of a float; an int stays what it is. */
static int make_whole(struct compiler *compiler, unsigned depth, expression_call *call)
{
    const struct operand *operand = &compiler->operands[depth];

    if (operand->type == DET_EXPRESSION_INT)
        return 0;
    if (operand->type != DET_EXPRESSION_FLOAT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "this function needs a number, this is %s%s",
            det_compile_type(compiler, operand),
            operand->type == DET_EXPRESSION_TEXT       ? "; use parse_int(text)"
            : operand->type == DET_EXPRESSION_DURATION ? "; divide by a unit: x / 1s"
            : operand->type == DET_EXPRESSION_TIME     ? "; subtract a time and divide by 1s"
            : operand->type == DET_EXPRESSION_BOOL     ? "; write `if x then 1 else 0`"
                                                       : "");
    det_compile_load(compiler, depth);
    emit_call(compiler, call, depth, DET_EXPRESSION_INT);
    return 0;
}

static int make_floor(struct compiler *compiler, unsigned depth, unsigned count)
{
    (void)count;
    return make_whole(compiler, depth, det_expression_floor);
}

static int make_ceil(struct compiler *compiler, unsigned depth, unsigned count)
{
    (void)count;
    return make_whole(compiler, depth, det_expression_ceil);
}

static int make_round(struct compiler *compiler, unsigned depth, unsigned count)
{
    (void)count;
    return make_whole(compiler, depth, det_expression_round);
}

static int make_int(struct compiler *compiler, unsigned depth, unsigned count)
{
    (void)count;
    return make_whole(compiler, depth, det_expression_truncate);
}

static int make_float(struct compiler *compiler, unsigned depth, unsigned count)
{
    const struct operand *operand = &compiler->operands[depth];

    (void)count;
    if (operand->type != DET_EXPRESSION_INT && operand->type != DET_EXPRESSION_FLOAT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "float(x) needs a number, this is %s%s",
            det_compile_type(compiler, operand),
            operand->type == DET_EXPRESSION_TEXT ? "; use parse_float(text)" : "");
    det_compile_to_float(compiler, depth);
    return 0;
}

static int make_text(struct compiler *compiler, unsigned depth, unsigned count)
{
    static expression_call *const calls[] = {
        [DET_EXPRESSION_INT] = det_expression_text_of_int,
        [DET_EXPRESSION_FLOAT] = det_expression_text_of_float,
        [DET_EXPRESSION_BOOL] = det_expression_text_of_bool,
        [DET_EXPRESSION_TIME] = det_expression_text_of_time,
        [DET_EXPRESSION_DURATION] = det_expression_text_of_duration,
        [DET_EXPRESSION_ARRAY] = NULL,
    };
    struct operand *operand = &compiler->operands[depth];

    (void)count;
    if (operand->type == DET_EXPRESSION_TEXT)
        return 0;
    if (operand->type == DET_EXPRESSION_ENUM) {
        const struct det_enum *enumeration = operand->enumeration;

        det_compile_load(compiler, depth);
        det_compile_emit(compiler, EXPRESSION_ENUM_NAME, depth, depth, 0)->k.enumeration =
            enumeration;
        det_compile_result(compiler, depth, DET_EXPRESSION_TEXT);
        return 0;
    }
    if (!calls[operand->type])
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "text(x) does not take %s%s",
            det_compile_type(compiler, operand),
            operand->type == DET_EXPRESSION_BYTES ? "; use hex(bytes)" : "");
    det_compile_load(compiler, depth);
    emit_call(compiler, calls[operand->type], depth, DET_EXPRESSION_TEXT);
    return 0;
}

static int make_hash(struct compiler *compiler, unsigned depth, unsigned count)
{
    struct operand *operand = &compiler->operands[depth];
    bool is_text = operand->type == DET_EXPRESSION_TEXT || operand->type == DET_EXPRESSION_BYTES;

    (void)count;
    if (!is_text && operand->type != DET_EXPRESSION_INT && operand->type != DET_EXPRESSION_TIME &&
        operand->type != DET_EXPRESSION_DURATION)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "hash(x) does not take %s; hash(text(x)) may",
            det_compile_type(compiler, operand));
    det_compile_load(compiler, depth);
    emit_call(
        compiler, is_text ? det_expression_hash_text : det_expression_hash_int, depth,
        DET_EXPRESSION_INT);
    det_compile_int_range(operand, 0, EXPRESSION_INT_MAX);
    return 0;
}

static int make_length(struct compiler *compiler, unsigned depth, unsigned count)
{
    struct operand *operand = &compiler->operands[depth];
    enum det_expression_type type = operand->type;

    (void)count;
    if (type != DET_EXPRESSION_TEXT && type != DET_EXPRESSION_BYTES)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "length(x) does not take %s%s",
            det_compile_type(compiler, operand),
            type == DET_EXPRESSION_ARRAY ? "; use count(array)" : "");
    det_compile_load(compiler, depth);
    emit_call(
        compiler,
        type == DET_EXPRESSION_TEXT ? det_expression_length_text : det_expression_length_bytes,
        depth, DET_EXPRESSION_INT);
    det_compile_int_range(operand, 0, INT64_MAX);
    return 0;
}
