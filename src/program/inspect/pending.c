/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending.c - lists the pending work of a store, ordered by due time. */
#include "inspect/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "store/store.h"

/* An instance that has something pending. */
struct listed {
    const char *id;
    det_time due;
};

static const struct pending_place beginning = { .machine = "", .id = "", .timer = "" };

void pending_init(
    struct pending_list *list, struct cli_store *store, const struct det_allocator *allocator,
    enum det_store_due_kind kind, size_t limit)
{
    det_assert(limit > 0 && limit <= PENDING_DUE_MAX);
    *list = (struct pending_list){
        .store = store, .kind = kind, .limit = limit, .after = beginning, .until = DET_NEVER
    };
    det_arena_init(&list->arena, allocator);
    det_buffer_init(&list->found, allocator);
    det_buffer_init(&list->ids, allocator);
}

void pending_deinit(struct pending_list *list)
{
    det_buffer_deinit(&list->ids);
    det_buffer_deinit(&list->found);
    det_arena_deinit(&list->arena);
}

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

int pending_place_compare(const struct pending_place *a, const struct pending_place *b)
{
    int r;

    if (a->due != b->due)
        return a->due < b->due ? -1 : 1;
    r = strcmp(a->machine, b->machine);
    if (r == 0)
        r = strcmp(a->id, b->id);
    if (r == 0)
        r = strcmp(a->timer, b->timer);
    if (r == 0)
        r = compare_numbers(a->sequence, b->sequence);
    return r ? r : compare_numbers(a->index, b->index);
}

static int by_place(const void *left, const void *right)
{
    return pending_place_compare(
        &((const struct pending *)left)->place, &((const struct pending *)right)->place);
}

static int by_id(const void *left, const void *right)
{
    return strcmp(((const struct listed *)left)->id, ((const struct listed *)right)->id);
}

static void add_timers(struct pending_list *list, const struct instance *instance, const char *id)
{
    const struct det_machine *machine = instance->machine;

    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        struct pending timer = {
            .place = { t->row.is_dead ? t->row.due : t->row.next, machine->name, id,
                       instance_timer_name(machine, t->row.timer), 0, 0 },
            .machine = machine,
            .event = machine->events[t->row.event].name,
            .visit = t->row.visit,
            .timer = t->row,
        };

        if (t->row.is_dead != list->is_dead)
            continue;
        timer.timer.value = NULL;
        /* For people: without memory for it, it is left out. */
        if (t->row.reason)
            timer.timer.reason = det_arena_copy(&list->arena, t->row.reason);
        det_buffer_append(&list->found, &timer, sizeof timer);
    }
}

static void add_effects(struct pending_list *list, const struct instance *instance, const char *id)
{
    const struct det_machine *machine = instance->machine;

    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        struct pending effect = {
            .place = { e->row.next, machine->name, id, "", e->row.sequence, e->row.index },
            .machine = machine,
            .effect = e->row,
        };

        if (e->row.is_dead)
            continue;
        /* For people: without memory for it, it is left out. */
        if (e->row.reason)
            effect.effect.reason = det_arena_copy(&list->arena, e->row.reason);
        det_buffer_append(&list->found, &effect, sizeof effect);
    }
}

void pending_of(struct pending_list *list, const struct instance *instance)
{
    const char *id = det_arena_copy(&list->arena, instance->id);

    list->store->cli->has_failed |= !id;
    if (id && list->kind == DET_DUE_TIMERS)
        add_timers(list, instance, id);
    else if (id)
        add_effects(list, instance, id);
}

static int take_due(void *context, const struct det_store_due *row)
{
    struct pending_list *list = context;
    struct listed listed = { det_arena_copy(&list->arena, row->id), row->due };

    if (!listed.id)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&list->ids, &listed, sizeof listed);
    return det_buffer_status(&list->ids);
}

/* Instances are loaded one by one; one that has been removed meanwhile is skipped. */
static int load_instances(struct pending_list *list, struct det_machine *machine)
{
    struct listed *ids = (struct listed *)(void *)list->ids.data;
    struct instance instance;
    int r;

    det_assert(list->id_count <= list->ids.size / sizeof *ids);
    if (list->id_count)
        qsort(ids, list->id_count, sizeof *ids, by_id);
    for (size_t i = 0; i < list->id_count; i++) {
        if (i && strcmp(ids[i - 1].id, ids[i].id) == 0)
            continue;
        r = instance_load(list->store, machine, ids[i].id, &instance);
        list->left_out += r == DET_ERR_CORRUPT || r == DET_ERR_VERSION;
        if (r == DET_ERR_NOT_FOUND || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION)
            continue;
        if (r < 0)
            return instance_report_error(list->store, machine->name, ids[i].id, r);
        pending_of(list, &instance);
        instance_close(&instance);
    }
    return CLI_OK;
}

/* Returns how many of the list are certainly after `after`, up to the first time that is
 * incompletely listed; drops the rest: of entries with the same time the store may list any
 * subset. */
