/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon.c - opens the parts of a run, turns the loop until they are done or a stop is requested,
 * and closes them. */
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
#include "daemon/flows.h"
#include "daemon/machines.h"
#include "daemon/project_internal.h"
#include "daemon/reload.h"
#include "daemon/run.h"
#include "daemon/slots.h"
#include "daemon/telemetry.h"
#include "daemon/workers.h"
#include "os/os.h"
#include "terminal/input.h"

/* Limit of a wait for an unreachable store while parts are closed. */
#define STORE_SPAN (5 * DET_SECOND)

#define COUNTS_MAX 160

const char *up_address(const struct up *up)
{
    const struct up_front *front = up->options->front;

    return front ? front->address(up) : NULL;
}

/* The handler of the events of life.fsm. */

static void stop_parts(struct up *up, const char *why)
{
    if (why)
        up_note(up, UP_NAME, "%s: stopping all tasks; repeat to kill them", why);
    up_deadline_arm(up);
    serve_notify_send(&up->notify, "STOPPING=1\nSTATUS=stops");
    /* New clients are refused at once instead of waiting for the end of the process. */
    up_run_sockets_refuse(up);
    up_machines_stop(up);
    up_workers_stop(up);
    up_flows_stop(up);
    det_tasks_begin_shutdown(up_tasks_supervisor(up));
}

static void force_parts(struct up *up, const char *why)
{
    up_note(up, UP_NAME, "%s again: killing all remaining tasks", why);
    det_tasks_force(up_tasks_supervisor(up));
    up_workers_stop(up);
    up_flows_stop(up);
}

static bool are_parts_empty(const struct up *up)
{
    return up_tasks_are_over(up) && up_workers_are_over(up) && up_flows_are_over(up);
}

/* The supervisor of tasks enforces the grace of tasks itself. */
static void report_stop(struct up *up, bool is_late)
{
    up_note_stopping(up);
    if (is_late) {
        up_workers_stop(up);
        up_flows_stop(up);
    }
}

const struct up_life_handler up_daemon_life = {
    .stop = stop_parts,
    .force = force_parts,
    .is_empty = are_parts_empty,
    .grace = up_grace,
    .report_stop = report_stop,
    .report_idle = up_report_idle,
};

int up_drain(struct up *up)
{
    up_set_draining(up);
    up_slots_drain(up);
    return up_drain_all(up);
}

/* Opening. close_parts() closes in reverse order. */

static int open_parts(struct up *up, struct det_error *reterr)
{
    int r;

    r = det_loop_open(up->cli->world, up->cli->allocator, &up->loop);
    if (r == 0)
        r = up_life_open(up, &up_daemon_life);
    if (r == 0)
        r = up_reload_open(up);
    if (r == 0)
        r = up_signals_open(up);
    if (r == 0)
        r = serve_notify_watch(&up->notify, up->loop);
    if (r == 0)
        r = up_audit_open(up);
    if (r == 0)
        r = up_store_watch_open(up);
    up_output_attach(&up->output, up->loop);
    if (r < 0)
        return det_error_set(reterr, r, "cannot start: %s", det_error_text(r));
    r = up_run_sockets_lock(up, reterr);
    if (r == 0)
        r = up_guard_start(up, reterr);
    if (r == 0)
        r = up_tasks_open(up, reterr);
    if (r == 0)
        r = up_observe_open(up, reterr);
    if (r == 0 && serve_log_open(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0 && det_mutex_open(up->cli->world, &up->front.listener_lock) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0)
        r = up->options->front->prepare(up, reterr);
    if (r == 0)
        r = up_workers_open_store(up, reterr);
    if (r == 0 && up->project->serves_machines)
        r = up_machines_open(up, reterr);
    if (r == 0)
        r = up_slots_open(up, reterr);
    if (r == 0)
        r = up_workers_open(up, reterr);
    if (r == 0)
        r = up_flows_open(up, reterr);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0)
        r = up->options->front->open(up, reterr);
    return r;
}

static void report_hidden(struct up *up, bool is_last)
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
    up_deadline_phase(up, "a stage of a flow is still running");
    up_flows_close(up);
    up_deadline_phase(up, "an action of a worker is still running");
    up_workers_close(up);
    up_deadline_phase(up, "durable slots and machines wait for the store, or an effect runs");
    up_slots_close(up);
    up_machines_close(up);
    up_workers_close_store(up);
    /* First: a client that receives the end of the run may start the next run at once. */
    up_run_sockets_unlock(up);
    up_waits_over(up);
    up_deadline_phase(
        up, "a client, the collector of spans or the reader of the output does not read");
    up->options->front->close(up);
    up->options->front->free(up);
    up_run_sockets_close_local(up);
    if (up->front.listener_lock)
        det_mutex_close(up->cli->world, up->front.listener_lock);
    up_audit_close(up);
    up_tasks_close(up);
    up_log_files_close(up);
    if (up->loop) {
        up_store_watch_close(up);
        up_signals_close(up);
    }
    report_hidden(up, true);
    /* Before the log is closed: it counts dropped lines in the metrics. */
    up_observe_close(up);
    serve_log_close(up);
    up_output_close(&up->output);
    serve_notify_close(&up->notify);
    up_signals_end(up);
    up_life_close(up->life);
    det_loop_close(up->loop);
    up_reload_free(up->reload);
    up_store_watch_free(up);
    up_audit_free(up);
    up_guard_close(up);
}

