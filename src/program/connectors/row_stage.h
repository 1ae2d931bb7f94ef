/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_stage.h - what transforms of rows share: settings, inputs of expressions, the output row.
 *
 *     struct filter {
 *         struct row_stage stage;                           first
 *         struct filter_settings settings;
 *         ...
 *     };
 *     static const struct row_stage_kind kind = { filter_settings_record, trees,
 *                                                 sizeof(struct filter),
 *                                                 offsetof(struct filter, settings), read_filter };
 */
#ifndef DET_CONNECTORS_ROW_STAGE_H
#define DET_CONNECTORS_ROW_STAGE_H

#include "connectors/row_fields.h"

#define ROW_EXPRESSIONS 256

struct row_stage {
    const struct det_allocator *allocator;
    const struct det_stage *definition;
    size_t size; /* of the struct around it */
    struct det_expression_input inputs[ROW_INPUTS];
    struct row_fields fields;
    struct det_expression_scratch scratch;
    struct det_expression *condition;
    struct det_expression *expressions[ROW_EXPRESSIONS]; /* others, see row_stage_compile() */
    uint32_t expression_count;
    void *row; /* the output */
    size_t row_size;
};

struct row_stage_kind {
    const struct det_record *(*settings)(void);
    const char *const *trees; /* see settings.h */
    size_t size;
    size_t settings_offset;
    /* Checks the settings and adds the fields; nothing needs to be closed after an error. */
    int (*read)(
        struct row_stage *stage, const struct settings *settings,
        const struct row_fields_options *options, struct det_error *reterr);
};

/* Makes a stage from its settings, and drops it. */
DET_MUST_CHECK int row_stage_make(
    const struct row_stage_kind *kind, const struct det_stage *definition,
    const struct det_allocator *allocator, struct row_stage **ret, struct det_error *reterr);
void row_stage_drop(struct row_stage *stage);
/* For check(), open() and close() of the stage. */
DET_MUST_CHECK int row_stage_check(
    const struct row_stage_kind *kind, const struct det_stage *definition,
    struct det_error *reterr);
DET_MUST_CHECK int row_stage_open(const struct row_stage_kind *kind, struct det_stage_call *call);
void row_stage_close(struct det_stage_call *call);
/* Fills the output row from an input. An expression that fails rejects the input. */
DET_MUST_CHECK int row_stage_fill(struct det_stage_call *call, const void *in);

/* In read(): a text that is compiled, and what it is for: its name and place in the settings. */
struct row_formula_text {
    const struct det_datum *datum; /* NULL: the settings */
    const char *name, *text;
    size_t size;
};
/* In read(): compiles an expression that is closed with the stage; the allocator is that of the
 * stage. The error begins with the place and the name. */
DET_MUST_CHECK int row_stage_compile(
    struct row_stage *stage, const struct settings *settings,
    const struct row_formula_text *formula, const struct det_expression_options *options,
    struct det_expression **ret, struct det_error *reterr);

#endif
