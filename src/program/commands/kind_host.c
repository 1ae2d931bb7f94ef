/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kind_host.c - `detent kind-host`: the process that detent up starts for a worker of an isolated
 * kind. Its lanes are standard input and output. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/isolated_worker.h"
#include "config/module.h"
#include "os/os.h"
#include "terminal/command.h"
#include "terminal/terminal.h"

#define TEXTS 4

struct host;

/* A lane: the context of its functions, and what they reported. */
struct lane {
    struct det_worker_context context; /* the first member */
    struct host *host;
    int descriptor;
    bool is_cancelled;
    jmp_buf leave; /* target of a panic */
    struct kind_request request;
    char *received;
    size_t capacity;
    void *observed;
    struct kind_answer answer;
    struct kind_metric metrics[KIND_METRICS_MAX];
};

struct host {
    struct modules modules; /* the first member: what functions get as their user */
    const struct det_allocator *allocator;
    struct det_world *world;
    const char *library, *folder;
    char texts[TEXTS * (DET_WORKER_PATH_MAX + 1)];
    struct det_worker_identity identity;
    const struct det_worker_kind *kind;
    void *deps;
    bool is_open;
    struct det_mutex *mutex; /* of the worker: det_worker_lock() */
    struct lane lanes[KIND_LANES];
};

static struct lane *lane_of(struct det_worker_context *context)
{
    struct lane *lane = (struct lane *)(void *)context;

    det_assert(lane->host->world == context->world);
    return lane;
}

/* The functions of the context. */

/* Waits until the deadline; returns true once a cancel has come or the peer is gone. */
static bool await_cancel(struct lane *lane, det_time deadline)
{
    struct det_world *world = lane->host->world;
    struct kind_request request;

    while (!lane->is_cancelled) {
        struct pollfd poller = { .fd = lane->descriptor, .events = POLLIN };
        det_time left = deadline - det_world_now(world, DET_CLOCK_MONOTONIC);
        int span = left <= 0 ? 0 : left > DET_SECOND ? 1000 : (int)(left / DET_MILLISECOND) + 1;

        if (poll(&poller, 1, span) > 0) {
            lane->is_cancelled = true;
            (void)!kind_receive(lane->descriptor, &request, sizeof request);
        } else if (left <= 0) {
            break;
        }
    }
    return lane->is_cancelled;
}

static bool call_is_cancelled(struct det_worker_context *context)
{
    return await_cancel(lane_of(context), 0);
}

static int call_wait(struct det_worker_context *context, det_time deadline)
{
    return await_cancel(lane_of(context), deadline) ? DET_ERR_CANCELLED : 0;
}

DET_PRINTF(2, 0)
static void set_text(struct lane *lane, const char *format, va_list list)
{
    (void)vsnprintf(lane->answer.text, sizeof lane->answer.text, format, list);
}

DET_PRINTF(2, 3)
static void call_explain(struct det_worker_context *context, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    set_text(lane_of(context), format, list);
    va_end(list);
}

DET_PRINTF(2, 3)
static void call_panic(struct det_worker_context *context, const char *format, ...)
{
    struct lane *lane = lane_of(context);
    va_list list;

    va_start(list, format);
    set_text(lane, format, list);
    va_end(list);
    lane->answer.is_panic = true;
    longjmp(lane->leave, 1);
}

static struct kind_metric *find_metric(struct lane *lane, const char *name, bool is_gauge)
{
    struct kind_metric *metric = lane->metrics;
    uint32_t count = lane->answer.metric_count;

    for (uint32_t i = 0; i < count; i++, metric++)
        if (strcmp(metric->name, name) == 0)
            return metric;
    if (count == KIND_METRICS_MAX)
        return NULL;
    det_assert(count < KIND_METRICS_MAX);
    lane->answer.metric_count++;
    *metric = (struct kind_metric){ .is_gauge = is_gauge };
    (void)det_text_copy(metric->name, sizeof metric->name, name);
    return metric;
}

static void call_count(struct det_worker_context *context, const char *name, uint64_t more)
{
    struct kind_metric *metric = find_metric(lane_of(context), name, false);

    if (metric)
        metric->more += more;
}

