/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_apply.c - reads the file again, and applies the plan.
 *
 *     pause the API, machines rest --> the new file --> open, resume --> tasks, groups, slots, log
 *                                                           | cannot be opened
 *                      the old file, machines wake, the API <--+
 *
 * A changed task is removed, and added again from the new file when it has ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/flows.h"
#include "daemon/machines.h"
#include "daemon/reload_plan.h"
#include "daemon/reload_states.h"
#include "daemon/run.h"
#include "daemon/slots.h"
#include "daemon/workers.h"

/* Limit of a wait for the store while parts are closed for a reload. */
#define STORE_SPAN (2 * DET_SECOND)

/* A replaced file, which parts may still point into. */
struct up_retired {
    struct up_retired *next;
    struct config_file file;
};

const char *reload_change_word(enum reload_change change)
{
    switch (change) {
    case RELOAD_ADDED:
        return "added";
    case RELOAD_REMOVED:
        return "removed";
    case RELOAD_CHANGED:
        return "changed";
    }
    return "";
}

/* Reading. */

/* Reads and checks the file as the start does. */
static int read_next(struct reload *reload)
{
    struct up_project *next = &reload->next;
    const struct up_options *options = reload->up->options;
    /* The start has settled the user. */
    struct serve_request request = { .is_serving = options->is_serving, .may_be_root = true };
    struct det_error error = { 0 };
    int code = up_project_init(&reload->cli, options, next);

    if (code == CLI_OK &&
        serve_listen(options->listen, &next->file.arena, &next->file.config.http, &error) < 0) {
        cli_report_error(&reload->cli, "%s", error.text);
        code = CLI_USAGE;
    }
    request.project = next->folder;
    request.path = next->file.path;
    if (code == CLI_OK)
        code = serve_check(&reload->cli, &request, &next->file.config.http, up_sockets(reload->up));
    if (code == CLI_OK)
        code = reload_try(reload);
    return code;
}

int reload_open(struct up *up, struct reload *reload)
{
    FILE *talk;
    int code;

    *reload = (struct reload){ .up = up, .cli = *up->output.outer };
    reload->may_ask_store =
        (up->reload && up->reload->store_has_answered) || !up_store_is_remote(up);
    reload->end = &reload->first;
    talk = open_memstream(&reload->text, &reload->text_size);
    if (!talk)
        return CLI_FAILURE;
    reload->cli.out = reload->cli.err = talk;
    reload->cli.is_json = reload->cli.out_has_color = reload->cli.err_has_color = false;
    reload->cli.out_is_terminal = reload->cli.err_is_terminal = false;
    reload->cli.command = "reload";
    code = read_next(reload);
    if (code == CLI_OK)
        code = reload_plan(reload);
    if (fclose(talk) != 0 && code == CLI_OK)
        code = CLI_FAILURE;
    reload->cli.out = reload->cli.err = NULL;
    return code;
}

void reload_close(struct reload *reload)
{
    up_project_deinit(&reload->cli, &reload->next);
    free(reload->text);
}

void up_retired_close(struct up *up)
{
    struct cli *cli = up->output.outer ? up->output.outer : up->cli;

    while (up->earlier.retired) {
        struct up_retired *retired = up->earlier.retired;

        up->earlier.retired = retired->next;
        config_file_close(cli, &retired->file);
        DET_DELETE(cli->allocator, retired);
    }
}

/* Replacing the file. */

/* Copies where the tasks of one file are to the tasks of the other. */
static void carry_known(const struct up_project *from, struct up_project *to)
{
    for (size_t i = 0; i < to->file.config.task_count; i++) {
        int before = up_find_task(from, to->file.config.tasks[i].spec.name);

        if (before >= 0)
            to->configured[i] = from->configured[before];
    }
}

/* Parts that keep running keep their section of the old file. */
static void carry_standing(struct reload *reload)
{
    const struct config *old = up_config(reload->up);
    struct config *new = &reload->next.file.config;

    new->traces = old->traces;
    new->defaults = old->defaults;
    new->limits = old->limits;
    if (!reload->pauses_api)
        new->http = old->http;
    if (reload->reopens_machines)
        return;
    new->machines = old->machines;
    new->machine_count = old->machine_count;
    reload->next.serves_machines = reload->up->project->serves_machines;
    /* Without an open store, that of the new file is used. */
    if (!reload->up->machines && !up_durable_count(reload->up) && !up_has_workers(reload->up))
        return;
    new->store = old->store;
    new->store_node = old->store_node;
}

/* Swaps the files; a second call swaps them back. */
static void exchange_files(struct reload *reload)
{
    struct up_project *current = reload->up->project;
    struct up_project kept = *current;

    carry_known(current, &reload->next);
    *current = reload->next;
    reload->next = kept;
}

/* Keeps the old file, or frees it with all earlier ones if no part points into them. */
static void retire_file(struct reload *reload, struct up_retired *retired)
{
    struct up *up = reload->up;
    struct up_project *old = &reload->next;

    *retired = (struct up_retired){ .next = up->earlier.retired, .file = old->file };
    up->earlier.retired = retired;
    /* task_count is still needed to free the selection. */
    old->file = (struct config_file){ .config.task_count = old->file.config.task_count };
    det_arena_init(&old->file.arena, reload->cli.allocator);
    /* The exporter of spans and durable slots still use the first file. */
    if (reload->reopens_machines && !up->project->file.config.traces.endpoint &&
        !up_durable_count(up))
        up_retired_close(up);
}

/* Keeps the items that the next plan must report. */
static void keep_standing(struct reload *reload)
{
    struct reload_item **end = &reload->first;

    while (*end) {
        if ((*end)->needs_restart)
            end = &(*end)->next;
        else
            *end = (*end)->next;
    }
    reload->up->earlier.standing = reload->first;
}

