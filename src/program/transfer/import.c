/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import.c - instances of an export as they are read, compared with those in the store. */
#include <detent/tool/machine.h>

#include "transfer/import.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "transfer/import_internal.h"

void import_init(struct import *import, struct cli_store *store)
{
    *import = (struct import){ .store = store };
}

static struct incoming *incoming_open(const struct import *import)
{
    const struct det_allocator *allocator = import->store->cli->allocator;
    struct incoming *incoming = DET_NEW(allocator, struct incoming);

    if (!incoming)
        return NULL;
    incoming->machine = import->machine;
    det_arena_init(&incoming->arena, allocator);
    det_arena_init(&incoming->events_arena, allocator);
    det_buffer_init(&incoming->events, allocator);
    det_buffer_init(&incoming->answers, allocator);
    return incoming;
}

void incoming_close(const struct import *import, struct incoming *incoming)
{
    if (incoming->is_there)
        import->store->ops->release(import->store->store, incoming->handle);
    det_buffer_deinit(&incoming->events);
    det_buffer_deinit(&incoming->answers);
    det_arena_deinit(&incoming->events_arena);
    det_arena_deinit(&incoming->arena);
    DET_DELETE(import->store->cli->allocator, incoming);
}

/* Events come to the last instance of the group; no other one waits for any. */
static void assert_import(const struct import *import)
{
    const struct incoming *current = import->current;

    det_assert(import->group_count <= IMPORT_GROUP_MAX);
    det_assert(import->waiting < IMPORT_EVENTS_MAX);
    det_assert(
        !current || (import->group_count && current == import->group[import->group_count - 1]));
    det_assert(import->group_count || !import->waiting);
}

void import_deinit(struct import *import)
{
    for (size_t i = 0; i < import->group_count; i++)
        incoming_close(import, import->group[i]);
    import->group_count = 0;
    import->current = NULL;
}

static int fail_import(struct import *import, int code, const char *text)
{
    snprintf(import->wrong, sizeof import->wrong, "%s", text);
    return code;
}

/* A stored instance must be the beginning of this one, or all of it. */
static int look_up_stored(struct import *import, struct incoming *incoming)
{
    static const struct det_store_rows none = { 0 };
    const struct cli_store *store = import->store;
    struct det_store_loaded loaded = { .data = NULL };
    int r;

    loaded.data = det_arena_alloc(&incoming->arena, det_machine_data(incoming->machine)->size);
    if (!loaded.data)
        return DET_ERR_NO_MEMORY;
    r = store->ops->load(store->store, incoming->machine, incoming->id, &none, &loaded);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND ? 0 : r;
    det_assert(!incoming->is_there && incoming->written == 0);
    incoming->handle = loaded.instance;
    incoming->is_there = true;
    incoming->at = loaded.head;
    incoming->seen = loaded.head.sequence;
    if (loaded.head.started_at != incoming->head.started_at ||
        loaded.head.sequence > incoming->head.sequence)
        return fail_import(import, DET_ERR_EXISTS, "exists with a different history");
    incoming->is_passed = loaded.head.sequence == incoming->head.sequence;
    if (incoming->is_passed && loaded.head.state != incoming->head.state)
        return fail_import(import, DET_ERR_EXISTS, "exists with a different history");
    return 0;
}

int import_instance(struct import *import, struct det_view line)
{
    struct incoming *incoming;
    int r = 0;

    assert_import(import);
    det_assert(!import->current);
    if (import->group_count == IMPORT_GROUP_MAX)
        r = import_flush(import);
    if (r < 0)
        return r;
    incoming = incoming_open(import);
    if (!incoming)
        return DET_ERR_NO_MEMORY;
    import->group[import->group_count++] = import->current = incoming;
    r = import_read_instance(import, incoming, line);
    if (r < 0)
        return r;
    incoming->seen = incoming->first ? incoming->first - 1 : incoming->head.sequence;
    return look_up_stored(import, incoming);
}

static int keep_event(struct incoming *incoming, const struct import_event *event)
{
    det_buffer_append(&incoming->events, &event->row, sizeof event->row);
    det_buffer_append(&incoming->answers, &event->answer, sizeof event->answer);
    if (det_buffer_status(&incoming->events) < 0 || det_buffer_status(&incoming->answers) < 0)
        return DET_ERR_NO_MEMORY;
    incoming->seen = event->row.sequence;
    return 0;
}

int import_event(struct import *import, struct det_view line)
{
    struct incoming *incoming = import->current;
    struct import_event event;
    uint64_t sequence;
    int r;

    if (!incoming)
        return fail_import(import, DET_ERR_MALFORMED, "an event has no instance");
    assert_import(import);
    det_assert(incoming->seen <= incoming->head.sequence);
    r = import_read_event(import, incoming, line, &event);
    if (r < 0)
        return r;
    sequence = event.row.sequence;
    /* The store has this event. */
    if (incoming->is_there && sequence <= incoming->at.sequence)
        return 0;
    if (sequence != incoming->seen + 1 || sequence > incoming->head.sequence)
        return fail_import(import, DET_ERR_MALFORMED, "the events are not consecutive");
    r = keep_event(incoming, &event);
    if (r < 0)
        return r;
    import->waiting++;
    return import->waiting == IMPORT_EVENTS_MAX ? import_flush(import) : 0;
}

int import_finish(struct import *import)
{
    const struct incoming *incoming = import->current;

    if (incoming && incoming->seen != incoming->head.sequence)
        return fail_import(import, DET_ERR_MALFORMED, "events are missing");
    import->current = NULL;
    return 0;
}
