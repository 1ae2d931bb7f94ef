/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.c - keeps one program running.
 *
 * All access to `process` holds the lock of the worker, so that a concurrent start and stop are
 * serialized, and a cancelled start starts nothing. An exited process is reaped by the next
 * observation and by close(): neither zombies nor orphans remain. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "kinds/kinds.h"
#include "kinds/process.h"
#include "os/os.h"

struct process_deps {
    struct det_world *world;
    struct det_process *process; /* NULL: none */
    det_time started_at;         /* monotonic */
    uint64_t launch, loaded;     /* fingerprint of the last start, and of the last load */
    uint64_t files;              /* of those to load, when they could be read last */
    struct process_observed seen;
};

#define WORKER_SPEC "kinds/process.worker"
#include <detent/worker/define.h>

/* Larger files are compared by their size alone. */
#define RELOAD_FILE_MAX (1 << 20)

/* Under the lock. */
static void assert_process(const struct process_deps *deps)
{
    det_assert(deps->seen.is_running == (deps->process != NULL));
    det_assert(deps->seen.is_running || (!deps->seen.stop_sent && !deps->seen.is_steady));
    det_assert(!deps->seen.has_exit_code || !deps->seen.has_exit_signal);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return det_hash64(text, strlen(text) + 1, hash);
}

/* Members that need a restart. The hash is not published: it could reveal secrets. */
static uint64_t launch_of(const struct process_desired *desired)
{
    uint64_t hash = det_hash_mix(desired->argv_count, (uint64_t)desired->output);

    for (uint32_t i = 0; i < desired->argv_count; i++)
        hash = mix_text(hash, desired->argv[i]);
    for (uint32_t i = 0; i < desired->environment_count; i++)
        hash = mix_text(hash, desired->environment[i]);
    return mix_text(mix_text(hash, desired->folder), desired->user);
}

/* Members that need a reload, including the content of the files. */
static uint64_t load_of(const struct process_desired *desired, uint64_t files)
{
    return mix_text(files, desired->revision);
}

/* Returns true if one of these has completed since the worker entered its state. */
static bool has_done(const struct process_view *view, const char *action, const char *other)
{
    const struct det_action_end *last = view->all->last_action;

    return last->action && last->at >= view->all->since &&
           (strcmp(last->action, action) == 0 || strcmp(last->action, other) == 0);
}

static bool must_be_replaced(const struct process_view *view)
{
    return view->observed->is_running && (view->observed->stop_sent || !view->observed->is_current);
}

static const char *end_reason(const struct process_view *view)
{
    const struct process_observed *seen = view->observed;
    const struct det_action_end *last = view->all->last_action;

    if (last->action && last->code < 0 && strcmp(last->action, "start") == 0)
        return det_reason(view->all, "it cannot be started: %s", last->text);
    if (seen->has_exit_signal)
        return det_reason(
            view->all, "ended by signal %s, %u early exit%s", seen->exit_signal, seen->early_exits,
            det_plural(seen->early_exits));
    return det_reason(
        view->all, "ended with code %d, %u early exit%s", seen->exit_code, seen->early_exits,
        det_plural(seen->early_exits));
}

/* Doubles with every early exit. */
static det_time delay_of(const struct process_view *view)
{
    uint32_t times = view->observed->early_exits;
    uint64_t delay = view->desired->delay_ms;

    for (; times > 1 && delay < view->desired->delay_max_ms; times--)
        delay *= 2;
    if (delay > view->desired->delay_max_ms)
        delay = view->desired->delay_max_ms;
    return (det_time)delay * DET_MILLISECOND;
}

static struct process_next process_in_stopped(const struct process_view *view)
{
    (void)view;
    return process_goto(PROCESS_STARTING, "must run");
}

static struct process_next process_in_starting(const struct process_view *view)
{
    const struct process_observed *seen = view->observed;

