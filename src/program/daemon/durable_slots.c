/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_slots.c - slots whose queue is in the store: what is submitted to them is kept as it was
 * given, {"run": [...], "folder": ...}, and run when its turn has come, in this detent or in the
 * next one. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/memory.h"
#include "daemon/machines.h"
#include "task/durable.h"

/* What a job of a durable slot is made from. Its process dies with us: else the next detent, which
 * runs it again, would run it twice at the same time. */
struct made {
    json_t *body;
    const char **argv;
    size_t argv_size;
    struct det_process_spec process;
};

static void made_close(void *user, void *handle)
{
    struct up *up = user;
    struct made *made = handle;

    json_decref(made->body);
    if (made->argv)
        DET_DELETE_ARRAY(up->cli->allocator, made->argv, made->argv_size);
    DET_DELETE(up->cli->allocator, made);
}

static int read_argv(struct up *up, struct made *made)
{
    json_t *run = json_object_get(made->body, "run");
    size_t count = json_array_size(run);

    made->argv_size = count + 1;
    made->argv = DET_NEW_ARRAY(up->cli->allocator, made->argv_size, const char *);
    if (!made->argv)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        made->argv[i] = json_string_value(json_array_get(run, i));
        if (!made->argv[i])
            return DET_ERR_MALFORMED;
    }
    return count ? 0 : DET_ERR_MALFORMED;
}

/* Which job a task does, from the thread that adds it to the loop that tells its start. */
struct beginning {
    struct det_post post;
    struct det_list all;
    struct up *up;
    char task[DET_TASK_NAME_MAX + 1], job[DET_ID_MAX + 1];
    uint32_t attempt;
};

static struct beginning *beginning_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct beginning, all);
}

static struct beginning *find_beginning(struct up *up, const char *task)
{
    DET_LIST_EACH(node, &up->beginning)
    {
        if (strcmp(beginning_at(node)->task, task) == 0)
            return beginning_at(node);
    }
    return NULL;
}

static void drop_beginning(struct beginning *beginning)
{
    det_list_remove(&beginning->all);
    DET_DELETE(beginning->up->cli->allocator, beginning);
}

static void keep_beginning(void *argument)
{
    struct beginning *beginning = argument;
    struct beginning *before = find_beginning(beginning->up, beginning->task);

    if (before)
        drop_beginning(before);
    det_list_append(&beginning->up->beginning, &beginning->all);
}

/* Before the task is added, so that it is known on the loop before that is. Without memory the
 * start is told without it. */
static void post_beginning(
    struct up *up, const struct det_durable_job *job, const struct det_task_spec *spec)
{
    struct beginning *beginning = DET_NEW(up->cli->allocator, struct beginning);

    if (!beginning)
        return;
    beginning->post = (struct det_post){ .run = keep_beginning, .argument = beginning };
    beginning->up = up;
    beginning->attempt = job->attempt;
    snprintf(beginning->task, sizeof beginning->task, "%s", spec->name);
    snprintf(beginning->job, sizeof beginning->job, "%s", job->id);
    det_loop_post(up->loop, &beginning->post);
}

const char *up_durable_take_job(struct up *up, const char *task, char *target, size_t size)
{
    struct beginning *beginning = up->durable_count ? find_beginning(up, task) : NULL;
    char attempt[32] = "";

    if (!beginning)
        return NULL;
    if (beginning->attempt > 1)
        snprintf(attempt, sizeof attempt, ", attempt %u", (unsigned)beginning->attempt);
    snprintf(target, size, "%s%s", beginning->job, attempt);
    drop_beginning(beginning);
    return target;
}

static int prepare(
    void *user, const struct det_durable_job *job, struct det_task_spec *spec, void **ret_handle,
    struct det_error *reterr)
{
    struct up *up = user;
    struct made *made = DET_NEW(up->cli->allocator, struct made);
    int r;

    if (!made)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    made->body = json_loadb(job->body, job->size, 0, NULL);
    r = made->body ? read_argv(up, made) : DET_ERR_MALFORMED;
    if (r < 0) {
        made_close(up, made);
        return det_error_set(reterr, r, "what was submitted cannot be read");
    }
    made->process = *spec->process;
    made->process.argv = made->argv;
    made->process.folder = json_string_value(json_object_get(made->body, "folder"));
    spec->process = &made->process;
    spec->policy.retries_max = (uint32_t)json_integer_value(json_object_get(made->body, "retries"));
    spec->policy.restart = spec->policy.retries_max ? DET_RESTART_ON_FAILURE : DET_RESTART_NEVER;
    spec->policy.timeout = json_integer_value(json_object_get(made->body, "timeout_ns"));
    if (!spec->policy.timeout)
        spec->policy.timeout = DET_NO_TIMEOUT;
    *ret_handle = made;
    post_beginning(up, job, spec);
    return 0;
}

/* That of the machines, if they are served; else as they would open it. */
static int open_store(struct up *up, struct det_error *reterr)
{
    const struct det_store_options options = { .allocator = up->cli->allocator };
    const char *address;

    if (up->shared || up->machines) {
        up->store = up->shared ? up->shared : up->machines->store;
        return 0;
    }
    address = up_store_address(up);
    if (!address)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    return cli_store_open_in_turn(up->cli, address, &options, &up->store, reterr);
}