static void call_gauge(struct det_worker_context *context, const char *name, double value)
{
    struct kind_metric *metric = find_metric(lane_of(context), name, true);

    if (metric)
        metric->value = value;
}

static void call_lock(struct det_worker_context *context)
{
    struct host *host = lane_of(context)->host;

    det_mutex_lock(host->world, host->mutex);
}

static void call_unlock(struct det_worker_context *context)
{
    struct host *host = lane_of(context)->host;

    det_mutex_unlock(host->world, host->mutex);
}

/* Things of other workers are in other processes. */
static void call_provide(struct det_worker_context *context, const char *name, void *thing)
{
    (void)context;
    (void)name;
    (void)thing;
}

static void *call_inherited(struct det_worker_context *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static int call_read(
    struct det_worker_context *context, const char *id, const struct det_record *record, void *ret)
{
    (void)context;
    (void)id;
    (void)record;
    (void)ret;
    return DET_ERR_NOT_FOUND;
}

static const struct det_worker_calls calls = {
    call_is_cancelled, call_wait,   call_explain, call_panic,     call_count, call_gauge,
    call_lock,         call_unlock, call_provide, call_inherited, call_read,
};

/* Opening. */

static bool take_identity(struct host *host, const char *received, size_t size)
{
    const char *texts[TEXTS];
    size_t place = 0;

    if (size == 0 || size > sizeof host->texts || received[size - 1] != 0)
        return false;
    memcpy(host->texts, received, size);
    for (int i = 0; i < TEXTS; i++) {
        if (place >= size)
            return false;
        texts[i] = host->texts + place;
        place += strlen(texts[i]) + 1;
    }
    host->identity = (struct det_worker_identity){ texts[0], texts[1], texts[2], texts[3] };
    return true;
}

static int load_kind(struct host *host, struct det_error *reterr)
{
    const struct det_worker_kind *const *kinds = NULL;
    int r;

    r = modules_load_copy(&host->modules, host->library, host->folder, &kinds, reterr);
    if (r < 0)
        return r;
    while (*kinds && strcmp((*kinds)->name, host->identity.kind) != 0)
        kinds++;
    if (!*kinds)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "there is no kind '%s'", host->identity.kind);
    host->kind = *kinds;
    for (unsigned i = 0; i < KIND_LANES; i++) {
        host->lanes[i].observed =
            det_alloc_zero(host->allocator, kind_record_size(host->kind->observed) + 1);
        if (!host->lanes[i].observed)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    }
    host->deps = det_alloc_zero(host->allocator, host->kind->deps_size + 1);
    return host->deps ? 0 : det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
}

static int open_here(struct lane *lane)
{
    struct host *host = lane->host;
    struct det_error error = { 0 };
    int r;

    if (host->kind || !take_identity(host, lane->received, lane->request.size))
        return DET_ERR_INVALID;
    r = load_kind(host, &error);
    if (r < 0) {
        call_explain(&lane->context, "%s", error.text);
        return r;
    }
    r = host->kind->open ? host->kind->open(&lane->context, host->deps) : 0;
    host->is_open = r >= 0;
    return r;
}

/* Serving. */

static int call_function(struct lane *lane)
{
    const struct host *host = lane->host;
    const struct det_worker_kind *kind = host->kind;
    const struct kind_request *request = &lane->request;

    if (request->call == KIND_OPEN)
        return open_here(lane);
    if (!host->is_open || request->size != kind_record_size(kind->desired))
        return DET_ERR_INVALID;
    if (request->call == KIND_ACT)
        return request->action < kind->action_count
                   ? kind->actions[request->action].run(&lane->context, host->deps, lane->received)
                   : DET_ERR_INVALID;
    memset(lane->observed, 0, kind_record_size(kind->observed));
    lane->answer.size = kind_record_size(kind->observed);
    return kind->collect(&lane->context, host->deps, lane->received, lane->observed);
}

/* A panic also returns here. */
static void run_request(struct lane *lane)
{
    if (setjmp(lane->leave) == 0)
        lane->answer.result = call_function(lane);
}