/* Running. */

/* Counts the first kind of which there are any: tasks, durable slots, machines, workers, flows. */
static void print_what_runs(const struct up *up)
{
    const struct {
        size_t count;
        const char *one, *many;
    } kinds[] = {
        { up->project->selected_count, "task", "tasks" },
        { up_durable_count(up), "durable slot", "durable slots" },
        { up_machines_count(up), "machine", "machines" },
        { up_workers_count(up), "worker", "workers" },
        { up_flows_count(up), "flow", "flows" },
    };
    size_t i = 0;

    while (i < sizeof kinds / sizeof *kinds - 1 && kinds[i].count == 0)
        i++;
    cli_print_error(
        up->cli, "%s: %zu %s. Ctrl-C stops all.\n", up->project->file.path, kinds[i].count,
        kinds[i].count == 1 ? kinds[i].one : kinds[i].many);
}

/* The banner names `detent console`, which prints the link again. */
static void print_commands(struct up *up)
{
    const char *commands;

    if (up->project->selected_count)
        commands = "detent tree, detent logs -f, detent restart NAME";
    else if (up_has_workers(up) && !up->machines && !up_durable_count(up))
        commands = "detent workers, detent desired ID, detent observed ID";
    else if (up_has_flows(up) && !up->machines && !up_durable_count(up))
        commands = "detent flow ls, detent flow top, detent flow tap NAME STAGE";
    else if (!up->machines)
        commands = "detent submit SLOT -- COMMAND, detent jobs";
    else
        commands = "detent start MACHINE ID, detent send ID EVENT, detent why ID";
    cli_print_error(
        up->cli, "In another terminal: %s, %sdetent stop\n", commands,
        up_address(up) ? "detent console, " : "");
}

static void print_banner(struct up *up)
{
    const struct config *config = up_config(up);

    for (size_t i = 0; i < config->task_count; i++) {
        if (up->project->is_selected[i])
            prefix_learn(up_prefix(up), config->tasks[i].spec.name);
    }
    for (size_t i = 0; i < config->group_count; i++)
        prefix_learn(up_prefix(up), config->groups[i].spec.name);
    prefix_learn(up_prefix(up), UP_NAME);
    up_descriptors_check(up);
    if (up->options->is_quiet || up->cli->is_json || up_logger(up))
        return;
    print_what_runs(up);
    up_machines_print(up);
    up->options->front->print(up);
    print_commands(up);
}

static void print_counts(struct up *up, char *target, size_t size)
{
    snprintf(
        target, size, "%zu task%s, %zu machine%s, %zu durable slot%s, %zu worker%s, %zu flow%s",
        up->project->selected_count, det_plural(up->project->selected_count), up_machines_count(up),
        det_plural(up_machines_count(up)), up_durable_count(up), det_plural(up_durable_count(up)),
        up_workers_count(up), det_plural(up_workers_count(up)), up_flows_count(up),
        det_plural(up_flows_count(up)));
}

void up_notify_ready(struct up *up)
{
    char counts[COUNTS_MAX];

    print_counts(up, counts, sizeof counts);
    serve_notify_send(&up->notify, "READY=1\nSTATUS=%s", counts);
}

/* The first line of a log, in place of the banner. */
static void log_ready(struct up *up)
{
    const char *address = up_address(up);
    char counts[COUNTS_MAX];

    if (!up_logger(up))
        return;
    print_counts(up, counts, sizeof counts);
    up_note(
        up, UP_NAME, "ready: %s: %s%s%s", up->project->file.path, counts,
        address ? "; listens on " : "", address ? address : "");
}

/* `up` stops when its output fails; `serve` continues without its log. */
static void check_output(struct up *up)
{
    if (!up->cli->out_error)
        return;
    if (up->options->is_serving || up_logger(up))
        serve_log_lost(up, up_output_forgive(&up->output));
    else if (!up_is_stopping(up))
        up_stop(up, "the output has failed");
}

/* Runs after each turn of the loop, when no callback is active. */
static void after_turn(struct up *up)
{
    up_reload_between_turns(up);
    up_follow_all(up);
    up_log_files_flush(up);
    up_output_flush(&up->output);
    report_hidden(up, false);
    check_output(up);
    if (!up_is_stopping(up) && up_store_is_lost(up)) {
        up_note_failure(up, UP_NAME, "the store has failed permanently: %s", UP_LOST_HINT);
        up_begin_stop(up);
    }
    up_check_empty(up);
    if (!up_take_check(up))
        return;
    up_add_pending(up);
    up_idle_arm(up);
    if (up_is_done(up))
        up_begin_stop(up);
}

