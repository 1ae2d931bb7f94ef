/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up.c - opens the parts of a detent.yaml, turns the loop until they are done or told to stop, and
 * closes them. */
#include <detent/driver/loop.h>

#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/descriptor_budget.h"
#include "daemon/machines.h"
#include "daemon/telemetry.h"
#include "daemon/workers.h"
#include "os/os.h"
#include "terminal/input.h"

/* From the wish to stop to the first word on who is still there, and from one to the next. */
#define PATIENCE_FIRST (2 * DET_SECOND)
#define PATIENCE_EVERY (5 * DET_SECOND)
/* How long what is closed may wait for a store that is away. */
#define STORE_SPAN (5 * DET_SECOND)

#define COUNTS_MAX 160

const char *up_address(const struct up *up)
{
    const struct up_front *front = up->options->front;

    return front ? front->address(up) : NULL;
}

void up_set_state(struct up *up, enum up_state state)
{
    det_assert(state >= up->state);
    up->state = state;
}

/* Stopping. */

static void arm_patience(struct up *up, det_time span)
{
    /* Without memory nobody is told; the grace of the tasks does not depend on it. */
    (void)!det_loop_timer_set(up->loop, &up->patience, det_loop_now(up->loop) + span);
}

static void on_patience(void *argument)
{
    struct up *up = argument;
    det_time left;

    if (up->state != UP_STOPPING)
        return;
    up_note_stopping(up);
    left = up->stop_at + up_grace(up) - det_loop_now(up->loop);
    /* Tasks see to their own. */
    if (left <= 0)
        up_workers_stop(up);
    arm_patience(up, left > 0 && left < PATIENCE_EVERY ? left : PATIENCE_EVERY);
}

void up_begin_stop(struct up *up)
{
    up_set_state(up, UP_STOPPING);
    up->stop_at = det_loop_now(up->loop);
    up_deadline_arm(up);
    arm_patience(up, PATIENCE_FIRST);
    serve_notify_tell(&up->notify, "STOPPING=1\nSTATUS=stops");
    /* Who comes now is refused, and need not wait for our end. */
    serve_sockets_close(&up->sockets);
    up_machines_stop(up);
    up_workers_stop(up);
    det_tasks_begin_shutdown(up->tasks);
}

void up_stop(struct up *up, const char *why)
{
    if (up->state == UP_OVER)
        return;
    if (up->state < UP_STOPPING) {
        up_note(up, UP_NAME, "%s: stops all tasks; once more to force it", why);
        up_begin_stop(up);
        return;
    }
    if (det_loop_now(up->loop) - up->stop_at < UP_SAME_WISH)
        return;
    up_note(up, UP_NAME, "%s again: kills what is left", why);
    det_tasks_force(up->tasks);
    up_workers_stop(up);
}

int up_drain(struct up *up)
{
    if (up->state == UP_RUNNING)
        up_set_state(up, UP_DRAINING);
    up_durable_drain(up);
    return up_drain_all(up);
}

/* What the tasks tell. */

static void on_line(void *user, const struct det_line *line)
{
    struct up *up = user;
    det_time at = det_world_now(up->cli->world, DET_CLOCK_WALL);

    up_lines_add(&up->lines, line, at);
    up_log_files_line(up, line, at);
    if (!serve_log_is_told(up, DET_LOG_INFO))
        ;
    else if (up->log)
        serve_log_line(up, line);
    else if (up_output_has_room(&up->output))
        prefix_line(&up->prefix, line, at);
}

static void on_end(void *user, const struct det_task_end *end)
{
    up_known_ended(user, end);
    up_waits_ended(user, end);
}

static void on_empty(void *user)
{
    struct up *up = user;

    up->is_empty = true;
}

/* Opening, in the order of closing from behind. */