    if (must_be_replaced(view))
        return process_goto(PROCESS_REPLACING, "it runs with an older config");
    if (seen->is_running && (seen->is_steady || !seen->early_exits))
        return process_goto(
            PROCESS_RUNNING, det_reason(view->all, "runs as %lld", (long long)seen->pid));
    if (seen->is_running)
        return process_hold(det_reason(
            view->all, "restarted; being watched after %u early exit%s", seen->early_exits,
            det_plural(seen->early_exits)));
    if (has_done(view, "start", "start"))
        return process_goto(PROCESS_BACKING_OFF, end_reason(view));
    return process_do(PROCESS_START, det_reason(view->all, "starts %s", view->desired->argv[0]));
}

static struct process_next process_in_running(const struct process_view *view)
{
    const struct process_observed *seen = view->observed;

    if (must_be_replaced(view))
        return process_goto(PROCESS_REPLACING, "it runs with an older config");
    if (!seen->is_running)
        return process_goto(
            seen->early_exits ? PROCESS_BACKING_OFF : PROCESS_STARTING, end_reason(view));
    if (seen->is_loaded)
        return process_hold(det_reason(view->all, "runs as %lld", (long long)seen->pid));
    if (!*view->desired->reload_signal)
        return process_goto(PROCESS_REPLACING, "a loaded file or the revision has changed");
    return process_do(PROCESS_RELOAD, "a loaded file or the revision has changed");
}

/* After a stop that completed since it entered its state: a start may have been in progress, so
 * that nothing seemed to run. */
static bool has_ended(const struct process_view *view)
{
    return has_done(view, "stop", "kill") && !view->observed->is_running;
}

/* The way out of a program that runs. */
static struct process_next end_it(const struct process_view *view)
{
    det_time grace = (det_time)view->desired->grace_ms * DET_MILLISECOND;

    if (!has_done(view, "stop", "kill"))
        return process_do(
            PROCESS_STOP, det_reason(view->all, "sends %s", view->desired->stop_signal));
    if (view->all->now - view->all->since >= grace)
        return process_do(PROCESS_KILL, "the grace has passed");
    return process_hold(
        det_reason(view->all, "has %u ms to end by itself", view->desired->grace_ms));
}

static struct process_next process_in_replacing(const struct process_view *view)
{
    if (has_ended(view))
        return process_goto(PROCESS_STARTING, "it has ended");
    return end_it(view);
}

static struct process_next process_in_backing_off(const struct process_view *view)
{
    if (view->observed->is_running)
        return process_goto(PROCESS_STARTING, "it runs");
    if (!view->observed->is_current)
        return process_goto(PROCESS_STARTING, "its config has changed");
    if (view->all->now - view->all->since >= delay_of(view))
        return process_goto(PROCESS_STARTING, "the delay has passed");
    return process_hold(end_reason(view));
}

static struct process_next process_in_stopping(const struct process_view *view)
{
    if (has_ended(view))
        return process_goto(PROCESS_STOPPED, "it has ended");
    return end_it(view);
}

static void note_end(
    struct process_deps *deps, const struct process_desired *desired,
    const struct det_process_end *end)
{
    det_time lived = det_world_now(deps->world, DET_CLOCK_MONOTONIC) - deps->started_at;
    struct process_observed *seen = &deps->seen;
    const char *name = end->signal ? sigabbrev_np(end->signal) : NULL;

    if (seen->stop_sent || lived >= (det_time)desired->steady_ms * DET_MILLISECOND)
        seen->early_exits = 0;
    else
        seen->early_exits++;
    seen->is_running = seen->is_steady = seen->stop_sent = false;
    seen->pid = 0;
    seen->changed_at = det_world_now(deps->world, DET_CLOCK_WALL);
    seen->has_exit_signal = end->signal != 0;
    (void)det_text_copy(seen->exit_signal, sizeof seen->exit_signal, name ? name : "");
    seen->has_exit_code = end->signal == 0;
    seen->exit_code = end->signal ? 0 : end->code;
}

/* Under the lock. */
static void inspect_process(struct process_deps *deps, const struct process_desired *desired)
{
    struct det_process_end end = { .code = -1 };
    det_time now = det_world_now(deps->world, DET_CLOCK_MONOTONIC);

    if (!deps->process)
        return;
    if (deps->world->ops->process_wait(deps->world, deps->process, now, &end) == DET_ERR_TIMEOUT) {
        deps->seen.is_steady =
            now - deps->started_at >= (det_time)desired->steady_ms * DET_MILLISECOND;
        if (deps->seen.is_steady)
            deps->seen.early_exits = 0;
        return;
    }
    note_end(deps, desired, &end);
    deps->world->ops->process_close(deps->world, deps->process);
    deps->process = NULL;
}

