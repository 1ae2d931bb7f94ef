/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_orders.c - restarts, stops and drains a task, a group, a slot, or all tasks. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/project_internal.h"
#include "daemon/slots.h"

#define NEAR_MAX 512

/* The target of an order. */
enum target { TARGET_TASK, TARGET_GROUP, TARGET_SLOT };

struct search {
    struct up *up;
    const char *name;
    enum target target;
    bool is_all, with_queued;
    bool is_without_attempt; /* only tasks without a running attempt */
    bool is_without_held;    /* only tasks that are not held */
    struct up_ids ids;
};

/* Applies an order to one task. Returns 1, 0 if there is nothing to do, or an error. */
typedef int order_fn(struct det_tasks *tasks, det_task_id id);

static bool is_target(const struct search *search, const struct det_task_info *info)
{
    if (search->is_all)
        return true;
    switch (search->target) {
    case TARGET_TASK:
        return strcmp(info->name, search->name) == 0;
    case TARGET_GROUP:
        return up_is_in_group(up_project(search->up), info->group, search->name);
    case TARGET_SLOT:
        return info->slot && strcmp(info->slot, search->name) == 0 &&
               (search->with_queued || strcmp(info->state, "queued") != 0);
    }
    return false;
}

static int collect_task(void *user, const struct det_task_info *info)
{
    struct search *search = user;

    if (search->is_without_attempt && strcmp(info->state, "running") == 0)
        return 0;
    if (search->is_without_held && strcmp(info->state, "held") == 0)
        return 0;
    return is_target(search, info) ? up_ids_add(search->up, &search->ids, info->id) : 0;
}

static int search_ids(struct search *search)
{
    return det_tasks_each(up_tasks_supervisor(search->up), collect_task, search);
}

/* Finds a group that does not run. */
struct names {
    const char *wanted;
    bool is_found;
};

/* An order in progress. */
struct order {
    struct up *up;
    struct up_request *request;
    const char *name;
    bool waits;
};

static void fail_order(struct order *order, int code)
{
    up_request_fail(order->request, code, "%s", det_error_text(code));
}

/* Names that the user may have meant. */
struct near {
    const char *names[NEAR_MAX];
    size_t count;
    struct det_arena arena; /* names of running tasks */
};

static void add_near(struct near *near, const char *name)
{
    if (name && near->count < NEAR_MAX)
        near->names[near->count++] = name;
}

static int add_near_task(void *user, const struct det_task_info *info)
{
    struct near *near = user;

    add_near(near, det_arena_copy(&near->arena, info->name));
    return 0;
}

static void find_near(struct near *near, const struct up *up, bool has_slots)
{
    const struct config *config = up_config(up);

    for (size_t i = 0; i < config->task_count; i++)
        add_near(near, config->tasks[i].spec.name);
    for (size_t i = 0; i < config->group_count; i++)
        add_near(near, config->groups[i].spec.name);
    for (size_t i = 0; has_slots && i < config->slot_count; i++)
        add_near(near, config->slots[i].name);
    /* Submitted tasks are not in the file. An error only costs the hint. */
    (void)!det_tasks_each(up_tasks_supervisor(up), add_near_task, near);
}

static void fail_unknown_name(struct order *order, bool has_slots)
{
    struct near near = { .count = 0 };
    int nearest;

    det_arena_init(&near.arena, up_allocator(order->up));
    find_near(&near, order->up, has_slots);
    nearest = det_text_nearest(order->name, near.names, near.count);
    up_request_fail(
        order->request, DET_ERR_NOT_FOUND, "there is no task%s '%s'%s%s%s",
        has_slots ? ", group or slot" : " or group", order->name,
        nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? near.names[nearest] : "",
        nearest >= 0 ? "'?" : "");
    det_arena_deinit(&near.arena);
}

/* Applies the order to each task; returns how many it had an effect on. */
static size_t apply_order(struct up *up, const struct up_ids *ids, order_fn *order)
{
    size_t count = 0;

    for (size_t i = 0; i < ids->count; i++)
        count += order(up_tasks_supervisor(up), ids->items[i]) == 1;
    return count;
}

/* Finds the tasks, applies the order and answers, at once or when it is completed. */
static void apply_to_found(
    struct order *order, struct search *search, order_fn *run, enum up_wait_kind kind)
{
    struct up *up = order->up;
    struct up_wait *wait = NULL;
    size_t count;
    int r;

    search->up = up;
    search->name = order->name;
    r = search_ids(search);
    if (r < 0)
        fail_order(order, r);
    if (r == 0 && order->waits)
        wait = up_wait_open(up, order->request, kind, &search->ids, NULL);
    if (r == 0 && (wait || !order->waits)) {
        count = apply_order(up, &search->ids, run);
        if (wait)
            up_wait_arm(wait, count);
        else
            up_answer_done(order->request, count);
    }
    up_ids_deinit(up, &search->ids);
}

