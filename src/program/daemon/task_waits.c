/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_waits.c - calls that are answered when something has happened to tasks.
 *
 *     open --arm, and what it waits for has happened--> answered, freed
 *         \--the client went away---------------------> freed */
#include <string.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/task_json.h"

struct up_wait {
    struct det_list node;
    struct up *up;
    struct socket_call *call;
    enum up_wait_kind kind;
    struct up_ids left; /* those it still waits for */
    char group[DET_TASK_NAME_MAX + 1];
    bool is_armed, has_happened;
    size_t count;
    json_t *end;   /* of a job */
    json_t *early; /* ends from before the id of the job was known */
};

int up_ids_add(struct up *up, struct up_ids *ids, det_task_id id)
{
    const struct det_allocator *allocator = up->cli->allocator;
    size_t capacity = ids->capacity ? 2 * ids->capacity : 8;
    det_task_id *items;

    if (ids->count == ids->capacity) {
        items = det_realloc(
            allocator, ids->items, ids->capacity * sizeof *items, capacity * sizeof *items);
        if (!items)
            return DET_ERR_NO_MEMORY;
        ids->items = items;
        ids->capacity = capacity;
    }
    ids->items[ids->count++] = id;
    return 0;
}

void up_ids_deinit(struct up *up, struct up_ids *ids)
{
    if (ids->items)
        DET_DELETE_ARRAY(up->cli->allocator, ids->items, ids->capacity);
    *ids = (struct up_ids){ 0 };
}

static void free_wait(struct up_wait *wait)
{
    det_list_remove(&wait->node);
    up_ids_deinit(wait->up, &wait->left);
    json_decref(wait->end);
    json_decref(wait->early);
    DET_DELETE(wait->up->cli->allocator, wait);
}

static void on_gone(void *user)
{
    free_wait(user);
}

static void answer(struct up_wait *wait)
{
    if (wait->kind == UP_WAIT_JOB) {
        (void)socket_call_send(wait->call, json_incref(wait->end));
        socket_call_end(wait->call);
    } else {
        socket_call_answer(
            wait->call, json_pack("{s:s, s:I}", "kind", "done", "count", (json_int_t)wait->count));
    }
    free_wait(wait);
}

static struct up_wait *fail(struct up_wait *wait, struct up *up, struct socket_call *call)
{
    if (wait) {
        up_ids_deinit(up, &wait->left);
        DET_DELETE(up->cli->allocator, wait);
    }
    socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    return NULL;
}

struct up_wait *up_wait_open(
    struct up *up, struct socket_call *call, enum up_wait_kind kind, const struct up_ids *ids,
    const char *name)
{
    struct up_wait *wait = DET_NEW(up->cli->allocator, struct up_wait);

    if (!wait)
        return fail(wait, up, call);
    wait->up = up;
    wait->call = call;
    wait->kind = kind;
    for (size_t i = 0; ids && i < ids->count; i++) {
        if (up_ids_add(up, &wait->left, ids->items[i]) < 0)
            return fail(wait, up, call);
    }
    if (name)
        (void)snprintf(wait->group, sizeof wait->group, "%s", name);
    det_list_init(&wait->node);
    det_list_append(&up->waits, &wait->node);
    socket_call_keep(call, on_gone, wait);
    return wait;
}

static bool waits_for_ids(const struct up_wait *wait)
{
    return wait->kind == UP_WAIT_START || wait->kind == UP_WAIT_STOP || wait->kind == UP_WAIT_END;
}

void up_wait_arm(struct up_wait *wait, size_t count)
{
    wait->is_armed = true;
    wait->count = count;
    if (wait->has_happened || (waits_for_ids(wait) && wait->left.count == 0))
        answer(wait);
}

/* What it waits for is there: it is answered, or will be when it is armed. */
static void happen(struct up_wait *wait)
{
    wait->has_happened = true;
    if (wait->is_armed)
        answer(wait);
}

/* Whether the id was one of them. */
static bool take_id(struct up_wait *wait, det_task_id id)
{
    struct up_ids *left = &wait->left;

    for (size_t i = 0; i < left->count; i++) {
        if (left->items[i] == id) {
            left->items[i] = left->items[--left->count];
            return true;
        }
    }
    return false;
}

/* Calls `run` for each wait; it may free the one it is given. */
static void each_wait(
    struct up *up, void (*run)(struct up_wait *wait, const void *user), const void *user)
{
    struct det_list *next;

    for (struct det_list *node = up->waits.next; node != &up->waits; node = next) {
        next = node->next;
        run(DET_CONTAINER(node, struct up_wait, node), user);
    }
}

static void see_start(struct up_wait *wait, const void *user)
{
    if (wait->kind == UP_WAIT_START && take_id(wait, *(const det_task_id *)user) &&
        wait->left.count == 0)
        happen(wait);
}

void up_waits_started(struct up *up, det_task_id id)
{
    each_wait(up, see_start, &id);
}

void up_wait_arm_job(struct up_wait *wait, det_task_id id)
{
    size_t count = json_array_size(wait->early);

    wait->is_armed = true;
    for (size_t i = 0; i < count; i++) {
        json_t *end = json_array_get(wait->early, i);

        if ((det_task_id)json_integer_value(json_object_get(end, "id")) != id)
            continue;
        wait->end = json_incref(end);
        answer(wait);
        return;
    }
    if (up_ids_add(wait->up, &wait->left, id) == 0)
        return;
    socket_call_fail(wait->call, DET_ERR_NO_MEMORY, "there is no memory left");
    free_wait(wait);
}

void up_wait_cancel(struct up_wait *wait)
{
    free_wait(wait);
}

static void see_end(struct up_wait *wait, const void *user)
{
    const struct det_task_end *end = user;

    if (wait->kind == UP_WAIT_JOB && !wait->is_armed) {
        wait->early = wait->early ? wait->early : json_array();
        (void)json_array_append_new(wait->early, up_json_end(end));
    }
    if (!take_id(wait, end->id) || wait->left.count > 0)
        return;
    if (wait->kind == UP_WAIT_JOB)
        wait->end = up_json_end(end);
    happen(wait);
}

static void see_stop(struct up_wait *wait, const void *user)
{
    if (wait->kind == UP_WAIT_STOP && take_id(wait, *(const det_task_id *)user) &&
        wait->left.count == 0)
        happen(wait);
}

void up_waits_stopped(struct up *up, det_task_id id)
{
    each_wait(up, see_stop, &id);
}

void up_waits_ended(struct up *up, const struct det_task_end *end)
{
    each_wait(up, see_end, end);
}

static void see_group(struct up_wait *wait, const void *user)
{
    if (wait->kind == UP_WAIT_GROUP && strcmp(wait->group, user) == 0)
        happen(wait);
}

void up_waits_group_stopped(struct up *up, const char *group)
{
    each_wait(up, see_group, group);
}

static void see_over(struct up_wait *wait, const void *user)
{
    (void)user;
    if (wait->kind == UP_WAIT_ALL)
        answer(wait);
}

void up_waits_over(struct up *up)
{
    if (up->state == UP_OVER)
        each_wait(up, see_over, NULL);
}
