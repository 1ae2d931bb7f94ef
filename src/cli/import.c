/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import.c - writes an instance of an export into a store. */
#include "cli/import.h"

#include <stdio.h>
#include <string.h>

void import_init(struct import *import, struct cli_store *store)
{
    *import = (struct import){ .store = store };
    det_arena_init(&import->arena, store->cli->allocator);
    det_arena_init(&import->events_arena, store->cli->allocator);
}

static void release(struct import *import)
{
    if (import->handle)
        import->store->ops->release(import->store->store, import->handle);
    import->handle = NULL;
}

void import_deinit(struct import *import)
{
    release(import);
    det_arena_deinit(&import->events_arena);
    det_arena_deinit(&import->arena);
}

static void forget_batch(struct import *import)
{
    det_arena_deinit(&import->events_arena);
    det_arena_init(&import->events_arena, import->store->cli->allocator);
    import->batch_count = 0;
}

/* Empty for the next one; what is counted stays. */
static void reset(struct import *import)
{
    release(import);
    forget_batch(import);
    det_arena_deinit(&import->arena);
    det_arena_init(&import->arena, import->store->cli->allocator);
    import->timers = NULL;
    import->effects = NULL;
    import->deferred = NULL;
    import->timer_count = import->effect_count = import->deferred_count = 0;
    import->history_count = 0;
    import->is_passed = false;
}

static int fail(struct import *import, int code, const char *text)
{
    snprintf(import->wrong, sizeof import->wrong, "%s", text);
    return code;
}

static int commit(struct import *import, struct det_store_commit *commit)
{
    const struct cli_store *store = import->store;
    struct det_store_commit *one = commit;
    int r;

    commit->machine = import->machine;
    commit->id = import->id;
    commit->instance = import->handle;
    commit->head = &import->at;
    commit->expected = commit->is_new ? 0 : import->at.sequence - commit->event_count;
    r = store->ops->commit(store->store, &one, 1);
    if (r == 0)
        r = commit->result;
    if (r == 0)
        import->handle = commit->instance;
    return r;
}

/* With the last commit of an instance everything is as it was. */
static void complete(struct import *import, struct det_store_commit *commit)
{
    import->at = import->head;
    commit->reason = import->reason;
    commit->data = import->data;
    commit->timers = import->timers;
    commit->timer_count = import->timer_count;
    commit->effects = import->effects;
    commit->effect_count = import->effect_count;
    commit->deferred = import->deferred;
    commit->deferred_count = import->deferred_count;
}

/* The instance as it was before the events that are kept. Where older ones are gone, that is a
 * snapshot, since its history cannot be found out from the events. */
static int create(struct import *import)
{
    struct det_store_commit first = { .is_new = true, .data = import->data };
    /* The newest of the history comes from the events. */
    size_t newer =
        import->moves < import->history_count ? (size_t)import->moves : import->history_count;

    import->at = (struct det_store_head){
        .sequence = import->first ? import->first - 1 : import->head.sequence,
        .visit = 1,
        .transition_count = import->head.transition_count - import->moves,
        .started_at = import->head.started_at,
        .last_transition_at = import->head.started_at,
        .state = import->machine->initial,
    };
    if (!import->first)
        complete(import, &first);
    first.is_snapshot = import->at.sequence > 0;
    first.history = import->history + newer;
    first.history_count = first.is_snapshot ? import->history_count - newer : 0;
    return commit(import, &first);
}

static int no_timer(void *context, const struct det_store_timer *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int no_effect(void *context, const struct det_store_effect *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int no_deferred(void *context, const struct det_store_deferred *row)
{
    (void)context;
    (void)row;
    return 0;
}

/* DET_ERR_NOT_FOUND, or what is there already is the beginning of this one. */
static int look(struct import *import)
{
    static const struct det_store_rows rows = { NULL, no_timer, no_effect, no_deferred };
    const struct cli_store *store = import->store;
    struct det_store_loaded loaded = { .data = NULL };
    int r;

    loaded.data = det_arena_alloc(&import->arena, det_machine_data(import->machine)->size);
    if (!loaded.data)
        return DET_ERR_NO_MEMORY;
    r = store->ops->load(store->store, import->machine, import->id, &rows, &loaded);
    if (r < 0)
        return r;
    import->handle = loaded.instance;
    import->at = loaded.head;
    if (loaded.head.started_at != import->head.started_at ||
        loaded.head.sequence > import->head.sequence)
        return fail(import, DET_ERR_EXISTS, "is there, with another history");
    import->is_passed = loaded.head.sequence == import->head.sequence;
    if (import->is_passed && loaded.head.state != import->head.state)
        return fail(import, DET_ERR_EXISTS, "is there, with another history");
    return 0;
}

int import_instance(struct import *import, struct det_view line)
{
    int r;

    reset(import);
    r = import_read_instance(import, line);
    if (r == 0)
        r = look(import);
    if (r == DET_ERR_NOT_FOUND)
        r = create(import);
    if (r == 0) {
        import->instances += !import->is_passed;
        import->passed += import->is_passed;
    }
    return r;
}

/* The head after the events of the batch. */
static void advance(struct import *import)
{
    for (size_t i = 0; i < import->batch_count; i++) {
        const struct det_store_event *event = &import->batch[i];

        import->at.sequence = event->sequence;
        import->at.visit = event->visit;
        import->at.state = event->to;
        if (event->outcome != DET_GOTO)
            continue;
        import->at.transition_count++;
        import->at.last_transition_at = event->at;
    }
}

static int write_batch(struct import *import)
{
    const struct det_store_event *last = &import->batch[import->batch_count - 1];
    struct det_store_commit batch = { .events = import->batch, .event_count = import->batch_count };
    int r;

    advance(import);
    if (last->sequence == import->head.sequence)
        complete(import, &batch);
    if (last->event_id) {
        batch.event_id = last->event_id;
        batch.answer = (struct det_store_answer){ .outcome = last->outcome,
                                                  .state = last->to,
                                                  .sequence = last->sequence,
                                                  .visit = last->visit };
    }
    r = commit(import, &batch);
    if (r == 0)
        import->events += import->batch_count;
    forget_batch(import);
    return r;
}

int import_event(struct import *import, struct det_view line)
{
    struct det_store_event *event = &import->batch[import->batch_count];
    uint64_t before = import->batch_count ? event[-1].sequence : import->at.sequence;
    int r;

    if (!import->handle)
        return fail(import, DET_ERR_MALFORMED, "an event has no instance");
    r = import_read_event(import, line, event);
    if (r < 0)
        return r;
    if (event->sequence <= import->at.sequence) {
        if (import->batch_count == 0)
            forget_batch(import);
        return 0;
    }
    if (event->sequence != before + 1 || event->sequence > import->head.sequence)
        return fail(import, DET_ERR_MALFORMED, "events are not one behind the other");
    import->batch_count++;
    /* The answer of a commit is that of its last event, and there is one for each event id. */
    if (event->event_id || import->batch_count == DET_BATCH_MAX ||
        event->sequence == import->head.sequence)
        return write_batch(import);
    return 0;
}

int import_finish(struct import *import)
{
    if (import->handle && import->at.sequence != import->head.sequence)
        return fail(import, DET_ERR_MALFORMED, "events are missing");
    reset(import);
    return 0;
}
