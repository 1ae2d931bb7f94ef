/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_model_test.h - a naive model of slots, written from the table in slot.h alone: arrays, and
 * no cleverness.
 *
 * Its rules:
 *   1 an owner that is done, or was stopped and obeys, is gone at once: then the head starts;
 *   2 owners are kept in the order in which they started, the queue in that of its starts to be;
 *   3 a place is free while there are fewer owners than the width, stopping ones included;
 *   4 names are unique here, so that nothing fails to start;
 *   5 a slot without owner and queue is forgotten, unless it was configured. */
#ifndef DET_TASK_SLOT_MODEL_TEST_H
#define DET_TASK_SLOT_MODEL_TEST_H

#include <detent/slot.h>

#include <string.h>

#define SLOTS     3
#define TASKS_MAX 24

enum fate { FATE_NONE, FATE_QUEUED, FATE_OWNER, FATE_ENDED, FATE_REFUSED };

struct model_task {
    enum fate fate;
    unsigned slot;
    bool is_stopping, is_prompt; /* prompt: ends as soon as it is stopped */
    enum det_task_outcome outcome;
    enum det_rejection rejection;
    unsigned start_order; /* from 1; 0: never */
};

struct model_slot {
    bool is_there, is_kept;
    uint32_t width, depth_max;
    unsigned owners[TASKS_MAX], owner_count; /* in the order of their starts */
    unsigned queue[TASKS_MAX], depth;
    uint64_t started, rejected, replaced; /* as long as it is there */
};

struct model {
    struct model_task tasks[TASKS_MAX];
    unsigned count, starts;
    struct model_slot slots[SLOTS];
    bool is_closed;
};

static inline void drop_at(unsigned *list, unsigned *count, unsigned index)
{
    memmove(list + index, list + index + 1, (*count - index - 1) * sizeof *list);
    (*count)--;
}

static inline void model_start(struct model *model, struct model_slot *slot, unsigned task)
{
    model->tasks[task].fate = FATE_OWNER;
    model->tasks[task].start_order = ++model->starts;
    slot->owners[slot->owner_count++] = task;
    slot->started++;
}

static inline void model_advance(struct model *model, struct model_slot *slot)
{
    while (!model->is_closed && slot->depth > 0 && slot->owner_count < slot->width) {
        unsigned task = slot->queue[0];

        drop_at(slot->queue, &slot->depth, 0);
        model_start(model, slot, task);
    }
    slot->is_there = slot->is_kept || slot->owner_count > 0 || slot->depth > 0;
    if (!slot->is_there)
        slot->started = slot->rejected = slot->replaced = 0;
}

/* A free place without an owner may exist after the slot was made wider. */
static inline void model_end(struct model *model, unsigned task, enum det_task_outcome outcome)
{
    struct model_slot *slot = &model->slots[model->tasks[task].slot];

    for (unsigned i = 0; i < slot->owner_count; i++) {
        if (slot->owners[i] == task) {
            drop_at(slot->owners, &slot->owner_count, i);
            break;
        }
    }
    model->tasks[task].fate = FATE_ENDED;
    model->tasks[task].outcome = outcome;
    model_advance(model, slot);
}

static inline void model_reject(
    struct model *model, unsigned index, unsigned slot, enum det_rejection why)
{
    struct model_slot *at = &model->slots[slot];
    unsigned task = at->queue[index];

    drop_at(at->queue, &at->depth, index);
    at->rejected++;
    model->tasks[task].fate = FATE_ENDED;
    model->tasks[task].outcome = DET_TASK_OUTCOME_REJECTED;
    model->tasks[task].rejection = why;
}

static inline int model_purge(struct model *model, unsigned slot, enum det_rejection why)
{
    int count = (int)model->slots[slot].depth;

    while (model->slots[slot].depth > 0)
        model_reject(model, 0, slot, why);
    return count;
}

static inline int model_stop(struct model *model, unsigned task)
{
    if (model->tasks[task].is_stopping)
        return 0;
    model->tasks[task].is_stopping = true;
    return 1;
}

/* Those that obey at once do so after all that belongs to the operation. */
static inline void model_settle(struct model *model)
{
    for (unsigned i = 0; i < model->count; i++)
        if (model->tasks[i].fate == FATE_OWNER && model->tasks[i].is_stopping &&
            model->tasks[i].is_prompt)
            model_end(model, i, DET_TASK_OUTCOME_CANCELLED);
}

static inline bool model_is_terminating(const struct model *model, const struct model_slot *slot)
{
    for (unsigned i = 0; i < slot->owner_count; i++)
        if (model->tasks[slot->owners[i]].is_stopping)
            return true;
    return false;
}

static inline void model_put_head(struct model *model, unsigned at, unsigned task)
{
    struct model_slot *slot = &model->slots[at];
    bool is_terminating = model_is_terminating(model, slot);

    if (slot->depth > 0)
        model_reject(model, 0, at, DET_REJECTION_SUPERSEDED);
    memmove(slot->queue + 1, slot->queue, slot->depth * sizeof *slot->queue);
    slot->queue[0] = task;
    slot->depth++;
    slot->replaced++;
    model->tasks[task].fate = FATE_QUEUED;
    if (!is_terminating)
        (void)model_stop(model, slot->owners[0]);
}

static inline enum det_rejection model_submit(
    struct model *model, unsigned at, enum det_admission admission, unsigned task)
{
    struct model_slot *slot = &model->slots[at];

    slot->is_there = true;
    if (admission == DET_ADMIT_REPLACE_ALL)
        (void)model_purge(model, at, DET_REJECTION_PURGED);
    if (slot->owner_count < slot->width) {
        model_start(model, slot, task);
        return DET_REJECTION_NONE;
    }
    switch (admission) {
    case DET_ADMIT_QUEUE:
        if (slot->depth >= slot->depth_max)
            return DET_REJECTION_QUEUE_FULL;
        slot->queue[slot->depth++] = task;
        model->tasks[task].fate = FATE_QUEUED;
        return DET_REJECTION_NONE;
    case DET_ADMIT_DROP_IF_RUNNING:
        return DET_REJECTION_SLOT_BUSY;
    case DET_ADMIT_REPLACE:
    case DET_ADMIT_REPLACE_ALL:
        model_put_head(model, at, task);
        return DET_REJECTION_NONE;
    }
    return DET_REJECTION_NONE;
}

static inline int model_remove(struct model *model, unsigned task)
{
    struct model_slot *slot = &model->slots[model->tasks[task].slot];

    if (model->tasks[task].fate == FATE_OWNER)
        return model_stop(model, task);
    if (model->tasks[task].fate != FATE_QUEUED)
        return 0;
    for (unsigned i = 0; i < slot->depth; i++) {
        if (slot->queue[i] == task) {
            model_reject(model, i, model->tasks[task].slot, DET_REJECTION_REMOVED);
            break;
        }
    }
    return 1;
}

static inline int model_stop_slot(struct model *model, unsigned at)
{
    int stopped = 0;

    for (unsigned i = 0; i < model->slots[at].owner_count; i++)
        stopped |= model_stop(model, model->slots[at].owners[i]);
    return stopped;
}

static inline void model_shut_down(struct model *model)
{
    model->is_closed = true;
    for (unsigned at = 0; at < SLOTS; at++) {
        (void)model_purge(model, at, DET_REJECTION_SHUTTING_DOWN);
        (void)model_stop_slot(model, at);
    }
}

#endif