static int open_tasks(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    struct det_tasks_options options = {
        .allocator = up->cli->allocator,
        .loop = up->loop,
        .concurrent_max = config->limits.concurrent_max,
        .tasks_max = config->limits.tasks_max,
        .slot_depth_max = config->limits.slot_depth_max,
        .grace = config->limits.grace,
        .defaults = config->defaults,
        .on_line = on_line,
        .on_end = on_end,
        .on_empty = on_empty,
        .user = up,
    };

    return det_tasks_open(&options, &up->tasks, reterr);
}

static int open_journal(struct up *up, struct det_error *reterr)
{
    struct det_subscriber subscriber;
    int r;

    r = det_task_journal_open(
        up->cli->world, up->options->journal, up->cli->allocator, &up->journal, reterr);
    if (r < 0)
        return r;
    subscriber = det_task_journal_subscriber(up->journal);
    return det_bus_subscribe(
        det_tasks_bus(up->tasks), &subscriber, &up->journal_subscription, reterr);
}

static int open_parts(struct up *up, struct det_error *reterr)
{
    struct det_subscriber notes = up_notes_subscriber(up);
    int r;

    r = det_loop_open(up->cli->world, up->cli->allocator, &up->loop);
    if (r == 0)
        r = up_signals_open(up);
    if (r == 0)
        r = serve_notify_watch(&up->notify, up->loop);
    if (r == 0)
        r = up_audit_open(up);
    up_output_attach(&up->output, up->loop);
    if (r < 0)
        return det_error_set(reterr, r, "cannot begin: %s", det_error_text(r));
    r = socket_listen(up->project, &up->door, reterr);
    if (r == 0)
        r = up_guard_start(up, reterr);
    if (r == 0)
        r = open_tasks(up, reterr);
    if (r == 0)
        r = det_bus_subscribe(det_tasks_bus(up->tasks), &notes, &up->notes_subscription, reterr);
    if (r == 0 && up->options->journal)
        r = open_journal(up, reterr);
    if (r == 0)
        r = up_observe_open(up, reterr);
    if (r == 0 && serve_log_open(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0 && det_mutex_open(up->cli->world, &up->listener_lock) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = up->options->front->prepare(up, reterr);
    if (r == 0)
        r = up_workers_open_store(up, reterr);
    if (r == 0 && up->serves_machines)
        r = up_machines_open(up, reterr);
    if (r == 0)
        r = up_durable_open(up, reterr);
    if (r == 0)
        r = up_workers_open(up, reterr);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = up->options->front->open(up, reterr);
    return r;
}

static void tell_hidden(struct up *up, bool is_last)
{
    uint64_t hidden = up_output_take_hidden(&up->output, is_last);

    if (hidden)
        up_note_failure(
            up, UP_NAME, "%llu line%s %s not shown: the output was not read fast enough",
            (unsigned long long)hidden, det_plural(hidden), det_is_or_are(hidden));
}

static void close_parts(struct up *up)
{
    up_deadline_arm(up);
    up_store_limit(up, STORE_SPAN);
    up_reload_close(up);
    up_deadline_phase(up, "requests to the API wait for the store");
    up->options->front->pause(up, true);
    up_deadline_phase(up, "an action of a worker is still running");
    up_workers_close(up);
    up_deadline_phase(up, "durable slots and machines wait for the store, or an effect runs");
    up_durable_close(up);
    up_machines_close(up);
    up_workers_close_store(up);
    /* Who is told that all has stopped can rely on the place being free. */
    if (up->door.descriptor >= 0)
        socket_unlisten(&up->door);
    up_waits_over(up);
    up_deadline_phase(
        up, "a client, the collector of spans or the reader of the output does not read");
    up->options->front->close(up);
    up->options->front->free(up);
    serve_local_close(&up->local);
    tokens_close(up->tokens);
    if (up->listener_lock)
        det_mutex_close(up->cli->world, up->listener_lock);
    up_audit_close(up);
    det_tasks_close(up->tasks);
    up_log_files_close(up);
    det_task_journal_close(up->journal);
    if (up->loop) {
        det_loop_timer_cancel(up->loop, &up->patience);
        det_loop_timer_cancel(up->loop, &up->quiet);
        det_loop_timer_cancel(up->loop, &up->store_look);
        det_loop_timer_cancel(up->loop, &up->guard_tend);
        up_signals_close(up);
    }
    tell_hidden(up, true);
    /* The log counts what it drops. */
    up_observe_close(up);
    serve_log_close(up);
    up_output_close(&up->output);
    serve_notify_close(&up->notify);
    up_signals_end(up);
    det_loop_close(up->loop);
    det_process_guard_close(up->guard);
}

/* Running. */

/* What there is most of to look at: tasks, else durable slots, else machines, else workers. */
static void say_what_runs(const struct up *up)
{
    const struct {
        size_t count;
        const char *one, *many;
    } kinds[] = {
        { up->selected_count, "task", "tasks" },
        { up->durable_count, "durable slot", "durable slots" },
        { up_machines_count(up), "machine", "machines" },
        { up_workers_count(up), "worker", "workers" },
    };
    size_t i = 0;

    while (i < 3 && kinds[i].count == 0)
        i++;
    cli_say(
        up->cli, "%s: %zu %s. Ctrl-C stops all.\n", up->file.path, kinds[i].count,
        kinds[i].count == 1 ? kinds[i].one : kinds[i].many);
}

/* A banner scrolls away: how to get the link again is part of it. */
static void say_commands(struct up *up)
{
    const char *commands;

    if (up->selected_count)
        commands = "detent tree, detent logs -f, detent restart NAME";
    else if (up->workers && !up->machines && !up->durable_count)
        commands = "detent workers, detent desired ID, detent observed ID";
    else if (!up->machines)
        commands = "detent submit SLOT -- COMMAND, detent jobs";
    else
        commands = "detent start MACHINE ID, detent send ID EVENT, detent why ID";
    cli_say(
        up->cli, "In another terminal: %s, %sdetent stop\n", commands,
        up_address(up) ? "detent console, " : "");
}

static void say_banner(struct up *up)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->task_count; i++) {
        if (up->is_selected[i])
            prefix_learn(&up->prefix, config->tasks[i].spec.name);
    }
    for (size_t i = 0; i < config->group_count; i++)
        prefix_learn(&up->prefix, config->groups[i].spec.name);
    prefix_learn(&up->prefix, UP_NAME);
    up_descriptors_check(up);
    if (up->options->is_quiet || up->cli->is_json || up->log)
        return;
    say_what_runs(up);
    up_machines_say(up);
    up->options->front->say(up);
    say_commands(up);
}

