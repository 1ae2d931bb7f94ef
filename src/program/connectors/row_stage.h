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

struct row_stage {
    const struct det_allocator *allocator;
    const struct det_stage *definition;
    size_t size; /* of the struct around it */
    struct det_expression_input inputs[ROW_INPUTS];
    struct row_fields fields;
    struct det_expression_scratch scratch;
    struct det_expression *condition;
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

/* For check(), open() and close() of the stage. */
DET_MUST_CHECK int row_stage_check(
    const struct row_stage_kind *kind, const struct det_stage *definition,
    struct det_error *reterr);
DET_MUST_CHECK int row_stage_open(const struct row_stage_kind *kind, struct det_stage_call *call);
void row_stage_close(struct det_stage_call *call);
/* Fills the output row from an input. An expression that fails rejects the input. */
DET_MUST_CHECK int row_stage_fill(struct det_stage_call *call, const void *in);

#endif
