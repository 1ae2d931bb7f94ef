/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot.h - slots: tasks with the same key run one after the other.
 *
 * A slot has owners (as many as its width, one by default) and a queue. It exists from its first
 * submission until it is idle and empty; a configured slot stays.
 *
 *                   submit: start                     the last owner was removed
 *     idle ------------------------------> running ------------------------------> idle
 *                                           |   ^                                    or the next
 *          replace: head of the queue is    v   |  the owner was removed:
 *          the new one, owner is stopped   terminating  the head starts
 *
 *                 idle    running                          terminating
 *     QUEUE       start   to the end; full: rejected       to the end; full: rejected
 *     REPLACE     start   becomes the head, instead of     becomes the head, instead of
 *                         the one there; stop the owner    the one there
 *     DROP        start   rejected                         rejected
 *     REPLACE_ALL start   queue is purged, then as REPLACE queue is purged, becomes the head
 *
 * The next submission starts only when its predecessor is fully removed: attempts ended, name free.
 * A replacement is never refused because of the depth of the queue. A submission that is displaced,
 * rejected, purged or removed while it waits ends as REJECTED, with the kind, and an event. With a
 * width above 1, REPLACE stops the owner that has run longest, and only if no place is free. */
#ifndef DETENT_SLOT_H
#define DETENT_SLOT_H

#include <detent/task.h>

DET_BEGIN

enum det_admission {
    DET_ADMIT_QUEUE,
    DET_ADMIT_REPLACE,
    DET_ADMIT_DROP_IF_RUNNING,
    DET_ADMIT_REPLACE_ALL,
};

struct det_slot_options {
    uint32_t width;     /* number of owners at once; 0: 1 */
    uint32_t depth_max; /* limit of the queue; 0: slot_depth_max; UINT32_MAX: no queue */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};
/* Creates or changes the slot. A smaller width or depth applies to later submissions and stops no
 * owner. */
DET_API int det_slot_configure(
    struct det_tasks *tasks, const char *slot, const struct det_slot_options *options,
    struct det_error *reterr) DET_MUST_CHECK;

/* The result of a submission. */
struct det_admitted {
    det_task_id id; /* the same id in the queue, the registry, the events and at the end */
    bool is_started;
    uint32_t depth; /* length of the queue, including this one if it waits */
    enum det_rejection rejection;
};

struct det_submission {
    const char *slot; /* NULL: the name of the task */
    enum det_admission admission;
    const struct det_task_spec *task;
};

/* Submits a task to a slot. 0: started or queued; DET_ERR_REFUSED: see the rejection in `ret`,
 * which is written in this case too; other errors as det_tasks_add(). */
DET_API int det_slot_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    struct det_waiter **ret_waiter, struct det_admitted *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Like det_slot_submit(), but DET_ERR_BUSY at once if the intake is full. */
DET_API int det_slot_try_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    struct det_waiter **ret_waiter, struct det_admitted *ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* Non-blocking variant, like det_tasks_post_add(). A refusal is DET_ERR_REFUSED to the callback, or
 * published as SLOT_REJECTED without one. */
DET_API int det_slot_post_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    const struct det_answer *answer) DET_MUST_CHECK;

/* Asks the owners to stop and does not wait; the queue continues. 1; 0: no such slot, or all owners
 * are stopping already. */
DET_API int det_slot_cancel(struct det_tasks *tasks, const char *slot) DET_MUST_CHECK;
/* Empties the queue; returns the number of removed submissions. */
DET_API int det_slot_purge(struct det_tasks *tasks, const char *slot) DET_MUST_CHECK;
/* Both in one step: no queued submission starts in between. 1 or 0 as det_slot_cancel(). */
DET_API int det_slot_cancel_and_purge(struct det_tasks *tasks, const char *slot) DET_MUST_CHECK;

struct det_slot_info {
    const char *name;
    const char *state; /* "idle", "running", "terminating"; during shutdown "closing" */
    uint32_t width, depth, depth_max;
    uint32_t owner_count;
    det_task_id owner;      /* the owner that has run longest; 0: none */
    const char *owner_name; /* NULL: none */
    det_time since;         /* wall time at which this state began */
    uint64_t started, rejected, replaced;
};
/* Lists the slots in one consistent view, by name. Rules as for det_tasks_each(). */
DET_API int det_slots_each(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_slot_info *info),
    void *user) DET_MUST_CHECK;

DET_END
#endif
