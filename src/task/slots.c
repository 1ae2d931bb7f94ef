/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots.c - slots, which run tasks with the same key one by one: the functions that slot.fsm names.
 *
 * A submission is a task that is not admitted yet: it has an id, is in the queue of its slot, and
 * can be removed by its id in one step. It is admitted when it starts, so it may have the name of
 * its predecessor.
 *
 * Invariants, checked by slot_is_sound()
 *   1. an idle slot has no owner and an empty queue;
 *   2. the queue is empty while a place is free, unless the slot is about to advance;
 *   3. an owner was asked to stop exactly in `terminating`, or the slot is closing. */
#include "task/slots.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

#define FSM_LOCAL
#define FSM_SPEC "task/slot.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "task/slot.fsm"
#include <detent/fsm/define.h>

static struct det_task *task_at(struct det_list *place)
{
    return DET_CONTAINER(place, struct det_task, place);
}

static int offer(struct det_slot *slot, struct slot_event event)
{
    int r;

    r = slot_offer(slot, event);
    det_assert(r == 0);
    return r;
}

/* Events. */

static void publish_change(
    struct det_slot *slot, const struct det_task *subject, enum det_task_event_kind kind,
    enum det_rejection rejection, const char *reason)
{
    struct det_task_event event = {
        .kind = kind,
        .id = subject ? subject->node.id : 0,
        .rejection = (uint8_t)rejection,
        .count = slot->depth,
    };

    det_event_set_text(event.name, sizeof event.name, slot->name);
    det_event_set_text(event.reason, sizeof event.reason, reason);
    det_tasks_publish(slot->tasks, &event);
}

/* Guards. */

static bool has_place(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->owner_count < slot->width;
}

static bool has_room(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->depth < slot->depth_max;
}

static bool has_next(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->depth > 0;
}

static bool has_owners(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->owner_count > 0;
}

static bool has_others(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->owner_count > 1;
}

static bool stays_stopping(const struct det_slot *slot, const struct slot_event *event)
{
    (void)event;
    return slot->stopping_count > (slot->subject->is_stopping ? 1u : 0u);
}

static bool next_stays_stopping(const struct det_slot *slot, const struct slot_event *event)
{
    return has_next(slot, event) && stays_stopping(slot, event);
}

static bool place_for_next(const struct det_slot *slot, const struct slot_event *event)
{
    return has_next(slot, event) && has_place(slot, event);
}

/* The queue. */

static void leave_queue(struct det_task *task)
{
    det_assert(task->slot && task->slot->depth > 0 && task->tasks->index.queued > 0);
    det_assert(!task->is_registered && !det_list_is_empty(&task->place));
    det_list_remove(&task->place);
    task->slot->depth--;
    task->tasks->index.queued--;
}

static void enter_queue(struct det_slot *slot, struct det_task *task, bool is_head)
{
    det_assert(task->slot == slot && !task->is_registered && det_list_is_empty(&task->place));
    if (is_head)
        det_list_prepend(&slot->queue, &task->place);
    else
        det_list_append(&slot->queue, &task->place);
    slot->depth++;
    det_assert(slot->depth <= slot->depth_max || is_head);
    if (task->tasks->index.queued++ == 0)
        det_tasks_check_empty(task->tasks);
}

const char *det_slot_reason(enum det_rejection rejection)
{
    switch (rejection) {
    case DET_REJECTION_SUPERSEDED:
        return "a replacement took its place";
    case DET_REJECTION_REMOVED:
        return "removed from the queue";
    case DET_REJECTION_PURGED:
        return "the queue was purged";
    case DET_REJECTION_SHUTTING_DOWN:
        return "the supervisor is shutting down";
    case DET_REJECTION_SLOT_BUSY:
        return "the slot is busy";
    case DET_REJECTION_QUEUE_FULL:
        return "the queue is full";
    case DET_REJECTION_NONE:
    case DET_REJECTION_ALREADY_EXISTS:
    case DET_REJECTION_BATCH_REJECTED:
    case DET_REJECTION_FAILED:
    case DET_REJECTION_COUNT:
        break;
    }
    return "";
}

/* Ends a submission that has left the queue. The end is reported once the slot is settled, since
 * its receiver may submit again. */
