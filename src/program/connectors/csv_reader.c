/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_reader.c - splits a row of CSV in one pass; eight bytes at a time outside of quotes. */
#include "connectors/csv_reader.h"

#include <string.h>

#include "base/assert.h"

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

struct splitter {
    char *text;
    size_t size;
    size_t at;
    uint64_t delimiters; /* the delimiter in each byte */
    char delimiter;
    bool is_end;
    bool has_doubled; /* some cell has doubled quotes */
};

/* A high bit for each zero byte; bits above the lowest may be wrong. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - ONES) & ~word & HIGHS;
}

/* Returns where the first delimiter, quote or line feed is, or the size. */
static inline size_t find_special(const struct splitter *splitter, size_t at)
{
    uint64_t word, found;

    for (; splitter->size - at >= 8; at += 8) {
        memcpy(&word, splitter->text + at, 8);
        found = zero_bytes(word ^ splitter->delimiters) | zero_bytes(word ^ (ONES * '\n')) |
                zero_bytes(word ^ (ONES * '"'));
        if (found) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return at + (size_t)__builtin_ctzll(found) / 8;
#else
            break;
#endif
        }
    }
    for (; at < splitter->size; at++) {
        char c = splitter->text[at];

        if (c == splitter->delimiter || c == '\n' || c == '"')
            break;
    }
    return at;
}

/* A cell without quotes: up to the delimiter or the line end. */
static inline enum csv_result split_plain(struct splitter *splitter, struct det_view *ret)
{
    size_t from = splitter->at, to = find_special(splitter, from);

    if (to < splitter->size && splitter->text[to] == '"')
        return CSV_QUOTE;
    if (to == splitter->size && !splitter->is_end)
        return CSV_PARTIAL;
    splitter->at = to;
    if (to > from && splitter->text[to - 1] == '\r' &&
        (to == splitter->size || splitter->text[to] == '\n'))
        to--;
    *ret = det_view_of(splitter->text + from, to - from);
    return CSV_ROW;
}

/* Returns where the closing quote is, or the size. */
static size_t find_close(struct splitter *splitter, size_t at, uint32_t *lines)
{
    for (;;) {
        char *quote =
            at < splitter->size ? memchr(splitter->text + at, '"', splitter->size - at) : NULL;
        size_t end = quote ? (size_t)(quote - splitter->text) : splitter->size;

        for (const char *line = splitter->text + at;
             (line = memchr(line, '\n', (size_t)(splitter->text + end - line))); line++)
            ++*lines;
        if (end + 1 >= splitter->size || splitter->text[end + 1] != '"')
            return end;
        splitter->has_doubled = true;
        at = end + 2;
    }
}

/* The opening quote is at `at`. */
static enum csv_result split_quoted(
    struct splitter *splitter, struct det_view *ret, uint32_t *lines)
{
    size_t from = splitter->at + 1, to = find_close(splitter, from, lines), after = to + 1;

    if (to == splitter->size)
        return splitter->is_end ? CSV_OPEN : CSV_PARTIAL;
    /* The next byte shows whether the quote is doubled. */
    if (after == splitter->size && !splitter->is_end)
        return CSV_PARTIAL;
    *ret = det_view_of(splitter->text + from, to - from);
    if (after < splitter->size && splitter->text[after] == '\r') {
        if (after + 1 == splitter->size && !splitter->is_end)
            return CSV_PARTIAL;
        if (after + 1 == splitter->size || splitter->text[after + 1] == '\n')
            after++;
    }
    splitter->at = after;
    if (after < splitter->size && splitter->text[after] != splitter->delimiter &&
        splitter->text[after] != '\n')
        return CSV_TAIL;
    return CSV_ROW;
}

static void merge_doubled(struct csv_row *row)
{
    for (uint32_t i = 0; i < row->count; i++) {
        char *text = (char *)(uintptr_t)row->cells[i].data;
        size_t size = row->cells[i].size, to = 0;
        char *first = size ? memchr(text, '"', size) : NULL;

        if (!first)
            continue;
        to = (size_t)(first - text);
        for (size_t from = to; from < size; from++) {
            text[to++] = text[from];
            /* A quote in a cell is always doubled. */
            from += text[from] == '"';
        }
        row->cells[i].size = to;
    }
}

/* Reads on after the first line end. */
static enum csv_result end_malformed(
    const struct splitter *splitter, enum csv_result result, struct csv_row *row)
{
    const char *end = memchr(splitter->text, '\n', splitter->size);

    if (!end && !splitter->is_end)
        return CSV_PARTIAL;
    row->size = end ? (size_t)(end - splitter->text) + 1 : splitter->size;
    row->lines = 1;
    return result;
}

enum csv_result csv_split(char *text, size_t size, char delimiter, bool is_end, struct csv_row *row)
{
    struct splitter splitter = { text,      size,   0,    ONES * (unsigned char)delimiter,
                                 delimiter, is_end, false };
    enum csv_result result;

    row->count = 0;
    row->lines = 1;
    if (size == 0)
        return CSV_PARTIAL;
    for (;;) {
        if (row->count == CSV_CELLS_MAX)
            return end_malformed(&splitter, CSV_CELLS, row);
        if (splitter.at < size && text[splitter.at] == '"')
            result = split_quoted(&splitter, &row->cells[row->count], &row->lines);
        else
            result = split_plain(&splitter, &row->cells[row->count]);
        if (result == CSV_PARTIAL)
            return result;
        if (result != CSV_ROW)
            return end_malformed(&splitter, result, row);
        row->count++;
        det_assert(splitter.at <= size);
        if (splitter.at == size || text[splitter.at] == '\n')
            break;
        splitter.at++;
    }
    row->size = splitter.at + (splitter.at < size);
    if (splitter.has_doubled)
        merge_doubled(row);
    return CSV_ROW;
}

const char *csv_result_text(enum csv_result result)
{
    switch (result) {
    case CSV_QUOTE:
        return "a quote is inside of a cell without quotes; put the whole cell in quotes and "
               "double the quote";
    case CSV_TAIL:
        return "text follows a closing quote; double a quote that belongs to the cell";
    case CSV_CELLS:
        return "the row has more than 1024 cells";
    case CSV_OPEN:
        return "a quoted cell is not closed before the end or within 1 MiB; close the quote";
    case CSV_PARTIAL:
    case CSV_ROW:
        break;
    }
    return "";
}
