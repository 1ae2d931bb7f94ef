/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_apply.c - reads the file again, and carries out the plan.
 *
 *     pause the API, machines rest --> the new file --> open, resume --> tasks, groups, slots, log
 *                                                           | cannot be opened
 *                  the old file, machines go on, the API <--+
 *
 * A task that was changed is taken out, and put back by its new lines when it has ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "daemon/machines.h"
#include "daemon/reload.h"
#include "daemon/verbs.h"
#include "daemon/workers.h"

/* How long what is closed for a reload may wait for the store. */
#define STORE_SPAN (2 * DET_SECOND)

/* A file that runs no more, and that something may still point into. */
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

/* Everything that `up` does with a file before it runs. */
static int read_next(struct reload *reload)
{
    struct up *next = &reload->next;
    /* Who we are was settled when it began. */
    struct serve_wish wish = { .is_serving = next->options->is_serving, .may_be_root = true };
    struct det_error error = { 0 };
    int code = config_project_open(&reload->cli, next->options->path, true, &next->file);

    if (code == CLI_OK)
        code = up_select(next);
    if (code == CLI_OK)
        code = up_settle(next);
    if (code == CLI_OK &&
        serve_listen(next->options->listen, &next->file.arena, &next->file.config.http, &error) <
            0) {
        cli_complain(&reload->cli, "%s", error.text);
        code = CLI_USAGE;
    }
    wish.project = next->project;
    wish.path = next->file.path;
    if (code == CLI_OK)
        code = serve_check(&reload->cli, &wish, &next->file.config.http, &reload->up->sockets);
    if (code == CLI_OK)
        code = reload_try(reload);
    return code;
}

int reload_open(struct up *up, struct reload *reload)
{
    FILE *talk;
    int code;

    *reload = (struct reload){ .up = up, .cli = *up->output.outer };
    reload->may_ask_store = up->store_is_probed || !up_store_is_remote(up);
    reload->end = &reload->first;
    talk = open_memstream(&reload->text, &reload->text_size);
    if (!talk)
        return CLI_FAILURE;
    reload->cli.out = reload->cli.err = talk;
    reload->cli.is_json = reload->cli.out_has_color = reload->cli.err_has_color = false;
    reload->cli.out_is_terminal = reload->cli.err_is_terminal = false;
    reload->cli.command = "reload";
    reload->next = (struct up){ .cli = &reload->cli, .options = up->options };
    code = read_next(reload);
    if (code == CLI_OK)
        code = reload_plan(reload);
    if (fclose(talk) != 0 && code == CLI_OK)
        code = CLI_FAILURE;
    reload->cli.out = reload->cli.err = NULL;
    return code;
}

static void free_selection(const struct det_allocator *allocator, struct up *up)
{
    size_t count = up->file.config.task_count + 1;

    if (up->is_selected)
        DET_DELETE_ARRAY(allocator, up->is_selected, count);
    if (up->known)
        DET_DELETE_ARRAY(allocator, up->known, count);
    up->is_selected = NULL;
    up->known = NULL;
}

void reload_close(struct reload *reload)
{
    free_selection(reload->cli.allocator, &reload->next);
    config_file_close(&reload->cli, &reload->next.file);
    free(reload->text);
}

void up_retired_close(struct up *up)
{
    struct cli *cli = up->output.outer ? up->output.outer : up->cli;

    while (up->retired) {
        struct up_retired *retired = up->retired;

        up->retired = retired->next;
        config_file_close(cli, &retired->file);
        DET_DELETE(cli->allocator, retired);
    }
}

/* One file in place of the other. */

/* Where the tasks of the one are is known of those of the other too. */
static void carry_known(const struct up *from, struct up *to)
{
    for (size_t i = 0; i < to->file.config.task_count; i++) {
        int before = up_find_task(from, to->file.config.tasks[i].spec.name);

        if (before >= 0)
            to->known[i] = from->known[before];
    }
}

/* What runs on as it was keeps its part of the old file. */
static void carry_standing(struct reload *reload)
{
    const struct config *old = &reload->up->file.config;
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
    reload->next.serves_machines = reload->up->serves_machines;
    /* Where nobody has one open, that of the new file is the one. */
    if (!reload->up->machines && !reload->up->durable_count && !reload->up->workers)
        return;
    new->store = old->store;
    new->store_node = old->store_node;
}

#define SWAP(type, a, b)  \
    do {                  \
        type kept_ = (a); \
        (a) = (b);        \
        (b) = kept_;      \
    } while (0)

/* Also back again. */
static void exchange(struct reload *reload)
{
    struct up *up = reload->up, *next = &reload->next;

    carry_known(up, next);
    SWAP(struct config_file, up->file, next->file);
    SWAP(bool *, up->is_selected, next->is_selected);
    SWAP(struct up_known *, up->known, next->known);
    SWAP(size_t, up->selected_count, next->selected_count);
    SWAP(bool, up->serves_machines, next->serves_machines);
}

/* The old file, once the new one has its place. Where nothing that stays points into one of those
 * that were before it, they go. */
static void retire(struct reload *reload, struct up_retired *retired)
{
    struct up *up = reload->up, *old = &reload->next;

    free_selection(reload->cli.allocator, old);
    *retired = (struct up_retired){ .next = up->retired, .file = old->file };
    up->retired = retired;
    /* All of it is taken over. */
    *old = (struct up){ .cli = old->cli };
    det_arena_init(&old->file.arena, reload->cli.allocator);
    /* Spans are sent, and durable slots kept, by the lines of the file that was there first. */
    if (reload->reopens_machines && !up->file.config.traces.endpoint && !up->durable_count)
        up_retired_close(up);
}

