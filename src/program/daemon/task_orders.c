/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_orders.c - the verbs restart, stop and drain: for a task, a group, a slot, or for all. */
#include <string.h>

#include "base/text.h"
#include "daemon/verbs.h"

#define NEAR_MAX 512

/* Whom an order is about. */
enum target { TARGET_TASK, TARGET_GROUP, TARGET_SLOT };

struct search {
    struct up *up;
    const char *name;
    enum target target;
    bool is_all, with_queued;
    bool is_without_attempt; /* only those of which none runs that was not told to end */
    bool is_without_held;    /* only those that are not held */
    struct up_ids ids;
};

/* What to do with one task: 1, or 0: nothing to do, or an error. */
typedef int order_fn(struct det_tasks *tasks, det_task_id id);

static bool is_meant(const struct search *search, const struct det_task_info *info)
{
    if (search->is_all)
        return true;
    switch (search->target) {
    case TARGET_TASK:
        return strcmp(info->name, search->name) == 0;
    case TARGET_GROUP:
        return up_is_in_group(search->up, info->group, search->name);
    case TARGET_SLOT:
        return info->slot && strcmp(info->slot, search->name) == 0 &&
               (search->with_queued || strcmp(info->state, "queued") != 0);
    }
    return false;
}

static int collect(void *user, const struct det_task_info *info)
{
    struct search *search = user;

    if (search->is_without_attempt && strcmp(info->state, "running") == 0)
        return 0;
    if (search->is_without_held && strcmp(info->state, "held") == 0)
        return 0;
    return is_meant(search, info) ? up_ids_add(search->up, &search->ids, info->id) : 0;
}

static int search_ids(struct search *search)
{
    return det_tasks_each(search->up->tasks, collect, search);
}

/* Which names there are, for those that are not. */

struct names {
    const char *wanted;
    bool is_found;
};

static int see_slot(void *user, const struct det_slot_info *info)
{
    struct names *names = user;

    names->is_found = names->is_found || strcmp(info->name, names->wanted) == 0;
    return 0;
}

int up_is_slot(struct up *up, const char *name)
{
    struct names names = { .wanted = name };
    int r = det_slots_each(up->tasks, see_slot, &names);

    return r < 0 ? r : names.is_found;
}

static void fail_name(struct up *up, struct socket_call *call, const char *name, bool has_slots)
{
    const struct config *config = &up->file.config;
    const char *names[NEAR_MAX];
    size_t count = 0;
    int nearest;

    for (size_t i = 0; i < config->task_count && count < NEAR_MAX; i++)
        names[count++] = config->tasks[i].spec.name;
    for (size_t i = 0; i < config->group_count && count < NEAR_MAX; i++)
        names[count++] = config->groups[i].spec.name;
    for (size_t i = 0; has_slots && i < config->slot_count && count < NEAR_MAX; i++)
        names[count++] = config->slots[i].name;
    nearest = det_text_nearest(name, names, count);
    socket_call_fail(
        call, DET_ERR_NOT_FOUND, "there is no task%s '%s'%s%s%s",
        has_slots ? ", group or slot" : " or group", name, nearest >= 0 ? "; did you mean '" : "",
        nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "'?" : "");
}

static void answer_done(struct socket_call *call, size_t count)
{
    socket_call_answer(call, json_pack("{s:s, s:I}", "kind", "done", "count", (json_int_t)count));
}

/* The orders, one after the other; those that had an effect are counted. */
static size_t give(struct up *up, const struct up_ids *ids, order_fn *order)
{
    size_t count = 0;

    for (size_t i = 0; i < ids->count; i++)
        count += order(up->tasks, ids->items[i]) == 1;
    return count;
}

struct order {
    struct up *up;
    struct socket_call *call;
    const char *name;
    bool shall_wait;
};

/* Finds those that are meant, gives the order and answers, now or when it has happened. */
static void give_to(
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
        socket_call_fail(order->call, r, "%s", det_error_text(r));
    if (r == 0 && order->shall_wait)
        wait = up_wait_open(up, order->call, kind, &search->ids, NULL);
    if (r == 0 && (wait || !order->shall_wait)) {
        count = give(up, &search->ids, run);
        if (wait)
            up_wait_arm(wait, count);
        else
            answer_done(order->call, count);
    }
    up_ids_deinit(up, &search->ids);
}

static const struct up_argument order_arguments[] = { { "name", UP_TEXT },
                                                      { "wait", UP_BOOLEAN },
                                                      { NULL, UP_TEXT } };

static struct order order_of(
    struct up *up, const struct socket_request *request, struct socket_call *call)
{
    return (struct order){
        .up = up,
        .call = call,
        .name = up_argument_text(request, "name"),
        .shall_wait = up_argument_is_set(request, "wait"),
    };
}

/* All. */

