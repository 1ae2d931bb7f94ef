/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_requests.c - requests to durable slots: submits, retries and cancels jobs.
 *
 *     request (loop) --> ask --pool--> the store, which may block --loop--> answer
 *                         ^                                             |
 *                         +---- later: the job has not ended yet, or ---+
 *                               the job to cancel has not started yet
 *
 * A job may run in another detent, so the store is polled for its end.
 *
 * The pool has one thread, so jobs are queued in the order of their submission. */
#include <detent/driver/loop.h>
#include <detent/driver/store.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/slots_internal.h"
#include "os/pool.h"
#include "store/jobs.h"
#include "task/durable.h"

#define CHECK_EVERY (200 * DET_MILLISECOND)
/* For a job that is claimed but has not started: interval and number of polls. */
#define CHECK_SOON (20 * DET_MILLISECOND)
#define LOOKS      50

struct ask {
    struct det_job job;
    struct up *up;
    struct up_request *request;       /* NULL: the client has disconnected */
    struct up_submission *submission; /* of the requester, until it disconnects; NULL: a change */
    struct det_store *store;
    struct det_durable *queue;           /* NULL: this detent does not serve the slot */
    struct det_arena arena;              /* of the copied texts */
    const char *body;                    /* of a submitted job; NULL: a change */
    struct det_job_change what;          /* slot and id are set for both */
    char running[DET_TASK_NAME_MAX + 1]; /* the task to stop; "": none */
    int result;
    struct det_error error;
    /* Of a request that waits for the end of the job. */
    bool wait_wanted, is_submitted;
    bool is_repeated;    /* the job existed already, in this state */
    bool is_resting;     /* the timer is set; else the pool or its post has it */
    struct det_list all; /* in the list of resting requests */
    struct det_timer timer;
    enum det_job_state state;
    uint32_t attempts, checks;
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

static int change_job(struct ask *ask)
{
    const struct det_job_query query = { .queue = ask->what.queue, .id = ask->what.id, .limit = 1 };
    struct det_store *store = ask->store;
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

static void look_up(struct ask *ask)
{
    const struct det_job_query query = { .queue = ask->what.queue, .id = ask->what.id, .limit = 1 };
    struct det_store *store = ask->store;
    int r;

    ask->result = DET_ERR_NOT_FOUND;
    r = store->ops->jobs->list(store, &query, take_state, ask);
    if (r < 0)
        ask->result = r;
}

static void submit_job(struct ask *ask)
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
    look_up(ask);
    ask->is_repeated = ask->result == 0;
}

static void run_ask(void *argument)
{
    struct ask *ask = argument;

    if (ask->is_submitted) {
        look_up(ask);
        return;
    }
    if (!ask->body) {
        ask->result = change_job(ask);
        return;
    }
    submit_job(ask);
}

/* On the loop. */

static void assert_ask(const struct ask *ask)
{
    det_assert(ask->what.queue && ask->what.id);
    det_assert(ask->is_resting != det_list_is_empty(&ask->all));
    det_assert(!ask->is_submitted || (ask->body && ask->wait_wanted));
    det_assert(ask->checks <= LOOKS);
}

static void free_ask(struct ask *ask)
{
    det_assert(!ask->is_resting);
    const struct det_allocator *allocator = ask->arena.allocator;

    det_arena_deinit(&ask->arena);
    DET_DELETE(allocator, ask);
}

/* Stops an attempt that runs here; the attempt has then failed. */
static void stop_running(struct ask *ask)
{
    struct det_tasks *tasks = up_tasks_supervisor(ask->up);
    det_task_id id = ask->running[0] ? det_tasks_find(tasks, ask->running) : 0;

    if (id && det_tasks_remove(tasks, id) >= 0)
        ask->result = 0;
}

static void write_submitted(const struct ask *ask)
{
    struct det_json_writer *json = ask->request->json;

    ask->submission->is_repeated = ask->is_repeated;
    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "submitted");
    det_json_number(json, "id", 0);
    det_json_text(json, "name", ask->what.id);
    det_json_bool(json, "durable", true);
    det_json_text(json, "state", ask->is_repeated ? det_jobs_state_name(ask->state) : NULL);
    det_json_bool(json, "started", false);
    det_json_number(json, "depth", 0);
    det_json_close(json, '}');
}