/* Orders to all tasks. */

static int drain_each(struct up *up, size_t *ret)
{
    struct search search = { .up = up, .is_all = true };
    int r;

    for (size_t i = 0; i < up_config(up)->task_count; i++)
        *ret += up_configured_forget(up, i);
    r = search_ids(&search);
    if (r == 0)
        *ret += apply_order(up, &search.ids, det_tasks_drain);
    up_ids_deinit(up, &search.ids);
    return r;
}

int up_drain_all(struct up *up)
{
    size_t count = 0;
    int r = drain_each(up, &count);

    return r < 0 ? r : (int)count;
}

/* The wait is opened first: it is answered when the run is over, which may be at once. */
static void order_all(struct order *order, bool drain_wanted)
{
    struct up *up = order->up;
    struct det_tasks_counts counts = det_tasks_counts(up_tasks_supervisor(up));
    struct up_wait *wait = NULL;
    int count = (int)(counts.registered + counts.queued);

    if (order->waits) {
        wait = up_wait_open(up, order->request, UP_WAIT_ALL, NULL, NULL);
        if (!wait)
            return;
    }
    if (drain_wanted)
        count = up_drain(up);
    else if (!up_is_stopping(up))
        up_stop(up, "asked to stop");
    if (count < 0) {
        if (wait)
            up_wait_cancel(wait);
        fail_order(order, count);
    } else if (wait) {
        up_wait_arm(wait, (size_t)count);
    } else {
        up_answer_done(order->request, (size_t)count);
    }
}

/* Orders to groups. */

static int see_group(void *user, const struct det_task_group_info *info)
{
    struct names *names = user;

    if (strcmp(info->name, names->wanted) == 0)
        names->is_found = strcmp(info->state, "stopped") == 0 || strcmp(info->state, "failed") == 0;
    return 0;
}

/* True if nothing of the group runs, so its stop will not be reported. */
static bool is_stopped_group(struct up *up, const char *group)
{
    struct names names = { .wanted = group };
    int r = det_tasks_each_group(up_tasks_supervisor(up), see_group, &names);

    return r == 0 && names.is_found;
}

static void stop_group(struct order *order)
{
    struct up *up = order->up;
    struct search search = { .up = up, .name = order->name, .target = TARGET_GROUP };
    struct up_wait *wait = NULL;
    size_t count;
    int r;

    if (is_stopped_group(up, order->name)) {
        up_answer_done(order->request, 0);
        return;
    }
    r = search_ids(&search);
    count = search.ids.count;
    up_ids_deinit(up, &search.ids);
    if (order->waits && r == 0) {
        wait = up_wait_open(up, order->request, UP_WAIT_GROUP, NULL, order->name);
        if (!wait)
            return;
    }
    if (r == 0)
        r = det_tasks_group_cancel(up_tasks_supervisor(up), order->name);
    if (wait)
        up_wait_arm(wait, count);
    else if (r < 0)
        fail_order(order, r);
    else
        up_answer_done(order->request, count);
}

/* Orders to tasks of the file. */

/* Keeps the request until all tasks found have completed the order. */
static void wait_for(
    struct order *order, struct search *search, enum up_wait_kind kind, size_t count)
{
    struct up_wait *wait = NULL;
    int r = search_ids(search);

    if (r < 0)
        fail_order(order, r);
    else
        wait = up_wait_open(order->up, order->request, kind, &search->ids, NULL);
    up_ids_deinit(order->up, &search->ids);
    if (wait)
        up_wait_arm(wait, count);
}

/* Stops a task of the file and keeps it in the supervisor. Tasks with a slot are removed instead,
 * to free the slot. */
static void hold_task(struct order *order, const struct up_configured *known)
{
    struct search search = { .up = order->up, .name = order->name, .target = TARGET_TASK };
    int count = det_tasks_hold(up_tasks_supervisor(order->up), known->id);

    up_check_again(order->up);
    search.is_without_held = true;
    if (order->waits)
        wait_for(order, &search, UP_WAIT_STOP, count == 1);
    else
        up_answer_done(order->request, count == 1);
}

/* Handles an order to a task of the file that is pending or can be held. True: it was answered. */
static bool order_known(struct order *order, bool is_stop)
{
    int index = up_find_task(up_project(order->up), order->name);
    const struct up_configured *known =
        index < 0 ? NULL : &up_project(order->up)->configured[index];

    if (!known)
        return false;
    if (known->is_pending) {
        up_answer_done(order->request, up_configured_forget(order->up, (size_t)index));
        return true;
    }
    if (!is_stop || known->id == 0 || up_config(order->up)->tasks[index].slot)
        return false;
    hold_task(order, known);
    return true;
}

/* Orders to one task, group or slot. */

