/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_calls.c - requests to slots, each executed as one step on the loop. */
#include "task/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/reserved.h"

/* Submitting. */

struct submit {
    struct det_submission what;
    struct det_waiter **ret_waiter;
    struct det_admitted *ret;
    struct det_error *reterr;
};

static int refused(struct submit *submit, const struct det_slot *slot)
{
    if (slot->failure)
        return det_error_set(submit->reterr, slot->failure, "%s", slot->error.text);
    return det_error_set(
        submit->reterr, DET_ERR_REFUSED, "slot %s refuses task %s: %s", slot->name,
        submit->what.task->name, det_slot_reason(slot->answer.rejection));
}

static int submit_task(struct submit *submit, struct det_slot *slot, struct det_task *task)
{
    int r = 0;

    slot->subject = task;
    slot->failure = 0;
    slot->answer = (struct det_admitted){ .id = task->node.id };
    task->slot = slot;
    det_slot_admit(slot, submit->what.admission);
    slot->answer.depth = slot->depth;
    if (submit->ret)
        *submit->ret = slot->answer;
    if (slot->answer.rejection != DET_REJECTION_NONE)
        r = refused(submit, slot);
    return r;
}

static int submit_to(struct submit *submit, struct det_slot *slot)
{
    struct det_waiter *waiter = NULL;
    struct det_task *task;
    int r;

    r = det_task_make(slot->tasks, submit->what.task, &task, submit->reterr);
    if (r < 0)
        return r;
    r = submit->ret_waiter ? det_waiter_open(task, &waiter) : 0;
    if (r < 0) {
        det_task_free(task);
        return det_error_set(submit->reterr, r, "task %s: out of memory", submit->what.task->name);
    }
    r = submit_task(submit, slot, task);
    if (r < 0) {
        det_waiter_close(waiter);
        det_task_free(task);
        return r;
    }
    if (submit->ret_waiter)
        *submit->ret_waiter = waiter;
    return 0;
}

static int submit_one(struct det_tasks *tasks, void *argument)
{
    struct submit *submit = argument;
    const char *name = submit->what.slot ? submit->what.slot : submit->what.task->name;
    struct det_slot *slot;
    int r;

    if (!det_tasks_is_open(tasks))
        return det_error_set(
            submit->reterr, DET_ERR_CLOSED, "task %s: the supervisor is shutting down",
            submit->what.task->name ? submit->what.task->name : "");
    r = det_slot_get(tasks, name, &slot, submit->reterr);
    if (r < 0)
        return r;
    slot->is_in_use = true;
    r = submit_to(submit, slot);
    det_slot_release(slot);
    return r;
}

static int submit_call(struct det_tasks *tasks, bool may_wait, struct submit *submit)
{
    int r, pressed;

    pressed = det_tasks_wait_for_subscribers(tasks, may_wait, submit->reterr);
    r = pressed < 0 ? pressed : det_tasks_call(tasks, may_wait, submit_one, submit);
    if (r == DET_ERR_BUSY && pressed == 0)
        det_error_set(
            submit->reterr, r, "intake_max (%u) calls are waiting; try again",
            (unsigned)tasks->options.intake_max);
    /* As with det_tasks_add(), the caller has nothing to clean up. */
    if (r < 0 && submit->what.task->release)
        submit->what.task->release(submit->what.task->argument);
    return r;
}

int det_slot_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    struct det_waiter **ret_waiter, struct det_admitted *ret, struct det_error *reterr)
{
    struct submit submit = { *submission, ret_waiter, ret, reterr };

    return submit_call(tasks, true, &submit);
}

int det_slot_try_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    struct det_waiter **ret_waiter, struct det_admitted *ret, struct det_error *reterr)
{
    struct submit submit = { *submission, ret_waiter, ret, reterr };

    return submit_call(tasks, false, &submit);
}

/* Publishes a rejection that the slot itself did not. */
static void publish_rejection(
    struct det_tasks *tasks, const struct det_submission *what, int code,
    const struct det_error *error)
{
    const char *name = what->slot ? what->slot : what->task->name;
    struct det_task_event event = { .kind = DET_TASK_EVENT_SLOT_REJECTED,
                                    .rejection = (uint8_t)det_rejection_of(code) };

    det_event_set_text(event.name, sizeof event.name, name ? name : "");
    det_event_set_text(event.reason, sizeof event.reason, error->text);
    det_tasks_publish(tasks, &event);
}

static void run_posted_submit(struct det_tasks *tasks, struct det_posted_call *call)
{
    struct det_posted_task *posted = DET_CONTAINER(call, struct det_posted_task, call);
    struct det_admitted admitted = { .id = 0 };
    struct det_error error = { .code = 0 };
    struct submit submit = {
        { posted->slot, (enum det_admission)posted->admission, &posted->spec },
        NULL,
        &admitted,
        &error,
    };
    int r;

    r = submit_one(tasks, &submit);
    if (r < 0 && admitted.rejection == DET_REJECTION_NONE && !posted->answer.run)
        publish_rejection(tasks, &submit.what, r, &error);
    det_posted_task_end(posted, r, admitted.id, &error);
}

