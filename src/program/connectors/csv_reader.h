/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_reader.h - splits the rows of CSV (RFC 4180) into cells, without copying. Pure.
 *
 *     a,"b ""c"", d",\r\n      three cells: a | b "c", d |
 *
 * A cell in quotes may have delimiters, line ends and doubled quotes. A row ends with "\n" or
 * "\r\n". A quote elsewhere in a cell, and text after a closing quote, are malformed. */
#ifndef DET_CONNECTORS_CSV_READER_H
#define DET_CONNECTORS_CSV_READER_H

#include "base/text.h"

#define CSV_CELLS_MAX 1024

enum csv_result {
    CSV_PARTIAL, /* the row is not complete */
    CSV_ROW,
    CSV_QUOTE, /* a quote in a cell that does not begin with one */
    CSV_TAIL,  /* text after a closing quote */
    CSV_CELLS, /* more than CSV_CELLS_MAX cells */
    CSV_OPEN,  /* the input ends in a quoted cell */
};

struct csv_row {
    struct det_view cells[CSV_CELLS_MAX]; /* in the text that was split */
    uint32_t count;
    uint32_t lines; /* how many the row has */
    size_t size; /* bytes of the row with its end; of a malformed one: up to its first line end */
};

/* Splits the first row of a text, which is changed: doubled quotes become single. `is_end`: nothing
 * comes after the text. An empty text is CSV_PARTIAL. */
enum csv_result csv_split(
    char *text, size_t size, char delimiter, bool is_end, struct csv_row *row);
/* Returns why a row is malformed, and the remedy. */
const char *csv_result_text(enum csv_result result);

#endif
