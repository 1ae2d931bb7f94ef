/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression_text.c - fuzz target: text as an expression, over rows of any bytes.
 *
 * The first byte chooses what the result is for. What compiles must have a canonical form that is a
 * fixed point and gives the same results; over a valid row all results are valid, and over any
 * bytes at all nothing outside of the row is read. What is refused must say where and why. */
#define REC_SPEC "expression/row.rec"
#include <detent/rec/declare.h>

#include <stdlib.h>
#include <string.h>

#include <detent/expression.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct det_expression_scratch scratch;

static void require(bool fact)
{
    if (!fact)
        abort();
}

static const struct row valid_row = { .a = 255,
                                      .d = UINT64_MAX,
                                      .h = INT64_MIN,
                                      .x = 1.5,
                                      .yes = true,
                                      .at = INT64_C(1769853600000000000),
                                      .title = "a title",
                                      .piece = { .label = "h\xc3\xa9", .pieces = -3 },
                                      .has_note = true,
                                      .note = "12",
                                      .pieces_count = 2,
                                      .words_count = 3,
                                      .words = { "red", "", "x" },
                                      .numbers_count = 1 };

static void check_error(const struct det_error *error, int code, size_t size)
{
    require(code < 0 && error->code == code && error->text[0] && error->offset <= size);
}

static void check_value(const struct det_expression_value *value)
{
    if (value->is_absent)
        return;
    if (value->type == DET_EXPRESSION_FLOAT)
        require(value->number - value->number == 0);
    if (value->type == DET_EXPRESSION_TEXT)
        require(det_utf8_check(value->text.data, value->text.size) == value->text.size);
    if (value->type == DET_EXPRESSION_BOOL)
        require(*(const uint8_t *)&value->truth <= 1);
}

static bool same_value(const struct det_expression_value *a, const struct det_expression_value *b)
{
    if (a->type != b->type || a->is_absent != b->is_absent || a->is_unsigned != b->is_unsigned)
        return false;
    if (a->is_absent)
        return true;
    if (a->type == DET_EXPRESSION_TEXT || a->type == DET_EXPRESSION_BYTES)
        return a->text.size == b->text.size; /* the scratch has only the last one */
    if (a->type == DET_EXPRESSION_BOOL)
        return a->truth == b->truth;
    return a->type >= DET_EXPRESSION_RECORD || a->integer == b->integer;
}

static void evaluate(
    const struct det_expression *expression, const struct det_expression *canonical, size_t size)
{
    struct det_expression_value value = { .type = 0 }, again = { .type = 0 };
    struct det_error error;
    const void *inputs[] = { &valid_row };
    struct row *any = malloc(sizeof *any);
    int r = det_expression_value(expression, inputs, &scratch, &value, &error);

    require(any);
    if (r < 0)
        check_error(&error, r, size);
    else
        check_value(&value);
    require(det_expression_value(canonical, inputs, &scratch, &again, NULL) == r);
    require(r < 0 || same_value(&value, &again));
    for (unsigned fill = 0; fill < 256; fill += 85) {
        memset(any, (int)fill, sizeof *any);
        inputs[0] = any;
        (void)!det_expression_value(expression, inputs, &scratch, &value, NULL);
    }
    free(any);
}

static void store(const struct det_expression *expression, size_t size)
{
    struct row row = valid_row;
    struct det_error error;
    int r = det_expression_store(expression, (const void *[]){ &row }, &scratch, &row, &error);

    if (r < 0) {
        check_error(&error, r, size);
        require(det_record_equal(row_record(), &row, &valid_row));
    }
    require(det_record_validate(row_record(), &row, NULL) == 0);
}

/* Opens the canonical form of a text that compiles. */
static struct det_expression *open_canonical(
    const char *text, size_t size, const struct det_expression_options *options)
{
    static char form[3 * DET_EXPRESSION_SIZE_MAX], again[3 * DET_EXPRESSION_SIZE_MAX];
    struct det_expression *canonical = NULL;
    int64_t length = det_expression_format(text, size, form, sizeof form, NULL);

    require(length >= 0 && (size_t)length < sizeof form);
    /* Blanks may make it too long. */
    if (length > DET_EXPRESSION_SIZE_MAX)
        return NULL;
    require(det_expression_format(form, (size_t)length, again, sizeof again, NULL) == length);
    require(strcmp(form, again) == 0);
    require(det_expression_open(form, (size_t)length, options, &canonical, NULL) == 0);
    require(
        det_expression_type(canonical) != DET_EXPRESSION_ANY || options->is_optional ||
        options->target);
    return canonical;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const fields[] = { NULL,  "a",     "h",   "x",     "title", "tone",
                                          "at",  "note",  "due", "words", "piece", "blob",
                                          "yes", "shade", "d",   "limit" };
    struct det_expression_input input = { .record = row_record() };
    struct det_expression_options options = { .inputs = &input, .input_count = 1 };
    struct det_expression *expression, *canonical;
    struct det_error error;
    size_t count;
    int r;

    if (size == 0)
        return 0;
    options.is_optional = data[0] & 16;
    options.field = fields[data[0] % 16];
    options.target = options.field ? row_record() : NULL;
    r = det_expression_open((const char *)data + 1, size - 1, &options, &expression, &error);
    if (r < 0) {
        check_error(&error, r, size - 1);
        return 0;
    }
    (void)det_expression_reads(expression, &count);
    require(count <= size);
    canonical = open_canonical((const char *)data + 1, size - 1, &options);
    if (options.target)
        store(expression, size);
    else if (canonical)
        evaluate(expression, canonical, size);
    det_expression_close(canonical);
    det_expression_close(expression);
    return 0;
}