int det_slot_post_submit(
    struct det_tasks *tasks, const struct det_submission *submission,
    const struct det_answer *answer)
{
    return det_tasks_post_task(
        tasks, submission->task, submission->slot, (int)submission->admission, answer,
        run_posted_submit);
}

/* Configuring. */

struct configure {
    const char *slot;
    const struct det_slot_options *options;
    struct det_error *reterr;
};

static int configure_one(struct det_tasks *tasks, void *argument)
{
    const struct configure *configure = argument;
    const struct det_slot_options *options = configure->options;
    struct det_slot *slot;
    int r;

    if (!det_tasks_is_open(tasks))
        return det_error_set(
            configure->reterr, DET_ERR_CLOSED, "slot %s: the supervisor is shutting down",
            configure->slot);
    r = det_slot_get(tasks, configure->slot, &slot, configure->reterr);
    if (r < 0)
        return r;
    slot->is_kept = true;
    slot->width = options->width ? options->width : 1;
    slot->depth_max = options->depth_max ? options->depth_max : tasks->options.slot_depth_max;
    if (options->depth_max == UINT32_MAX)
        slot->depth_max = 0;
    det_slot_widen(slot);
    return 0;
}

int det_slot_configure(
    struct det_tasks *tasks, const char *slot, const struct det_slot_options *options,
    struct det_error *reterr)
{
    struct configure configure = { slot, options, reterr };
    int r = det_reserved_check(options->reserved, "a slot", reterr);

    if (r < 0)
        return r;
    return det_tasks_call(tasks, true, configure_one, &configure);
}

/* Commands. */

struct order {
    const char *slot;
    enum slot_order order;
};

static int order_one(struct det_tasks *tasks, void *argument)
{
    const struct order *order = argument;
    struct det_slot *slot = det_map_get(&tasks->slots, order->slot);

    if (!slot)
        return 0;
    det_slot_order(slot, order->order);
    return order->order == SLOT_ORDER_PURGE ? (int)slot->purged : slot->stopped > 0;
}

static int give_order(struct det_tasks *tasks, const char *slot, enum slot_order what)
{
    struct order order = { slot, what };

    return det_tasks_call(tasks, true, order_one, &order);
}

int det_slot_cancel(struct det_tasks *tasks, const char *slot)
{
    return give_order(tasks, slot, SLOT_ORDER_STOP);
}

int det_slot_purge(struct det_tasks *tasks, const char *slot)
{
    return give_order(tasks, slot, SLOT_ORDER_PURGE);
}

int det_slot_cancel_and_purge(struct det_tasks *tasks, const char *slot)
{
    return give_order(tasks, slot, SLOT_ORDER_BOTH);
}

/* Listing. */

struct look {
    int (*each)(void *user, const struct det_slot_info *info);
    void *user;
};

static int show(const struct det_slot *slot, const struct look *look)
{
    struct det_tasks *tasks = slot->tasks;
    const struct det_task *owner =
        slot->owner_count > 0 ? DET_CONTAINER(slot->owners.next, struct det_task, place) : NULL;
    struct det_slot_info info = {
        .name = slot->name,
        .state = det_slot_state(slot),
        .width = slot->width,
        .depth = slot->depth,
        .depth_max = slot->depth_max,
        .owner_count = slot->owner_count,
        .owner = owner ? owner->node.id : 0,
        .owner_name = owner ? owner->name : NULL,
        .since = det_tasks_wall_of(tasks, slot->since),
        .started = slot->started,
        .rejected = slot->rejected,
        .replaced = slot->replaced,
    };

    return look->each(look->user, &info);
}

static int by_name(const void *a, const void *b)
{
    const struct det_slot *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int inspect_all(struct det_tasks *tasks, void *argument)
{
    size_t count = tasks->slots.count, n = 0, cursor = 0;
    struct det_slot **all, *slot;
    int r = 0;

    all = DET_NEW_ARRAY(tasks->allocator, count, struct det_slot *);
    if (!all)
        return DET_ERR_NO_MEMORY;
    while ((slot = det_map_next(&tasks->slots, &cursor)))
        all[n++] = slot;
    qsort(all, n, sizeof(struct det_slot *), by_name);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = show(all[i], argument);
    DET_DELETE_ARRAY(tasks->allocator, all, count);
    return r < 0 ? r : 0;
}

int det_slots_each(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_slot_info *info), void *user)
{
    struct look look = { each, user };

    return det_tasks_call(tasks, true, inspect_all, &look);
}
