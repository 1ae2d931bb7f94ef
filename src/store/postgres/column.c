/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* column.c - arrays in PostgreSQL's binary form:
 *
 *     dimensions (1), has NULLs, type of the elements, count, first index (1)
 *     then each element: length, bytes; the length of NULL is -1
 *
 * Each of these numbers has 4 bytes, big-endian. */
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "store/postgres/commit_batch.h"

#define HEADER_SIZE 20

/* The type numbers of the server. */
enum { NUMBER = POSTGRES_NUMBERS, FLAG = 16, TEXT = POSTGRES_TEXTS, BYTES = 17 };

static const uint32_t types[POSTGRES_COLUMN_COUNT] = {
#define DET_POSTGRES_ARRAY(name, type) type,
#include "store/postgres/columns.def"
#undef DET_POSTGRES_ARRAY
};

static void write_u32(char *target, uint32_t number)
{
    const unsigned char bytes[] = { (unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                    (unsigned char)(number >> 8), (unsigned char)number };

    memcpy(target, bytes, sizeof bytes);
}

void det_postgres_column_clear(struct postgres_column *column)
{
    det_buffer_clear(&column->bytes);
    column->count = 0;
    column->has_null = false;
}

/* Reserves room for an element and writes its length. */
static char *begin_element(struct postgres_column *column, uint32_t size)
{
    char *target;

    if (column->count++ == 0)
        (void)det_buffer_extend(&column->bytes, HEADER_SIZE);
    target = det_buffer_extend(&column->bytes, 4 + (size_t)size);
    if (!target)
        return NULL;
    write_u32(target, size);
    return target + 4;
}

void det_postgres_column_number(struct postgres_column *column, int64_t n)
{
    char *target = begin_element(column, 8);

    if (!target)
        return;
    write_u32(target, (uint32_t)((uint64_t)n >> 32));
    write_u32(target + 4, (uint32_t)(uint64_t)n);
}

void det_postgres_put_number(struct postgres_batch *batch, enum postgres_column_id id, int64_t n)
{
    det_postgres_column_number(&batch->columns[id], n);
}

void det_postgres_put_flag(struct postgres_batch *batch, enum postgres_column_id id, bool flag)
{
    char *target = begin_element(&batch->columns[id], 1);

    if (target)
        *target = flag ? 1 : 0;
}

void det_postgres_column_bytes(struct postgres_column *column, struct det_chain_bytes bytes)
{
    char *target;

    if (!bytes.data) {
        target = begin_element(column, 0);
        column->has_null = true;
        if (target)
            write_u32(target - 4, UINT32_MAX);
        return;
    }
    target = begin_element(column, (uint32_t)bytes.size);
    if (target)
        memcpy(target, bytes.data, bytes.size);
}

void det_postgres_put_bytes(
    struct postgres_batch *batch, enum postgres_column_id id, struct det_chain_bytes bytes)
{
    det_postgres_column_bytes(&batch->columns[id], bytes);
}

void det_postgres_put_text(
    struct postgres_batch *batch, enum postgres_column_id id, const char *text)
{
    det_postgres_put_bytes(batch, id, (struct det_chain_bytes){ text, text ? strlen(text) : 0 });
}

static int complete_column(
    struct postgres_column *column, uint32_t type, const char **ret, int *ret_length)
{
    int r;

    if (column->count == 0)
        (void)det_buffer_extend(&column->bytes, HEADER_SIZE);
    r = det_buffer_status(&column->bytes);
    if (r < 0)
        return r;
    det_assert(column->count > 0 || !column->has_null);
    det_assert(column->bytes.size >= HEADER_SIZE + (size_t)column->count * 4);
    if (column->bytes.size > INT_MAX)
        return DET_ERR_LIMIT;
    write_u32(column->bytes.data, column->count ? 1 : 0);
    write_u32(column->bytes.data + 4, column->has_null);
    write_u32(column->bytes.data + 8, type);
    write_u32(column->bytes.data + 12, column->count);
    write_u32(column->bytes.data + 16, 1);
    *ret = column->bytes.data;
    /* An empty array ends after its type. */
    *ret_length = column->count ? (int)column->bytes.size : 12;
    return 0;
}

int det_postgres_column_finish(
    struct postgres_column *column, enum postgres_column_id id, const char **ret, int *ret_length)
{
    return complete_column(column, types[id], ret, ret_length);
}

void det_postgres_arrays_init(struct postgres_arrays *arrays, const struct det_allocator *allocator)
{
    memset(arrays, 0, sizeof *arrays);
    for (size_t i = 0; i < POSTGRES_ARRAYS_MAX; i++)
        det_buffer_init(&arrays->columns[i].bytes, allocator);
}

void det_postgres_arrays_deinit(struct postgres_arrays *arrays)
{
    for (size_t i = 0; i < POSTGRES_ARRAYS_MAX; i++)
        det_buffer_deinit(&arrays->columns[i].bytes);
}

void det_postgres_arrays_text(struct postgres_arrays *arrays, size_t column, const char *text)
{
    det_postgres_column_bytes(
        &arrays->columns[column], (struct det_chain_bytes){ text, strlen(text) });
}

int det_postgres_arrays_add(
    struct postgres_arrays *arrays, size_t column, uint32_t type,
    struct postgres_parameters *parameters)
{
    struct det_chain_bytes bytes = { 0 };
    const char *data;
    int length, r;

    det_assert(column < POSTGRES_ARRAYS_MAX);
    r = complete_column(&arrays->columns[column], type, &data, &length);
    if (r < 0)
        return r;
    bytes = (struct det_chain_bytes){ data, (size_t)length };
    det_postgres_add_bytes(parameters, bytes);
    return 0;
}
