/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* evolve_count.c - walks the instances of a store, a page at a time, and counts which names they
 * use. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "transfer/evolve.h"

/* Instances listed in one call of the store. */
#define PAGE 512

/* A page of a list: the store must not be called while it lists. */
struct page {
    struct det_arena arena;
    struct det_store_listed rows[PAGE];
    size_t count;
};

static int take_row(void *context, const struct det_store_listed *row)
{
    struct page *page = context;
    const char *id = det_arena_copy(&page->arena, row->id);

    if (!id)
        return DET_ERR_NO_MEMORY;
    det_assert(page->count < PAGE);
    page->rows[page->count] = *row;
    page->rows[page->count++].id = id;
    return 0;
}

static int visit_page(struct evolve *evolve, struct page *page, evolve_each_fn *each)
{
    int code = CLI_OK;

    for (size_t i = 0; i < page->count && code == CLI_OK; i++)
        code = cli_is_stopped(evolve->cli) ? CLI_INTERRUPTED : each(evolve, &page->rows[i]);
    return code;
}

static int walk_pages(struct evolve *evolve, struct page *page, evolve_each_fn *each)
{
    const struct det_store_ops *ops = evolve->store.ops;
    char last[DET_ID_MAX + 1] = "";
    int code = CLI_OK, r;

    do {
        struct det_store_query query = { .after = *last ? last : NULL, .limit = PAGE };

        page->count = 0;
        det_arena_init(&page->arena, evolve->cli->allocator);
        r = ops->list(evolve->store.store, evolve->stored, &query, take_row, page);
        code = r < 0 ? cli_report_store_error(&evolve->store, r, NULL)
                     : visit_page(evolve, page, each);
        if (page->count > 0)
            (void)det_text_copy(last, sizeof last, page->rows[page->count - 1].id);
        det_arena_deinit(&page->arena);
    } while (code == CLI_OK && page->count == PAGE);
    return code;
}

int evolve_each(struct evolve *evolve, evolve_each_fn *each)
{
    struct page *page = DET_NEW(evolve->cli->allocator, struct page);
    int code;

    if (!page)
        return cli_no_memory(evolve->cli);
    code = walk_pages(evolve, page, each);
    DET_DELETE(evolve->cli->allocator, page);
    return code;
}

static int count_timer(void *context, const struct det_store_timer *row)
{
    struct evolve_counts *counts = context;

    counts->of_event[row->event]++;
    if (row->timer != DET_STATE_TIMER && row->timer != DET_DEFERRED_TIMER)
        counts->of_timer[row->timer]++;
    return 0;
}

static int count_effect(void *context, const struct det_store_effect *row)
{
    struct evolve_counts *counts = context;

    counts->of_effect[row->effect]++;
    if (row->event)
        counts->of_event[det_event_kind(row->event)]++;
    return 0;
}

static int count_deferred(void *context, const struct det_store_deferred *row)
{
    struct evolve_counts *counts = context;

    counts->of_event[det_event_kind(row->event)]++;
    return 0;
}

/* Counts pending work, for which the instance must be loaded. */
static int count_pending(struct evolve *evolve, const char *id)
{
    const struct det_store_rows rows = { &evolve->counts, count_timer, count_effect,
                                         count_deferred };
    const struct det_allocator *allocator = evolve->cli->allocator;
    size_t size = det_machine_data(evolve->stored)->size;
    struct det_store_loaded loaded = { .data = det_alloc_zero(allocator, size) };
    const struct cli_store *store = &evolve->store;
    int r;

    if (!loaded.data)
        return cli_no_memory(evolve->cli);
    r = store->ops->load(store->store, evolve->stored, id, &rows, &loaded);
    if (r == 0)
        store->ops->release(store->store, loaded.instance);
    det_free(allocator, loaded.data, size);
    /* It was removed meanwhile. */
    if (r == 0 || r == DET_ERR_NOT_FOUND)
        return CLI_OK;
    cli_report_error(evolve->cli, "%s %s: %s", evolve->stored->name, id, det_error_text(r));
    return cli_exit_of(r);
}

/* Returns true if more than states must be counted. */
static bool needs_pending(const struct evolve *evolve)
{
    for (const struct evolve_hazard *hazard = evolve->hazards; hazard; hazard = hazard->next) {
        if (hazard->it.kind != DET_HAZARD_STATE && hazard->it.kind != DET_HAZARD_DATA)
            return true;
    }
    for (size_t i = 0; i < evolve->rename_count; i++) {
        if (evolve->renames[i].kind != DET_NAME_STATE)
            return true;
    }
    return false;
}

static int count_instance(struct evolve *evolve, const struct det_store_listed *row)
{
    struct evolve_counts *counts = &evolve->counts;

    det_assert(row->state < evolve->stored->state_count);
    if (row->is_stopped) {
        counts->stopped++;
        counts->stopped_in_state[row->state]++;
    } else {
        counts->instances++;
        counts->in_state[row->state]++;
    }
    cli_progress(evolve->cli, "instances", counts->instances + counts->stopped, 0);
    return evolve->needs_pending ? count_pending(evolve, row->id) : CLI_OK;
}

static uint64_t *make_counts(struct evolve *evolve, size_t count)
{
    return det_arena_array(&evolve->arena, count + 1, sizeof(uint64_t));
}

int evolve_count(struct evolve *evolve)
{
    struct evolve_counts *counts = &evolve->counts;
    int code;

    det_assert(evolve->has_store && !counts->in_state);
    counts->in_state = make_counts(evolve, evolve->stored->state_count);
    counts->stopped_in_state = make_counts(evolve, evolve->stored->state_count);
    counts->of_event = make_counts(evolve, evolve->stored->event_count);
    counts->of_effect = make_counts(evolve, evolve->stored->effect_count);
    counts->of_timer = make_counts(evolve, evolve->stored->timer_count);
    if (!counts->in_state || !counts->stopped_in_state || !counts->of_event || !counts->of_effect ||
        !counts->of_timer)
        return cli_no_memory(evolve->cli);
    evolve->needs_pending = needs_pending(evolve);
    code = evolve_each(evolve, count_instance);
    cli_progress_end(evolve->cli);
    return code;
}

static uint64_t count_at(const uint64_t *counts, int id)
{
    return id >= 0 ? counts[id] : 0;
}

uint64_t evolve_count_of(
    const struct evolve *evolve, enum det_hazard_kind kind, const char *name, uint64_t *ret_stopped)
{
    const struct evolve_counts *counts = &evolve->counts;
    const struct det_machine *stored = evolve->stored;

    *ret_stopped = 0;
    switch (kind) {
    case DET_HAZARD_STATE:
        *ret_stopped = count_at(counts->stopped_in_state, det_machine_find_state(stored, name));
        return count_at(counts->in_state, det_machine_find_state(stored, name));
    case DET_HAZARD_EVENT:
        return count_at(counts->of_event, det_machine_find_event(stored, name));
    case DET_HAZARD_EFFECT:
        return count_at(counts->of_effect, det_machine_find_effect(stored, name));
    case DET_HAZARD_TIMER:
        return count_at(counts->of_timer, det_machine_find_timer(stored, name));
    case DET_HAZARD_DATA:
        return counts->instances;
    }
    return 0;
}
