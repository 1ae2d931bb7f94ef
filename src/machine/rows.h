/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows.h - the kinds of rows and extras of a spec file as data: for the reader, the formatter and
 * `detent help rows`. */
#ifndef DET_MACHINE_ROWS_H
#define DET_MACHINE_ROWS_H

#include <detent/base.h>

/* As `most`: a list, which has a separate limit. */
#define DET_ROW_MANY UINT16_MAX

enum det_row {
#define DET_ROW(name, where, least, most, columns, form, help) DET_ROW_##name,
#include "machine/rows.def"
    DET_ROW_COUNT
};

/* Rows that only a .worker file has, numbered after those of machines. */
enum det_worker_row {
    DET_WORKER_ROW_BEFORE_FIRST = DET_ROW_COUNT - 1,
#define DET_WORKER_ROW(name, least, most, columns, form, help) DET_WORKER_ROW_##name,
#include "machine/rows.def"
    DET_WORKER_ROW_END
};

enum det_worker_extra {
#define DET_WORKER_EXTRA(name, least, most, form, help) DET_WORKER_EXTRA_##name,
#include "machine/rows.def"
    DET_WORKER_EXTRA_COUNT
};

/* Rows that only a .flow file has, also numbered after those of machines. */
enum det_flow_row {
    DET_FLOW_ROW_BEFORE_FIRST = DET_ROW_COUNT - 1,
#define DET_FLOW_ROW(name, least, most, columns, form, help) DET_FLOW_ROW_##name,
#include "machine/rows.def"
    DET_FLOW_ROW_END
};

enum det_flow_extra {
#define DET_FLOW_EXTRA(name, least, most, form, help) DET_FLOW_EXTRA_##name,
#include "machine/rows.def"
    DET_FLOW_EXTRA_COUNT
};

enum det_extra {
#define DET_EXTRA(name, least, most, form, help) DET_EXTRA_##name,
#include "machine/rows.def"
    DET_EXTRA_COUNT
};

struct det_row_kind {
    const char *name;
    const char *form;     /* its syntax */
    const char *help;     /* its meaning; one line */
    uint16_t least, most; /* arguments */
    uint8_t columns;      /* number of aligned ones */
    bool is_of_records;   /* permitted in a .rec file */
};

/* Both are in the order of rows.def. */
const struct det_row_kind *det_row_kind(enum det_row row);
const struct det_row_kind *det_extra_kind(enum det_extra extra);
/* Returns the row or the extra with this name, or -1. */
int det_row_find(const char *name, size_t length);
int det_extra_find(const char *name, size_t length);
/* The language of a file: its rows and words. */
enum det_language {
    DET_LANGUAGE_MACHINE,
    DET_LANGUAGE_WORKER,
    DET_LANGUAGE_FLOW,
};

/* The same for a language: `row` is of enum det_row, det_worker_row or det_flow_row. */
const struct det_row_kind *det_row_kind_in(enum det_language language, unsigned row);
int det_row_find_in(enum det_language language, const char *name, size_t length);
/* Returns the row with the most similar name, or -1. */
int det_row_nearest_in(enum det_language language, const char *name);
const struct det_row_kind *det_worker_extra_kind(enum det_worker_extra extra);
const struct det_row_kind *det_flow_extra_kind(enum det_flow_extra extra);
/* Returns the option of a stage with this name, or -1. */
int det_flow_extra_find(const char *name, size_t length);
/* Returns true if this is a word that the language has inside of rows. */
bool det_row_is_extra(enum det_language language, const char *name);
/* Returns the number of aligned arguments of rows with this name, in any language. */
unsigned det_row_columns(const char *name, size_t length);

#endif
