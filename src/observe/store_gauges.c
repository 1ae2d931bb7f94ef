/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_gauges.c - counts a store into memory, then into the gauges. */
#include <detent/tool/store.h>

#include "observe/store_gauges.h"

#include "base/arena.h"

static const enum det_metric gauges[] = { DET_METRIC_INSTANCES, DET_METRIC_TIMERS_PENDING,
                                          DET_METRIC_EFFECTS_PENDING, DET_METRIC_DEAD_LETTERS };

struct row {
    struct row *next;
    struct det_store_counted counted; /* with own copies of the names */
};

struct stock {
    struct det_arena arena;
    struct row *first;
    uint64_t bytes;
};

static int keep_row(void *context, const struct det_store_counted *counted)
{
    struct stock *stock = context;
    struct row *row = det_arena_alloc(&stock->arena, sizeof *row);

    if (!row)
        return DET_ERR_NO_MEMORY;
    row->counted = *counted;
    row->counted.machine = det_arena_copy(&stock->arena, counted->machine);
    if (counted->state)
        row->counted.state = det_arena_copy(&stock->arena, counted->state);
    if (!row->counted.machine || (counted->state && !row->counted.state))
        return DET_ERR_NO_MEMORY;
    row->next = stock->first;
    stock->first = row;
    return 0;
}

static void add_instances(
    struct det_metrics *metrics, const struct det_store_counted *counted, const char *status,
    uint64_t count)
{
    const char *const values[] = { counted->machine, counted->state, status };

    if (count)
        det_series_move(det_metrics_series(metrics, DET_METRIC_INSTANCES, values), (int64_t)count);
}

static void add_of_machine(
    struct det_metrics *metrics, enum det_metric metric, const char *machine, uint64_t count)
{
    det_series_move(det_metrics_series(metrics, metric, &machine), (int64_t)count);
}

static void add_row(struct det_metrics *metrics, const struct det_store_counted *counted)
{
    if (counted->state) {
        add_instances(metrics, counted, "running", counted->running);
        add_instances(metrics, counted, "stopped", counted->stopped);
        return;
    }
    add_of_machine(metrics, DET_METRIC_TIMERS_PENDING, counted->machine, counted->timers);
    add_of_machine(metrics, DET_METRIC_EFFECTS_PENDING, counted->machine, counted->effects);
    add_of_machine(metrics, DET_METRIC_DEAD_LETTERS, counted->machine, counted->dead);
}

/* Called by det_metrics_change(), so not during a scrape. */
static void set_gauges(void *user, struct det_metrics *metrics)
{
    const struct stock *stock = user;

    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
        det_metrics_reset(metrics, gauges[i]);
    for (const struct row *row = stock->first; row; row = row->next)
        add_row(metrics, &row->counted);
    det_series_set(det_metrics_only(metrics, DET_METRIC_STORE_BYTES), (int64_t)stock->bytes);
}

int det_store_gauges_update(
    struct det_metrics *metrics, struct det_store *store, const struct det_allocator *allocator)
{
    struct stock stock = { .first = NULL };
    int r;

    det_arena_init(&stock.arena, allocator);
    r = det_store_count(store, keep_row, &stock, &stock.bytes);
    if (r == 0)
        det_metrics_change(metrics, set_gauges, &stock);
    det_arena_deinit(&stock.arena);
    return r;
}
