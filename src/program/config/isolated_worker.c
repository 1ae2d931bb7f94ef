/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* isolated_worker.c - the side of detent: starts the process of a worker, calls it, and starts the
 * next one when it has ended. */
#include "config/isolated_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "config/module.h"
#include "os/os.h"

#define ACTIONS_MAX DET_WORKER_ACTIONS_MAX
#define TURN_MS     20 /* interval of the checks for cancellation */
/* Less than the age at which observations are old. */
#define DELAY_FIRST DET_SECOND
#define DELAY_MAX   (8 * DET_SECOND)
#define STEADY      DET_MINUTE /* an end after so long begins a new row */
#define CLOSE_SPAN  (4 * DET_SECOND)
#define OPEN_SPAN   (30 * DET_SECOND) /* of open() in a process that was started again */

struct kind_proxy {
    struct det_worker_kind kind; /* what the supervisor has */
    struct det_worker_action actions[ACTIONS_MAX];
    const struct det_worker_kind *real;
    const struct det_allocator *allocator;
    const char *folder;
    char library[48];
};

/* State of a worker; replaces the deps of the real kind. */
struct kind_worker {
    const struct kind_proxy *proxy;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_mutex *mutex; /* of all below */
    struct det_process *process;
    int lanes[KIND_LANES]; /* -1 without a process */
    bool is_busy[KIND_LANES];
    bool is_gone; /* it has ended; closed when no call is under way */
    unsigned ends_in_a_row;
    det_time started_at, next_start; /* monotonic */
    char end[64];                    /* how it ended: "ended by signal 11" */
};

/* One call. */
struct exchange {
    struct kind_worker *worker;
    struct det_worker_context *context;
    unsigned lane;
    struct kind_request request;
    const void *sent;
    void *observed; /* NULL: none is expected */
    size_t observed_size;
    det_time deadline;
    struct kind_answer answer;
};

/* Lanes. */