static void print_counts(struct up *up, char *target, size_t size)
{
    snprintf(
        target, size, "%zu task%s, %zu machine%s, %zu durable slot%s, %zu worker%s",
        up->selected_count, det_plural(up->selected_count), up_machines_count(up),
        det_plural(up_machines_count(up)), up->durable_count, det_plural(up->durable_count),
        up_workers_count(up), det_plural(up_workers_count(up)));
}

void up_tell_ready(struct up *up)
{
    char counts[COUNTS_MAX];

    print_counts(up, counts, sizeof counts);
    serve_notify_tell(&up->notify, "READY=1\nSTATUS=%s", counts);
}

/* The first line of a log, where a terminal has the banner. */
static void log_ready(struct up *up)
{
    const char *address = up_address(up);
    char counts[COUNTS_MAX];

    if (!up->log)
        return;
    print_counts(up, counts, sizeof counts);
    up_note(
        up, UP_NAME, "ready: %s: %s%s%s", up->file.path, counts, address ? "; listens on " : "",
        address ? address : "");
}

/* Who watches tasks ends with them; a service goes on without its log. */
static void heed_output(struct up *up)
{
    if (!up->cli->out_error)
        return;
    if (up->options->is_serving || up->log)
        serve_log_lost(up, up_output_forgive(&up->output));
    else if (up->state < UP_STOPPING)
        up_stop(up, "nobody reads the output");
}

