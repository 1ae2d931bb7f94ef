/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_row.h - a row from a line or a message: its text in a field, or the fields of a JSON
 * object. */
#ifndef DET_CONNECTORS_LINE_ROW_H
#define DET_CONNECTORS_LINE_ROW_H

#include "connectors/settings.h"

#define REC_SPEC "connectors/line_row.rec"
#include <detent/rec/declare.h>

/* The zero value is one that needs no deinit. */
struct line_row {
    const struct det_allocator *allocator;
    const struct det_record *record;
    enum line_format format;
    const struct det_field *field;      /* LINE_TEXT */
    unsigned flags;                     /* LINE_JSON: enum det_text_flags */
    bool truncates;                     /* LINE_TEXT: cuts what does not fit, between characters */
    const struct det_field *name_field; /* text field that gets the name; NULL: none */
    const char *unit;                   /* in messages; NULL: "line" */
    void *row;
};

/* `field`: the setting of this name; "": the only text field of the record. */
DET_MUST_CHECK int line_row_init(
    struct line_row *line_row, const struct settings *settings, enum line_format format,
    const char *field, const struct det_allocator *allocator, struct det_error *reterr);
void line_row_deinit(struct line_row *line_row);
/* Emits the row of a line; one that does not fit is rejected, which is no error. Messages begin
 * with "<name>, <unit> <number>: "; number 0: without it. */
DET_MUST_CHECK int line_row_emit(
    struct det_stage_call *call, struct line_row *line_row, struct det_view line, const char *name,
    uint64_t number);

#endif
