/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_function.c - the functions of templates, and printing of values. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "worker/template_program.h"
#include "yaml/datum_text.h"
#include "json/writer.h"

const struct det_template_function_info det_template_functions[DET_TEMPLATE_FUNCTION_COUNT] = {
#define DET_TEMPLATE_FUNCTION(name, fewest, most, wants) { #name, wants, fewest, most },
#include "worker/template_functions.def"
#undef DET_TEMPLATE_FUNCTION
};

DET_PRINTF(3, 4)
static int refuse(struct det_template_call *call, int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call->reason, sizeof call->reason, format, arguments);
    va_end(arguments);
    return code;
}

bool det_template_is_empty(const struct det_datum *datum)
{
    switch (datum->kind) {
    case DET_DATUM_NULL:
        return true;
    case DET_DATUM_BOOL:
        return !datum->as.truth;
    case DET_DATUM_SIGNED:
        return datum->as.number == 0;
    case DET_DATUM_UNSIGNED:
        return false;
    case DET_DATUM_FLOAT:
        return datum->as.real == 0;
    case DET_DATUM_TEXT:
        return !*datum->text;
    case DET_DATUM_LIST:
    case DET_DATUM_MAP:
        return datum->count == 0;
    }
    return true;
}

void det_template_put(struct det_buffer *buffer, const struct det_datum *datum)
{
    if (datum->kind == DET_DATUM_TEXT)
        det_buffer_append_text(buffer, datum->text);
    else if (datum->kind == DET_DATUM_LIST || datum->kind == DET_DATUM_MAP)
        det_datum_to_json(datum, buffer);
    else
        det_datum_put_scalar(buffer, datum, false);
}

static int set_truth(struct det_template_call *call, bool truth)
{
    call->result = (struct det_datum){ .kind = DET_DATUM_BOOL, .as.truth = truth };
    return 0;
}

/* The text in the buffer is the result. */
static int set_text(struct det_template_call *call, struct det_buffer *buffer)
{
    int r = det_buffer_status(buffer);

    call->result = (struct det_datum){ .kind = DET_DATUM_TEXT };
    if (r == 0) {
        call->result.text = det_arena_copy(call->arena, det_buffer_text(buffer));
        r = call->result.text ? 0 : DET_ERR_NO_MEMORY;
    }
    det_buffer_deinit(buffer);
    return r;
}

static struct det_buffer new_buffer(const struct det_template_call *call)
{
    return (struct det_buffer){ .allocator = call->arena->allocator,
                                .limit = DET_TEMPLATE_OUTPUT_MAX };
}

static bool is_number(const struct det_datum *datum)
{
    return datum->kind == DET_DATUM_SIGNED || datum->kind == DET_DATUM_UNSIGNED ||
           datum->kind == DET_DATUM_FLOAT;
}

static double as_real(const struct det_datum *datum)
{
    return datum->kind == DET_DATUM_FLOAT    ? datum->as.real
           : datum->kind == DET_DATUM_SIGNED ? (double)datum->as.number
                                             : (double)datum->as.large;
}

#define UNORDERED 2
/* -1, 0 or 1, or UNORDERED for a NaN. Whole numbers are compared exactly. */
static int compare_numbers(const struct det_datum *a, const struct det_datum *b)
{
    double left, right;

    if (a->kind == DET_DATUM_FLOAT || b->kind == DET_DATUM_FLOAT) {
        left = as_real(a);
        right = as_real(b);
        return left < right ? -1 : left > right ? 1 : left == right ? 0 : UNORDERED;
    }
    if (a->kind != b->kind)
        return a->kind == DET_DATUM_SIGNED ? -1 : 1;
    if (a->kind == DET_DATUM_SIGNED)
        return (a->as.number > b->as.number) - (a->as.number < b->as.number);
    return (a->as.large > b->as.large) - (a->as.large < b->as.large);
}

static int refuse_pair(
    struct det_template_call *call, const struct det_datum *a, const struct det_datum *b)
{
    return refuse(
        call, DET_ERR_TYPE, "%s and %s cannot be compared; compare two numbers or two texts",
        det_datum_kind_text(a->kind), det_datum_kind_text(b->kind));
}