static int drain_each(struct up *up, size_t *ret)
{
    struct search search = { .up = up, .is_all = true };
    int r;

    for (size_t i = 0; i < up->file.config.task_count; i++)
        *ret += up_known_forget(up, i);
    r = search_ids(&search);
    if (r == 0)
        *ret += give(up, &search.ids, det_tasks_drain);
    up_ids_deinit(up, &search.ids);
    return r;
}

int up_drain_all(struct up *up)
{
    size_t count = 0;
    int r = drain_each(up, &count);

    return r < 0 ? r : (int)count;
}

/* The answer of those who wait comes when the run is over, so they are kept before it begins. */
static void order_all(struct order *order, bool shall_drain)
{
    struct up *up = order->up;
    struct det_tasks_counts counts = det_tasks_counts(up->tasks);
    struct up_wait *wait = NULL;
    int count = (int)(counts.registered + counts.queued);

    if (order->shall_wait) {
        wait = up_wait_open(up, order->call, UP_WAIT_ALL, NULL, NULL);
        if (!wait)
            return;
    }
    if (shall_drain)
        count = up_drain(up);
    else if (up->state < UP_STOPPING)
        up_stop(up, "asked to stop");
    if (count < 0) {
        if (wait)
            up_wait_cancel(wait);
        socket_call_fail(order->call, count, "%s", det_error_text(count));
    } else if (wait) {
        up_wait_arm(wait, (size_t)count);
    } else {
        answer_done(order->call, (size_t)count);
    }
}

/* Groups. */

static int see_group(void *user, const struct det_task_group_info *info)
{
    struct names *names = user;

    if (strcmp(info->name, names->wanted) == 0)
        names->is_found = strcmp(info->state, "stopped") == 0 || strcmp(info->state, "failed") == 0;
    return 0;
}

/* Whether nothing of the group runs, so that no stop of it will be told. */
static bool is_at_rest(struct up *up, const char *group)
{
    struct names names = { .wanted = group };
    int r = det_tasks_each_group(up->tasks, see_group, &names);

    return r == 0 && names.is_found;
}

static void stop_group(struct order *order)
{
    struct up *up = order->up;
    struct search search = { .up = up, .name = order->name, .target = TARGET_GROUP };
    struct up_wait *wait = NULL;
    size_t count;
    int r;

    if (is_at_rest(up, order->name)) {
        answer_done(order->call, 0);
        return;
    }
    r = search_ids(&search);
    count = search.ids.count;
    up_ids_deinit(up, &search.ids);
    if (order->shall_wait && r == 0) {
        wait = up_wait_open(up, order->call, UP_WAIT_GROUP, NULL, order->name);
        if (!wait)
            return;
    }
    if (r == 0)
        r = det_tasks_group_cancel(up->tasks, order->name);
    if (wait)
        up_wait_arm(wait, count);
    else if (r < 0)
        socket_call_fail(order->call, r, "%s", det_error_text(r));
    else
        answer_done(order->call, count);
}

/* Tasks of the file. */

/* Keeps the call until all that are meant have done what they were told. */
static void wait_for(
    struct order *order, struct search *search, enum up_wait_kind kind, size_t count)
{
    struct up_wait *wait = NULL;
    int r = search_ids(search);

    if (r < 0)
        socket_call_fail(order->call, r, "%s", det_error_text(r));
    else
        wait = up_wait_open(order->up, order->call, kind, &search->ids, NULL);
    up_ids_deinit(order->up, &search->ids);
    if (wait)
        up_wait_arm(wait, count);
}

/* A task of the file is kept in its place when it is stopped, unless a slot is to be free of it. */
static void hold_task(struct order *order, const struct up_known *known)
{
    struct search search = { .up = order->up, .name = order->name, .target = TARGET_TASK };
    int count = det_tasks_hold(order->up->tasks, known->id);

    order->up->has_news = true;
    search.is_without_held = true;
    if (order->shall_wait)
        wait_for(order, &search, UP_WAIT_STOP, count == 1);
    else
        answer_done(order->call, count == 1);
}

/* Whether that was an order for a task of the file, and is answered. */
static bool order_known(struct order *order, bool is_stop)
{
    int index = up_find_task(order->up, order->name);
    const struct up_known *known = index < 0 ? NULL : &order->up->known[index];

    if (!known)
        return false;
    if (known->is_pending) {
        answer_done(order->call, up_known_forget(order->up, (size_t)index));
        return true;
    }
    if (!is_stop || known->id == 0 || order->up->file.config.tasks[index].slot)
        return false;
    hold_task(order, known);
    return true;
}

/* The verbs. */

/* Whether what the order names runs, waits or is queued: 1, 0, or an error, which was answered. */
static int is_there(struct order *order)
{
    struct search search = { .up = order->up, .name = order->name, .target = TARGET_TASK };
    int r = search_ids(&search);
    bool is_there = search.ids.count > 0;

    up_ids_deinit(order->up, &search.ids);
    if (r < 0)
        socket_call_fail(order->call, r, "%s", det_error_text(r));
    return r < 0 ? r : is_there;
}

