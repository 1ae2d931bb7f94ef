/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows.h - the kinds of rows and extras of a spec file as data: for the reader, the formatter and
 * `detent help rows`. */
#ifndef DET_MACHINE_ROWS_H
#define DET_MACHINE_ROWS_H

#include <detent/base.h>

/* As `most`: a list, which has a limit of its own. */
#define DET_ROW_MANY UINT16_MAX

enum det_row {
#define DET_ROW(name, where, least, most, columns, form, help) DET_ROW_##name,
#include "machine/rows.def"
    DET_ROW_COUNT
};

/* The rows that only a .worker file has; they are numbered behind those of machines. */
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

enum det_extra {
#define DET_EXTRA(name, least, most, form, help) DET_EXTRA_##name,
#include "machine/rows.def"
    DET_EXTRA_COUNT
};

struct det_row_kind {
    const char *name;
    const char *form;     /* how it is written */
    const char *help;     /* what it says; one line */
    uint16_t least, most; /* arguments */
    uint8_t columns;      /* how many of them are aligned */
    bool is_of_records;   /* may stand in a .rec file */
};

/* Both in the order of rows.def. */
const struct det_row_kind *det_row_kind(enum det_row row);
const struct det_row_kind *det_extra_kind(enum det_extra extra);
/* The row or the extra with this name, or -1. */
int det_row_find(const char *name, size_t length);
int det_extra_find(const char *name, size_t length);
/* What a file is about: which rows and words it may have. */
enum det_language {
    DET_LANGUAGE_MACHINE,
    DET_LANGUAGE_WORKER,
};

/* The same for the rows of a language: a number of enum det_row or of enum det_worker_row. */
const struct det_row_kind *det_row_kind_in(enum det_language language, unsigned row);
int det_row_find_in(enum det_language language, const char *name, size_t length);
/* The row that was probably meant, or -1. */
int det_row_nearest_in(enum det_language language, const char *name);
const struct det_row_kind *det_worker_extra_kind(enum det_worker_extra extra);
/* Whether this is a word of the language that stands inside of rows. */
bool det_row_is_extra(enum det_language language, const char *name);
/* How many arguments of rows of this name are aligned, in whatever language. */
unsigned det_row_columns(const char *name, size_t length);

#endif