int kind_send(int lane, const void *data, size_t size)
{
    const char *place = data;
    ssize_t count;

    while (size > 0) {
        count = send(lane, place, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return DET_ERR_IO;
        place += count;
        size -= (size_t)count;
    }
    return 0;
}

int kind_receive(int lane, void *target, size_t size)
{
    char *place = target;
    ssize_t count;

    while (size > 0) {
        count = recv(lane, place, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return DET_ERR_IO;
        place += count;
        size -= (size_t)count;
    }
    return 0;
}

/* Invariants, under the mutex. */
static void assert_worker(const struct kind_worker *worker)
{
    bool has_process = worker->process != NULL;

    for (unsigned i = 0; i < KIND_LANES; i++) {
        det_assert((worker->lanes[i] >= 0) == has_process);
        det_assert(!worker->is_busy[i] || has_process);
    }
    det_assert(!worker->is_gone || has_process);
    det_assert(!worker->is_gone || (worker->ends_in_a_row > 0 && worker->end[0]));
}

static det_time now_of(const struct kind_worker *worker)
{
    return det_world_now(worker->world, DET_CLOCK_MONOTONIC);
}

/* Calls. */

static int take_answer(struct exchange *exchange, int lane)
{
    struct kind_answer *answer = &exchange->answer;
    struct det_worker_context *context = exchange->context;
    struct kind_metric metric;
    int r;

    r = kind_receive(lane, answer, sizeof *answer);
    if (r == 0 &&
        (answer->size > exchange->observed_size || answer->metric_count > KIND_METRICS_MAX))
        return DET_ERR_IO;
    for (uint32_t i = 0; r == 0 && i < answer->metric_count; i++) {
        r = kind_receive(lane, &metric, sizeof metric);
        metric.name[sizeof metric.name - 1] = 0;
        if (r == 0 && metric.is_gauge)
            det_worker_gauge(context, metric.name, metric.value);
        else if (r == 0)
            det_worker_count(context, metric.name, metric.more);
    }
    if (r == 0 && answer->size)
        r = kind_receive(lane, exchange->observed, answer->size);
    answer->text[sizeof answer->text - 1] = 0;
    return r;
}

static void kill_process(struct kind_worker *worker)
{
    (void)!worker->world->ops->process_kill(worker->world, worker->process, DET_PROCESS_SIGKILL);
}

/* The answer, or DET_ERR_IO when the process has ended. */
static int await_answer(struct exchange *exchange, int lane)
{
    const struct kind_request cancel = { .call = KIND_CANCEL };
    struct pollfd poller = { .fd = lane, .events = POLLIN };
    bool is_cancelled = false, is_killed = false;

    for (;;) {
        int count = poll(&poller, 1, TURN_MS);

        if (count > 0)
            return take_answer(exchange, lane);
        if (count < 0 && errno != EINTR)
            return DET_ERR_IO;
        if (!is_cancelled && det_worker_is_cancelled(exchange->context)) {
            is_cancelled = true;
            (void)!kind_send(lane, &cancel, sizeof cancel);
        }
        if (!is_killed && now_of(exchange->worker) >= exchange->deadline) {
            is_killed = true;
            kill_process(exchange->worker);
        }
    }
}

static int run_exchange(struct exchange *exchange, int lane)
{
    int r;

    det_assert(exchange->lane < KIND_LANES);
    det_assert(!exchange->request.size || exchange->sent);
    exchange->request.span =
        exchange->deadline == DET_NEVER ? DET_NEVER : exchange->deadline - now_of(exchange->worker);
    r = kind_send(lane, &exchange->request, sizeof exchange->request);
    if (r == 0 && exchange->request.size)
        r = kind_send(lane, exchange->sent, exchange->request.size);
    return r < 0 ? r : await_answer(exchange, lane);
}

/* Starting and ending, under the mutex. */

static void close_lanes(struct kind_worker *worker)
{
    for (unsigned i = 0; i < KIND_LANES; i++) {
        if (worker->lanes[i] >= 0)
            close(worker->lanes[i]);
        worker->lanes[i] = -1;
    }
}

static void close_process(struct kind_worker *worker)
{
    close_lanes(worker);
    if (worker->process)
        worker->world->ops->process_close(worker->world, worker->process);
    worker->process = NULL;
    worker->is_gone = false;
}

/* Notes that the process has exited; kills it if it has not. */
static void note_end(struct kind_worker *worker)
{
    struct det_process_end end = { 0 };
    det_time now = now_of(worker), delay = DELAY_FIRST;

    if (worker->is_gone)
        return;
    worker->is_gone = true;
    kill_process(worker);
    if (worker->world->ops->process_wait(worker->world, worker->process, DET_NEVER, &end) < 0)
        end.code = -1;
    if (end.signal)
        (void)snprintf(
            worker->end, sizeof worker->end, "was ended by signal %d (%s)", end.signal,
            sigdescr_np(end.signal) ? sigdescr_np(end.signal) : "unknown");
    else
        (void)snprintf(worker->end, sizeof worker->end, "has ended with exit code %d", end.code);
    if (now - worker->started_at >= STEADY)
        worker->ends_in_a_row = 0;
    for (unsigned i = 0; i < worker->ends_in_a_row && delay < DELAY_MAX; i++)
        delay *= 2;
    worker->ends_in_a_row++;
    worker->next_start = now + delay;
}

static int spawn_process(struct kind_worker *worker, struct det_error *reterr)
{
    const struct kind_proxy *proxy = worker->proxy;
    const char *argv[] = { "/proc/self/exe", "kind-host", proxy->library, proxy->folder, NULL };
    struct det_process_options options = {
        .argv = argv,
        .error = STDERR_FILENO,
        .new_group = true,
        .ends_with_us = true,
    };
    int pairs[KIND_LANES][2];
    int r;

    for (unsigned i = 0; i < KIND_LANES; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) < 0) {
            if (i > 0)
                close(pairs[0][1]);
            return det_error_set(
                reterr, DET_ERR_IO, "cannot create the socket of the worker process: %s",
                strerrordesc_np(errno));
        }
        worker->lanes[i] = pairs[i][0];
    }
    options.input = pairs[0][1];
    options.output = pairs[1][1];
    r = worker->world->ops->process_start(worker->world, &options, &worker->process, reterr);
    for (unsigned i = 0; i < KIND_LANES; i++)
        close(pairs[i][1]);
    return r;
}

