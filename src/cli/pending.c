/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending.c - what will happen by itself in a store: timers, the first due first. */
#include "cli/pending.h"

#include <stdlib.h>
#include <string.h>

void pending_timers_init(
    struct pending_timers *timers, struct cli_store *store, const struct det_allocator *allocator,
    size_t limit)
{
    *timers = (struct pending_timers){ .store = store, .limit = limit };
    det_arena_init(&timers->arena, allocator);
    det_buffer_init(&timers->found, allocator);
    det_buffer_init(&timers->ids, allocator);
}

void pending_timers_deinit(struct pending_timers *timers)
{
    det_buffer_deinit(&timers->ids);
    det_buffer_deinit(&timers->found);
    det_arena_deinit(&timers->arena);
}

size_t pending_timers_count(const struct pending_timers *timers)
{
    return timers->found.size / sizeof(struct pending_timer);
}

static int by_due(const void *left, const void *right)
{
    const struct pending_timer *a = left, *b = right;

    if (a->due != b->due)
        return a->due < b->due ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void pending_timers_of(struct pending_timers *timers, const struct instance *instance)
{
    const struct det_machine *machine = instance->machine;
    const char *id = det_arena_copy(&timers->arena, instance->id);

    for (const struct instance_timer *t = instance->timers; t && id; t = t->next) {
        struct pending_timer armed = {
            .id = id,
            .machine = machine->name,
            .timer = instance_timer_name(machine, t->row.timer),
            .event = machine->events[t->row.event].name,
            .due = t->row.due,
            .visit = t->row.visit,
        };

        det_buffer_append(&timers->found, &armed, sizeof armed);
    }
    timers->store->cli->has_failed |= !id;
}

static int take_due(void *context, const struct det_store_due *row)
{
    struct pending_timers *timers = context;
    const char *id;

    if (!row->is_timer)
        return 0;
    id = det_arena_copy(&timers->arena, row->id);
    if (!id)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&timers->ids, &id, sizeof id);
    return det_buffer_status(&timers->ids);
}

/* One that has moved or gone since has no timers to show. */
static int load_timers(struct pending_timers *timers, struct det_machine *machine)
{
    const char **ids = (const char **)(void *)timers->ids.data;
    size_t count = timers->ids.size / sizeof *ids;
    int code = CLI_OK;

    if (count)
        qsort(ids, count, sizeof *ids, by_text);
    for (size_t i = 0; i < count && code == CLI_OK; i++) {
        struct instance instance;

        if (i && strcmp(ids[i - 1], ids[i]) == 0)
            continue;
        code = instance_open(timers->store, machine, ids[i], &instance);
        if (code != CLI_OK)
            break;
        pending_timers_of(timers, &instance);
        instance_close(&instance);
    }
    return code;
}

/* Effects that are due are listed among them: more is asked for until there are enough timers, or
 * no more rows. */
int pending_timers_of_machine(void *context, struct det_machine *machine)
{
    struct pending_timers *timers = context;
    struct cli_store *store = timers->store;
    size_t asked = timers->limit, count;
    det_time next = 0;
    int r = 0;

    do {
        det_buffer_clear(&timers->ids);
        r = store->ops->due(
            store->store, machine, &(struct det_store_due_query){ DET_NEVER - 1, asked }, take_due,
            timers, &next);
        count = timers->ids.size / sizeof(const char *);
        asked *= 4;
    } while (r == 0 && next != DET_NEVER && count < timers->limit &&
             asked <= (size_t)PENDING_MAX * 4);
    if (r < 0)
        return cli_store_complain(store, r, NULL);
    return load_timers(timers, machine);
}

const struct pending_timer *pending_timers_sort(struct pending_timers *timers)
{
    size_t count = pending_timers_count(timers);

    if (count)
        qsort(timers->found.data, count, sizeof(struct pending_timer), by_due);
    return (const struct pending_timer *)(const void *)timers->found.data;
}

void pending_timer_line(struct line *line, const struct pending_timer *timer)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "timer");
    line_text(line, "machine", timer->machine);
    line_text(line, "id", timer->id);
    line_text(line, "timer", timer->timer);
    line_text(line, "event", timer->event);
    line_time(line, "due", timer->due);
    line_number(line, "visit", timer->visit);
    line_close(line, '}');
}
