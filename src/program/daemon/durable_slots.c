/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_slots.c - slots with their queue in the store. A submission is stored as {"run": [...],
 * "folder": ..., "retries": n, "timeout_ns": n}, and runs in its turn, in this detent or a later
 * one. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/machines.h"
#include "daemon/slots_internal.h"
#include "os/pool.h"
#include "task/durable.h"
#include "json/object.h"

/* The stored job. */

void up_write_durable_body(struct det_json_writer *json, const struct up_durable_body *body)
{
    det_json_open(json, NULL, '{');
    det_json_open(json, "run", '[');
    for (const char *const *word = body->argv; *word; word++)
        det_json_text(json, NULL, *word);
    det_json_close(json, ']');
    det_json_text(json, "folder", body->folder);
    det_json_number(json, "retries", body->retries);
    det_json_signed(json, "timeout_ns", body->timeout);
    det_json_close(json, '}');
}

static int read_argv(
    struct det_arena *arena, const struct det_json_value *run, const char *const **ret)
{
    size_t count = 0;
    const char **argv;

    if (!det_json_is(run, DET_JSON_ARRAY) || run->count == 0)
        return DET_ERR_MALFORMED;
    argv = det_arena_array(arena, (size_t)run->count + 1, sizeof *argv);
    if (!argv)
        return DET_ERR_NO_MEMORY;
    DET_JSON_EACH (word, run) {
        argv[count] = det_json_value_text(word);
        if (!argv[count++])
            return DET_ERR_MALFORMED;
    }
    det_assert(count == run->count);
    argv[count] = NULL;
    *ret = argv;
    return 0;
}

int up_read_durable_body(struct det_arena *arena, struct det_view text, struct up_durable_body *ret)
{
    const struct det_json_value *root = NULL;
    uint64_t retries;
    int r = det_json_read(arena, text, &root, NULL);

    if (r < 0)
        return r == DET_ERR_NO_MEMORY ? r : DET_ERR_MALFORMED;
    retries = det_json_get_number(root, "retries");
    ret->folder = det_json_get_text(root, "folder");
    ret->retries = retries < DET_RETRIES_UNLIMITED ? (uint32_t)retries : DET_RETRIES_UNLIMITED;
    ret->timeout = det_json_get_signed(root, "timeout_ns");
    return read_argv(arena, det_json_get(root, "run"), &ret->argv);
}

/* Input of the task of a job. Its process is killed with detent: a later detent runs the job again,
 * and two must not run at the same time. */
struct made {
    struct det_arena arena;
    struct up_durable_body body;
    struct det_process_spec process;
};

static void made_close(void *user, void *handle)
{
    struct made *made = handle;

    det_arena_deinit(&made->arena);
    DET_DELETE(up_allocator(user), made);
}

/* The job of a task, passed from the thread that adds the task to the loop, which reports its
 * start. */
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

static struct beginning *find_beginning(const struct up *up, const char *task)
{
    DET_LIST_EACH(node, &up_slots(up)->beginning)
    {
        if (strcmp(beginning_at(node)->task, task) == 0)
            return beginning_at(node);
    }
    return NULL;
}

static void drop_beginning(struct beginning *beginning)
{
    det_list_remove(&beginning->all);
    DET_DELETE(up_allocator(beginning->up), beginning);
}

static void keep_beginning(void *argument)
{
    struct beginning *beginning = argument;
    struct beginning *before = find_beginning(beginning->up, beginning->task);

    det_assert(before != beginning && det_loop_is_mine(up_loop(beginning->up)));
    if (before)
        drop_beginning(before);
    det_list_append(&up_slots(beginning->up)->beginning, &beginning->all);
}

/* Posted before the task is added, so the loop knows the job first. Out of memory, the start is
 * reported without its job. */
static void post_beginning(
    struct up *up, const struct det_durable_job *job, const struct det_task_spec *spec)
{
    struct beginning *beginning = DET_NEW(up_allocator(up), struct beginning);