/* Writes the members of up_write_end(); the store keeps neither exit code nor signal. */
static void write_end(const struct ask *ask)
{
    struct det_json_writer *json = ask->request->json;
    bool is_done = ask->state == DET_JOB_DONE;

    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "end");
    det_json_number(json, "id", 0);
    det_json_text(json, "outcome", is_done ? "completed" : "failed");
    det_json_null(json, "exit_code");
    det_json_null(json, "signal");
    det_json_text(json, "reason", ask->reason[0] ? ask->reason : NULL);
    det_json_number(json, "attempts", ask->attempts);
    det_json_text(json, "rejection", det_rejection_label(DET_REJECTION_NONE));
    det_json_close(json, '}');
}

static void write_changed(const struct ask *ask)
{
    struct det_json_writer *json = ask->request->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "changed");
    det_json_close(json, '}');
}

static void end_rest(struct ask *ask)
{
    det_assert(ask->is_resting);
    ask->is_resting = false;
    det_list_remove(&ask->all);
    det_loop_timer_cancel(up_loop(ask->up), &ask->timer);
}

static void on_rested(void *argument)
{
    struct ask *ask = argument;

    struct det_pool *pool = up_slots(ask->up)->pool;

    /* Slots are closing, and up_jobs_close() fails the request. */
    if (!pool)
        return;
    end_rest(ask);
    det_pool_submit(pool, &ask->job);
}

/* Schedules the next poll after `span`. False: not, since detent is stopping or is out of
 * memory. */
static bool poll_later(struct ask *ask, det_time span)
{
    struct det_loop *loop = up_loop(ask->up);

    det_assert(ask->request && !ask->is_resting && span > 0);
    ask->timer = (struct det_timer){ .run = on_rested, .argument = ask };
    ask->is_resting = !up_is_stopping(ask->up) &&
                      det_loop_timer_set(loop, &ask->timer, det_loop_now(loop) + span) >= 0;
    ask->job.is_dropped = !ask->is_resting;
    if (ask->is_resting)
        det_list_append(&up_slots(ask->up)->resting, &ask->all);
    assert_ask(ask);
    return ask->is_resting;
}

/* True: the request is kept and polls again, also while the store is unreachable. */
static bool keeps_polling(struct ask *ask)
{
    bool is_over = ask->is_submitted && ask->result == 0 &&
                   (ask->state == DET_JOB_DONE || ask->state == DET_JOB_FAILED);

    if (!ask->request || !ask->wait_wanted || ask->job.is_dropped || is_over)
        return false;
    if (ask->is_submitted ? ask->result == DET_ERR_NOT_FOUND : ask->result < 0)
        return false;
    if (!ask->is_submitted) {
        write_submitted(ask);
        up_request_part(ask->request);
    }
    ask->is_submitted = true;
    return poll_later(ask, CHECK_EVERY);
}

/* True: polls again, for a job that was claimed but has not started, or has just ended. */
static bool polls_again(struct ask *ask)
{
    if (!ask->running[0] || ask->result != DET_ERR_NOT_FOUND || !ask->request ||
        ask->checks == LOOKS)
        return false;
    ask->checks++;
    ask->running[0] = '\0';
    return poll_later(ask, CHECK_SOON);
}

static void write_answer(const struct ask *ask)
{
    if (ask->is_submitted)
        write_end(ask);
    else if (ask->body)
        write_submitted(ask);
    else
        write_changed(ask);
}

