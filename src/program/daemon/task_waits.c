/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_waits.c - requests that are answered after an event of tasks.
 *
 *     open --armed, and the event has happened--> answered, freed
 *         \--the client disconnects-------------> freed */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/task_json.h"
#include "daemon/tasks_internal.h"

struct up_wait {
    struct det_list node;
    struct up *up;
    struct up_request *request;
    enum up_wait_kind kind;
    struct up_ids left; /* tasks it still waits for */
    char group[DET_TASK_NAME_MAX + 1];
    bool is_armed, has_happened;
    size_t count;
    det_task_id job;         /* set when armed */
    struct det_task_end end; /* of a job; before its id is known, the end with the highest id */
};

int up_ids_add(struct up *up, struct up_ids *ids, det_task_id id)
{
    const struct det_allocator *allocator = up_allocator(up);
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
    det_assert(ids->count < ids->capacity);
    ids->items[ids->count++] = id;
    return 0;
}

void up_ids_deinit(struct up *up, struct up_ids *ids)
{
    if (ids->items)
        DET_DELETE_ARRAY(up_allocator(up), ids->items, ids->capacity);
    *ids = (struct up_ids){ 0 };
}

static bool waits_for_ids(const struct up_wait *wait)
{
    return wait->kind == UP_WAIT_START || wait->kind == UP_WAIT_STOP || wait->kind == UP_WAIT_END;
}

/* A wait that is armed and has happened was answered, and is gone. */
static void assert_wait(const struct up_wait *wait)
{
    det_assert(!wait->is_armed || !wait->has_happened);
    det_assert(!wait->job || (wait->kind == UP_WAIT_JOB && wait->is_armed));
    det_assert(waits_for_ids(wait) || wait->left.count == 0);
    det_assert(wait->left.count <= wait->left.capacity);
    det_assert((wait->kind == UP_WAIT_GROUP) == (wait->group[0] != '\0'));
}

static void free_wait(struct up_wait *wait)
{
    det_assert(!det_list_is_empty(&wait->node));
    det_list_remove(&wait->node);
    up_ids_deinit(wait->up, &wait->left);
    DET_DELETE(up_allocator(wait->up), wait);
}

static void on_gone(void *user)
{
    free_wait(user);
}

void up_answer_done(struct up_request *request, size_t count)
{
    det_json_open(request->json, NULL, '{');
    det_json_text(request->json, "kind", "done");
    det_json_number(request->json, "count", count);
    det_json_close(request->json, '}');
    up_request_end(request);
}

static void answer_end(struct up_request *request, const struct det_task_end *end)
{
    det_json_open(request->json, NULL, '{');
    up_write_end(request->json, end);
    det_json_close(request->json, '}');
    up_request_end(request);
}

static void answer_wait(struct up_wait *wait)
{
    if (wait->kind == UP_WAIT_JOB)
        answer_end(wait->request, &wait->end);
    else
        up_answer_done(wait->request, wait->count);
    free_wait(wait);
}

static struct up_wait *new_wait(struct up *up, enum up_wait_kind kind)
{
    struct up_wait *wait = DET_NEW(up_allocator(up), struct up_wait);

    if (!wait)
        return NULL;
    wait->up = up;
    wait->kind = kind;
    det_list_init(&wait->node);
    det_list_append(&up_tasks(up)->waits, &wait->node);
    return wait;
}

struct up_wait *up_wait_open(
    struct up *up, struct up_request *request, enum up_wait_kind kind, const struct up_ids *ids,
    const char *group)
{
    struct up_wait *wait = new_wait(up, kind);
    int r = wait ? 0 : DET_ERR_NO_MEMORY;

    for (size_t i = 0; r == 0 && ids && i < ids->count; i++)
        r = up_ids_add(up, &wait->left, ids->items[i]);
    if (r < 0) {
        if (wait)
            free_wait(wait);
        up_request_fail_memory(request);
        return NULL;
    }
    wait->request = request;
    (void)det_text_copy(wait->group, sizeof wait->group, group ? group : "");
    assert_wait(wait);
    up_request_keep(request, on_gone, wait);
    return wait;
}

void up_wait_arm(struct up_wait *wait, size_t count)
{
    det_assert(!wait->is_armed && wait->kind != UP_WAIT_JOB);
    wait->is_armed = true;
    wait->count = count;
    if (wait->has_happened || (waits_for_ids(wait) && wait->left.count == 0))
        answer_wait(wait);
}

/* The event has happened: answers, at once or when armed. */
static void complete_wait(struct up_wait *wait)
{
    assert_wait(wait);
    wait->has_happened = true;
    if (wait->is_armed)
        answer_wait(wait);
}

/* True if the id was one of them. */
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

/* Calls `run` for each wait, which it may free. */
static void each_wait(
    struct up *up, void (*run)(struct up_wait *wait, const void *user), const void *user)
{
    struct det_list *next;

    for (struct det_list *node = up_tasks(up)->waits.next; node != &up_tasks(up)->waits;
         node = next) {
        next = node->next;
        run(DET_CONTAINER(node, struct up_wait, node), user);
    }
}

static void see_start(struct up_wait *wait, const void *user)
{
    if (wait->kind == UP_WAIT_START && take_id(wait, *(const det_task_id *)user) &&
        wait->left.count == 0)
        complete_wait(wait);
}

void up_waits_started(struct up *up, det_task_id id)
{
    each_wait(up, see_start, &id);
}

void up_wait_arm_job(struct up_wait *wait, det_task_id id)
{
    det_assert(!wait->is_armed && wait->kind == UP_WAIT_JOB && id != 0);
    wait->is_armed = true;
    wait->job = id;
    if (wait->end.id == id)
        answer_wait(wait);
}

void up_wait_cancel(struct up_wait *wait)
{
    free_wait(wait);
}

/* While a job is admitted, jobs that it replaces end too; their ids are lower. */
static void see_job_end(struct up_wait *wait, const struct det_task_end *end)
{
    if (wait->is_armed ? end->id != wait->job : end->id < wait->end.id)
        return;
    wait->end = *end;
    if (wait->is_armed)
        answer_wait(wait);
}

static void see_end(struct up_wait *wait, const void *user)
{
    const struct det_task_end *end = user;

    if (wait->kind == UP_WAIT_JOB)
        see_job_end(wait, end);
    else if (take_id(wait, end->id) && wait->left.count == 0)
        complete_wait(wait);
}

static void see_stop(struct up_wait *wait, const void *user)
{
    if (wait->kind == UP_WAIT_STOP && take_id(wait, *(const det_task_id *)user) &&
        wait->left.count == 0)
        complete_wait(wait);
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
        complete_wait(wait);
}

void up_waits_group_stopped(struct up *up, const char *group)
{
    each_wait(up, see_group, group);
}

static void see_over(struct up_wait *wait, const void *user)
{
    (void)user;
    if (wait->kind == UP_WAIT_ALL)
        answer_wait(wait);
}

void up_waits_over(struct up *up)
{
    if (up_tasks(up) && up_is_over(up))
        each_wait(up, see_over, NULL);
}