static int send_answer(struct lane *lane)
{
    const struct kind_answer *answer = &lane->answer;
    int r;

    det_assert(answer->metric_count <= KIND_METRICS_MAX);
    det_assert(!answer->size || answer->size == kind_record_size(lane->host->kind->observed));
    r = kind_send(lane->descriptor, answer, sizeof *answer);
    if (r == 0)
        r = kind_send(
            lane->descriptor, lane->metrics, answer->metric_count * sizeof *lane->metrics);
    return r < 0 ? r : kind_send(lane->descriptor, lane->observed, answer->size);
}

static int receive_request(struct lane *lane)
{
    const struct kind_request *request = &lane->request;
    char *grown;
    int r;

    r = kind_receive(lane->descriptor, &lane->request, sizeof lane->request);
    if (r == 0 && request->size > lane->capacity) {
        grown = det_alloc_zero(lane->host->allocator, request->size);
        if (!grown)
            return DET_ERR_NO_MEMORY;
        det_free(lane->host->allocator, lane->received, lane->capacity);
        lane->received = grown;
        lane->capacity = request->size;
    }
    det_assert(r < 0 || request->size <= lane->capacity);
    return r < 0 ? r : kind_receive(lane->descriptor, lane->received, request->size);
}

static void serve_lane(void *argument)
{
    struct lane *lane = argument;
    struct host *host = lane->host;
    int r = 0;

    while (r == 0 && receive_request(lane) == 0) {
        det_time span = lane->request.span;

        if (lane->request.call == KIND_CANCEL)
            continue; /* late: the call has ended */
        lane->is_cancelled = false;
        lane->answer = (struct kind_answer){ 0 };
        lane->context.deadline =
            span == DET_NEVER ? DET_NEVER : det_world_now(host->world, DET_CLOCK_MONOTONIC) + span;
        run_request(lane);
        r = send_answer(lane);
    }
}

/* Moves the lanes away from the standard streams: output of the functions goes to the error stream
 * of detent. */
static int take_lanes(struct host *host)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool is_done = null >= 0;

    for (int i = 0; i < KIND_LANES; i++) {
        struct lane *lane = &host->lanes[i];

        lane->host = host;
        lane->descriptor = fcntl(i, F_DUPFD_CLOEXEC, KIND_LANES + 1);
        lane->context = (struct det_worker_context){
            .calls = &calls,
            .identity = &host->identity,
            .world = host->world,
            .allocator = host->allocator,
            .user = host,
        };
        is_done = is_done && lane->descriptor >= 0;
    }
    is_done = is_done && dup2(null, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    if (null >= 0)
        close(null);
    return is_done ? 0 : DET_ERR_IO;
}

static void close_host(struct host *host)
{
    if (host->is_open && host->kind->close)
        host->kind->close(host->deps);
    modules_close(&host->modules);
    for (unsigned i = 0; i < KIND_LANES; i++) {
        struct lane *lane = &host->lanes[i];

        det_free(host->allocator, lane->received, lane->capacity);
        if (lane->observed)
            det_free(host->allocator, lane->observed, kind_record_size(host->kind->observed) + 1);
    }
    if (host->deps)
        det_free(host->allocator, host->deps, host->kind->deps_size + 1);
    if (host->mutex)
        det_mutex_close(host->world, host->mutex);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct host host = {
        .allocator = cli->allocator,
        .world = cli->world,
        .library = args->operands[0],
        .folder = args->operands[1],
    };
    struct det_thread *thread;
    int r;

    (void)prctl(PR_SET_NAME, "detent-kind", 0, 0, 0);
    modules_init(&host.modules, host.allocator);
    r = take_lanes(&host);
    if (r == 0)
        r = det_mutex_open(host.world, &host.mutex);
    if (r == 0)
        r = det_thread_start(host.world, "actions", serve_lane, &host.lanes[1], &thread);
    if (r == 0) {
        serve_lane(&host.lanes[0]);
        det_thread_join(host.world, thread);
    }
    close_host(&host);
    return r < 0 ? CLI_FAILURE : CLI_OK;
}

extern const struct cli_command cli_command_kind_host;
const struct cli_command cli_command_kind_host = {
    .name = "kind-host",
    .summary = "run one worker of a module whose kinds are isolated",
    .about = "Internal: detent up starts it, with the lanes of isolated_worker.h as its standard\n"
             "streams.",
    .operand = { .form = "LIBRARY FOLDER", .least = 2, .most = 2 },
    .is_hidden = true,
    .run = run_command,
};