/* Loads the module there, and opens the worker. */
static int open_worker(struct kind_worker *worker, struct det_worker_context *context)
{
    const struct det_worker_identity *identity = context->identity;
    const char *texts[] = { identity->id, identity->name, identity->kind, identity->path };
    char sent[4 * (DET_WORKER_PATH_MAX + 1)];
    struct exchange exchange = { .worker = worker, .context = context, .sent = sent };
    size_t size = 0;
    int r;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int count = snprintf(sent + size, sizeof sent - size, "%s", texts[i]);

        size += (size_t)count + 1;
        if (size > sizeof sent)
            return det_worker_fail(context, DET_ERR_LIMIT, "its path is too long");
    }
    exchange.request = (struct kind_request){ .call = KIND_OPEN, .size = (uint32_t)size };
    exchange.deadline = context->deadline == DET_NEVER ? DET_NEVER : now_of(worker) + OPEN_SPAN;
    r = run_exchange(&exchange, worker->lanes[0]);
    if (r < 0) {
        note_end(worker);
        return det_worker_fail(context, r, "open: its process %s", worker->end);
    }
    if (exchange.answer.result < 0)
        return det_worker_fail(context, exchange.answer.result, "%s", exchange.answer.text);
    return 0;
}

static int start_process(struct kind_worker *worker, struct det_worker_context *context)
{
    struct det_error error = { 0 };
    int r;

    worker->started_at = now_of(worker);
    r = spawn_process(worker, &error);
    if (r < 0) {
        close_process(worker);
        worker->next_start = worker->started_at + DELAY_FIRST;
        return det_worker_fail(context, r, "its process cannot be started: %s", error.text);
    }
    r = open_worker(worker, context);
    if (r < 0) {
        note_end(worker);
        close_process(worker);
    }
    return r;
}

/* Ensures that a process can be called: starts the next one, or reports when it will. */
static int want_process(struct kind_worker *worker, struct det_worker_context *context)
{
    det_time left;

    if (worker->process && !worker->is_gone)
        return 0;
    if (worker->is_busy[0] || worker->is_busy[1])
        return det_worker_fail(context, DET_ERR_BUSY, "its process %s", worker->end);
    close_process(worker);
    left = worker->next_start - now_of(worker);
    if (left > 0)
        return det_worker_fail(
            context, DET_ERR_IO, "its process %s; the next one starts in %lld ms", worker->end,
            (long long)(left / DET_MILLISECOND) + 1);
    return start_process(worker, context);
}

static int begin_call(struct exchange *exchange)
{
    struct kind_worker *worker = exchange->worker;
    int r = 0;

    det_mutex_lock(worker->world, worker->mutex);
    if (worker->is_busy[exchange->lane]) {
        if (worker->process && !worker->is_gone)
            kill_process(worker);
        r = det_worker_fail(
            exchange->context, DET_ERR_BUSY, "the previous call hangs; its process is killed");
    }
    if (r == 0)
        r = want_process(worker, exchange->context);
    if (r == 0)
        worker->is_busy[exchange->lane] = true;
    assert_worker(worker);
    det_mutex_unlock(worker->world, worker->mutex);
    return r;
}

static void end_call(struct exchange *exchange, bool is_gone)
{
    struct kind_worker *worker = exchange->worker;

    det_mutex_lock(worker->world, worker->mutex);
    det_assert(worker->is_busy[exchange->lane]);
    worker->is_busy[exchange->lane] = false;
    if (is_gone) {
        note_end(worker);
        (void)snprintf(
            exchange->answer.text, sizeof exchange->answer.text, "its process %s", worker->end);
    }
    assert_worker(worker);
    det_mutex_unlock(worker->world, worker->mutex);
}

static int call_worker(struct exchange *exchange)
{
    struct det_worker_context *context = exchange->context;
    int r;

    exchange->deadline = context->deadline;
    r = begin_call(exchange);
    if (r < 0)
        return r;
    r = run_exchange(exchange, exchange->worker->lanes[exchange->lane]);
    end_call(exchange, r < 0);
    if (r == 0 && exchange->answer.is_panic)
        det_worker_panic(context, "%s", exchange->answer.text);
    if (r == 0)
        r = exchange->answer.result;
    return r < 0 ? det_worker_fail(context, r, "%s", exchange->answer.text) : r;
}

/* The kind, as the supervisor calls it. */

uint32_t kind_record_size(struct det_record_ref ref)
{
    const struct det_record *record = det_record_of(ref);

    return record ? record->size : (uint32_t)sizeof(struct det_empty);
}

static const struct kind_proxy *find_proxy(const struct det_worker_context *context)
{
    return modules_proxy(context->user, context->identity->kind);
}

