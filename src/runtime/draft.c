/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draft.c - workspaces for deciding turns. Each shard keeps used ones, so that after some time none
 * has to grow. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/turn.h"

#define ROOM_MIN ((size_t)4)

int det_draft_room(
    struct det_runtime *runtime, void *array, size_t *capacity, size_t wanted, size_t size)
{
    size_t grown = *capacity ? *capacity * 2 : ROOM_MIN;
    size_t bytes;
    bool is_sound;
    void *old, *block;

    if (wanted <= *capacity)
        return 0;
    if (grown < wanted)
        grown = wanted;
    is_sound = det_mul_size(grown, size, &bytes);
    det_assert(is_sound);
    memcpy(&old, array, sizeof old);
    block = det_realloc(runtime->allocator, old, *capacity * size, bytes);
    if (!block)
        return DET_ERR_NO_MEMORY;
    memcpy(array, &block, sizeof block);
    *capacity = grown;
    return 0;
}

struct det_draft *det_draft_take(struct det_runtime *runtime, struct det_shard *shard)
{
    struct det_draft *draft = shard->drafts;

    if (draft) {
        det_assert(det_list_is_empty(&draft->effect_runs) && det_list_is_empty(&draft->kept));
        shard->drafts = draft->next;
        return draft;
    }
    draft = DET_NEW(runtime->allocator, struct det_draft);
    if (!draft)
        return NULL;
    det_list_init(&draft->effect_runs);
    det_list_init(&draft->kept);
    return draft;
}

void det_draft_release(struct det_shard *shard, struct det_draft *draft)
{
    det_assert(det_list_is_empty(&draft->effect_runs) && det_list_is_empty(&draft->kept));
    draft->next = shard->drafts;
    shard->drafts = draft;
}

static void close_draft(struct det_runtime *runtime, struct det_draft *draft)
{
    const struct det_allocator *allocator = runtime->allocator;

    det_free(allocator, draft->data, draft->data_capacity);
    DET_DELETE_ARRAY(allocator, draft->events, draft->event_capacity);
    DET_DELETE_ARRAY(allocator, draft->timers, draft->timer_capacity);
    DET_DELETE_ARRAY(allocator, draft->timer_changes, draft->timer_change_capacity);
    DET_DELETE_ARRAY(allocator, draft->effect_changes, draft->effect_change_capacity);
    DET_DELETE_ARRAY(allocator, draft->kept_changes, draft->kept_change_capacity);
    DET_DELETE(allocator, draft);
}

void det_draft_close_all(struct det_runtime *runtime, struct det_shard *shard)
{
    struct det_draft *next;

    for (struct det_draft *draft = shard->drafts; draft; draft = next) {
        next = draft->next;
        close_draft(runtime, draft);
    }
    shard->drafts = NULL;
}

int det_draft_begin(struct det_turn *turn, size_t events)
{
    struct det_runtime *runtime = turn->runtime;
    struct det_draft *draft = turn->draft;
    size_t timers = det_timer_slots(turn->served->machine);
    int r;

    det_assert(det_list_is_empty(&draft->effect_runs) && det_list_is_empty(&draft->kept));
    draft->head = turn->resident->head;
    draft->is_data_changed = draft->is_kept_dropped = draft->has_timers = false;
    draft->event_count = draft->effect_run_count = draft->kept_count = 0;
    draft->reason = NULL;
    draft->outcome = DET_OUTCOME_IGNORED;
    r = det_draft_room(
        runtime, &draft->events, &draft->event_capacity, events, sizeof *draft->events);
    if (r == 0)
        r = det_draft_room(
            runtime, &draft->timers, &draft->timer_capacity, timers, sizeof *draft->timers);
    if (r == 0)
        memset(draft->timers, 0, timers * sizeof *draft->timers);
    return r;
}

static void discard_timers(struct det_turn *turn)
{
    const struct det_machine *machine = turn->served->machine;

    for (size_t i = 0; i < det_timer_slots(machine); i++) {
        struct det_draft_timer *timer = &turn->draft->timers[i];

        if (timer->value)
            det_free(turn->runtime->allocator, timer->value, machine->event_size);
        det_free_string(turn->runtime->allocator, timer->reason);
        timer->value = timer->reason = NULL;
    }
}

void det_draft_discard(struct det_turn *turn)
{
    struct det_draft *draft = turn->draft;
    struct det_list *node;

    while ((node = det_list_take(&draft->effect_runs)))
        det_effect_run_close(turn->runtime, DET_CONTAINER(node, struct det_effect_run, node));
    while ((node = det_list_take(&draft->kept)))
        det_kept_close(
            turn->runtime, turn->served->machine, DET_CONTAINER(node, struct det_kept, node));
    if (draft->has_timers)
        discard_timers(turn);
}
