/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression.h - small typed formulas over records: conditions, computed fields, deadlines.
 *
 *     total > 1000 and customer.level in ['gold', 'silver']
 *     if has(note) then upper(note) else 'none'
 *     start_of(now, 1h) + 30m
 *
 * An expression is compiled once against the records that it reads, and evaluated many times:
 *
 *     struct det_expression_input inputs[] = { { .record = order_record() },
 *                                              { .name = "now", .kind = DET_KIND_TIME } };
 *     struct det_expression_options options = { .inputs = inputs, .input_count = 2 };
 *     DET_SCOPED(expression) late = NULL;
 *
 *     r = det_expression_open("now - ordered > 2d", 18, &options, &late, &error);
 *     ...
 *     r = det_expression_test(late, (const void *[]){ &order, &now }, &scratch, &error);
 *
 * Types, ranges and names are checked by det_expression_open(); its messages have the column and
 * the remedy. What remains for an evaluation is what depends on values: an overflow, a division by
 * zero, an index out of bounds, a value that does not fit its field. These are errors with a
 * column as well, never undefined behaviour. An evaluation has no loops, calls nothing outside,
 * does not allocate, and gives the same result on every machine: the time is an input like any
 * other. docs/formats/expression.md has the language, docs/expressions.md is its guide.
 *
 * A compiled expression is constant. Any number of threads may evaluate it at the same time, each
 * with a scratch of its own. */
#ifndef DETENT_EXPRESSION_H
#define DETENT_EXPRESSION_H

#include <detent/record.h>

DET_BEGIN

struct det_expression;

/* Limits; beyond them is DET_ERR_LIMIT. */
#define DET_EXPRESSION_SIZE_MAX  4096  /* bytes of an expression */
#define DET_EXPRESSION_DEPTH_MAX 32    /* values that wait for an operator, and open brackets */
#define DET_EXPRESSION_LIST_MAX  256   /* elements of a list */
#define DET_EXPRESSION_INPUT_MAX 16    /* inputs */
#define DET_EXPRESSION_TEXT_MAX  16384 /* bytes of all texts that one evaluation makes */

enum det_expression_type {
    DET_EXPRESSION_ANY,      /* options: any type */
    DET_EXPRESSION_INT,      /* a whole number from -2^63 to 2^64-1 */
    DET_EXPRESSION_FLOAT,    /* a finite double */
    DET_EXPRESSION_BOOL,     /* true or false */
    DET_EXPRESSION_TEXT,     /* UTF-8 */
    DET_EXPRESSION_BYTES,    /* of a field bytes(n) */
    DET_EXPRESSION_TIME,     /* wall time, in nanoseconds */
    DET_EXPRESSION_DURATION, /* in nanoseconds */
    DET_EXPRESSION_ENUM,     /* a value of an enum */
    DET_EXPRESSION_RECORD,   /* a whole record, to be copied */
    DET_EXPRESSION_ARRAY,    /* a whole array, to be copied */
};

/* "int", "float", ... Never NULL. */
DET_API const char *det_expression_type_name(enum det_expression_type type);

/* What an expression can read. An evaluation gets one pointer for each input, in their order. */
struct det_expression_input {
    const char *name; /* "order", then `order.total`; NULL: `total`, the fields by their own names.
                       * A field that is found without a name hides an input with its name */
    const struct det_record *record; /* the pointer is to its struct */
    enum det_kind kind; /* without a record, one value: the pointer is to a uint64_t, int64_t,
                         * double, bool, det_time, or for TEXT to a struct det_expression_text */
};

/* A text, or bytes; not terminated. */
struct det_expression_text {
    const char *data;
    size_t size;
};

struct det_expression_options {
    const struct det_expression_input *inputs;
    size_t input_count;
    enum det_expression_type type; /* the required type; an int is converted to a required float */
    bool is_optional; /* the result may be absent; else an optional field needs `or_else` */
    const struct det_record *target; /* for det_expression_store(): the record and */
    const char *field;               /* the path of the field that the result is stored in */
    const struct det_allocator *allocator;
    uint64_t reserved[DET_OPTIONS_RESERVED];
};

