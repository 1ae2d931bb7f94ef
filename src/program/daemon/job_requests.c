/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_requests.c - what can be asked of durable slots: a job for one, another try,
 * a cancel.
 *
 *     verb (loop) --> ask --pool--> the store, which may take its time --loop--> answer
 *                      ^                                                    |
 *                      +---- a while later: who waits for the end of a job, +
 *                            or for the start of one that is to be cancelled
 *
 * A job may run in another detent, so its end is looked for in the store.
 *
 * The pool has one thread, so that jobs get into the queue in the order in which they were
 * submitted. */
#include <detent/driver/loop.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/machines.h"
#include "daemon/verbs.h"
#include "store/jobs.h"
#include "task/durable.h"

#define LOOK_EVERY (200 * DET_MILLISECOND)
/* For a job that was claimed and is about to be started: how soon, how often. */
#define LOOK_SOON (20 * DET_MILLISECOND)
#define LOOKS     50

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
    /* Of who waits. */
    bool shall_wait, is_submitted;
    bool was_there;      /* it was not new, and this is its state */
    bool is_resting;     /* until the timer runs; else it is the pool's, or on its way back */
    struct det_list all; /* that rest */
    struct det_timer timer;
    enum det_job_state state;
    uint32_t attempts, looks;
    char reason[DET_REASON_MAX + 1];
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

static int take_state(void *context, const struct det_job_row *row)
{
    struct ask *ask = context;

    ask->state = row->state;
    ask->attempts = row->attempts;
    (void)det_text_copy(ask->reason, sizeof ask->reason, row->reason);
    ask->result = 0;
    return 0;
}

static void look(struct ask *ask)
{
    const struct det_job_query query = { .queue = ask->what.queue, .id = ask->what.id, .limit = 1 };
    struct det_store *store = ask->up->store;
    int r;

    ask->result = DET_ERR_NOT_FOUND;
    r = store->ops->jobs->list(store, &query, take_state, ask);
    if (r < 0)
        ask->result = r;
}

static void submit(struct ask *ask)
{
    bool is_new = true;

    ask->result = det_durable_submit(
        ask->queue,
        &(struct det_durable_submission){ .id = ask->what.id,
                                          .work = ask->what.queue,
                                          .body = ask->body,
                                          .size = strlen(ask->body) },
        &is_new, &ask->error);
    if (ask->result < 0 || is_new)
        return;
    look(ask);
    ask->was_there = ask->result == 0;
}