static void dismiss(
    struct det_slot *slot, struct det_task *task, enum det_rejection rejection, const char *reason)
{
    det_assert(rejection != DET_REJECTION_NONE && det_list_is_empty(&task->place));
    slot->rejected++;
    task->slot = NULL;
    task->attempts.rejection = (uint8_t)rejection;
    det_task_set_reason(task, reason);
    publish_change(slot, task, DET_TASK_EVENT_SLOT_REJECTED, rejection, reason);
    det_list_append(&slot->tasks->settling.rejected, &task->line);
    det_tasks_settle_soon(slot->tasks);
}

static void reject_queued(struct det_task *task, enum det_rejection rejection)
{
    leave_queue(task);
    dismiss(task->slot, task, rejection, det_slot_reason(rejection));
}

/* Refuses a new submission: only its caller is notified. */
static int refuse(struct det_slot *slot, enum det_rejection rejection)
{
    det_assert(rejection != DET_REJECTION_NONE && !slot->answer.is_started);
    slot->rejected++;
    slot->answer.rejection = rejection;
    publish_change(
        slot, slot->subject, DET_TASK_EVENT_SLOT_REJECTED, rejection, det_slot_reason(rejection));
    return DET_EFFECT_DONE;
}

static int enqueue(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    enter_queue(slot, slot->subject, false);
    publish_change(
        slot, slot->subject, DET_TASK_EVENT_SLOT_SUBMITTED, DET_REJECTION_NONE, "queued");
    return DET_EFFECT_DONE;
}

static int put_head(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    if (slot->depth > 0)
        reject_queued(task_at(slot->queue.next), DET_REJECTION_SUPERSEDED);
    enter_queue(slot, slot->subject, true);
    slot->replaced++;
    publish_change(slot, slot->subject, DET_TASK_EVENT_SLOT_SUBMITTED, DET_REJECTION_NONE, "next");
    return DET_EFFECT_DONE;
}

static int reject_full(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    return refuse(slot, DET_REJECTION_QUEUE_FULL);
}

static int reject_busy(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    return refuse(slot, DET_REJECTION_SLOT_BUSY);
}

static int reject_closing(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    return refuse(slot, DET_REJECTION_SHUTTING_DOWN);
}

static int take_out(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    reject_queued(slot->subject, DET_REJECTION_REMOVED);
    return DET_EFFECT_DONE;
}

static void purge_as(struct det_slot *slot, enum det_rejection rejection)
{
    slot->purged = slot->depth;
    while (slot->depth > 0)
        reject_queued(task_at(slot->queue.next), rejection);
}

static int purge(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    purge_as(slot, DET_REJECTION_PURGED);
    return DET_EFFECT_DONE;
}

static int purge_closing(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    purge_as(slot, DET_REJECTION_SHUTTING_DOWN);
    return DET_EFFECT_DONE;
}

/* Owners. */

static int own(struct det_slot *slot, struct det_task *task, struct det_error *reterr)
{
    int r;

    det_assert(task->slot == slot && slot->owner_count < slot->width && !task->is_stopping);
    r = det_task_admit(task, reterr);
    if (r < 0)
        return r;
    det_assert(det_list_is_empty(&task->place));
    det_list_append(&slot->owners, &task->place);
    slot->owner_count++;
    slot->started++;
    slot->since = det_loop_now(slot->tasks->loop);
    return 0;
}

/* Starts the submission: if it cannot start, its caller gets the reason. */
static int start(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    int r;

    (void)event;
    r = own(slot, slot->subject, &slot->error);
    if (r == 0) {
        slot->answer.is_started = true;
        publish_change(
            slot, slot->subject, DET_TASK_EVENT_SLOT_SUBMITTED, DET_REJECTION_NONE, "started");
        return DET_EFFECT_DONE;
    }
    slot->rejected++;
    slot->answer.rejection = det_rejection_of(r);
    slot->failure = r;
    publish_change(
        slot, slot->subject, DET_TASK_EVENT_SLOT_REJECTED, slot->answer.rejection,
        slot->error.text);
    *ret = slot_unstarted();
    return DET_EFFECT_PRODUCED;
}