static int proxy_open(struct det_worker_context *context, void *deps)
{
    struct kind_worker *worker = deps;
    int r;

    worker->proxy = find_proxy(context);
    worker->world = context->world;
    worker->allocator = context->allocator;
    worker->lanes[0] = worker->lanes[1] = -1;
    r = det_mutex_open(context->world, &worker->mutex);
    if (r < 0)
        return r;
    det_mutex_lock(worker->world, worker->mutex);
    r = start_process(worker, context);
    det_mutex_unlock(worker->world, worker->mutex);
    if (r < 0) {
        det_mutex_close(worker->world, worker->mutex);
        worker->mutex = NULL;
    }
    return r;
}

static void proxy_close(void *deps)
{
    struct kind_worker *worker = deps;
    struct det_process_end end;

    if (worker->process && !worker->is_gone) {
        close_lanes(worker);
        if (worker->world->ops->process_wait(
                worker->world, worker->process, now_of(worker) + CLOSE_SPAN, &end) < 0)
            kill_process(worker);
    }
    close_process(worker);
    det_mutex_close(worker->world, worker->mutex);
}

static int proxy_collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    struct kind_worker *worker = deps;
    const struct det_worker_kind *real = worker->proxy->real;
    struct exchange exchange = {
        .worker = worker,
        .context = context,
        .request = { .call = KIND_COLLECT, .size = kind_record_size(real->desired) },
        .sent = desired,
        .observed = observed,
        .observed_size = kind_record_size(real->observed),
    };

    return call_worker(&exchange);
}

static int proxy_act(
    struct det_worker_context *context, void *deps, const void *desired, unsigned action)
{
    struct kind_worker *worker = deps;
    const struct det_worker_kind *real = worker->proxy->real;
    struct exchange exchange = {
        .worker = worker,
        .context = context,
        .lane = 1,
        .request = { .call = KIND_ACT, .action = action, .size = kind_record_size(real->desired) },
        .sent = desired,
    };

    det_assert(action < real->action_count);
    return call_worker(&exchange);
}

/* Actions get no number, so each has a separate function. */
#define EACH_8(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7)
#define EACH(m)  \
    EACH_8(m, 0) \
    EACH_8(m, 1) EACH_8(m, 2) EACH_8(m, 3) EACH_8(m, 4) EACH_8(m, 5) EACH_8(m, 6) EACH_8(m, 7)
#define DEFINE(n)                                                                           \
    static int act_##n(struct det_worker_context *context, void *deps, const void *desired) \
    {                                                                                       \
        return proxy_act(context, deps, desired, 0##n);                                     \
    }
EACH(DEFINE)
#undef DEFINE
#define NAME(n) act_##n,
static int (*const acts[])(struct det_worker_context *, void *, const void *) = { EACH(NAME) };
#undef NAME
_Static_assert(sizeof acts / sizeof *acts == ACTIONS_MAX, "each action has a function");

int kind_proxy_open(
    const struct det_allocator *allocator, const struct det_worker_kind *real, int library,
    const char *folder, struct kind_proxy **ret)
{
    struct kind_proxy *proxy = DET_NEW(allocator, struct kind_proxy);

    det_assert(library >= 0 && real->action_count <= ACTIONS_MAX);
    if (!proxy)
        return DET_ERR_NO_MEMORY;
    proxy->real = real;
    proxy->allocator = allocator;
    proxy->folder = folder;
    (void)snprintf(
        proxy->library, sizeof proxy->library, "/proc/%lld/fd/%d", (long long)getpid(), library);
    proxy->kind = *real;
    proxy->kind.deps_size = sizeof(struct kind_worker);
    proxy->kind.open = proxy_open;
    proxy->kind.close = proxy_close;
    if (real->collect)
        proxy->kind.collect = proxy_collect;
    for (unsigned i = 0; i < real->action_count; i++) {
        proxy->actions[i] = real->actions[i];
        proxy->actions[i].run = acts[i];
    }
    proxy->kind.actions = proxy->actions;
    *ret = proxy;
    return 0;
}

void kind_proxy_close(struct kind_proxy *proxy)
{
    if (proxy)
        DET_DELETE(proxy->allocator, proxy);
}

const struct det_worker_kind *kind_proxy_kind(const struct kind_proxy *proxy)
{
    return &proxy->kind;
}