json_t *up_durable_body(json_t *run_take, const char *folder, uint32_t retries, det_time timeout)
{
    return json_pack(
        "{s:o, s:s, s:I, s:I}", "run", run_take, "folder", folder, "retries", (json_int_t)retries,
        "timeout_ns", (json_int_t)timeout);
}

/* What `detent submit` would have given it. NULL: no memory. */
static char *body_of(const struct config_job *job)
{
    json_t *run = json_array(), *body;
    char *text;

    for (const char *const *word = job->argv; *word; word++)
        (void)json_array_append_new(run, json_string(*word));
    body = up_durable_body(run, job->folder, job->retries, job->timeout);
    text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

static int open_schedules(struct up *up, struct up_durable *durable)
{
    const struct config_slot *slot = durable->slot;

    if (!slot->job_count)
        return 0;
    durable->schedules =
        DET_NEW_ARRAY(up->cli->allocator, slot->job_count, struct det_durable_schedule);
    if (!durable->schedules)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < slot->job_count; i++) {
        char *body = body_of(&slot->jobs[i]);

        if (!body)
            return DET_ERR_NO_MEMORY;
        durable->schedules[i] = (struct det_durable_schedule){
            .name = slot->jobs[i].name,
            .schedule = slot->jobs[i].schedule,
            .work = slot->name,
            .body = body,
            .size = strlen(body),
        };
    }
    return 0;
}

static void close_slot(struct up *up, struct up_durable *durable)
{
    det_durable_close(durable->queue);
    if (!durable->schedules)
        return;
    for (size_t i = 0; i < durable->slot->job_count; i++)
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is ours; only schedules do not change it */
        free((void *)(uintptr_t)durable->schedules[i].body);
    DET_DELETE_ARRAY(up->cli->allocator, durable->schedules, durable->slot->job_count);
}

static int open_slot(struct up *up, struct up_durable *durable, struct det_error *reterr)
{
    if (open_schedules(up, durable) < 0)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    durable->process = (struct det_process_spec){ .environment = (const char *const *)environ,
                                                  .ends_with_us = true };
    durable->spec = (struct det_task_spec){ .process = &durable->process };
    durable->work = (struct det_durable_work){ .name = durable->slot->name,
                                               .spec = &durable->spec,
                                               .prepare = prepare,
                                               .finish = made_close,
                                               .user = up };
    return det_durable_open(
        &(struct det_durable_options){ .tasks = up->tasks,
                                       .store = up->store,
                                       .queue = durable->slot->name,
                                       .width = durable->slot->options.width,
                                       .works = &durable->work,
                                       .work_count = 1,
                                       .schedules = durable->schedules,
                                       .schedule_count = durable->slot->job_count },
        &durable->queue, reterr);
}

int up_durable_open(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    size_t count = 0;
    int r;

    for (size_t i = 0; i < config->slot_count; i++)
        count += config->slots[i].is_durable != 0;
    if (!count)
        return 0;
    r = open_store(up, reterr);
    if (r < 0)
        return r;
    up->durables = DET_NEW_ARRAY(up->cli->allocator, count, struct up_durable);
    if (!up->durables)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    up->durable_count = count;
    det_list_init(&up->beginning);
    det_list_init(&up->resting);
    r = det_pool_open(up->cli->world, up->cli->allocator, 1, &up->asks);
    if (r < 0)
        return det_error_set(reterr, r, "durable slots: %s", det_error_text(r));
    count = 0;
    for (size_t i = 0; r == 0 && i < config->slot_count; i++) {
        if (!config->slots[i].is_durable)
            continue;
        up->durables[count].slot = &config->slots[i];
        r = open_slot(up, &up->durables[count++], reterr);
    }
    return r;
}

void up_durable_drain(struct up *up)
{
    for (size_t i = 0; i < up->durable_count; i++)
        det_durable_stop(up->durables[i].queue);
    up->has_news = true;
}

void up_durable_close(struct up *up)
{
    struct det_pool *asks = up->asks;

    up->asks = NULL;
    if (asks) {
        det_pool_close(asks);
        /* Its answers were posted by now. */
        (void)det_loop_turn(up->loop, 0);
        up_jobs_over(up);
    }
    for (size_t i = 0; i < up->durable_count; i++)
        close_slot(up, &up->durables[i]);
    /* Those whose task was never added. */
    if (up->durable_count)
        (void)det_loop_turn(up->loop, 0);
    while (up->durable_count && !det_list_is_empty(&up->beginning))
        drop_beginning(beginning_at(up->beginning.next));
    if (up->durables)
        DET_DELETE_ARRAY(up->cli->allocator, up->durables, up->durable_count);
    if (!up->machines && !up->shared)
        det_store_close(up->store);
    up->store = NULL;
}

struct det_durable *up_durable_find(const struct up *up, const char *slot)
{
    for (size_t i = 0; slot && i < up->durable_count; i++) {
        if (strcmp(up->durables[i].slot->name, slot) == 0)
            return up->durables[i].queue;
    }
    return NULL;
}