/* Tasks of the file that have ended begin their lives anew: the one of this name, or those of the
 * group. Returns how many, or an error. */
static int add_ended(struct order *order, struct det_error *reterr)
{
    const struct config *config = &order->up->file.config;
    int count = 0, r;

    /* In the order in which they were first added: what a task depends on before it. */
    for (size_t i = 0; i < config->task_count; i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);
        const struct det_task_spec *spec = &config->order[i]->spec;

        if ((strcmp(spec->name, order->name) != 0 &&
             !up_is_in_group(order->up, spec->group, order->name)) ||
            !order->up->is_selected[index] || order->up->known[index].is_pending ||
            order->up->known[index].id != 0)
            continue;
        r = up_add_one(order->up, index, reterr);
        if (r < 0)
            return r;
        count++;
    }
    return count;
}

/* Those that live are told to begin anew, and those that have ended are there again; whoever waits
 * is kept until all of them have begun. */
static void restart(struct order *order, enum target target)
{
    struct up *up = order->up;
    struct search search = { .up = up, .name = order->name, .target = target };
    struct det_error error = { 0 };
    size_t count;
    int added, r;

    r = search_ids(&search);
    count = r == 0 ? give(up, &search.ids, det_tasks_restart) : 0;
    up_ids_deinit(up, &search.ids);
    added = r < 0 ? r : up->state == UP_RUNNING ? add_ended(order, &error) : 0;
    if (added < 0) {
        socket_call_fail(
            order->call, added, "%s", *error.text ? error.text : det_error_text(added));
        return;
    }
    count += (size_t)added;
    if (!order->shall_wait) {
        answer_done(order->call, count);
        return;
    }
    search.is_without_attempt = true;
    wait_for(order, &search, UP_WAIT_START, count);
}

void up_run_restart(void *context, const struct socket_request *request, struct socket_call *call)
{
    struct order order = order_of(context, request, call);
    struct up *up = context;
    int there;

    if (!up_arguments_check(request, call, order_arguments))
        return;
    if (!order.name) {
        socket_call_fail(call, DET_ERR_INVALID, "'restart' needs the argument 'name'");
        return;
    }
    there = is_there(&order);
    if (there < 0)
        return;
    if (there || up_find_task(up, order.name) >= 0) {
        restart(&order, TARGET_TASK);
    } else if (up_find_group(up, order.name)) {
        (void)!det_tasks_group_start(up->tasks, order.name);
        restart(&order, TARGET_GROUP);
    } else {
        fail_name(up, call, order.name, false);
    }
}

/* The owners of a slot, and its queue too. */
static void order_slot(struct order *order, bool shall_purge, order_fn *run)
{
    struct search search = { .target = TARGET_SLOT, .with_queued = shall_purge };

    give_to(order, &search, run, UP_WAIT_END);
}

/* A task, or else a group, or else a slot; to purge, there must be a slot. */
static void order_one(struct order *order, bool shall_purge, order_fn *run)
{
    struct search search = { .target = TARGET_TASK };
    struct up *up = order->up;
    bool is_stop = run == det_tasks_remove;
    int is_slot = up_is_slot(up, order->name), there;

    if (is_slot < 0) {
        socket_call_fail(order->call, is_slot, "%s", det_error_text(is_slot));
        return;
    }
    if (!shall_purge && order_known(order, is_stop))
        return;
    there = shall_purge ? 0 : is_there(order);
    if (there < 0)
        return;
    if (there) {
        give_to(order, &search, run, UP_WAIT_END);
    } else if (!shall_purge && up_find_group(up, order->name)) {
        search.target = TARGET_GROUP;
        if (is_stop)
            stop_group(order);
        else
            give_to(order, &search, run, UP_WAIT_END);
    } else if (is_slot) {
        order_slot(order, shall_purge || !is_stop, run);
    } else if (up_find_task(up, order->name) >= 0) {
        answer_done(order->call, 0);
    } else {
        fail_name(up, order->call, order->name, true);
    }
}

void up_run_stop(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "name", UP_TEXT }, { "wait", UP_BOOLEAN }, { "purge", UP_BOOLEAN }, { NULL, UP_TEXT }
    };
    struct order order = order_of(context, request, call);
    bool shall_purge = up_argument_is_set(request, "purge");

    if (!up_arguments_check(request, call, table))
        return;
    if (order.name)
        order_one(&order, shall_purge, det_tasks_remove);
    else if (shall_purge)
        socket_call_fail(call, DET_ERR_INVALID, "'purge' needs the name of a slot");
    else
        order_all(&order, false);
}

/* An attempt that runs comes to its end; what waits ends at once. */
void up_run_drain(void *context, const struct socket_request *request, struct socket_call *call)
{
    struct order order = order_of(context, request, call);

    if (!up_arguments_check(request, call, order_arguments))
        return;
    if (order.name)
        order_one(&order, false, det_tasks_drain);
    else
        order_all(&order, true);
}