/* True if the supervisor has the task. An error was answered. */
static int has_task(struct order *order)
{
    struct search search = { .up = order->up, .name = order->name, .target = TARGET_TASK };
    int r = search_ids(&search);
    bool has_task = search.ids.count > 0;

    up_ids_deinit(order->up, &search.ids);
    if (r < 0)
        fail_order(order, r);
    return r < 0 ? r : has_task;
}

/* Adds tasks of the file that have ended: the one of this name, or those of the group. Returns how
 * many, or an error. */
static int add_ended(struct order *order, struct det_error *reterr)
{
    const struct config *config = up_config(order->up);
    int count = 0, r;

    /* Dependencies first. */
    for (size_t i = 0; i < config->task_count; i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);
        const struct det_task_spec *spec = &config->order[i]->spec;

        if ((strcmp(spec->name, order->name) != 0 &&
             !up_is_in_group(up_project(order->up), spec->group, order->name)) ||
            !up_project(order->up)->is_selected[index] ||
            up_project(order->up)->configured[index].is_pending ||
            up_project(order->up)->configured[index].id != 0)
            continue;
        r = up_add_one(order->up, index, reterr);
        if (r < 0)
            return r;
        count++;
    }
    return count;
}

/* Restarts running tasks and adds ended ones; a request that waits is kept until all have
 * started. */
static void restart_tasks(struct order *order, enum target target)
{
    struct up *up = order->up;
    struct search search = { .up = up, .name = order->name, .target = target };
    struct det_error error = { 0 };
    size_t count;
    int added, r;

    r = search_ids(&search);
    count = r == 0 ? apply_order(up, &search.ids, det_tasks_restart) : 0;
    up_ids_deinit(up, &search.ids);
    added = r < 0 ? r : up_is_running(up) ? add_ended(order, &error) : 0;
    if (added < 0) {
        up_request_fail(
            order->request, added, "%s", *error.text ? error.text : det_error_text(added));
        return;
    }
    count += (size_t)added;
    if (!order->waits) {
        up_answer_done(order->request, count);
        return;
    }
    search.is_without_attempt = true;
    wait_for(order, &search, UP_WAIT_START, count);
}

static void restart_one(struct order *order)
{
    struct up *up = order->up;
    int there = has_task(order);

    if (there < 0)
        return;
    if (there || up_find_task(up_project(up), order->name) >= 0) {
        restart_tasks(order, TARGET_TASK);
    } else if (up_find_group(up_project(up), order->name)) {
        (void)!det_tasks_group_start(up_tasks_supervisor(up), order->name);
        restart_tasks(order, TARGET_GROUP);
    } else {
        fail_unknown_name(order, false);
    }
}

/* Applies the order to the owners of a slot, and to its queue if it is purged. */
static void order_slot(struct order *order, bool purge_wanted, order_fn *run)
{
    struct search search = { .target = TARGET_SLOT, .with_queued = purge_wanted };

    apply_to_found(order, &search, run, UP_WAIT_END);
}

/* Finds a task, else a group, else a slot; to purge, it must be a slot. */
static void order_one(struct order *order, bool purge_wanted, order_fn *run)
{
    struct search search = { .target = TARGET_TASK };
    struct up *up = order->up;
    bool is_stop = run == det_tasks_remove;
    int is_slot = up_slot_exists(up, order->name), there;

    if (is_slot < 0) {
        fail_order(order, is_slot);
        return;
    }
    if (!purge_wanted && order_known(order, is_stop))
        return;
    there = purge_wanted ? 0 : has_task(order);
    if (there < 0)
        return;
    if (there) {
        apply_to_found(order, &search, run, UP_WAIT_END);
    } else if (!purge_wanted && up_find_group(up_project(up), order->name)) {
        search.target = TARGET_GROUP;
        if (is_stop)
            stop_group(order);
        else
            apply_to_found(order, &search, run, UP_WAIT_END);
    } else if (is_slot) {
        order_slot(order, purge_wanted || !is_stop, run);
    } else if (up_find_task(up_project(up), order->name) >= 0) {
        up_answer_done(order->request, 0);
    } else {
        fail_unknown_name(order, true);
    }
}

void up_give_order(struct up *up, struct up_request *request, const struct up_order *given)
{
    struct order order = {
        .up = up, .request = request, .name = given->name, .waits = given->waits
    };

    det_assert(given->name || (given->kind != UP_ORDER_RESTART && !given->purges));
    if (!given->name) {
        order_all(&order, given->kind == UP_ORDER_DRAIN);
        return;
    }
    switch (given->kind) {
    case UP_ORDER_RESTART:
        restart_one(&order);
        return;
    case UP_ORDER_STOP:
        order_one(&order, given->purges, det_tasks_remove);
        return;
    case UP_ORDER_DRAIN:
        /* A running attempt finishes; a waiting task ends at once. */
        order_one(&order, false, det_tasks_drain);
        return;
    }
}