/* Those of the items that the next plan has to know of. */
static void keep_standing(struct reload *reload)
{
    struct reload_item **end = &reload->first;

    while (*end) {
        if ((*end)->needs_restart)
            end = &(*end)->next;
        else
            *end = (*end)->next;
    }
    reload->up->standing = reload->first;
}

/* Machines, while the API is paused. */

static int open_core(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    int r = 0;

    if (reload->reopens_machines && up->serves_machines)
        r = up_machines_open(up, reterr);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    return r < 0 ? r : up->options->front->resume(up, reload->has_new_http, reterr);
}

/* As it was before. An error: there is nothing left that could go on. */
static int restore_core(struct reload *reload, struct up_machines *resting)
{
    struct up *up = reload->up;
    struct det_error error = { 0 };
    int r = 0;

    if (reload->reopens_machines)
        up_machines_close(up);
    exchange(reload);
    if (resting)
        r = up_machines_wake(resting, &error);
    if (r == 0 && up_store_watch(up) < 0)
        r = det_error_set(&error, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = up->options->front->resume(up, reload->has_new_http, &error);
    if (r < 0)
        up_note_failure(up, UP_NAME, "reload: %s; it cannot go on like this", error.text);
    return r;
}

static int replace_core(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    struct up_machines *resting = NULL;
    int r;

    /* It has just answered; should it go away now, nobody waits for it for long. */
    if (reload->reopens_machines)
        up_store_limit(up, STORE_SPAN);
    up->options->front->pause(up, false);
    if (reload->reopens_machines)
        resting = up_machines_rest(up);
    up_store_limit(up, DET_NEVER);
    exchange(reload);
    r = open_core(reload, reterr);
    if (r == 0)
        up_machines_free(resting);
    else if (restore_core(reload, resting) < 0) {
        up->has_failed = true;
        if (up->state < UP_STOPPING)
            up_begin_stop(up);
    }
    /* A stop that came while the API was closed was told to the machines of before. */
    if (up->state >= UP_STOPPING)
        up_machines_stop(up);
    return r;
}

/* Tasks. The old file is in the place of the next one by now. */

static void stop_old_tasks(struct reload *reload)
{
    struct up *up = reload->up, *old = &reload->next;

    for (const struct reload_item *item = reload->first; item; item = item->next) {
        int before = strcmp(item->subject, "task") == 0 ? up_find_task(old, item->name) : -1;
        int index = before < 0 ? -1 : up_find_task(up, item->name);

        if (before < 0)
            continue;
        if (index >= 0)
            up->known[index].is_replaced = true;
        /* It is gone by itself otherwise. */
        if (old->known[before].id)
            (void)!det_tasks_remove(up->tasks, old->known[before].id);
    }
}

static void start_new_tasks(struct reload *reload)
{
    struct up *up = reload->up;

    for (const struct reload_item *item = reload->first; item; item = item->next) {
        int index = strcmp(item->subject, "task") == 0 ? up_find_task(up, item->name) : -1;

        if (index < 0 || !up->is_selected[index])
            continue;
        prefix_learn(&up->prefix, item->name);
        if (up->known[index].id == 0)
            up_known_wait(up, (size_t)index);
    }
    up->has_news = true;
}

static int add_groups(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    int r = 0;

    for (size_t i = 0; i < config->group_count && (r == 0 || r == DET_ERR_EXISTS); i++)
        r = det_tasks_add_group(up->tasks, &config->group_order[i]->spec, reterr);
    return r == DET_ERR_EXISTS ? 0 : r;
}

static int change_slots(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    int r = 0;

    for (size_t i = 0; i < config->slot_count && r == 0; i++) {
        const struct config_slot *slot = &config->slots[i];

        if (!slot->is_durable && !up_durable_find(up, slot->name))
            r = det_slot_configure(up->tasks, slot->name, &slot->options, reterr);
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

/* What only a want of memory keeps from being done; as much of it as can be. */
static int change_rest(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    int r;

    stop_old_tasks(reload);
    /* They are opened again as the new file says. */
    up_log_files_close(up);
    r = add_groups(up, reterr);
    if (r == 0)
        r = change_slots(up, reterr);
    if (r == 0 && serve_log_open(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0 && has_item(reload, "workers"))
        r = up_workers_reload(up, reterr);
    start_new_tasks(reload);
    return r;
}

static int apply(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    const struct det_allocator *allocator = reload->cli.allocator;
    struct up_retired *retired = DET_NEW(allocator, struct up_retired);
    int r = 0;

    if (!retired)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    carry_standing(reload);
    if (reload->pauses_api)
        r = replace_core(reload, reterr);
    else
        exchange(reload);
    if (r < 0) {
        DET_DELETE(allocator, retired);
        return r;
    }
    if (!reload->pauses_api)
        up->options->front->renew(up);
    reload->is_applied = true;
    r = change_rest(reload, reterr);
    keep_standing(reload);
    retire(reload, retired);
    return r;
}

int reload_apply(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    det_time now = det_world_now(up->cli->world, DET_CLOCK_MONOTONIC);
    int r = 0;

    serve_notify_tell(
        &up->notify, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(now / DET_MICROSECOND));
    reload->is_applied = reload->count == 0;
    if (reload->count)
        r = apply(reload, reterr);
    if (up->state == UP_RUNNING)
        up_tell_ready(up);
    return r;
}