/* Behind each turn of the loop: nobody is in the middle of anything. */
static void after_turn(struct up *up)
{
    if (up->reload_signalled && !up->reload_wanted && !up->is_reloading) {
        up->reload_wanted = true;
        up->reload_signalled = false;
    }
    if (up->reload_wanted && up->state == UP_RUNNING && !up->is_reloading)
        up_reload(up);
    else if (up->reload_wanted && up->state >= UP_STOPPING)
        up_reload_over(up);
    up_follow_all(up);
    up_log_files_flush(up);
    up_output_flush(&up->output);
    tell_hidden(up, false);
    heed_output(up);
    if (up->state < UP_STOPPING && up_store_is_lost(up)) {
        up_note_failure(up, UP_NAME, "the store has failed permanently: %s", UP_LOST_HINT);
        up_begin_stop(up);
    }
    if (up->state == UP_STOPPING && up->tasks_are_over && up_workers_are_over(up))
        up_set_state(up, UP_OVER);
    if ((!up->is_empty && !up->has_news) || up->state >= UP_STOPPING)
        return;
    up->is_empty = up->has_news = false;
    up_add_pending(up);
    up_quiet_arm(up);
    if (up_is_done(up))
        up_begin_stop(up);
}

static int run_tasks(struct up *up)
{
    struct det_error error = { 0 };
    int r;

    say_banner(up);
    r = up_add_all(up, &error);
    if (r < 0) {
        cli_complain(up->cli, "%s", error.text);
        return cli_exit_of(r);
    }
    up->is_empty = up->has_begun = true;
    up_tell_ready(up);
    log_ready(up);
    /* An interruption from before there were our own signals. */
    if (cli_is_interrupted())
        up_stop(up, "interrupted");
    after_turn(up);
    while (r >= 0 && up->state != UP_OVER) {
        r = det_loop_turn(up->loop, DET_NEVER);
        after_turn(up);
    }
    if (r < 0) {
        cli_complain(up->cli, "%s", det_error_text(r));
        return CLI_FAILURE;
    }
    up_workers_finish(up);
    if (up->cli->out_error && up->cli->out_error != EPIPE)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_complain(up->cli, "cannot write the output: %s", strerror(up->cli->out_error));
    if (up_store_is_lost(up)) {
        cli_complain(up->cli, "the store has failed permanently: %s", UP_LOST_HINT);
        return CLI_STORE_LOST;
    }
    if (up->was_forced)
        return CLI_TIMEOUT;
    return up->has_failed || up->cli->out_error ? CLI_FAILURE : CLI_OK;
}

static int run_open(struct up *up)
{
    struct det_error error = { 0 };
    int code, r;

    up_lines_init(&up->lines, up->cli->allocator);
    det_list_init(&up->waits);
    det_list_init(&up->followers);
    det_list_init(&up->errands);
    up->patience = (struct det_timer){ .run = on_patience, .argument = up };
    up->quiet = (struct det_timer){ .run = up_on_quiet, .argument = up };
    up->signal_watch.descriptor = -1;
    up->door = (struct socket_listener){ .folder = -1, .lock = -1, .descriptor = -1 };
    up->since = det_world_now(up->cli->world, DET_CLOCK_WALL);
    if (up_output_open(&up->output, up->cli) < 0)
        return cli_no_memory(up->cli);
    up->cli = &up->output.cli;
    if (up_guard_open(up) < 0) {
        up_output_close(&up->output);
        return cli_no_memory(up->output.outer);
    }
    prefix_init(&up->prefix, up->cli, up->options->has_times);
    r = open_parts(up, &error);
    if (r < 0)
        cli_complain(up->cli, "%s", error.text);
    /* Kinds of workers of modules are known only then. */
    code = r == DET_ERR_MALFORMED ? CLI_USAGE : r < 0 ? cli_exit_of(r) : run_tasks(up);
    close_parts(up);
    up->cli = up->output.outer;
    up_lines_deinit(&up->lines);
    return code;
}