/* Hashes the files to load. An unreadable file counts as missing until it can be read; except for
 * DET_ERR_NO_MEMORY, DET_ERR_LIMIT: we have no memory or descriptor to read it. */
static int read_files(
    struct det_worker_context *context, const struct process_desired *desired, uint64_t *ret)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < desired->reload_files_count; i++) {
        size_t size = 0;
        char *data;
        int r = det_file_load(
            context->world, context->allocator, desired->reload_files[i], RELOAD_FILE_MAX, &data,
            &size);

        if (det_error_is_shortage(r))
            return det_worker_fail(
                context, r, "%s could not be read: %s", desired->reload_files[i],
                det_error_text(r));
        hash = det_hash_mix(hash, (uint64_t)r);
        if (r < 0)
            continue;
        hash = det_hash64(data, size, hash);
        det_free(context->allocator, data, size + 1);
    }
    *ret = hash;
    return 0;
}

static int process_collect(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired, struct process_observed *observed)
{
    uint64_t files = 0;
    bool is_read = read_files(context, desired, &files) == 0;

    det_worker_lock(context);
    inspect_process(deps, desired);
    /* Files that could not be read for lack of resources have not changed: no reload. */
    if (is_read)
        deps->files = files;
    assert_process(deps);
    *observed = deps->seen;
    observed->is_current = deps->launch == launch_of(desired);
    observed->is_loaded = deps->loaded == load_of(desired, deps->files);
    det_worker_unlock(context);
    return 0;
}

static bool is_same_variable(const char *a, const char *b)
{
    size_t size = strcspn(a, "=") + 1;

    return strncmp(a, b, size) == 0;
}

static bool has_variable(const struct process_desired *desired, const char *variable)
{
    for (uint32_t i = 0; i < desired->environment_count; i++)
        if (is_same_variable(desired->environment[i], variable))
            return true;
    return false;
}

/* Our environment, overridden and extended by that of the config. */
static const char **environment_of(
    const struct det_allocator *allocator, const struct process_desired *desired, size_t *ret)
{
    const char **all;
    size_t count = 0;

    while (environ[count])
        count++;
    *ret = count + desired->environment_count + 1;
    all = DET_NEW_ARRAY(allocator, *ret, const char *);
    if (!all)
        return NULL;
    count = 0;
    for (char **own = environ; *own; own++)
        if (!has_variable(desired, *own))
            all[count++] = *own;
    for (uint32_t i = 0; i < desired->environment_count; i++)
        all[count++] = desired->environment[i];
    det_assert(count < *ret);
    return all;
}

static int spawn_in(
    struct process_deps *deps, const struct process_desired *desired,
    const char *const *environment, struct det_error *reterr)
{
    const char *argv[33] = { NULL };
    bool is_logged = desired->output == PROCESS_OUTPUT_LOG;
    struct det_process_options options = {
        .argv = argv,
        .environment = environment,
        .folder = *desired->folder ? desired->folder : NULL,
        .user = *desired->user ? desired->user : NULL,
        .input = -1,
        .output = is_logged ? STDERR_FILENO : -1,
        .error = is_logged ? STDERR_FILENO : -1,
        .new_group = true,
        .ends_with_us = true,
    };

    det_assert(desired->argv_count > 0 && desired->argv_count < sizeof argv / sizeof *argv);
    for (uint32_t i = 0; i < desired->argv_count; i++)
        argv[i] = desired->argv[i];
    return deps->world->ops->process_start(deps->world, &options, &deps->process, reterr);
}

static int spawn_process(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired, struct det_error *reterr)
{
    const char **environment;
    size_t count;
    int r;

    if (!desired->environment_count)
        return spawn_in(deps, desired, NULL, reterr);
    environment = environment_of(context->allocator, desired, &count);
    if (!environment)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "environment: out of memory");
    r = spawn_in(deps, desired, environment, reterr);
    DET_DELETE_ARRAY(context->allocator, environment, count);
    return r;
}

