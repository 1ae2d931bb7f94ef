/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_apply.c - reads the file again, tells the plan and carries it out.
 *
 * It runs between two turns of the loop, since it turns the loop itself: who asks for it is
 * answered from there. A task that was changed is taken out, and put back by its new lines when it
 * has ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/api.h"
#include "cli/reload.h"
#include "cli/up_machines.h"
#include "cli/up_verbs.h"

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
    const struct serve_wish wish = { .project = next->project };
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
    if (code == CLI_OK)
        code = serve_check(&reload->cli, &wish, &next->file.config.http, &reload->up->sockets);
    return code;
}

int reload_open(struct up *up, struct reload *reload)
{
    FILE *talk;
    int code;

    *reload = (struct reload){ .up = up, .cli = *up->output.outer };
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

/* The new file in place of the old one. */

/* Where the tasks of the old file are is known of the new ones too. */
static void carry_known(const struct up *up, struct up *next)
{
    for (size_t i = 0; i < next->file.config.task_count; i++) {
        int before = up_find_task(up, next->file.config.tasks[i].spec.name);

        if (before >= 0)
            next->known[i] = up->known[before];
    }
}

/* What runs on as it was keeps its part of the old file. */
static void carry_core(const struct config *old, struct config *new)
{
    new->machines = old->machines;
    new->machine_count = old->machine_count;
    new->store = old->store;
    new->store_node = old->store_node;
    new->http = old->http;
}

static int swap_files(struct reload *reload)
{
    struct up *up = reload->up, *next = &reload->next;
    const struct det_allocator *allocator = reload->cli.allocator;
    struct up_retired *retired = DET_NEW(allocator, struct up_retired);

    if (!retired)
        return DET_ERR_NO_MEMORY;
    carry_known(up, next);
    next->file.config.traces = up->file.config.traces;
    if (!reload->is_core)
        carry_core(&up->file.config, &next->file.config);
    free_selection(allocator, up);
    *retired = (struct up_retired){ .next = up->retired, .file = up->file };
    up->retired = retired;
    up->file = next->file;
    up->is_selected = next->is_selected;
    up->known = next->known;
    up->selected_count = next->selected_count;
    if (reload->is_core)
        up->serves_machines = next->serves_machines;
    /* All of it is taken over. */
    *next = (struct up){ .cli = next->cli };
    det_arena_init(&next->file.arena, allocator);
    return 0;
}

/* Machines and the API: from one to the other there is nobody who could notice anything. */

static void close_core(struct up *up)
{
    api_close(up);
    /* What is cut off is tried again. */
    if (up->machines)
        effects_stop(&up->machines->effects, det_loop_now(up->loop));
    up_machines_close(up);
    api_free(up);
}

static int open_core(struct up *up, struct det_error *reterr)
{
    int r = 0;

    /* Spans are sent by the lines of the file that was there first. */
    if (!up->file.config.traces.endpoint)
        up_retired_close(up);
    if (up->serves_machines)
        r = up_machines_open(up, reterr);
    return r < 0 ? r : api_open(up, reterr);
}

/* Tasks. */

static void stop_old_tasks(struct reload *reload)
{
    struct up *up = reload->up;

    for (const struct reload_item *item = reload->first; item; item = item->next) {
        int index = strcmp(item->subject, "task") == 0 ? up_find_task(up, item->name) : -1;

        if (index < 0 || item->change == RELOAD_ADDED)
            continue;
        up->known[index].is_replaced = item->change == RELOAD_CHANGED;
        /* It is gone by itself otherwise. */
        if (up->known[index].id)
            (void)!det_tasks_remove(up->tasks, up->known[index].id);
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

static int add_groups(struct reload *reload, struct det_error *reterr)
{
    const struct config *config = &reload->up->file.config;
    int r = 0;

    for (size_t i = 0; i < config->group_count && (r == 0 || r == DET_ERR_EXISTS); i++)
        r = det_tasks_add_group(reload->up->tasks, &config->group_order[i]->spec, reterr);
    return r == DET_ERR_EXISTS ? 0 : r;
}

static int change_slots(struct reload *reload, struct det_error *reterr)
{
    const struct config *config = &reload->up->file.config;
    int r = 0;

    for (size_t i = 0; i < config->slot_count && r == 0; i++) {
        if (!config->slots[i].is_durable)
            r = det_slot_configure(
                reload->up->tasks, config->slots[i].name, &config->slots[i].options, reterr);
    }
    return r;
}

static int apply(struct reload *reload, struct det_error *reterr)
{
    struct up *up = reload->up;
    int r;

    stop_old_tasks(reload);
    if (reload->is_core)
        close_core(up);
    r = swap_files(reload);
    if (r < 0)
        return det_error_set(reterr, r, "%s", det_error_text(r));
    if (reload->is_core)
        r = open_core(up, reterr);
    else
        api_renew(up);
    if (r == 0)
        r = add_groups(reload, reterr);
    if (r == 0)
        r = change_slots(reload, reterr);
    if (r == 0 && serve_log_open(up) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    start_new_tasks(reload);
    return r;
}

void reload_apply(struct reload *reload)
{
    struct up *up = reload->up;
    det_time now = det_world_now(up->cli->world, DET_CLOCK_MONOTONIC);
    struct det_error error = { 0 };
    int r;

    serve_notify_tell(
        &up->notify, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(now / DET_MICROSECOND));
    r = apply(reload, &error);
    if (r < 0) {
        up_note_failure(up, UP_NAME, "reload: %s; it cannot go on like this", error.text);
        up->has_failed = true;
        if (up->state < UP_STOPPING)
            up_begin_stop(up);
        return;
    }
    up_tell_ready(up);
}

/* Telling. */

static void note_lines(struct up *up, char *text)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n"))) {
        if (*line)
            up_note_failure(up, UP_NAME, "%s", line);
    }
}

static void note_plan(const struct reload *reload)
{
    struct up *up = reload->up;

    if (!reload->count)
        up_note(up, UP_NAME, "reload: nothing has changed");
    for (const struct reload_item *item = reload->first; item; item = item->next)
        up_note(
            up, UP_NAME, "reload: %s%s%s %s%s", item->subject, item->name ? " " : "",
            item->name ? item->name : "", reload_change_word(item->change),
            item->needs_restart ? ", which needs a restart" : "");
}

static json_t *items_of(const struct reload *reload)
{
    json_t *items = json_array();

    for (const struct reload_item *item = reload->first; item; item = item->next)
        json_array_append_new(
            items, json_pack(
                       "{s:s, s:s, s:s?, s:b}", "change", reload_change_word(item->change), "what",
                       item->subject, "name", item->name, "needs_restart", item->needs_restart));
    return items;
}

/* Makes the plan, tells it and, if that is wanted, carries it out. The answer; NULL: no memory. */
static json_t *run(struct up *up, bool is_plan)
{
    struct reload reload;
    int code = reload_open(up, &reload);
    json_t *answer;

    answer = json_pack(
        "{s:s, s:b, s:b, s:s, s:o}", "kind", "reload", "is_right", code == CLI_OK, "is_applied",
        code == CLI_OK && !is_plan, "text", code == CLI_OK || !reload.text ? "" : reload.text,
        "items", items_of(&reload));
    if (!is_plan && code == CLI_OK)
        note_plan(&reload);
    if (!is_plan && code == CLI_OK)
        reload_apply(&reload);
    if (!is_plan && code != CLI_OK) {
        up_note_failure(up, UP_NAME, "reload: refused, and nothing has changed");
        if (reload.text)
            note_lines(up, reload.text);
    }
    reload_close(&reload);
    return answer;
}

void up_reload(struct up *up)
{
    struct socket_call *call;
    json_t *answer;

    up->reload_wanted = false;
    answer = run(up, false);
    call = up->reload_call;
    up->reload_call = NULL;
    if (call)
        socket_call_answer(call, answer);
    else
        json_decref(answer);
}

static void on_gone(void *user)
{
    struct up *up = user;

    up->reload_call = NULL;
}

void up_run_reload(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument arguments[] = { { "plan", UP_BOOLEAN }, { NULL, UP_TEXT } };
    struct up *up = context;

    if (!up_arguments_check(request, call, arguments))
        return;
    if (up_argument_is_set(request, "plan")) {
        socket_call_answer(call, run(up, true));
        return;
    }
    if (up->state != UP_RUNNING || up->reload_call) {
        socket_call_fail(call, DET_ERR_BUSY, "it stops, or reloads already");
        return;
    }
    up->reload_call = call;
    up->reload_wanted = true;
    socket_call_keep(call, on_gone, up);
}