static void answer_ask(struct ask *ask)
{
    struct up_request *request = ask->request;
    char why[UP_UNREACHABLE_TEXT];

    if (ask->is_submitted && ask->job.is_dropped)
        up_request_fail(
            request, DET_ERR_CLOSED, "detent is shutting down; %.100s is stored; see 'detent jobs'",
            ask->what.id);
    else if (ask->job.is_dropped)
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (ask->result < 0 && up_store_is_unreachable(ask->up, why))
        up_request_fail(request, DET_ERR_IO, "the store cannot be reached: %s", why);
    else if (ask->result < 0)
        up_request_fail(
            request, ask->result, "%s",
            ask->error.text[0] ? ask->error.text : det_error_text(ask->result));
    else {
        write_answer(ask);
        up_request_end(request);
    }
}

static void on_answered(void *argument)
{
    struct ask *ask = argument;

    assert_ask(ask);
    stop_running(ask);
    if (keeps_polling(ask) || polls_again(ask))
        return;
    if (ask->request)
        answer_ask(ask);
    free_ask(ask);
}

static void on_gone(void *user)
{
    struct ask *ask = user;

    ask->request = NULL;
    ask->submission = NULL;
    if (!ask->is_resting)
        return;
    end_rest(ask);
    free_ask(ask);
}

void up_jobs_close(struct up *up)
{
    struct det_list *resting = &up_slots(up)->resting;

    while (!det_list_is_empty(resting)) {
        struct ask *ask = DET_CONTAINER(resting->next, struct ask, all);

        end_rest(ask);
        ask->job.is_dropped = true;
        answer_ask(ask);
        free_ask(ask);
    }
}

static bool keep_text(struct ask *ask, const char **text)
{
    if (*text)
        *text = det_arena_copy(&ask->arena, *text);
    return *text != NULL;
}

/* Copies the texts of the request: the store may take longer than the client waits. */
static struct ask *open_ask(
    struct up *up, struct up_request *request, const struct det_job_change *what, const char *body)
{
    const struct det_allocator *allocator = up_allocator(up);
    struct ask *ask = DET_NEW(allocator, struct ask);

    if (!ask)
        return NULL;
    det_assert(what->queue && what->id);
    det_list_init(&ask->all);
    det_arena_init(&ask->arena, allocator);
    ask->up = up;
    ask->request = request;
    ask->store = up_slots_store(up);
    ask->queue = up_durable_find(up, what->queue);
    ask->what = *what;
    ask->body = body;
    ask->job = (struct det_job){
        .run = run_ask, .done = on_answered, .argument = ask, .loop = up_loop(up)
    };
    if (keep_text(ask, &ask->what.queue) && keep_text(ask, &ask->what.id) &&
        (!body || keep_text(ask, &ask->body)) &&
        (!what->reason || keep_text(ask, &ask->what.reason)))
        return ask;
    free_ask(ask);
    return NULL;
}

/* `submission` and `body` NULL: a change. */
static void begin_ask(
    struct up *up, struct up_request *request, const struct det_job_change *what,
    struct up_submission *submission, const char *body)
{
    struct ask *ask;
    char why[UP_UNREACHABLE_TEXT];

    /* The store reconnects by itself: a client need not wait for it. */
    if (up_store_is_unreachable(up, why)) {
        up_request_fail(request, DET_ERR_IO, "the store cannot be reached: %s", why);
        return;
    }
    ask = open_ask(up, request, what, body);
    if (!ask) {
        up_request_fail_memory(request);
        return;
    }
    ask->submission = submission;
    ask->wait_wanted = submission && submission->wait_wanted;
    up_request_keep(request, on_gone, ask);
    det_pool_submit(up_slots(up)->pool, &ask->job);
}

void up_submit_durable(
    struct up *up, struct up_request *request, struct up_submission *submission, const char *id,
    const char *body)
{
    const struct det_job_change what = { .queue = submission->slot, .id = id };

    begin_ask(up, request, &what, submission, body);
}

void up_change_job(struct up *up, struct up_request *request, const struct det_job_change *change)
{
    if (up_is_stopping(up))
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (!up_durable_count(up))
        up_request_fail(request, DET_ERR_UNSUPPORTED, "this detent up has no durable slots");
    else
        begin_ask(up, request, change, NULL, NULL);
}