static int call_order(struct det_template_call *call, enum det_template_function function)
{
    const struct det_datum *a = &call->values[0], *b = &call->values[1];
    int order;

    if (is_number(a) && is_number(b))
        order = compare_numbers(a, b);
    else if (a->kind == DET_DATUM_TEXT && b->kind == DET_DATUM_TEXT)
        order = strcmp(a->text, b->text);
    else
        return refuse_pair(call, a, b);
    if (order == UNORDERED && is_number(a))
        return set_truth(call, false);
    if (function == DET_TEMPLATE_FUNCTION_lt)
        return set_truth(call, order < 0);
    if (function == DET_TEMPLATE_FUNCTION_le)
        return set_truth(call, order <= 0);
    if (function == DET_TEMPLATE_FUNCTION_gt)
        return set_truth(call, order > 0);
    return set_truth(call, order >= 0);
}

/* Null equals only itself, and may be compared with any value. */
static int is_same(
    struct det_template_call *call, const struct det_datum *a, const struct det_datum *b)
{
    if (is_number(a) && is_number(b))
        return compare_numbers(a, b) == 0;
    if (a->kind == DET_DATUM_NULL || b->kind == DET_DATUM_NULL)
        return a->kind == b->kind;
    if (a->kind != b->kind || a->kind == DET_DATUM_LIST || a->kind == DET_DATUM_MAP)
        return refuse_pair(call, a, b);
    return det_datum_equal(a, b);
}

static int call_same(struct det_template_call *call, bool is_wanted)
{
    int r = 0;

    for (size_t i = 1; i < call->count && r == 0; i++)
        r = is_same(call, &call->values[0], &call->values[i]);
    return r < 0 ? r : set_truth(call, (r > 0) == is_wanted);
}

/* In a pipe, all of their values are evaluated. */
static int call_choice(struct det_template_call *call, bool is_and)
{
    size_t i = 0;

    while (i + 1 < call->count && det_template_is_empty(&call->values[i]) != is_and)
        i++;
    call->result = call->values[i];
    return 0;
}

static int call_len(struct det_template_call *call)
{
    const struct det_datum *datum = &call->values[0];
    int64_t number;

    if (datum->kind == DET_DATUM_TEXT)
        number = (int64_t)strlen(datum->text);
    else if (datum->kind == DET_DATUM_LIST || datum->kind == DET_DATUM_MAP)
        number = datum->count;
    else
        return refuse(
            call, DET_ERR_TYPE, "%s has no length; len needs a text, a list or a map",
            det_datum_kind_text(datum->kind));
    call->result = (struct det_datum){ .kind = DET_DATUM_SIGNED, .as.number = number };
    return 0;
}

static int element_at(
    struct det_template_call *call, struct det_datum *at, const struct det_datum *index)
{
    const struct det_datum *item = at->first;

    if (index->kind != DET_DATUM_SIGNED)
        return refuse(
            call, DET_ERR_TYPE, "the index of a list must be a whole number; got %s",
            det_datum_kind_text(index->kind));
    if (index->as.number < 0 || index->as.number >= at->count)
        return refuse(
            call, DET_ERR_RANGE, "the list has %u element%s, counted from 0, but none at %lld",
            at->count, det_plural(at->count), (long long)index->as.number);
    for (int64_t i = 0; i < index->as.number; i++)
        item = item->next;
    *at = *item;
    return 0;
}

/* A missing key gives null: this is how templates test for it. */
static int value_at(
    struct det_template_call *call, struct det_datum *at, const struct det_datum *key)
{
    const struct det_datum *item;

    if (key->kind != DET_DATUM_TEXT)
        return refuse(
            call, DET_ERR_TYPE, "the key of a map is text, not %s", det_datum_kind_text(key->kind));
    item = det_datum_get(at, key->text);
    *at = item ? *item : (struct det_datum){ .kind = DET_DATUM_NULL };
    return 0;
}

static int call_index(struct det_template_call *call)
{
    struct det_datum at = call->values[0];
    int r = 0;

    for (size_t i = 1; i < call->count && r == 0; i++) {
        if (at.kind == DET_DATUM_LIST)
            r = element_at(call, &at, &call->values[i]);
        else if (at.kind == DET_DATUM_MAP)
            r = value_at(call, &at, &call->values[i]);
        else
            r = refuse(
                call, DET_ERR_TYPE, "%s has no elements; index needs a list or a map",
                det_datum_kind_text(at.kind));
    }
    call->result = at;
    return r;
}

static int put_verb(
    struct det_template_call *call, struct det_buffer *buffer, char verb, size_t *value)
{
    const struct det_datum *datum;