static void run(void *argument)
{
    struct ask *ask = argument;

    if (ask->is_submitted) {
        look(ask);
        return;
    }
    if (!ask->body) {
        ask->result = change(ask);
        return;
    }
    submit(ask);
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

static json_t *submitted(const struct ask *ask)
{
    return json_pack(
        "{s:s, s:I, s:s, s:b, s:s?, s:b, s:I}", "kind", "submitted", "id", (json_int_t)0, "name",
        ask->what.id, "durable", 1, "state",
        ask->was_there ? det_jobs_state_name(ask->state) : NULL, "started", 0, "depth",
        (json_int_t)0);
}

static void tell_end(const struct ask *ask)
{
    json_t *end = json_pack(
        "{s:s, s:I, s:s, s:n, s:n, s:o, s:I, s:s}", "kind", "end", "id", (json_int_t)0, "outcome",
        ask->state == DET_JOB_DONE ? "completed" : "failed", "exit_code", "signal", "reason",
        ask->reason[0] ? cli_json_text(ask->reason) : json_null(), "attempts",
        (json_int_t)ask->attempts, "rejection", det_rejection_label(DET_REJECTION_NONE));

    (void)socket_call_send(ask->call, end);
    socket_call_end(ask->call);
}

static void end_rest(struct ask *ask)
{
    ask->is_resting = false;
    det_list_remove(&ask->all);
    det_loop_timer_cancel(ask->up->loop, &ask->timer);
}

static void rested(void *argument)
{
    struct ask *ask = argument;

    /* It is over, and who asked is told so. */
    if (!ask->up->asks)
        return;
    end_rest(ask);
    det_pool_submit(ask->up->asks, &ask->job);
}

/* False: there is no time left to rest. */
static bool rest(struct ask *ask, det_time span)
{
    struct det_loop *loop = ask->up->loop;

    ask->timer = (struct det_timer){ .run = rested, .argument = ask };
    ask->is_resting = ask->up->state < UP_STOPPING &&
                      det_loop_timer_set(loop, &ask->timer, det_loop_now(loop) + span) >= 0;
    ask->job.is_dropped = !ask->is_resting;
    if (ask->is_resting)
        det_list_append(&ask->up->resting, &ask->all);
    return ask->is_resting;
}

/* True: it goes on, and is to be kept. A store that cannot be reached now is asked again. */
static bool goes_on(struct ask *ask)
{
    bool is_over = ask->is_submitted && ask->result == 0 &&
                   (ask->state == DET_JOB_DONE || ask->state == DET_JOB_FAILED);

    if (!ask->call || !ask->shall_wait || ask->job.is_dropped || is_over)
        return false;
    if (ask->is_submitted ? ask->result == DET_ERR_NOT_FOUND : ask->result < 0)
        return false;
    if (!ask->is_submitted)
        (void)socket_call_send(ask->call, submitted(ask));
    ask->is_submitted = true;
    if (!ask->call)
        return false;
    return rest(ask, LOOK_EVERY);
}

/* True: it was claimed and is not started yet, or has just ended, and is looked for again. */
static bool looks_again(struct ask *ask)
{
    if (!ask->running[0] || ask->result != DET_ERR_NOT_FOUND || !ask->call || ask->looks == LOOKS)
        return false;
    ask->looks++;
    ask->running[0] = '\0';
    return rest(ask, LOOK_SOON);
}

static void answer(struct ask *ask)
{
    char why[UP_AWAY_TEXT];

    if (ask->is_submitted && ask->job.is_dropped)
        socket_call_fail(
            ask->call, DET_ERR_CLOSED,
            "detent is shutting down; %.100s is in the store, and detent jobs shows its end",
            ask->what.id);
    else if (ask->job.is_dropped)
        socket_call_fail(ask->call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (ask->result < 0 && up_store_is_away(ask->up, why))
        socket_call_fail(ask->call, DET_ERR_IO, "the store cannot be reached: %s", why);
    else if (ask->result < 0)
        socket_call_fail(
            ask->call, ask->result, "%s",
            ask->error.text[0] ? ask->error.text : det_error_text(ask->result));
    else if (ask->is_submitted)
        tell_end(ask);
    else if (ask->body)
        socket_call_answer(ask->call, submitted(ask));
    else
        socket_call_answer(ask->call, json_pack("{s:s}", "kind", "changed"));
}

static void done(void *argument)
{
    struct ask *ask = argument;

    stop_running(ask);
    if (goes_on(ask) || looks_again(ask))
        return;
    if (ask->call)
        answer(ask);
    free_ask(ask);
}

static void on_gone(void *user)
{
    struct ask *ask = user;

    ask->call = NULL;
    if (!ask->is_resting)
        return;
    end_rest(ask);
    free_ask(ask);
}

void up_jobs_over(struct up *up)
{
    while (!det_list_is_empty(&up->resting)) {
        struct ask *ask = DET_CONTAINER(up->resting.next, struct ask, all);

        end_rest(ask);
        ask->job.is_dropped = true;
        answer(ask);
        free_ask(ask);
    }
}

static bool keep_text(struct ask *ask, const char **text)
{
    if (*text)
        *text = det_arena_copy(&ask->arena, *text);
    return *text != NULL;
}

/* `body` NULL: a change. */
static void begin(
    struct up *up, struct socket_call *call, const struct det_job_change *what, const char *body,
    bool shall_wait)
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
    ask->shall_wait = shall_wait;
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
    struct up *up, struct socket_call *call, const char *slot, const char *id, bool shall_wait,
    json_t *body_take)
{
    char *text = body_take ? json_dumps(body_take, JSON_COMPACT) : NULL;

    json_decref(body_take);
    if (text)
        begin(up, call, &(struct det_job_change){ .queue = slot, .id = id }, text, shall_wait);
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
        socket_call_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (!verb || (what.verb == DET_JOB_CANCEL && strcmp(verb, "cancel") != 0))
        socket_call_fail(call, DET_ERR_INVALID, "'change' is one of retry, cancel");
    else if (what.reason && strlen(what.reason) > DET_REASON_MAX)
        socket_call_fail(call, DET_ERR_INVALID, "'reason' has at most %d bytes", DET_REASON_MAX);
    else if (!what.queue || !what.id)
        socket_call_fail(call, DET_ERR_INVALID, "'job' needs 'slot' and 'job'");
    else
        begin(up, call, &what, NULL, false);
}