/* Starts the head of the queue, or rejects it if it cannot start. */
static void start_head(struct det_slot *slot)
{
    struct det_task *task = task_at(slot->queue.next);
    struct det_error error;
    int r;

    leave_queue(task);
    r = own(slot, task, &error);
    if (r < 0)
        dismiss(slot, task, det_rejection_of(r), error.text);
    else
        publish_change(
            slot, task, DET_TASK_EVENT_SLOT_SUBMITTED, DET_REJECTION_NONE,
            "started from the queue");
}

/* Starts as many of the queue as there are places: none, if the slot was made narrower. One action
 * for all, since they may exceed the limit of consecutive events. */
static int start_next(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    while (place_for_next(slot, event))
        start_head(slot);
    if (slot->owner_count > 0)
        return DET_EFFECT_DONE;
    *ret = slot_unstarted();
    return DET_EFFECT_PRODUCED;
}

static int drop_owner(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    struct det_task *task = slot->subject;

    (void)event;
    (void)ret;
    det_assert(task->slot == slot && !det_list_is_empty(&task->place) && slot->owner_count > 0);
    det_assert(slot->stopping_count >= task->is_stopping);
    det_list_remove(&task->place);
    slot->owner_count--;
    slot->stopping_count -= task->is_stopping;
    task->is_stopping = false;
    task->slot = NULL;
    slot->since = det_loop_now(slot->tasks->loop);
    return DET_EFFECT_DONE;
}

static void mark(struct det_slot *slot, struct det_task *task)
{
    if (task->is_stopping)
        return;
    task->is_stopping = true;
    slot->stopping_count++;
    det_assert(slot->stopping_count <= slot->owner_count);
    slot->since = det_loop_now(slot->tasks->loop);
    publish_change(
        slot, task, DET_TASK_EVENT_SLOT_CHANGED, DET_REJECTION_NONE, "running to terminating");
}

/* One removal per owner. An owner that has just ended, and whose removal is under way, is not
 * asked. */
static void stop_one(struct det_slot *slot, struct det_task *task)
{
    if (task->is_stopping)
        return;
    mark(slot, task);
    if (det_task_remove(task))
        slot->stopped++;
}

static int stop_oldest(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    DET_LIST_EACH(node, &slot->owners)
    {
        if (task_at(node)->is_stopping)
            continue;
        stop_one(slot, task_at(node));
        break;
    }
    return DET_EFFECT_DONE;
}

static int stop_owners(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    DET_LIST_EACH(node, &slot->owners)
    stop_one(slot, task_at(node));
    return DET_EFFECT_DONE;
}

static int mark_stopping(
    struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    mark(slot, slot->subject);
    return DET_EFFECT_DONE;
}

/* The end of a slot. */

static int settle(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    slot->since = det_loop_now(slot->tasks->loop);
    if (slot->is_kept || slot->is_in_use)
        return DET_EFFECT_DONE;
    *ret = slot_retire();
    return DET_EFFECT_PRODUCED;
}

static int report(struct det_slot *slot, const struct slot_event *event, struct slot_event *ret)
{
    (void)event;
    (void)ret;
    publish_change(
        slot, NULL, DET_TASK_EVENT_RUNTIME_FAILURE, DET_REJECTION_NONE,
        det_component_failure(&slot->component)->text);
    return DET_EFFECT_DONE;
}

static int slot_completed(struct det_slot *slot, const struct det_component_end *end)
{
    struct det_tasks *tasks = slot->tasks;

    (void)end;
    det_assert(det_list_is_empty(&slot->owners) && det_list_is_empty(&slot->queue));
    det_assert(slot->owner_count == 0 && slot->depth == 0);
    det_map_remove(&tasks->slots, slot->name);
    det_free(tasks->allocator, slot, sizeof *slot + strlen(slot->name) + 1);
    return 0;
}

static bool slot_is_sound(const struct det_slot *slot)
{
    switch ((enum slot_state)det_component_state(&slot->component)) {
    case SLOT_IDLE:
    case SLOT_GONE:
        return slot->owner_count == 0 && slot->depth == 0 && slot->stopping_count == 0;
    case SLOT_RUNNING:
        return slot->stopping_count == 0;
    case SLOT_TERMINATING:
        return slot->stopping_count > 0 && slot->stopping_count <= slot->owner_count;
    case SLOT_CLOSING:
        return slot->depth == 0;
    case slot_state_count:
        break;
    }
    return false;
}

/* From the registry. */