/* Under the lock. */
static void note_start(
    struct process_deps *deps, const struct process_desired *desired, uint64_t files)
{
    struct process_observed *seen = &deps->seen;

    deps->started_at = det_world_now(deps->world, DET_CLOCK_MONOTONIC);
    seen->is_running = true;
    seen->is_steady = seen->stop_sent = false;
    seen->pid = deps->world->ops->process_number(deps->world, deps->process);
    seen->starts++;
    seen->changed_at = det_world_now(deps->world, DET_CLOCK_WALL);
    deps->files = files;
    deps->loaded = load_of(desired, files);
}

/* Under the lock. A failed start counts as an early exit, unless we are out of descriptors,
 * processes or memory. */
static int start_now(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired, uint64_t files)
{
    struct det_error error = { 0 };
    int r;

    if (deps->process)
        return 0;
    deps->launch = launch_of(desired);
    r = spawn_process(context, deps, desired, &error);
    if (r == 0) {
        note_start(deps, desired, files);
        return 0;
    }
    deps->seen.early_exits += r != DET_ERR_LIMIT && r != DET_ERR_NO_MEMORY;
    return det_worker_fail(context, r, "%s", *error.text ? error.text : det_error_text(r));
}

/* Starts before a stop, which waits for the lock and then finds the process, or not at all. */
static int process_do_start(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired)
{
    uint64_t files = 0;
    int r = read_files(context, desired, &files);

    det_worker_lock(context);
    inspect_process(deps, desired);
    if (det_worker_is_cancelled(context))
        r = DET_ERR_CANCELLED;
    else if (r == 0)
        r = start_now(context, deps, desired, files);
    else if (!deps->process)
        deps->launch = launch_of(desired);
    assert_process(deps);
    det_worker_unlock(context);
    det_worker_count(context, "starts", r == 0);
    return r;
}

/* Under the lock. A process that has exited needs no signal. */
static int send_signal(struct det_worker_context *context, struct process_deps *deps, int number)
{
    int r;

    det_assert(number > 0);
    r = deps->process ? deps->world->ops->process_kill(deps->world, deps->process, number) : 0;

    if (r == 0 || r == DET_ERR_NOT_FOUND)
        return 0;
    return det_worker_fail(
        context, r, "signal %s could not be sent: %s", sigabbrev_np(number), det_error_text(r));
}

static int process_do_reload(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired)
{
    uint64_t files = 0;
    int r;

    r = read_files(context, desired, &files);
    if (r < 0)
        return r;
    det_worker_lock(context);
    r = send_signal(context, deps, process_signal(desired->reload_signal));
    if (r == 0) {
        deps->files = files;
        deps->loaded = load_of(desired, files);
    }
    det_worker_unlock(context);
    det_worker_count(context, "reloads", r == 0);
    return r;
}

static int process_do_stop(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired)
{
    int r = 0;

    det_worker_lock(context);
    inspect_process(deps, desired);
    if (deps->process && !deps->seen.stop_sent) {
        r = send_signal(context, deps, process_signal(desired->stop_signal));
        deps->seen.stop_sent = r == 0;
    }
    assert_process(deps);
    det_worker_unlock(context);
    return r;
}

static int process_do_kill(
    struct det_worker_context *context, struct process_deps *deps,
    const struct process_desired *desired)
{
    int r;

    det_worker_lock(context);
    inspect_process(deps, desired);
    deps->seen.stop_sent = deps->process != NULL;
    r = send_signal(context, deps, SIGKILL);
    det_worker_unlock(context);
    det_worker_count(context, "kills", r == 0);
    return r;
}

static int process_open(struct det_worker_context *context, struct process_deps *deps)
{
    deps->world = context->world;
    return 0;
}

static void process_close(struct process_deps *deps)
{
    if (!deps->process)
        return;
    (void)deps->world->ops->process_kill(deps->world, deps->process, SIGKILL);
    deps->world->ops->process_close(deps->world, deps->process);
}

static int process_derive(
    struct det_derive *derive, const struct process_desired *config,
    struct process_desired *desired)
{
    return process_settle(derive, config, desired);
}