/* Compiles. Names and definitions of the inputs and the target are borrowed as long as the
 * expression lives; the text is not. With a target the result must fit the type of the field; what
 * can never fit its range is refused here.
 *
 * Errors, with the offset and, in the text, the column: DET_ERR_MALFORMED (grammar, UTF-8),
 * DET_ERR_NOT_FOUND (no such field or function), DET_ERR_TYPE, DET_ERR_RANGE and DET_ERR_OVERFLOW
 * (of constants), DET_ERR_LIMIT; DET_ERR_DEFINITION (a record is not sound), DET_ERR_VERSION,
 * DET_ERR_NO_MEMORY. */
DET_API int det_expression_open(
    const char *text, size_t size, const struct det_expression_options *options,
    struct det_expression **ret, struct det_error *reterr) DET_MUST_CHECK;
DET_API void det_expression_close(struct det_expression *expression);
DET_SCOPED_CLOSE(expression)

/* The type of the result. */
DET_API enum det_expression_type det_expression_type(const struct det_expression *expression);

/* Working memory of an evaluation, for one thread at a time. It needs no initialisation; a result
 * may be in it until the next evaluation. */
struct det_expression_scratch {
    uint64_t slots[2 * (DET_EXPRESSION_DEPTH_MAX + 4)];
    uint64_t used;
    char text[DET_EXPRESSION_TEXT_MAX];
};

/* A result. Texts, bytes and whole records are borrowed: from the inputs, from the expression or
 * from the scratch. */
struct det_expression_value {
    enum det_expression_type type;
    bool is_absent;   /* of an optional result; no member of the union is set */
    bool is_unsigned; /* INT: more than INT64_MAX; read `natural` */
    union {
        int64_t integer; /* INT, and ENUM: its number */
        uint64_t natural;
        double number;
        bool truth;
        det_time time; /* TIME, DURATION */
        struct det_expression_text text;
        const void *record;
    };
};

/* Evaluates an expression without a target. `inputs` has the pointer of each input; one that the
 * expression does not read may be NULL. The structs should be valid (det_record_validate());
 * whatever is in them, nothing outside of them is read.
 *
 * Errors, with the offset and the column: DET_ERR_OVERFLOW, DET_ERR_RANGE (division by zero, index,
 * a float that is not finite, a value that does not fit the field), DET_ERR_MALFORMED (a text that
 * is not a number or a time), DET_ERR_LIMIT (texts of more than DET_EXPRESSION_TEXT_MAX bytes). */
DET_API int det_expression_value(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, struct det_expression_value *ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* Evaluates a condition, which must be of type BOOL and have no target: 1 true, 0 false (also if it
 * is absent), or an error as above. */
DET_API int det_expression_test(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, struct det_error *reterr) DET_MUST_CHECK;

/* Evaluates and stores the result in the field of `target`, a struct of the target record, which
 * may be one of the inputs. An absent result makes an optional field absent. After an error the
 * target is unchanged. */
DET_API int det_expression_store(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, void *target, struct det_error *reterr) DET_MUST_CHECK;

/* Many rows at once: input k of row i is `i * strides[k]` bytes after `inputs[k]`; a stride of 0 is
 * the same value for all rows. */
struct det_expression_rows {
    const void *const *inputs;
    const size_t *strides;
    size_t count;
};

/* det_expression_test() of each row: `results[i]` is 1, 0 or a negative error code; test the row
 * alone for its text. Returns the number of errors. */
DET_API size_t det_expression_test_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, int8_t *results);
/* det_expression_store() of each row, in a struct `stride` bytes after the one before: `results[i]`
 * is 0 or a negative error code. Returns the number of errors. */
DET_API size_t det_expression_store_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, void *targets, size_t stride, int8_t *results);

/* A field that an expression reads, or asks for with has(). The flags of the field say whether it
 * is sensitive: then so is the result. */
struct det_expression_read {
    size_t input;                  /* its index */
    const struct det_field *field; /* NULL: the input is a single value */
    const char *path; /* without the name of the input and without indexes: "customer.level" */
};
/* All of them, each path once, in the order of their first use. */
DET_API const struct det_expression_read *det_expression_reads(
    const struct det_expression *expression, size_t *ret_count);

/* The canonical form of a text: one blank around operators, texts in single quotes. It compiles to
 * the same program. Writes like snprintf() and returns the full length, or an error of the tokens
 * or brackets; names and types are not looked at. */
DET_API int64_t det_expression_format(
    const char *text, size_t size, char *target, size_t capacity,
    struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
