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

static const struct det_row_kind flow_rows[] = {
#define DET_FLOW_ROW(name, least, most, columns, form, help) \
    { #name, form, help, least, most, columns, false },
#include "machine/rows.def"
};

static const struct det_row_kind flow_extras[] = {
#define DET_FLOW_EXTRA(name, least, most, form, help) { #name, form, help, least, most, 0, false },
#include "machine/rows.def"
};

#define WORKER_ROW_COUNT (int)(sizeof worker_rows / sizeof *worker_rows)
#define FLOW_ROW_COUNT   (int)(sizeof flow_rows / sizeof *flow_rows)

/* The rows that a language has besides those of records. */
static const struct det_row_kind *own_rows(enum det_language language, int *ret_count)
{
    *ret_count = language == DET_LANGUAGE_WORKER ? WORKER_ROW_COUNT
                 : language == DET_LANGUAGE_FLOW ? FLOW_ROW_COUNT
                                                 : 0;
    return language == DET_LANGUAGE_WORKER ? worker_rows : flow_rows;
}

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

const struct det_row_kind *det_flow_extra_kind(enum det_flow_extra extra)
{
    det_assert((unsigned)extra < DET_FLOW_EXTRA_COUNT);
    return &flow_extras[extra];
}

int det_flow_extra_find(const char *name, size_t length)
{
    return find_row(flow_extras, DET_FLOW_EXTRA_COUNT, name, length);
}

const struct det_row_kind *det_row_kind_in(enum det_language language, unsigned row)
{
    const struct det_row_kind *own;
    int count;

    if (row < DET_ROW_COUNT)
        return det_row_kind((enum det_row)row);
    own = own_rows(language, &count);
    det_assert(row - DET_ROW_COUNT < (unsigned)count);
    return &own[row - DET_ROW_COUNT];
}

/* Workers and flows also have the rows of records, and USES. */
static bool is_shared(int row)
{
    return row >= 0 && (rows[row].is_of_records || row == DET_ROW_USES);
}

int det_row_find_in(enum det_language language, const char *name, size_t length)
{
    int row = find_row(rows, DET_ROW_COUNT, name, length);
    const struct det_row_kind *own;
    int count, found;

    if (language == DET_LANGUAGE_MACHINE)
        return row;
    own = own_rows(language, &count);
    found = find_row(own, count, name, length);
    if (found >= 0)
        return DET_ROW_COUNT + found;
    return is_shared(row) ? row : -1;
}

int det_row_nearest_in(enum det_language language, const char *name)
{
    const char *names[DET_FLOW_ROW_END];
    int numbers[DET_FLOW_ROW_END];
    const struct det_row_kind *own;
    size_t count = 0;
    int own_count, nearest;

    _Static_assert(
        (int)DET_FLOW_ROW_END >= (int)DET_WORKER_ROW_END, "the rows of each language must fit");
    for (int i = 0; i < DET_ROW_COUNT; i++) {
        if (language == DET_LANGUAGE_MACHINE || is_shared(i)) {
            numbers[count] = i;
            names[count++] = rows[i].name;
        }
    }
    own = own_rows(language, &own_count);
    for (int i = 0; i < own_count; i++) {
        numbers[count] = DET_ROW_COUNT + i;
        names[count++] = own[i].name;
    }
    nearest = det_text_nearest(name, names, count);
    return nearest >= 0 ? numbers[nearest] : -1;
}

bool det_row_is_extra(enum det_language language, const char *name)
{
    if (language == DET_LANGUAGE_WORKER)
        return find_row(worker_extras, DET_WORKER_EXTRA_COUNT, name, strlen(name)) >= 0;
    if (language == DET_LANGUAGE_FLOW)
        return det_flow_extra_find(name, strlen(name)) >= 0;
    return det_extra_find(name, strlen(name)) >= 0;
}

unsigned det_row_columns(const char *name, size_t length)
{
    int row = find_row(rows, DET_ROW_COUNT, name, length);

    if (row >= 0)
        return rows[row].columns;
    row = find_row(worker_rows, WORKER_ROW_COUNT, name, length);
    if (row >= 0)
        return worker_rows[row].columns;
    row = find_row(flow_rows, FLOW_ROW_COUNT, name, length);
    return row >= 0 ? flow_rows[row].columns : 0;
}