    if (verb == '%') {
        det_buffer_append_char(buffer, '%');
        return 0;
    }
    if (!verb || !strchr("sdvq", verb))
        return refuse(call, DET_ERR_MALFORMED, "printf supports only %%s, %%d, %%v, %%q and %%%%");
    if (*value == call->count)
        return refuse(call, DET_ERR_MALFORMED, "printf has fewer values than its text has %%");
    datum = &call->values[(*value)++];
    if (verb == 'd' && datum->kind != DET_DATUM_SIGNED && datum->kind != DET_DATUM_UNSIGNED)
        return refuse(
            call, DET_ERR_TYPE, "%%d is for a whole number, not for %s; use %%v",
            datum->kind == DET_DATUM_FLOAT ? "a fraction" : det_datum_kind_text(datum->kind));
    if (verb == 's' && datum->kind != DET_DATUM_TEXT)
        return refuse(
            call, DET_ERR_TYPE, "%%s is for text, not for %s; use %%v",
            det_datum_kind_text(datum->kind));
    if (verb == 'q' && datum->kind != DET_DATUM_TEXT)
        return refuse(
            call, DET_ERR_TYPE, "%%q is for text, not for %s", det_datum_kind_text(datum->kind));
    if (verb == 'q')
        det_json_quote(buffer, det_view_text(datum->text));
    else
        det_template_put(buffer, datum);
    return 0;
}

static int call_printf(struct det_template_call *call)
{
    struct det_buffer buffer = new_buffer(call);
    const char *format = call->values[0].text;
    size_t value = 1;
    int r = 0;

    if (call->values[0].kind != DET_DATUM_TEXT)
        return refuse(
            call, DET_ERR_TYPE, "the first value of printf is text, not %s",
            det_datum_kind_text(call->values[0].kind));
    for (; *format && r == 0; format++) {
        if (*format != '%') {
            det_buffer_append_char(&buffer, *format);
            continue;
        }
        r = put_verb(call, &buffer, format[1], &value);
        format += format[1] != '\0';
    }
    if (r == 0 && value < call->count)
        r = refuse(call, DET_ERR_MALFORMED, "printf has more values than its text has %%");
    if (r < 0) {
        det_buffer_deinit(&buffer);
        return r;
    }
    return set_text(call, &buffer);
}

static int call_quote(struct det_template_call *call)
{
    struct det_buffer text = new_buffer(call), quoted = new_buffer(call);

    det_template_put(&text, &call->values[0]);
    if (det_buffer_status(&text) == 0)
        det_json_quote(&quoted, det_view_text(det_buffer_text(&text)));
    else
        quoted.error = text.error;
    det_buffer_deinit(&text);
    return set_text(call, &quoted);
}

static int call_json(struct det_template_call *call)
{
    struct det_buffer buffer = new_buffer(call);

    det_datum_to_json(&call->values[0], &buffer);
    return set_text(call, &buffer);
}

static int call_default(struct det_template_call *call)
{
    call->result = call->values[det_template_is_empty(&call->values[1]) ? 0 : 1];
    return 0;
}

int det_template_run(enum det_template_function function, struct det_template_call *call)
{
    switch (function) {
    case DET_TEMPLATE_FUNCTION_and:
        return call_choice(call, true);
    case DET_TEMPLATE_FUNCTION_or:
        return call_choice(call, false);
    case DET_TEMPLATE_FUNCTION_not:
        return set_truth(call, det_template_is_empty(&call->values[0]));
    case DET_TEMPLATE_FUNCTION_eq:
        return call_same(call, true);
    case DET_TEMPLATE_FUNCTION_ne:
        return call_same(call, false);
    case DET_TEMPLATE_FUNCTION_lt:
    case DET_TEMPLATE_FUNCTION_le:
    case DET_TEMPLATE_FUNCTION_gt:
    case DET_TEMPLATE_FUNCTION_ge:
        return call_order(call, function);
    case DET_TEMPLATE_FUNCTION_len:
        return call_len(call);
    case DET_TEMPLATE_FUNCTION_index:
        return call_index(call);
    case DET_TEMPLATE_FUNCTION_printf:
        return call_printf(call);
    case DET_TEMPLATE_FUNCTION_default:
        return call_default(call);
    case DET_TEMPLATE_FUNCTION_quote:
        return call_quote(call);
    case DET_TEMPLATE_FUNCTION_json:
        return call_json(call);
    case DET_TEMPLATE_FUNCTION_COUNT:
        break;
    }
    det_assert(false);
    return 0;
}
