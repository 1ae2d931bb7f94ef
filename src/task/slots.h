/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots.h - a slot and its operations: slots.c is its machine, slot_calls.c has the calls. */
#ifndef DET_TASK_SLOTS_H
#define DET_TASK_SLOTS_H

#include "task/registry.h"

struct det_slot {
    struct det_component component; /* slot.fsm */
    struct det_tasks *tasks;
    const char *name;       /* follows the struct */
    struct det_list owners; /* oldest first */
    struct det_list queue;  /* of submissions, by `place` */
    uint32_t owner_count, stopping_count, depth;
    uint32_t width, depth_max;
    det_time since; /* monotonic time at which this state began */
    uint64_t started, rejected, replaced;
    bool is_kept;   /* the slot was configured */
    bool is_in_use; /* a call is under way */

    /* The event under treatment. */
    struct det_task *subject; /* the submission, or the owner */
    struct det_admitted answer;
    int failure; /* the error of a failed start; 0: none */
    struct det_error error;
    uint32_t stopped, purged;
};

/* The slot of this name, created if necessary; release it with det_slot_release(). */
DET_MUST_CHECK int det_slot_get(
    struct det_tasks *tasks, const char *name, struct det_slot **ret, struct det_error *reterr);
void det_slot_release(struct det_slot *slot);
/* Submits the subject; `answer` is the result. */
void det_slot_admit(struct det_slot *slot, enum det_admission admission);
/* Its width or depth has changed. */
void det_slot_widen(struct det_slot *slot);
enum slot_order { SLOT_ORDER_STOP, SLOT_ORDER_PURGE, SLOT_ORDER_BOTH };
/* `stopped` and `purged` are the numbers of affected tasks. */
void det_slot_order(struct det_slot *slot, enum slot_order order);
const char *det_slot_state(const struct det_slot *slot);
/* For people; "" if the rejection has its own reason. */
const char *det_slot_reason(enum det_rejection rejection);

#endif