static size_t cut_after(struct pending_list *list, det_time next)
{
    const struct listed *ids = (const struct listed *)(const void *)list->ids.data;
    size_t count = list->ids.size / sizeof *ids, later = 0;

    while (count && ids[count - 1].due >= next)
        count--;
    for (size_t i = 0; i < count; i++)
        later += ids[i].due > list->after.due;
    det_assert(later <= count);
    list->id_count = count;
    return later;
}

/* Requests more until one more than the limit is found, which proves that there is more. */
int pending_of_machine(void *context, struct det_machine *machine)
{
    struct pending_list *list = context;
    struct cli_store *store = list->store;
    struct det_store_due_query query = { .before = DET_NEVER - 1,
                                         .limit = list->limit + 1,
                                         .from = list->after.due,
                                         .kind = list->kind };
    det_time next = DET_NEVER;
    size_t count;
    int r;

    do {
        det_buffer_clear(&list->ids);
        r = store->ops->due(store->store, machine, &query, take_due, list, &next);
        if (r < 0)
            return cli_report_store_error(store, r, NULL);
        count = cut_after(list, next);
        query.limit *= 4;
    } while (next != DET_NEVER && count <= list->limit);
    if (next < list->until)
        list->until = next;
    return load_instances(list, machine);
}

const struct pending *pending_sort(struct pending_list *list, size_t *ret_count)
{
    struct pending *all = (struct pending *)(void *)list->found.data;
    size_t count = 0;

    det_assert(list->found.size % sizeof *all == 0);
    for (size_t i = 0; i < list->found.size / sizeof *all; i++) {
        if (all[i].place.due < list->until &&
            pending_place_compare(&all[i].place, &list->after) > 0)
            all[count++] = all[i];
    }
    if (count)
        qsort(all, count, sizeof *all, by_place);
    *ret_count = count;
    return all;
}

void pending_timer_line(struct det_json_writer *json, const struct pending *timer)
{
    instance_item_begin(json, "timer", timer->place.machine, timer->place.id);
    det_json_text(json, "timer", timer->place.timer);
    det_json_text(json, "event", timer->event);
    det_json_time(json, "due", timer->place.due);
    det_json_number(json, "visit", timer->visit);
    instance_attempts_line(json, &timer->timer);
    det_json_close(json, '}');
}

/* Dead letters. */

static int by_dead_place(const void *left, const void *right)
{
    return pending_place_compare(
        &((const struct pending_dead *)left)->place, &((const struct pending_dead *)right)->place);
}

const struct pending_dead *pending_dead_of(
    struct instance *instance, const char *id, const struct pending_place *after, size_t *ret_count)
{
    const struct det_machine *machine = instance->machine;
    size_t most = instance_timer_count(instance, true) + instance_effect_count(instance, true);
    struct pending_dead *all = det_arena_array(&instance->arena, most + 1, sizeof *all);
    size_t count = 0;

    if (!all)
        return NULL;
    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        all[count] = (struct pending_dead){
            { 0, machine->name, id, instance_timer_name(machine, t->row.timer), 0, 0 },
            &t->row,
            NULL,
        };
        count += t->row.is_dead && pending_place_compare(&all[count].place, after) > 0;
    }
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        all[count] = (struct pending_dead){
            { 0, machine->name, id, "", e->row.sequence, e->row.index },
            NULL,
            &e->row,
        };
        count += e->row.is_dead && pending_place_compare(&all[count].place, after) > 0;
    }
    det_assert(count <= most);
    qsort(all, count, sizeof *all, by_dead_place);
    *ret_count = count;
    return all;
}

/* Places as text. */

void pending_place_line(
    struct det_json_writer *json, const char *key, const struct pending_place *place)
{
    char text[DET_ID_MAX + 2 * DET_NAME_MAX + 80];
    int length = snprintf(
        text, sizeof text, "%lld~%s~%s~%s~%llu~%llu", (long long)place->due, place->machine,
        place->id, place->timer, (unsigned long long)place->sequence,
        (unsigned long long)place->index);

    det_assert(length < (int)sizeof text);
    det_json_text(json, key, text);
}

bool pending_place_read(const char *text, struct det_arena *arena, struct pending_place *ret)
{
    const char *parts[6];
    uint64_t due;

    for (size_t i = 0; i < 6; i++) {
        size_t size = strcspn(text, "~");

        if ((text[size] == '\0') != (i == 5))
            return false;
        parts[i] = det_arena_copy_n(arena, text, size);
        if (!parts[i])
            return false;
        text += size + (i < 5);
    }
    *ret = (struct pending_place){ .machine = parts[1], .id = parts[2], .timer = parts[3] };
    if (det_parse_u64(det_view_text(parts[0]), &due) < 0 || due > (uint64_t)DET_NEVER ||
        det_parse_u64(det_view_text(parts[4]), &ret->sequence) < 0 ||
        det_parse_u64(det_view_text(parts[5]), &ret->index) < 0 ||
        (*ret->id ? !det_store_id_is_valid(ret->id) : *ret->machine))
        return false;
    ret->due = (det_time)due;
    return true;
}
