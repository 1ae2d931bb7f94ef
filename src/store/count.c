/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.c - counts by machine and state, in an array that is searched linearly. */
#include <detent/tool/store.h>

#include "store/count.h"

#include <stdlib.h>
#include <string.h>

void det_count_init(struct det_count *count, const struct det_allocator *allocator)
{
    det_arena_init(&count->names, allocator);
    det_buffer_init(&count->rows, allocator);
}

void det_count_deinit(struct det_count *count)
{
    det_arena_deinit(&count->names);
    det_buffer_deinit(&count->rows);
}

static struct det_store_counted *rows_of(struct det_count *count, size_t *ret_size)
{
    *ret_size = count->rows.size / sizeof(struct det_store_counted);
    return (struct det_store_counted *)(void *)count->rows.data;
}

/* The state NULL sorts first. */
static int compare_states(const char *left, const char *right)
{
    if (!left || !right)
        return (left != NULL) - (right != NULL);
    return strcmp(left, right);
}

static int compare_counts(const void *left, const void *right)
{
    const struct det_store_counted *a = left, *b = right;
    int r = strcmp(a->machine, b->machine);

    return r ? r : compare_states(a->state, b->state);
}

/* The row of a machine and state, created if necessary; NULL: no memory. Valid until the next
 * call. */
static struct det_store_counted *row_of(
    struct det_count *count, const char *machine, const char *state)
{
    struct det_store_counted row = { .machine = machine, .state = state }, *rows;
    size_t size;

    rows = rows_of(count, &size);
    for (size_t i = 0; i < size; i++) {
        if (compare_counts(&rows[i], &row) == 0)
            return &rows[i];
    }
    row.machine = det_arena_copy(&count->names, machine);
    row.state = state ? det_arena_copy(&count->names, state) : NULL;
    det_buffer_append(&count->rows, &row, sizeof row);
    if (!row.machine || (state && !row.state) || det_buffer_status(&count->rows) < 0)
        return NULL;
    rows = rows_of(count, &size);
    return &rows[size - 1];
}

static void add_counts(struct det_store_counted *target, const struct det_store_counted *row)
{
    target->running += row->running;
    target->stopped += row->stopped;
    target->timers += row->timers;
    target->effects += row->effects;
    target->dead += row->dead;
}

int det_count_add(struct det_count *count, const struct det_store_counted *row)
{
    struct det_store_counted *target = row_of(count, row->machine, NULL);

    if (!target)
        return DET_ERR_NO_MEMORY;
    add_counts(target, row);
    if (!row->state)
        return 0;
    target = row_of(count, row->machine, row->state);
    if (!target)
        return DET_ERR_NO_MEMORY;
    add_counts(target, row);
    return 0;
}

int det_count_report(
    struct det_count *count, int (*visit)(void *context, const struct det_store_counted *row),
    void *context)
{
    struct det_store_counted *rows;
    size_t size;
    int r = 0;

    rows = rows_of(count, &size);
    if (size)
        qsort(rows, size, sizeof *rows, compare_counts);
    for (size_t i = 0; r == 0 && i < size; i++)
        r = visit(context, &rows[i]);
    return r;
}
