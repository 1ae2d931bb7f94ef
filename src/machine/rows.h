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
/* The row that was probably meant, or -1. */
int det_row_nearest(const char *name);

#endif