/* Replacing machines, while the API is paused. */

static int open_core(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    int r = 0;

    if (reload->reopens_machines && up->project->serves_machines)
        r = up_machines_open(up, reterr);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    return r < 0 ? r : up->options->front->resume(up, reload->has_new_http, reterr);
}

/* Restores the old parts. An error: the run cannot continue. */
static int restore_core(struct reload *reload, struct up_machines *resting)
{
    struct up *up = reload->up;
    struct det_error error = { 0 };
    int r = 0;

    if (reload->reopens_machines)
        up_machines_close(up);
    exchange_files(reload);
    if (resting)
        r = up_machines_wake(resting, &error);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(&error, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0)
        r = up->options->front->resume(up, reload->has_new_http, &error);
    if (r < 0)
        up_note_failure(up, UP_NAME, "reload: %s; the run cannot continue", error.text);
    return r;
}

static int replace_core(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    struct up_machines *resting = NULL;
    int r;

    det_assert(reload->pauses_api && !reload->is_applied);
    /* The store has just answered; if it becomes unreachable now, the wait is limited. */
    if (reload->reopens_machines)
        up_store_limit(up, STORE_SPAN);
    up->options->front->pause(up, false);
    if (reload->reopens_machines)
        resting = up_machines_rest(up);
    up_store_limit(up, DET_NEVER);
    exchange_files(reload);
    r = open_core(reload, reterr);
    if (r == 0)
        up_machines_free(resting);
    else if (restore_core(reload, resting) < 0) {
        reload->is_lost = true;
        up_set_failed(up);
        up_begin_stop(up);
    }
    /* A stop during the pause has reached only the old machines. */
    if (up_is_stopping(up))
        up_machines_stop(up);
    return r;
}

/* Replacing tasks. `next` is the old file by now. */

static void stop_old_tasks(struct reload *reload)
{
    struct up *up = reload->up;
    struct up_project *old = &reload->next;

    for (const struct reload_item *item = reload->first; item; item = item->next) {
        int before = strcmp(item->subject, "task") == 0 ? up_find_task(old, item->name) : -1;
        int index = before < 0 ? -1 : up_find_task(up->project, item->name);

        if (before < 0)
            continue;
        if (index >= 0)
            up->project->configured[index].is_replaced = true;
        /* Otherwise it has already ended. */
        if (old->configured[before].id)
            (void)!det_tasks_remove(up_tasks_supervisor(up), old->configured[before].id);
    }
}

static void start_new_tasks(struct reload *reload)
{
    struct up *up = reload->up;

    for (const struct reload_item *item = reload->first; item; item = item->next) {
        int index = strcmp(item->subject, "task") == 0 ? up_find_task(up->project, item->name) : -1;

        if (index < 0 || !up->project->is_selected[index])
            continue;
        prefix_learn(up_prefix(up), item->name);
        if (up->project->configured[index].id == 0)
            up_configured_wait(up, (size_t)index);
    }
    up_check_again(up);
}

static int add_groups(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r = 0;

    for (size_t i = 0; i < config->group_count && (r == 0 || r == DET_ERR_EXISTS); i++)
        r = det_tasks_add_group(up_tasks_supervisor(up), &config->group_order[i]->spec, reterr);
    return r == DET_ERR_EXISTS ? 0 : r;
}

static int change_slots(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r = 0;

    for (size_t i = 0; i < config->slot_count && r == 0; i++) {
        const struct config_slot *slot = &config->slots[i];

        if (!slot->is_durable && !up_durable_find(up, slot->name))
            r = det_slot_configure(up_tasks_supervisor(up), slot->name, &slot->options, reterr);
    }
    return r;
}

static bool has_item(const struct reload *reload, const char *subject)
{
    const struct reload_item *item = reload->first;

    while (item && (item->needs_restart || strcmp(item->subject, subject) != 0))
        item = item->next;
    return item != NULL;
}

/* Changes that fail only for lack of memory; makes as many as possible. */
static int change_rest(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    int r;

    stop_old_tasks(reload);
    /* They are opened again by the new file. */
    up_log_files_close(up);
    r = add_groups(up, reterr);
    if (r == 0)
        r = change_slots(up, reterr);
    if (r == 0 && serve_log_open(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0 && has_item(reload, "workers"))
        r = up_workers_reload(up, reterr);
    /* Always: a .flow file may have changed. */
    if (r == 0 && !up_options(up)->name_count)
        r = up_flows_reload(up, reterr);
    start_new_tasks(reload);
    return r;
}

static int apply_plan(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    const struct det_allocator *allocator = reload->cli.allocator;
    struct up_retired *retired = DET_NEW(allocator, struct up_retired);
    int r = 0;

    if (!retired)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    carry_standing(reload);
    if (reload->pauses_api)
        r = replace_core(reload, reterr);
    else
        exchange_files(reload);
    if (r < 0) {
        DET_DELETE(allocator, retired);
        return r;
    }
    if (!reload->pauses_api)
        up->options->front->renew(up);
    reload->is_applied = true;
    r = change_rest(reload, reterr);
    keep_standing(reload);
    det_assert(reload->is_applied && !reload->is_lost);
    retire_file(reload, retired);
    return r;
}

int reload_apply(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    det_time now = det_world_now(up->cli->world, DET_CLOCK_MONOTONIC);
    int r = 0;

    det_assert(!reload->is_applied && (reload->count > 0) == (reload->first != NULL));
    serve_notify_send(
        &up->notify, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(now / DET_MICROSECOND));
    reload->is_applied = reload->count == 0;
    if (reload->count)
        r = apply_plan(reload, reterr);
    if (up_is_running(up))
        up_notify_ready(up);
    return r;
}
