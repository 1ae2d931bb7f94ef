/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - loads an instance from the store into its resident.
 *
 * The instance is read into an image first, without a lock, and then replaces the resident's
 * content under the lock. Deadlines are data and are taken unchanged. An effect that runs, or whose
 * end is not recorded yet, is kept if the store still has it; otherwise its current user frees
 * it. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "machine/data_copy.h"
#include "runtime/turn.h"

struct image {
    struct det_runtime *runtime;
    struct det_resident *resident;
    const struct det_machine *machine;
    struct det_store_loaded loaded;
    struct det_draft_timer *timers; /* by slot: det_timer_slots() */
    struct det_list effect_runs, kept;
    size_t kept_count, due;
    bool has_named, has_foreign;
};

static size_t slot_of(const struct det_machine *machine, uint16_t timer)
{
    if (timer == DET_STATE_TIMER)
        return 0;
    return timer == DET_DEFERRED_TIMER ? det_timer_slots(machine) - 1 : (size_t)timer + 1;
}

static int read_timer(void *context, const struct det_store_timer *row)
{
    struct image *image = context;
    size_t slot = slot_of(image->machine, row->timer);
    struct det_draft_timer *timer;

    /* The definition no longer has such timers. */
    if (slot >= det_timer_slots(image->machine) || (slot == 0 && !image->resident->own))
        return 0;
    timer = &image->timers[slot];
    *timer = (struct det_draft_timer){
        .is_set = true,
        .is_foreign = row->is_foreign,
        .event = row->event,
        .visit = row->visit,
        .due = row->due,
        .is_dead = row->is_dead,
        .attempts = row->attempts,
        .last_error = row->last_error,
        .next = row->next,
        .reason = det_reason_copy(image->runtime->allocator, row->reason),
    };
    image->has_foreign = image->has_foreign || row->is_foreign;
    image->due++;
    image->has_named = image->has_named || slot;
    if (!row->value)
        return 0;
    timer->value = det_alloc(image->runtime->allocator, image->machine->event_size);
    if (!timer->value)
        return DET_ERR_NO_MEMORY;
    memcpy(timer->value, row->value, image->machine->event_size);
    return 0;
}

static int read_effect(void *context, const struct det_store_effect *row)
{
    struct image *image = context;
    struct det_effect_run *effect_run = det_effect_run_open(image->runtime, image->resident, row);

    if (!effect_run)
        return DET_ERR_NO_MEMORY;
    effect_run->is_suspected = !image->runtime->ops->is_quick;
    det_list_append(&image->effect_runs, &effect_run->node);
    image->due += !row->is_dead;
    image->has_foreign = image->has_foreign || row->is_foreign;
    return 0;
}

static int read_deferred(void *context, const struct det_store_deferred *row)
{
    struct image *image = context;
    struct det_kept *kept =
        det_kept_open(image->runtime, image->machine, row->sequence, row->event);

    if (!kept)
        return DET_ERR_NO_MEMORY;
    det_list_append(&image->kept, &kept->node);
    image->kept_count++;
    return 0;
}

static int image_init(
    struct image *image, struct det_runtime *runtime, struct det_resident *resident)
{
    const struct det_served *served = resident->served;

    *image = (struct image){ .runtime = runtime, .resident = resident, .machine = served->machine };
    det_list_init(&image->effect_runs);
    det_list_init(&image->kept);
    image->loaded.data = det_alloc(runtime->allocator, served->data_size);
    image->timers =
        DET_NEW_ARRAY(runtime->allocator, det_timer_slots(served->machine), struct det_draft_timer);
    return image->loaded.data && image->timers ? 0 : DET_ERR_NO_MEMORY;
}

/* Frees everything that was not moved to the resident. */
static void image_deinit(struct image *image)
{
    const struct det_allocator *allocator = image->runtime->allocator;
    struct det_list *node;

    while ((node = det_list_take(&image->effect_runs)))
        det_effect_run_close(image->runtime, DET_CONTAINER(node, struct det_effect_run, node));
    while ((node = det_list_take(&image->kept)))
        det_kept_close(image->runtime, image->machine, DET_CONTAINER(node, struct det_kept, node));
    for (size_t i = 0; image->timers && i < det_timer_slots(image->machine); i++) {
        if (image->timers[i].value)
            det_free(allocator, image->timers[i].value, image->machine->event_size);
        det_free_string(allocator, image->timers[i].reason);
    }
    if (image->timers)
        DET_DELETE_ARRAY(allocator, image->timers, det_timer_slots(image->machine));
    if (image->loaded.data)
        det_free(allocator, image->loaded.data, image->resident->served->data_size);
}

static int reserve(struct image *image, struct det_shard *shard)
{
    bool is_needed = image->has_named || image->kept_count || image->loaded.reason[0] ||
                     !det_list_is_empty(&image->effect_runs);
    int r = 0;

    if (is_needed)
        r = det_resident_need_more(image->runtime, image->resident, image->has_named);
    return r < 0 ? r : det_due_promise(shard, image->due);
}

static void install_timer(struct image *image, struct det_shard *shard, size_t slot)
{
    struct det_draft_timer *timer = &image->timers[slot];
    struct det_armed *armed =
        det_resident_timer(image->resident, det_timer_number(image->machine, slot));
    struct det_armed before;

    if (!armed)
        return;
    before = *armed;
    det_armed_disarm(image->runtime, armed);
    if (!timer->is_set)
        return;
    /* The reserved place is not needed if the timer has one. */
    if (armed->has_place)
        shard->promised--;
    armed->has_place = true;
    det_armed_arm(
        shard, armed,
        &(struct det_store_timer){ .event = timer->event,
                                   .visit = timer->visit,
                                   .due = timer->due,
                                   .next = timer->next,
                                   .attempts = timer->attempts,
                                   .last_error = timer->last_error,
                                   .is_dead = timer->is_dead,
                                   .is_foreign = timer->is_foreign });
    armed->value = timer->value;
    armed->reason = timer->reason;
    timer->value = timer->reason = NULL;
    /* Attempts that failed in the store continue: a load does not reset them. */
    if (det_armed_is_set(&before) && before.visit == armed->visit &&
        before.deadline == armed->deadline && before.next == armed->next) {
        armed->tries = before.tries;
        armed->when = before.when;
    }
}

