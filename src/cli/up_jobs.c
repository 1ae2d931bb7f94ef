/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_jobs.c - what can be asked of durable slots over the socket: a job for one, another try, a
 * cancel.
 *
 *     verb (loop) --> ask --pool--> the store, which may take its time --loop--> answer
 *
 * The pool has one thread, so that jobs get into the queue in the order in which they were
 * submitted. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/up_machines.h"
#include "cli/up_verbs.h"
#include "task/durable.h"

struct ask {
    struct det_job job;
    struct up *up;
    struct socket_call *call;            /* NULL: who asked went away */
    struct det_durable *queue;           /* NULL: it is not one of ours */
    struct det_arena arena;              /* of the texts */
    const char *body;                    /* of a job that is submitted; NULL: it is a change */
    struct det_job_change what;          /* slot and id are those of either */
    char running[DET_TASK_NAME_MAX + 1]; /* the task to be stopped; "": none */
    int result;
    struct det_error error;
};

/* On the pool. */

static int take_running(void *context, const struct det_job_row *row)
{
    struct ask *ask = context;

    if (row->state == DET_JOB_RUNNING)
        det_durable_task_name(row->task, row->key, ask->running);
    return 0;
}

static int change(struct ask *ask)
{
    const struct det_job_query query = { .queue = ask->what.queue, .id = ask->what.id, .limit = 1 };
    struct det_store *store = ask->up->store;
    int r;

    r = store->ops->jobs->change(store, &ask->what);
    if (r == 0 && ask->queue)
        det_durable_wake(ask->queue);
    if (r != DET_ERR_NOT_FOUND || ask->what.verb != DET_JOB_CANCEL)
        return r;
    r = store->ops->jobs->list(store, &query, take_running, ask);
    return r < 0 ? r : DET_ERR_NOT_FOUND;
}

static void run(void *argument)
{
    struct ask *ask = argument;

    if (!ask->body) {
        ask->result = change(ask);
        return;
    }
    ask->result = det_durable_submit(
        ask->queue,
        &(struct det_durable_submission){ .id = ask->what.id,
                                          .work = ask->what.queue,
                                          .body = ask->body,
                                          .size = strlen(ask->body) },
        NULL, &ask->error);
}

/* On the loop. */

static void free_ask(struct ask *ask)
{
    const struct det_allocator *allocator = ask->arena.allocator;

    det_arena_deinit(&ask->arena);
    DET_DELETE(allocator, ask);
}

/* One that runs here is stopped, and has then failed. */
static void stop_running(struct ask *ask)
{
    struct det_tasks *tasks = ask->up->tasks;
    det_task_id id = ask->running[0] ? det_tasks_find(tasks, ask->running) : 0;

    if (id && det_tasks_remove(tasks, id) >= 0)
        ask->result = 0;
}

static void answer(struct ask *ask)
{
    char why[UP_AWAY_TEXT];

    if (ask->job.is_dropped)
        socket_call_fail(ask->call, DET_ERR_CLOSED, "detent up stops; ask again when it is up");
    else if (ask->result < 0 && up_store_is_away(ask->up, why))
        socket_call_fail(ask->call, DET_ERR_IO, "the store cannot be reached: %s", why);
    else if (ask->result < 0)
        socket_call_fail(
            ask->call, ask->result, "%s",
            ask->error.text[0] ? ask->error.text : det_error_text(ask->result));
    else if (ask->body)
        socket_call_answer(
            ask->call,
            json_pack(
                "{s:s, s:I, s:s, s:b, s:b, s:I}", "kind", "submitted", "id", (json_int_t)0, "name",
                ask->what.id, "durable", 1, "started", 0, "depth", (json_int_t)0));
    else
        socket_call_answer(ask->call, json_pack("{s:s}", "kind", "changed"));
}

static void done(void *argument)
{
    struct ask *ask = argument;

    stop_running(ask);
    if (ask->call)
        answer(ask);
    free_ask(ask);
}

static void on_gone(void *user)
{
    struct ask *ask = user;

    ask->call = NULL;
}

static bool keep_text(struct ask *ask, const char **text)
{
    if (*text)
        *text = det_arena_copy(&ask->arena, *text);
    return *text != NULL;
}

/* `body` NULL: a change. */
static void begin(
    struct up *up, struct socket_call *call, const struct det_job_change *what, const char *body)
{
    const struct det_allocator *allocator = up->output.outer->allocator;
    struct ask *ask;
    char why[UP_AWAY_TEXT];

    /* It is tried all the time; who asks need not wait for it. */
    if (up_store_is_away(up, why)) {
        socket_call_fail(call, DET_ERR_IO, "the store cannot be reached: %s", why);
        return;
    }
    ask = DET_NEW(allocator, struct ask);
    if (!ask) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return;
    }
    det_arena_init(&ask->arena, allocator);
    ask->up = up;
    ask->call = call;
    ask->queue = up_durable_find(up, what->queue);
    ask->what = *what;
    ask->body = body;
    ask->job = (struct det_job){ .run = run, .done = done, .argument = ask, .loop = up->loop };
    if (!keep_text(ask, &ask->what.queue) || !keep_text(ask, &ask->what.id) ||
        (body && !keep_text(ask, &ask->body)) ||
        (what->reason && !keep_text(ask, &ask->what.reason))) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        free_ask(ask);
        return;
    }
    socket_call_keep(call, on_gone, ask);
    det_pool_submit(up->asks, &ask->job);
}

void up_jobs_submit(
    struct up *up, struct socket_call *call, const char *slot, const char *id, json_t *body_take)
{
    char *text = body_take ? json_dumps(body_take, JSON_COMPACT) : NULL;

    json_decref(body_take);
    if (text)
        begin(up, call, &(struct det_job_change){ .queue = slot, .id = id }, text);
    else
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    free(text);
}

void up_run_job(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "change", UP_TEXT },
                                                { "slot", UP_TEXT },
                                                { "job", UP_TEXT },
                                                { "reason", UP_TEXT },
                                                { NULL, UP_TEXT } };
    struct det_job_change what = { .queue = NULL };
    struct up *up = context;
    const char *verb;

    if (!up_arguments_check(request, call, table))
        return;
    verb = up_argument_text(request, "change");
    what.queue = up_argument_text(request, "slot");
    what.id = up_argument_text(request, "job");
    what.reason = up_argument_text(request, "reason");
    what.verb = verb && strcmp(verb, "retry") == 0 ? DET_JOB_RETRY : DET_JOB_CANCEL;
    if (!up->durable_count)
        socket_call_fail(call, DET_ERR_UNSUPPORTED, "this detent up has no durable slots");
    else if (up->state >= UP_STOPPING)
        socket_call_fail(call, DET_ERR_CLOSED, "detent up stops; ask again when it is up");
    else if (!verb || (what.verb == DET_JOB_CANCEL && strcmp(verb, "cancel") != 0))
        socket_call_fail(call, DET_ERR_INVALID, "'change' is one of retry, cancel");
    else if (!what.queue || !what.id)
        socket_call_fail(call, DET_ERR_INVALID, "'job' needs 'slot' and 'job'");
    else
        begin(up, call, &what, NULL);
}