    if (!beginning)
        return;
    beginning->post = (struct det_post){ .run = keep_beginning, .argument = beginning };
    beginning->up = up;
    beginning->attempt = job->attempt;
    snprintf(beginning->task, sizeof beginning->task, "%s", spec->name);
    snprintf(beginning->job, sizeof beginning->job, "%s", job->id);
    up_post(up, &beginning->post);
}

const char *up_durable_take_job(struct up *up, const char *task, char *target, size_t size)
{
    struct beginning *beginning = up_slots(up) ? find_beginning(up, task) : NULL;
    char attempt[32] = "";

    if (!beginning)
        return NULL;
    if (beginning->attempt > 1)
        snprintf(attempt, sizeof attempt, ", attempt %u", (unsigned)beginning->attempt);
    snprintf(target, size, "%s%s", beginning->job, attempt);
    drop_beginning(beginning);
    return target;
}

static int prepare_task(
    void *user, const struct det_durable_job *job, struct det_task_spec *spec, void **ret_handle,
    struct det_error *reterr)
{
    struct up *up = user;
    struct made *made = DET_NEW(up_allocator(up), struct made);
    int r;

    if (!made)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_arena_init(&made->arena, up_allocator(up));
    r = up_read_durable_body(&made->arena, det_view_of(job->body, job->size), &made->body);
    if (r < 0) {
        made_close(up, made);
        return det_error_set(reterr, r, "the stored job cannot be read");
    }
    made->process = *spec->process;
    made->process.argv = made->body.argv;
    made->process.folder = made->body.folder;
    spec->process = &made->process;
    spec->policy.retries_max = made->body.retries;
    spec->policy.restart = made->body.retries ? DET_RESTART_ON_FAILURE : DET_RESTART_NEVER;
    spec->policy.timeout = made->body.timeout ? made->body.timeout : DET_NO_TIMEOUT;
    *ret_handle = made;
    post_beginning(up, job, spec);
    return 0;
}

/* Opening. */

/* Uses the store of workers or machines if it is open; else opens the same store. */
static int open_store(struct up *up, struct up_slots *slots, struct det_error *reterr)
{
    const struct det_store_options options = { .allocator = up_allocator(up) };
    const char *address;

    slots->store = up_common_store(up);
    if (slots->store)
        return 0;
    address = up_store_address(up);
    if (!address)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    slots->has_own_store = true;
    return cli_store_open_in_turn(up_cli(up), address, &options, &slots->store, reterr);
}

/* Returns the job of a schedule in the form that `detent submit` stores; NULL: out of memory. */
static const char *write_body(struct det_arena *arena, const struct config_job *job)
{
    const char *text = NULL;
    struct det_json_writer json;

    det_json_writer_init(&json, arena->allocator);
    up_write_durable_body(
        &json, &(struct up_durable_body){ .argv = job->argv,
                                          .folder = job->folder,
                                          .retries = job->retries,
                                          .timeout = job->timeout });
    if (det_buffer_status(&json.text) == 0)
        text = det_arena_copy(arena, det_buffer_text(&json.text));
    det_json_writer_deinit(&json);
    return text;
}

