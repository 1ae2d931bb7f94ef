/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* renames.c - maps old names to current ones. */
#include "store/renames.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

static const char *const kind_names[] = {
    [DET_NAME_STATE] = "state",
    [DET_NAME_EVENT] = "event",
    [DET_NAME_EFFECT] = "effect",
    [DET_NAME_TIMER] = "timer",
};
#define KIND_COUNT (sizeof kind_names / sizeof *kind_names)

struct item {
    const char *machine;
    struct det_rename it;
    int64_t batch, position;
};

struct det_renames {
    struct det_renames *before; /* the list that this one replaced */
    const struct det_allocator *allocator;
    struct det_arena texts;
    struct det_buffer items; /* struct item, oldest first */
};

const char *det_rename_kind_name(enum det_name_kind kind)
{
    return kind_names[kind];
}

struct det_renames *det_renames_open(const struct det_allocator *allocator)
{
    struct det_renames *renames = DET_NEW(allocator, struct det_renames);

    if (!renames)
        return NULL;
    renames->allocator = allocator;
    det_arena_init(&renames->texts, allocator);
    det_buffer_init(&renames->items, allocator);
    return renames;
}

void det_renames_close(struct det_renames *renames)
{
    while (renames) {
        struct det_renames *before = renames->before;

        det_arena_deinit(&renames->texts);
        det_buffer_deinit(&renames->items);
        DET_DELETE(renames->allocator, renames);
        renames = before;
    }
}

static int kind_of(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kind_names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

int det_renames_add(struct det_renames *renames, const struct det_rename_row *row)
{
    int kind = kind_of(row->kind);
    const struct item item = { .machine = det_arena_copy(&renames->texts, row->machine),
                               .it = { .kind = (enum det_name_kind)kind,
                                       .from = det_arena_copy(&renames->texts, row->from),
                                       .to = det_arena_copy(&renames->texts, row->to) },
                               .batch = row->batch,
                               .position = row->position };

    if (kind < 0)
        return DET_ERR_CORRUPT;
    if (!item.it.from || !item.it.to || !item.machine)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&renames->items, &item, sizeof item);
    return det_buffer_status(&renames->items);
}

size_t det_renames_count(const struct det_renames *renames)
{
    return renames->items.size / sizeof(struct item);
}

void det_renames_replace(struct det_renames *renames, struct det_renames *old)
{
    det_assert(!renames->before && renames != old);
    renames->before = old;
}

const char *det_renames_apply(
    const struct det_renames *renames, const char *machine, enum det_name_kind kind,
    int64_t position, const char *name)
{
    const struct item *items;
    int64_t done = 0;

    if (!renames || !name)
        return name;
    items = (const struct item *)(const void *)renames->items.data;
    for (size_t i = 0; i < det_renames_count(renames); i++) {
        const struct item *item = &items[i];

        if (item->position < position || item->batch == done || item->it.kind != kind ||
            strcmp(item->it.from, name) != 0 || strcmp(item->machine, machine) != 0)
            continue;
        name = item->it.to;
        done = item->batch;
    }
    return name;
}

const char *det_rename_find(
    const struct det_rename *renames, size_t count, enum det_name_kind kind, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (renames[i].kind == kind && strcmp(renames[i].from, name) == 0)
            return renames[i].to;
    }
    return name;
}

int det_rename_history(
    const struct det_rename *renames, size_t count, const char *history, struct det_buffer *ret)
{
    char name[DET_NAME_MAX + 1];

    det_buffer_clear(ret);
    while (*history) {
        size_t length = strcspn(history, " ");

        if (length > DET_NAME_MAX)
            return DET_ERR_CORRUPT;
        memcpy(name, history, length);
        name[length] = '\0';
        det_buffer_append_text(ret, ret->size ? " " : "");
        det_buffer_append_text(ret, det_rename_find(renames, count, DET_NAME_STATE, name));
        history += length + (history[length] == ' ');
    }
    return det_buffer_status(ret);
}