void det_slot_owner_removed(struct det_task *task)
{
    struct det_slot *slot = task->slot;

    det_assert(task->attempts.outcome != DET_TASK_OUTCOME_NONE);
    slot->subject = task;
    (void)offer(slot, slot_removed());
    det_assert(!task->slot);
}

void det_slot_owner_stopping(struct det_task *task)
{
    if (task->is_stopping)
        return;
    task->slot->subject = task;
    (void)offer(task->slot, slot_stopping());
}

void det_slot_take_out(struct det_task *task)
{
    task->slot->subject = task;
    (void)offer(task->slot, slot_take_out());
}

const char *det_slot_name(const struct det_slot *slot)
{
    return slot->name;
}

const char *det_slot_state(const struct det_slot *slot)
{
    return slot_state_name(det_component_state(&slot->component));
}

/* By name. */

static int new_slot(struct det_tasks *tasks, const char *name, struct det_slot **ret)
{
    size_t length = strlen(name);
    struct det_slot *slot = det_alloc_zero(tasks->allocator, sizeof *slot + length + 1);
    int r;

    if (!slot)
        return DET_ERR_NO_MEMORY;
    slot->tasks = tasks;
    slot->name = memcpy(slot + 1, name, length + 1);
    slot->width = 1;
    slot->depth_max = tasks->options.slot_depth_max;
    slot->since = det_loop_now(tasks->loop);
    det_list_init(&slot->owners);
    det_list_init(&slot->queue);
    r = det_map_put(&tasks->slots, slot);
    if (r == 0) {
        r = slot_supervise(
            tasks->executor, slot, &(struct det_supervise_options){ .without_handle = true }, NULL,
            NULL);
        if (r == 0) {
            *ret = slot;
            return 0;
        }
        det_map_remove(&tasks->slots, name);
    }
    det_free(tasks->allocator, slot, sizeof *slot + length + 1);
    return r;
}

int det_slot_get(
    struct det_tasks *tasks, const char *name, struct det_slot **ret, struct det_error *reterr)
{
    int r;

    r = det_name_check("slot", name, reterr);
    if (r < 0)
        return r;
    *ret = det_map_get(&tasks->slots, name);
    if (*ret)
        return 0;
    r = new_slot(tasks, name, ret);
    return r < 0 ? det_error_set(reterr, r, "slot %s: %s", name, det_error_text(r)) : 0;
}

/* An idle slot without configuration is removed. */
void det_slot_release(struct det_slot *slot)
{
    slot->is_in_use = false;
    if (det_component_state(&slot->component) == SLOT_IDLE && !slot->is_kept)
        (void)offer(slot, slot_retire());
}

void det_slot_widen(struct det_slot *slot)
{
    (void)offer(slot, slot_advance());
}

void det_slot_admit(struct det_slot *slot, enum det_admission admission)
{
    switch (admission) {
    case DET_ADMIT_QUEUE:
        (void)offer(slot, slot_queue());
        return;
    case DET_ADMIT_REPLACE:
        (void)offer(slot, slot_replace());
        return;
    case DET_ADMIT_DROP_IF_RUNNING:
        (void)offer(slot, slot_drop());
        return;
    case DET_ADMIT_REPLACE_ALL:
        (void)offer(slot, slot_replace_all());
        return;
    }
}

void det_slot_order(struct det_slot *slot, enum slot_order order)
{
    slot->stopped = slot->purged = 0;
    switch (order) {
    case SLOT_ORDER_STOP:
        (void)offer(slot, slot_stop());
        return;
    case SLOT_ORDER_PURGE:
        (void)offer(slot, slot_purge());
        return;
    case SLOT_ORDER_BOTH:
        (void)offer(slot, slot_stop_and_purge());
        return;
    }
}

void det_slots_init(struct det_tasks *tasks)
{
    det_map_init(
        &tasks->slots, tasks->allocator, det_tasks_chance(tasks), offsetof(struct det_slot, name));
    det_list_init(&tasks->settling.rejected);
}

void det_slots_close(struct det_tasks *tasks)
{
    struct det_slot *slot;
    size_t cursor = 0;

    while ((slot = det_map_next(&tasks->slots, &cursor)))
        (void)offer(slot, slot_close());
}

void det_slots_deinit(struct det_tasks *tasks)
{
    det_map_deinit(&tasks->slots);
}