static bool is_running_now(const struct det_effect_run *effect_run)
{
    return effect_run->state == DET_EFFECT_RUN_RUNNING ||
           effect_run->state == DET_EFFECT_RUN_ENDING;
}

static struct det_effect_run *find_alive(
    const struct det_list *list, const struct det_effect_run *like)
{
    DET_LIST_EACH(node, list)
    {
        struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        if (effect_run->state != DET_EFFECT_RUN_DEAD &&
            effect_run->row.sequence == like->row.sequence &&
            effect_run->row.index == like->row.index)
            return effect_run;
    }
    return NULL;
}

/* Effects that are not in the store: those in use are left to their users. */
static void forget(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run)
{
    det_list_remove(&effect_run->node);
    if (effect_run->state != DET_EFFECT_RUN_DEAD && !effect_run->row.is_foreign)
        atomic_fetch_sub(&runtime->effect_runs, 1);
    if (is_running_now(effect_run) && !det_heap_contains(&effect_run->due.node))
        effect_run->is_gone = true;
    else if (effect_run->state == DET_EFFECT_RUN_DEAD)
        det_effect_run_close(runtime, effect_run);
    else
        det_effect_run_drop(runtime, shard, effect_run);
}

static void install_effect_run(
    struct image *image, struct det_shard *shard, struct det_list *old,
    struct det_effect_run *effect_run)
{
    struct det_resident_more *more = image->resident->more;
    struct det_effect_run *known;

    if (effect_run->state == DET_EFFECT_RUN_DEAD) {
        det_list_append(&more->effect_runs, &effect_run->node);
        more->dead_count++;
        return;
    }
    more->open_count++;
    /* An effect that runs here and belongs to another node now is over for this node. */
    known = effect_run->row.is_foreign ? NULL : find_alive(old, effect_run);
    if (known && !is_running_now(known))
        det_effect_run_take_over(effect_run, known);
    if (known && is_running_now(known)) {
        det_list_remove(&known->node);
        det_list_append(&more->effect_runs, &known->node);
        det_effect_run_drop(image->runtime, shard, effect_run);
        return;
    }
    det_list_append(&more->effect_runs, &effect_run->node);
    if (effect_run->row.is_foreign)
        return;
    atomic_fetch_add(&image->runtime->effect_runs, 1);
    det_due_insert(shard, &effect_run->due, effect_run->row.next);
}

static void install_lists(struct image *image, struct det_shard *shard)
{
    struct det_resident_more *more = image->resident->more;
    struct det_list old, *node;

    det_list_init(&old);
    while ((node = det_list_take(&more->effect_runs)))
        det_list_append(&old, node);
    more->open_count = more->dead_count = 0;
    while ((node = det_list_take(&image->effect_runs)))
        install_effect_run(image, shard, &old, DET_CONTAINER(node, struct det_effect_run, node));
    while (!det_list_is_empty(&old))
        forget(image->runtime, shard, DET_CONTAINER(old.next, struct det_effect_run, node));
    while ((node = det_list_take(&more->kept)))
        det_kept_close(image->runtime, image->machine, DET_CONTAINER(node, struct det_kept, node));
    while ((node = det_list_take(&image->kept)))
        det_list_append(&more->kept, node);
    more->kept_count = image->kept_count;
    memcpy(more->reason, image->loaded.reason, sizeof more->reason);
}

static void install(struct image *image, struct det_shard *shard)
{
    struct det_resident *resident = image->resident;
    const struct det_store_loaded *loaded = &image->loaded;
    uint32_t kept = image->runtime->options.history_kept;
    size_t count = loaded->history_count < kept ? loaded->history_count : kept;

    for (size_t i = 0; i < det_timer_slots(image->machine); i++)
        install_timer(image, shard, i);
    if (resident->more)
        install_lists(image, shard);
    for (size_t i = 0; i < count; i++)
        resident->history[(loaded->head.transition_count - 1 - i) % kept] = loaded->history[i];
    det_machine_copy_data(
        resident->served->machine, resident->served->data_size, resident->data, loaded->data);
    resident->head = loaded->head;
    resident->has_foreign = image->has_foreign;
    resident->handle = loaded->instance;
}

int det_resident_load(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    struct det_store_instance *other = NULL, *before = resident->handle;
    struct image image;
    const struct det_store_rows rows = { &image, read_timer, read_effect, read_deferred };
    bool is_due = false;
    int r;

    r = image_init(&image, runtime, resident);
    if (r == 0)
        r = runtime->ops->load(runtime->store, image.machine, resident->id, &rows, &image.loaded);
    if (r == 0) {
        det_shard_lock(runtime, shard);
        r = reserve(&image, shard);
        is_due = r == 0 && image.due;
        if (r == 0)
            install(&image, shard);
        other = r == 0 ? before : image.loaded.instance;
        det_shard_unlock(runtime, shard);
    }
    /* The resident has a handle already: releases one of the two. */
    if (other && other != resident->handle)
        runtime->ops->release(runtime->store, other);
    image_deinit(&image);
    /* The exact time does not matter: the loop makes one pass, and then knows. */
    det_due_kick(runtime, is_due ? INT64_MIN : DET_NEVER);
    return r;
}
