/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* oracle.c - evaluates expressions for compare.py. Three lines of input each: a row as JSON, the
 * field that the result is stored in or -, the expression. One line of output each:
 *
 *     compile CODE message    error CODE message    absent
 *     int 5    float 0x1.8p+1    bool 1    time 5    duration 5    enum red    text 6869
 *     stored {"a": 5, ...} */
#define REC_SPEC "expression/row.rec"
#include <detent/rec/declare.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/expression.h>

#define LINE_MAX_BYTES 65536

static struct det_expression_scratch scratch;

static void print_error(const char *what, const struct det_error *error)
{
    printf("%s %s %s\n", what, det_error_name(error->code), error->text);
}

static void print_enum(int64_t number)
{
    const struct det_enum *hues = det_enum_of(det_record_field(part_record(), "tone")->enumeration);

    for (size_t i = 0; hues && i < hues->value_count; i++)
        if (hues->values[i].value == number)
            printf("enum %s\n", hues->values[i].name);
}

static void print_text(const struct det_expression_value *value)
{
    printf("%s ", det_expression_type_name(value->type));
    for (size_t i = 0; i < value->text.size; i++)
        printf("%02x", (unsigned char)value->text.data[i]);
    printf("\n");
}

static void print_value(const struct det_expression_value *value)
{
    if (value->is_absent)
        printf("absent\n");
    else if (value->type == DET_EXPRESSION_INT && value->is_unsigned)
        printf("int %" PRIu64 "\n", value->natural);
    else if (value->type == DET_EXPRESSION_FLOAT)
        printf("float %a\n", value->number);
    else if (value->type == DET_EXPRESSION_BOOL)
        printf("bool %d\n", value->truth);
    else if (value->type == DET_EXPRESSION_ENUM)
        print_enum(value->integer);
    else if (value->type == DET_EXPRESSION_TEXT || value->type == DET_EXPRESSION_BYTES)
        print_text(value);
    else
        printf("%s %" PRId64 "\n", det_expression_type_name(value->type), value->integer);
}

static void store(const struct det_expression *expression, struct row *row)
{
    static char text[LINE_MAX_BYTES];
    struct det_error error;
    int r = det_expression_store(expression, (const void *[]){ row }, &scratch, row, &error);

    if (r < 0) {
        print_error("error", &error);
        return;
    }
    (void)det_record_to_json(row_record(), row, DET_TEXT_REVEAL, text, sizeof text);
    printf("stored %s\n", text);
}

static void evaluate(const struct det_expression *expression, const struct row *row)
{
    struct det_expression_value value;
    struct det_error error;
    int r = det_expression_value(expression, (const void *[]){ row }, &scratch, &value, &error);

    if (r < 0)
        print_error("error", &error);
    else
        print_value(&value);
}

/* The canonical form must be a fixed point, and it is what is compiled. */
static int open_canonical(
    const char *text, const struct det_expression_options *options, struct det_expression **ret,
    struct det_error *reterr)
{
    static char canonical[2 * DET_EXPRESSION_SIZE_MAX], again[2 * DET_EXPRESSION_SIZE_MAX];
    int64_t size = det_expression_format(text, strlen(text), canonical, sizeof canonical, reterr);
    int64_t size_again;

    if (size < 0)
        return (int)size;
    size_again = det_expression_format(canonical, (size_t)size, again, sizeof again, reterr);
    if (size_again != size || strcmp(canonical, again) != 0)
        return det_error_set(reterr, DET_ERR_CORRUPT, "formats to %s and %s", canonical, again);
    return det_expression_open(canonical, (size_t)size, options, ret, reterr);
}

static void answer(const char *json, const char *field, const char *text)
{
    static struct row row;
    struct det_expression_input input = { .record = row_record() };
    struct det_expression_options options = { .inputs = &input, .input_count = 1 };
    struct det_expression *expression;
    struct det_error error;

    if (det_record_from_json(row_record(), json, strlen(json), 0, &row, &error) < 0) {
        print_error("row", &error);
        return;
    }
    options.is_optional = true;
    if (strcmp(field, "-") != 0) {
        options.target = row_record();
        options.field = field;
    }
    if (open_canonical(text, &options, &expression, &error) < 0) {
        print_error("compile", &error);
        return;
    }
    if (options.target)
        store(expression, &row);
    else
        evaluate(expression, &row);
    det_expression_close(expression);
}

static bool read_line(char *target)
{
    if (!fgets(target, LINE_MAX_BYTES, stdin))
        return false;
    target[strcspn(target, "\n")] = '\0';
    return true;
}

int main(void)
{
    static char json[LINE_MAX_BYTES], field[LINE_MAX_BYTES], text[LINE_MAX_BYTES];

    while (read_line(json) && read_line(field) && read_line(text))
        answer(json, field, text);
    return 0;
}