/* Returns the exit code of a start that failed. Where the cause may go away (a certificate, an
 * address, another writer), it is CLI_FAILURE, after which a service manager tries again. */
static int exit_of_start(int r)
{
    bool is_final = r == DET_ERR_MALFORMED || r == DET_ERR_NOT_FOUND || r == DET_ERR_EXISTS ||
                    r == DET_ERR_LIMIT;

    det_assert(r < 0);
    return is_final ? cli_exit_of(r) : CLI_FAILURE;
}

static int run_tasks(struct up *up)
{
    struct det_error error = { 0 };
    int r;

    print_banner(up);
    r = up_add_all(up, &error);
    if (r < 0) {
        cli_report_error(up->cli, "%s", error.text);
        return exit_of_start(r);
    }
    up_begin(up);
    up_flows_begin(up);
    up_check_again(up);
    up_notify_ready(up);
    log_ready(up);
    /* A signal that came before the signal descriptors were open. */
    if (cli_is_interrupted())
        up_stop(up, "interrupted");
    after_turn(up);
    while (r >= 0 && !up_is_over(up)) {
        r = det_loop_turn(up->loop, DET_NEVER);
        after_turn(up);
    }
    if (r < 0) {
        cli_report_error(up->cli, "%s", det_error_text(r));
        return CLI_FAILURE;
    }
    up_workers_finish(up);
    if (up->cli->out_error && up->cli->out_error != EPIPE)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(up->cli, "cannot write the output: %s", strerror(up->cli->out_error));
    if (up_store_is_lost(up)) {
        cli_report_error(up->cli, "the store has failed permanently: %s", UP_LOST_HINT);
        return CLI_STORE_LOST;
    }
    if (up_was_forced(up))
        return CLI_TIMEOUT;
    return up_has_failed(up) || up->cli->out_error ? CLI_FAILURE : CLI_OK;
}

static int run_open(struct up *up)
{
    struct det_error error = { 0 };
    int code, r;

    det_list_init(&up->requests);
    if (up_output_open(&up->output, up->cli) < 0)
        return cli_no_memory(up->cli);
    up->cli = &up->output.cli;
    if (up_log_open(up) < 0 || up_guard_open(up) < 0) {
        up_log_close(up);
        up_output_close(&up->output);
        return cli_no_memory(up->output.outer);
    }
    r = open_parts(up, &error);
    if (r < 0)
        cli_report_error(up->cli, "%s", error.text);
    /* The kinds of workers in modules are known only after modules are loaded. */
    code = r < 0 ? exit_of_start(r) : run_tasks(up);
    close_parts(up);
    up->cli = up->output.outer;
    up_log_close(up);
    return code;
}

/* Tasks must not inherit the variables of the service manager: they would answer for detent. */
static void forget_supervisor(void)
{
    static const char *const names[] = {
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
        "LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]); /* NOLINT(concurrency-mt-unsafe): no threads yet */
}

/* The steps of a start that may need root privileges. */
static int prepare_start(struct up *up)
{
    const struct up_options *options = up->options;
    const struct serve_request request = {
        .project = up->project->folder,
        .path = up->project->file.path,
        .user = options->user,
        .is_serving = options->is_serving,
        .may_be_root = options->may_be_root,
    };
    struct config_http *http = &up->project->file.config.http;
    struct det_error error = { 0 };
    int code, r;

    r = serve_listen(options->listen, &up->project->file.arena, http, &error);
    if (r == 0) {
        code = serve_check(up->cli, &request, http, up_sockets(up));
        if (code != CLI_OK)
            return code;
    }
    if (r == 0 && options->user)
        r = up_run_sockets_bind_as_root(up, &error);
    if (r == 0 && options->user)
        r = serve_become(options->user, &error);
    if (r < 0) {
        cli_report_error(up->cli, "%s", error.text);
        return cli_exit_of(r);
    }
    serve_hide();
    return CLI_OK;
}

static int run_given(struct up *up)
{
    int code;

    code = up_project_init(up->cli, up->options, up->project);
    if (code == CLI_OK)
        code = prepare_start(up);
    return code == CLI_OK ? run_open(up) : code;
}

static int run_file(struct cli *cli, const struct up_options *options)
{
    struct up_project project = { .selected_count = 0 };
    struct up up = { .cli = cli, .options = options, .project = &project };
    struct det_error error = { 0 };
    int code = CLI_OK, r;

    serve_notify_open(&up.notify);
    r = up_run_sockets_open(&up, &error);
    if (r < 0) {
        cli_report_error(cli, "%s", error.text);
        code = r == DET_ERR_NO_MEMORY ? cli_exit_of(r) : CLI_USAGE;
    }
    forget_supervisor();
    if (code == CLI_OK)
        code = run_given(&up);
    up_run_sockets_close(&up);
    serve_notify_close(&up.notify);
    up_retired_close(&up);
    up_project_deinit(cli, &project);
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
            cli_report_error(cli, "%s", error.text);
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
