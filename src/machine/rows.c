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

/* Most names differ in their first letter already. */
static int find(const struct det_row_kind *kinds, int count, const char *name, size_t length)
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
    return find(rows, DET_ROW_COUNT, name, length);
}

int det_extra_find(const char *name, size_t length)
{
    return find(extras, DET_EXTRA_COUNT, name, length);
}

int det_row_nearest(const char *name)
{
    const char *names[DET_ROW_COUNT];

    for (int i = 0; i < DET_ROW_COUNT; i++)
        names[i] = rows[i].name;
    return det_text_nearest(name, names, DET_ROW_COUNT);
}
