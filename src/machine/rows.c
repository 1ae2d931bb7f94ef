/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows.c - the kinds of rows and extras, from rows.def. */
#include "machine/rows.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define ROW_OF_MACHINE false
#define ROW_OF_RECORD  true

static const struct det_row_kind rows[] = {
#define DET_ROW(name, where, least, most, columns, form, help) \
    { #name, form, help, least, most, columns, ROW_OF_##where },
#include "machine/rows.def"
};

static const struct det_row_kind extras[] = {
#define DET_EXTRA(name, least, most, form, help) { #name, form, help, least, most, 0, false },
#include "machine/rows.def"
};

static const struct det_row_kind worker_rows[] = {
#define DET_WORKER_ROW(name, least, most, columns, form, help) \
    { #name, form, help, least, most, columns, false },
#include "machine/rows.def"
};

static const struct det_row_kind worker_extras[] = {
#define DET_WORKER_EXTRA(name, least, most, form, help) \
    { #name, form, help, least, most, 0, false },
#include "machine/rows.def"
};

#define WORKER_ROW_COUNT (int)(sizeof worker_rows / sizeof *worker_rows)

/* Compares the first letter before the rest: most names differ there. */
static int find_row(const struct det_row_kind *kinds, int count, const char *name, size_t length)
{
    for (int i = 0; i < count && length > 0; i++) {
        if (kinds[i].name[0] == name[0] && strncmp(kinds[i].name, name, length) == 0 &&
            kinds[i].name[length] == '\0')
            return i;
    }
    return -1;
}

const struct det_row_kind *det_row_kind(enum det_row row)
{
    det_assert((unsigned)row < DET_ROW_COUNT);
    return &rows[row];
}

const struct det_row_kind *det_extra_kind(enum det_extra extra)
{
    det_assert((unsigned)extra < DET_EXTRA_COUNT);
    return &extras[extra];
}

int det_row_find(const char *name, size_t length)
{
    return find_row(rows, DET_ROW_COUNT, name, length);
}

int det_extra_find(const char *name, size_t length)
{
    return find_row(extras, DET_EXTRA_COUNT, name, length);
}

const struct det_row_kind *det_worker_extra_kind(enum det_worker_extra extra)
{
    det_assert((unsigned)extra < DET_WORKER_EXTRA_COUNT);
    return &worker_extras[extra];
}

const struct det_row_kind *det_row_kind_in(enum det_language language, unsigned row)
{
    if (row < DET_ROW_COUNT)
        return det_row_kind((enum det_row)row);
    det_assert(language == DET_LANGUAGE_WORKER && row < DET_WORKER_ROW_END);
    return &worker_rows[row - DET_ROW_COUNT];
}

/* A worker also has the rows of records, and USES. */
static bool is_of_workers(int row)
{
    return row >= 0 && (rows[row].is_of_records || row == DET_ROW_USES);
}

int det_row_find_in(enum det_language language, const char *name, size_t length)
{
    int row = find_row(rows, DET_ROW_COUNT, name, length);
    int own;

    if (language == DET_LANGUAGE_MACHINE)
        return row;
    own = find_row(worker_rows, WORKER_ROW_COUNT, name, length);
    if (own >= 0)
        return DET_ROW_COUNT + own;
    return is_of_workers(row) ? row : -1;
}

int det_row_nearest_in(enum det_language language, const char *name)
{
    const char *names[DET_WORKER_ROW_END];
    int numbers[DET_WORKER_ROW_END];
    size_t count = 0;
    int nearest;

    for (int i = 0; i < DET_ROW_COUNT; i++) {
        if (language == DET_LANGUAGE_MACHINE || is_of_workers(i)) {
            numbers[count] = i;
            names[count++] = rows[i].name;
        }
    }
    for (int i = 0; i < WORKER_ROW_COUNT && language == DET_LANGUAGE_WORKER; i++) {
        numbers[count] = DET_ROW_COUNT + i;
        names[count++] = worker_rows[i].name;
    }
    nearest = det_text_nearest(name, names, count);
    return nearest >= 0 ? numbers[nearest] : -1;
}

bool det_row_is_extra(enum det_language language, const char *name)
{
    if (language == DET_LANGUAGE_WORKER)
        return find_row(worker_extras, DET_WORKER_EXTRA_COUNT, name, strlen(name)) >= 0;
    return det_extra_find(name, strlen(name)) >= 0;
}

unsigned det_row_columns(const char *name, size_t length)
{
    int row = find_row(rows, DET_ROW_COUNT, name, length);

    if (row >= 0)
        return rows[row].columns;
    row = find_row(worker_rows, WORKER_ROW_COUNT, name, length);
    return row >= 0 ? worker_rows[row].columns : 0;
}