static int open_schedules(struct det_arena *arena, struct up_durable *durable)
{
    const struct config_slot *slot = durable->slot;

    if (!slot->job_count)
        return 0;
    durable->schedules = det_arena_array(arena, slot->job_count, sizeof *durable->schedules);
    if (!durable->schedules)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < slot->job_count; i++) {
        const char *body = write_body(arena, &slot->jobs[i]);

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

static int open_durable(struct up *up, struct up_durable *durable, struct det_error *reterr)
{
    struct up_slots *slots = up_slots(up);

    if (open_schedules(&slots->arena, durable) < 0)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    durable->process = (struct det_process_spec){ .environment = (const char *const *)environ,
                                                  .ends_with_us = true };
    durable->spec = (struct det_task_spec){ .process = &durable->process };
    durable->work = (struct det_durable_work){ .name = durable->slot->name,
                                               .spec = &durable->spec,
                                               .prepare = prepare_task,
                                               .finish = made_close,
                                               .user = up };
    return det_durable_open(
        &(struct det_durable_options){ .tasks = up_tasks_supervisor(up),
                                       .store = slots->store,
                                       .queue = durable->slot->name,
                                       .width = durable->slot->options.width,
                                       .works = &durable->work,
                                       .work_count = 1,
                                       .schedules = durable->schedules,
                                       .schedule_count = durable->slot->job_count },
        &durable->queue, reterr);
}

static int open_durables(struct up *up, size_t count, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    struct up_slots *slots = up_slots(up);
    int r = open_store(up, slots, reterr);

    if (r < 0)
        return r;
    slots->durables = det_arena_array(&slots->arena, count, sizeof *slots->durables);
    if (!slots->durables)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = det_pool_open(up_cli(up)->world, up_allocator(up), 1, &slots->pool);
    if (r < 0)
        return det_error_set(reterr, r, "durable slots: %s", det_error_text(r));
    for (size_t i = 0; r == 0 && i < config->slot_count; i++) {
        struct up_durable *durable = &slots->durables[slots->durable_count];

        if (!config->slots[i].is_durable)
            continue;
        det_assert(slots->durable_count < count);
        *durable = (struct up_durable){ .slot = &config->slots[i] };
        slots->durable_count++;
        r = open_durable(up, durable, reterr);
    }
    return r;
}

int up_slots_open(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    struct up_slots *slots = DET_NEW(up_allocator(up), struct up_slots);
    size_t count = 0;

    det_assert(!up_slots(up));
    if (!slots)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_arena_init(&slots->arena, up_allocator(up));
    det_list_init(&slots->beginning);
    det_list_init(&slots->resting);
    up_set_slots(up, slots);
    for (size_t i = 0; i < config->slot_count; i++)
        count += config->slots[i].is_durable != 0;
    return count ? open_durables(up, count, reterr) : 0;
}

void up_slots_drain(struct up *up)
{
    const struct up_slots *slots = up_slots(up);

    for (size_t i = 0; slots && i < slots->durable_count; i++)
        det_durable_stop(slots->durables[i].queue);
    up_check_again(up);
}

static void close_durables(struct up *up, struct up_slots *slots)
{
    struct det_pool *pool = slots->pool;

    slots->pool = NULL;
    if (pool) {
        det_pool_close(pool);
        /* Its answers are posted by now. */
        (void)det_loop_turn(up_loop(up), 0);
        up_jobs_close(up);
    }
    for (size_t i = 0; i < slots->durable_count; i++)
        det_durable_close(slots->durables[i].queue);
    /* Jobs whose task was never added. */
    if (slots->durable_count)
        (void)det_loop_turn(up_loop(up), 0);
    while (!det_list_is_empty(&slots->beginning))
        drop_beginning(beginning_at(slots->beginning.next));
    if (slots->has_own_store)
        det_store_close(slots->store);
}

void up_slots_close(struct up *up)
{
    struct up_slots *slots = up_slots(up);

    if (!slots)
        return;
    close_durables(up, slots);
    det_assert(!slots->pool && det_list_is_empty(&slots->resting));
    up_set_slots(up, NULL);
    det_arena_deinit(&slots->arena);
    DET_DELETE(up_allocator(up), slots);
}

/* Public functions. */

size_t up_durable_count(const struct up *up)
{
    return up_slots(up) ? up_slots(up)->durable_count : 0;
}

struct det_store *up_slots_store(const struct up *up)
{
    return up_slots(up) ? up_slots(up)->store : NULL;
}

struct det_durable *up_durable_find(const struct up *up, const char *slot)
{
    const struct up_slots *slots = up_slots(up);

    for (size_t i = 0; slots && slot && i < slots->durable_count; i++) {
        if (strcmp(slots->durables[i].slot->name, slot) == 0)
            return slots->durables[i].queue;
    }
    return NULL;
}