int up_settle(struct up *up)
{
    const char *const *base = (const char *const *)environ;
    char *whole;
    int r;

    r = det_file_folder(up->options->path, up->project);
    /* Processes are started where they belong, whatever becomes of our own folder. */
    whole = r == 0 ? realpath(up->project, NULL) : NULL;
    if (whole && strlen(whole) < sizeof up->project)
        memcpy(up->project, whole, strlen(whole) + 1);
    free(whole);
    if (r == 0)
        r = config_settle(&up->file.config, &up->file.arena, up->project, base);
    if (r < 0)
        cli_complain(up->cli, "%s: %s", up->options->path, det_error_text(r));
    return r < 0 ? cli_exit_of(r) : CLI_OK;
}

/* What our own supervisor has told us is not for tasks: one of them would answer in our name. */
static void forget_supervisor(void)
{
    static const char *const names[] = {
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
        "LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]); /* NOLINT(concurrency-mt-unsafe): there are no threads yet */
}

/* From the file to the place where nothing needs the rights of who has started us any more. */
static int prepare(struct up *up)
{
    const struct up_options *options = up->options;
    const struct serve_wish wish = {
        .project = up->project,
        .path = up->file.path,
        .user = options->user,
        .is_serving = options->is_serving,
        .may_be_root = options->may_be_root,
    };
    struct config_http *http = &up->file.config.http;
    struct det_error error = { 0 };
    int code, r;

    r = serve_listen(options->listen, &up->file.arena, http, &error);
    if (r == 0) {
        code = serve_check(up->cli, &wish, http, &up->sockets);
        if (code != CLI_OK)
            return code;
    }
    if (r == 0 && options->user)
        r = serve_sockets_bind(&up->sockets, http, &error);
    if (r == 0 && options->user)
        r = serve_become(options->user, &error);
    if (r < 0) {
        cli_complain(up->cli, "%s", error.text);
        return cli_exit_of_request(r);
    }
    serve_hide();
    return CLI_OK;
}

static int run_given(struct up *up)
{
    int code;

    code = config_project_open(up->cli, up->options->path, true, &up->file);
    if (code == CLI_OK)
        code = up_select(up);
    if (code == CLI_OK)
        code = up_settle(up);
    if (code == CLI_OK)
        code = prepare(up);
    return code == CLI_OK ? run_open(up) : code;
}

static int run_file(struct cli *cli, const struct up_options *options)
{
    struct up up = { .cli = cli, .options = options };
    struct det_error error = { 0 };
    int code = CLI_OK;

    serve_notify_open(&up.notify);
    if (serve_sockets_given(&up.sockets, &error) < 0) {
        cli_complain(cli, "%s", error.text);
        code = CLI_USAGE;
    }
    forget_supervisor();
    if (code == CLI_OK)
        code = run_given(&up);
    serve_sockets_close(&up.sockets);
    serve_notify_close(&up.notify);
    up_retired_close(&up);
    if (up.is_selected)
        DET_DELETE_ARRAY(cli->allocator, up.is_selected, up.file.config.task_count + 1);
    if (up.known)
        DET_DELETE_ARRAY(cli->allocator, up.known, up.file.config.task_count + 1);
    config_file_close(cli, &up.file);
    return code;
}

int up_run(struct cli *cli, struct up_options *options)
{
    char path[DET_PATH_MAX + sizeof CONFIG_FILE_NAME + 1], project[DET_PATH_MAX];
    struct det_error error = { 0 };
    int r;

    if (!options->path) {
        r = serve_project(project, &error);
        if (r < 0) {
            cli_complain(cli, "%s", error.text);
            return cli_exit_of(r);
        }
        if (cli_is_same_file(".", project))
            snprintf(path, sizeof path, "%s", CONFIG_FILE_NAME);
        else
            snprintf(path, sizeof path, "%s/%s", project, CONFIG_FILE_NAME);
        options->path = path;
    }
    return run_file(cli, options);
}
