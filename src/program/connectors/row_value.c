/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_value.c - a field or an expression of a row as text or JSON. */
#include "connectors/row_value.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "record/number.h"
#include "record/text_sink.h"
#include "json/writer.h"

int row_value_init(
    struct row_value *value, const struct det_allocator *allocator, const char *text,
    const struct columns *columns, const struct det_record *record, struct det_error *reterr)
{
    struct det_expression_input input = { .record = record };
    struct det_expression_options options = {
        .inputs = &input, .input_count = 1, .is_optional = true, .allocator = allocator
    };
    enum det_expression_type type;
    int r;

    *value = (struct row_value){ .column = columns_find(columns, text) };
    if (value->column)
        return 0;
    r = det_expression_open(text, strlen(text), &options, &value->expression, reterr);
    if (r < 0)
        return r;
    type = det_expression_type(value->expression);
    if (type != DET_EXPRESSION_ENUM && type != DET_EXPRESSION_RECORD &&
        type != DET_EXPRESSION_ARRAY)
        return 0;
    row_value_deinit(value);
    return det_error_set(
        reterr, DET_ERR_TYPE, "the expression is %s %s: compute a number, a text or a time",
        det_article(det_expression_type_name(type)), det_expression_type_name(type));
}

void row_value_deinit(struct row_value *value)
{
    det_expression_close(value->expression);
    *value = (struct row_value){ 0 };
}

static void write_text(struct det_view text, bool is_json, struct det_buffer *buffer)
{
    if (is_json)
        det_json_quote(buffer, text);
    else
        det_buffer_append(buffer, text.data, text.size);
}

static void write_base64(struct det_view bytes, bool is_json, struct det_buffer *buffer)
{
    struct det_output output = { .capacity = (bytes.size + 2) / 3 * 4 };

    if (is_json)
        det_buffer_append_char(buffer, '"');
    output.target = det_buffer_extend(buffer, output.capacity);
    if (output.target)
        det_output_base64(&output, bytes);
    if (is_json)
        det_buffer_append_char(buffer, '"');
}

static void write_result(
    const struct det_expression_value *result, bool is_json, struct det_buffer *buffer)
{
    struct det_view text = { "", 0 };
    char space[DET_TIME_TEXT + DET_DOUBLE_TEXT];

    switch (result->type) {
    case DET_EXPRESSION_INT:
        if (result->is_unsigned)
            det_buffer_format(buffer, "%" PRIu64, result->natural);
        else
            det_buffer_format(buffer, "%" PRId64, result->integer);
        break;
    case DET_EXPRESSION_DURATION:
        det_buffer_format(buffer, "%" PRId64, result->time);
        break;
    case DET_EXPRESSION_FLOAT:
        det_buffer_append_text(buffer, det_format_double(result->number, space));
        break;
    case DET_EXPRESSION_BOOL:
        det_buffer_append_text(buffer, result->truth ? "true" : "false");
        break;
    case DET_EXPRESSION_TIME:
        text = det_view_text(det_format_time(result->time, space, sizeof space));
        write_text(text, is_json, buffer);
        break;
    case DET_EXPRESSION_TEXT:
        write_text(det_view_of(result->text.data, result->text.size), is_json, buffer);
        break;
    case DET_EXPRESSION_BYTES:
        write_base64(det_view_of(result->text.data, result->text.size), is_json, buffer);
        break;
    case DET_EXPRESSION_ANY:
    case DET_EXPRESSION_ENUM:
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        det_assert(false);
        break;
    }
}

int row_value_write(
    const struct row_value *value, const void *row, bool is_json,
    struct det_expression_scratch *scratch, struct det_buffer *buffer, struct det_error *reterr)
{
    const void *inputs[] = { row };
    struct det_expression_value result = { 0 };
    int r;

    if (value->column) {
        if (is_json)
            column_write_json(value->column, row, buffer);
        else
            column_write(value->column, row, buffer);
        return 0;
    }
    r = det_expression_value(value->expression, inputs, scratch, &result, reterr);
    if (r < 0)
        return r;
    if (!result.is_absent)
        write_result(&result, is_json, buffer);
    else if (is_json)
        det_buffer_append_text(buffer, "null");
    return 0;
}
