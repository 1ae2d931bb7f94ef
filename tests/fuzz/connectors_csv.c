/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors_csv.c - fuzz target: rows of CSV. Cells are inside of their row, every row has bytes,
 * and a text that arrives in two parts is split like the whole one. Numbers are those of
 * strtod(). */
#include <stdlib.h>
#include <string.h>

#include "connectors/csv_reader.h"
#include "connectors/row_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct csv_row row, part;

static void check_cells(const char *text)
{
    for (uint32_t i = 0; i < row.count; i++) {
        const struct det_view *cell = &row.cells[i];
        double number = 0;

        if (cell->data < text || cell->data + cell->size > text + row.size)
            abort();
        if (cell->size < 1024 && row_number(*cell, &number)) {
            char copy[1024];

            memcpy(copy, cell->data, cell->size);
            copy[cell->size] = 0;
            if (strtod(copy, NULL) != number)
                abort();
        }
    }
}

/* The first `cut` bytes alone are partial, or the same row. */
static void check_prefix(const uint8_t *data, size_t size, size_t cut, enum csv_result result)
{
    char *copy = malloc(cut ? cut : 1);
    enum csv_result found;

    if (!copy)
        abort();
    memcpy(copy, data, cut);
    found = csv_split(copy, cut, ',', false, &part);
    if (found != CSV_PARTIAL && cut <= size &&
        (found != result || part.size != row.size || part.lines != row.lines))
        abort();
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cut = size ? data[0] % size : 0, at = 0;
    char *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    while (at < size) {
        enum csv_result result = csv_split(text + at, size - at, ',', true, &row);

        if (result == CSV_PARTIAL || row.size == 0 || row.size > size - at || row.lines == 0)
            abort();
        if (result == CSV_ROW)
            check_cells(text + at);
        if (at == 0)
            check_prefix(data, size, cut, result);
        at += row.size;
    }
    free(text);
    return 0;
}
