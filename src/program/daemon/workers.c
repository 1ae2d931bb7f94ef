/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - opens a supervisor of workers on the loop of `up`, tells what happens in it, and
 * closes it. */
#include <detent/driver/loop.h>

#include "daemon/workers.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/machines.h"
#include "daemon/task_json.h"
#include "daemon/telemetry.h"
#include "inspect/worker_event.h"
#include "kinds/kinds.h"
#include "observe/worker_metrics.h"
#include "worker/application.h"
#include "worker/spec.h"

#define LOG_NAME     "workers"
#define LOOK_EVERY   DET_SECOND
#define ASKS         2 /* threads for what is asked */
#define ROOT_DEFAULT "root"
/* Bytes of a message's content that people are shown. */
#define MESSAGE_SHOWN 200

/* What they tell. */

static void print_object(struct up *up, const struct det_worker_event *event)
{
    struct det_json_writer json;

    cli_json_begin(up->cli, &json, NULL);
    det_json_text(&json, "kind", "worker_event");
    det_json_time(&json, "at", event->wall);
    det_json_text(&json, "level", det_log_level_name(worker_event_level(event->kind)));
    worker_event_members(&json, event);
    cli_json_end(up->cli, &json);
}

static void print_note(struct up *up, const struct det_worker_event *event)
{
    struct det_buffer text;

    det_buffer_init(&text, up->output.outer->allocator);
    det_buffer_append_text(&text, det_worker_event_name(event->kind));
    worker_event_text(&text, event);
    if (det_buffer_status(&text) == 0)
        prefix_note(&up->prefix, LOG_NAME, event->wall, "%s", det_buffer_text(&text));
    det_buffer_deinit(&text);
}

static void print_event(struct up *up, const struct det_worker_event *event)
{
    enum det_log_level level = worker_event_level(event->kind);
    struct det_log_line line;

    if (!serve_log_is_told(up, level) || !up_output_has_room(&up->output) ||
        (up->options->is_quiet && level < DET_LOG_WARNING))
        return;
    if (up->log) {
        det_log_line_begin(
            up->log, &line, level, "worker", "%s", det_worker_event_name(event->kind));
        worker_event_line(&line, event);
        det_log_line_end(&line);
    } else if (up->cli->is_json)
        print_object(up, event);
    else
        print_note(up, event);
}

static void on_event(void *user, const struct det_worker_event *event)
{
    struct up_workers *workers = user;
    struct up *up = workers->up;

    det_monitor_worker(up->observe->metrics, event);
    print_event(up, event);
    if (event->kind == DET_WORKER_EVENT_REMOVED && event->identity &&
        strcmp(event->identity->id, workers->name) == 0)
        workers->is_over = true;
}

/* For people: who has sent it, and the beginning of what it says. */
static void note_message(struct up *up, const struct channel_message *message, det_time wall)
{
    char shown[MESSAGE_SHOWN + 1], size[32];
    bool is_whole = det_text_copy(shown, sizeof shown, message->text.content);
    struct det_buffer text;

    det_buffer_init(&text, up->output.outer->allocator);
    det_buffer_append_text(&text, "message_received");
    worker_event_pair(&text, "instance", message->text.instance);
    worker_event_pair(&text, "trace_id", message->text.trace_id);
    worker_event_pair(&text, "content", shown);
    if (!is_whole) {
        snprintf(size, sizeof size, "%zu", strlen(message->text.content));
        worker_event_pair(&text, "cut_from", size);
    }
    if (det_buffer_status(&text) == 0)
        prefix_note(&up->prefix, LOG_NAME, wall, "%s", det_buffer_text(&text));
    det_buffer_deinit(&text);
}

/* What the relay of a communicator has for us. */
static void print_message(struct up *up, const struct channel_message *message)
{
    det_time wall = det_world_now(up->cli->world, DET_CLOCK_WALL);
    struct det_log_line line;

    if (up->log) {
        det_log_line_begin(up->log, &line, DET_LOG_INFO, "worker", "message_received");
        det_log_line_text(&line, "instance", message->text.instance);
        det_log_line_text(&line, "trace_id", message->text.trace_id);
        det_log_line_text(&line, "content", message->text.content);
        det_log_line_end(&line);
    } else if (up->cli->is_json)
        cli_json(
            up->cli, json_pack(
                         "{s:s, s:o, s:s, s:s, s:s}", "kind", "worker_message", "at",
                         up_json_time(wall), "instance", message->text.instance, "trace_id",
                         message->text.trace_id, "content", message->text.content));
    else
        note_message(up, message, wall);
}

/* As long as there is room for the lines: what is not received stays with the relay. Once a worker
 * receives they are its messages. */
static void receive_messages(struct up_workers *workers)
{
    struct channel_message *message;

    if (channel_has_receiver(workers->channel))
        return;
    while (up_output_has_room(&workers->up->output) &&
           channel_receive(workers->channel, 0, &message) == 0) {
        print_message(workers->up, message);
        channel_message_close(message);
    }
}

/* Figures are taken here and not when somebody reads them: that is another thread, which the loop
 * may be waiting for. */
static void look(void *argument)
{
    struct up_workers *workers = argument;
    struct up *up = workers->up;

    det_monitor_workers(up->observe->metrics, workers->workers);
    receive_messages(workers);
    /* Without memory they stand still. */
    (void)!det_loop_timer_set(up->loop, &workers->look, det_loop_now(up->loop) + LOOK_EVERY);
}

/* Opening. */

/* Who names tasks wants these alone. */
static bool are_wanted(const struct up *up)
{
    return up->file.config.workers.node && up->options->name_count == 0;
}

int up_workers_open_store(struct up *up, struct det_error *reterr)
{
    const struct det_store_options options = { .allocator = up->output.outer->allocator };
    const char *address;

    if (!are_wanted(up))
        return 0;
    address = up_store_address(up);
    if (!address)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    return cli_store_open_in_turn(up->cli, address, &options, &up->shared, reterr);
}

void up_workers_close_store(struct up *up)
{
    det_store_close(up->shared);
    up->shared = NULL;
}

const struct det_worker_kind *up_workers_kind(const struct up_workers *workers, const char *name)
{
    for (size_t i = 0; i < workers->kind_count; i++) {
        if (strcmp(workers->kinds[i]->name, name) == 0)
            return workers->kinds[i];
    }
    return strcmp(det_application()->name, name) == 0 ? det_application() : NULL;
}

static int add_kinds(
    struct up_workers *workers, const struct det_worker_kind *const *kinds,
    struct det_error *reterr)
{
    const struct det_allocator *allocator = workers->up->output.outer->allocator;
    const struct det_worker_kind **grown;
    size_t count = 0;

    while (kinds[count])
        count++;
    grown =
        DET_NEW_ARRAY(allocator, workers->kind_count + count + 1, const struct det_worker_kind *);
    if (!grown)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (workers->kinds) {
        memcpy(grown, workers->kinds, workers->kind_count * sizeof *grown);
        DET_DELETE_ARRAY(allocator, workers->kinds, workers->kind_room);
    }
    workers->kinds = grown;
    memcpy(grown + workers->kind_count, kinds, count * sizeof *grown);
    workers->kind_count += count;
    workers->kind_room = workers->kind_count + 1;
    return 0;
}

static int load_module(
    struct up_workers *workers, const struct config_kinds *module, struct det_error *reterr)
{
    const char *path = module->path;
    const char *kept = det_arena_copy(&workers->arena, path);
    const struct det_worker_kind *const *kinds = NULL;
    int r;

    if (!kept)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    r = module->is_isolated
            ? modules_load_isolated(&workers->modules, kept, workers->up->project, &kinds, reterr)
            : modules_load_kinds(&workers->modules, kept, workers->up->project, &kinds, reterr);
    for (size_t i = 0; r == 0 && kinds[i]; i++) {
        if (up_workers_kind(workers, kinds[i]->name))
            r = det_error_set(
                reterr, DET_ERR_EXISTS, "%.200s: there is a kind of worker '%s' already", path,
                kinds[i]->name);
    }
    return r < 0 ? r : add_kinds(workers, kinds, reterr);
}

static int load_kinds(
    struct up_workers *workers, const struct config_workers *config, struct det_error *reterr)
{
    int r = add_kinds(workers, det_kinds_all(), reterr);

    for (size_t i = 0; r == 0 && i < config->module_count; i++)
        r = load_module(workers, &config->modules[i], reterr);
    return r;
}

/* With modules, this is the first time that all kinds are known. */
static int check(const struct up *up, const struct config_workers *config, struct det_error *reterr)
{
    struct cli_problems problems = { .count = 0 };
    int r = up_workers_check(up, config, &problems);

    if (r < 0)
        det_error_set(
            reterr, r, "%.200s:%u:%u: %.250s", up->file.path, problems.items[0].line,
            problems.items[0].column, problems.items[0].text);
    return r;
}

static int supervise(
    struct up_workers *workers, const struct config_workers *config, struct det_error *reterr)
{
    struct up *up = workers->up;
    /* For workers of the kinds persistence and communicator. */
    const struct det_provided provided[] = {
        { "documents", up->shared },
        { DET_CHANNEL_NAME, workers->channel },
        { COMMUNICATOR_DEFAULTS, &workers->communicator },
        { NULL, NULL },
    };
    const struct det_workers_options options = {
        .world = up->cli->world,
        .allocator = up->output.outer->allocator,
        .loop = up->loop,
        .store = up->shared,
        .name = workers->name,
        .kinds = workers->kinds,
        .provided = provided,
        .limits = config->limits,
        .on_event = on_event,
        .user = workers,
    };
    int r;

    /* Threads of ours must not take it for theirs before it has turned. */
    det_loop_claim(up->loop);
    r = det_workers_open(&options, &workers->workers, reterr);
    if (r == 0 && config->globals)
        r = det_workers_set_globals_data(workers->workers, config->globals, reterr);
    if (r == 0)
        r = det_workers_apply_data(workers->workers, config->spec, reterr);
    return r < 0 ? r : up_communicator_switch(workers, reterr);
}

int up_workers_open(struct up *up, struct det_error *reterr)
{
    const struct config_workers *config = &up->file.config.workers;
    const struct det_allocator *allocator = up->output.outer->allocator;
    struct up_workers *workers;
    int r;

    if (!are_wanted(up))
        return 0;
    workers = DET_NEW(allocator, struct up_workers);
    if (!workers)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    up->workers = workers;
    workers->up = up;
    workers->look = (struct det_timer){ .run = look, .argument = workers };
    modules_init(&workers->modules, allocator);
    det_arena_init(&workers->arena, allocator);
    (void)det_text_copy(
        workers->name, sizeof workers->name, config->name ? config->name : ROOT_DEFAULT);
    up_communicator_read_defaults(&workers->communicator);
    prefix_learn(&up->prefix, LOG_NAME);
    r = load_kinds(workers, config, reterr);
    if (r == 0)
        r = check(up, config, reterr);
    if (r == 0 && det_pool_open(up->cli->world, allocator, ASKS, &workers->pool) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0 && channel_open(
                      &(struct channel_options){ .world = up->cli->world, .allocator = allocator },
                      &workers->channel) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = supervise(workers, config, reterr);
    if (r == 0)
        look(workers);
    return r;
}

/* Changing. */

int up_workers_check(
    const struct up *up, const struct config_workers *config, struct cli_problems *problems)
{
    return config_check_workers(config, up->workers->kinds, up->output.outer->allocator, problems);
}

/* The first ones of this run. */
static int begin(struct up *up, struct det_error *reterr)
{
    int r;

    r = up_workers_open_store(up, reterr);
    if (r == 0)
        r = up_workers_open(up, reterr);
    if (r < 0) {
        up_workers_close(up);
        up_workers_close_store(up);
    }
    return r;
}

int up_workers_reload(struct up *up, struct det_error *reterr)
{
    const struct config_workers *config = &up->file.config.workers;
    int r;

    if (!up->workers)
        return begin(up, reterr);
    r = det_workers_set_globals_data(up->workers->workers, config->globals, reterr);
    if (r < 0)
        return r;
    return config->spec ? det_workers_apply_data(up->workers->workers, config->spec, reterr)
                        : det_workers_apply(up->workers->workers, "", reterr);
}

/* The end. */

void up_workers_stop(struct up *up)
{
    if (up->workers && up->workers->workers)
        det_workers_cancel(up->workers->workers);
}

bool up_workers_are_over(const struct up *up)
{
    return !up->workers || !up->workers->workers || up->workers->is_over;
}

void up_workers_finish(struct up *up)
{
    struct det_error error = { 0 };

    if (!up->workers || !up->workers->workers)
        return;
    if (det_workers_stop(up->workers->workers, &error) < 0) {
        up->was_forced = true;
        up_note_failure(up, UP_NAME, "%s", error.text);
    }
}

void up_workers_close(struct up *up)
{
    struct up_workers *workers = up->workers;
    const struct det_allocator *allocator;

    if (!workers)
        return;
    allocator = up->output.outer->allocator;
    det_loop_timer_cancel(up->loop, &workers->look);
    if (workers->workers)
        (void)!det_workers_stop(workers->workers, NULL);
    /* Those that are asked for wait for the loop. */
    while (workers->asks && det_loop_turn(up->loop, DET_NEVER) >= 0)
        ;
    if (workers->pool)
        det_pool_close(workers->pool);
    det_workers_close(workers->workers);
    if (workers->channel)
        channel_close(workers->channel);
    modules_close(&workers->modules);
    if (workers->kinds)
        DET_DELETE_ARRAY(allocator, workers->kinds, workers->kind_room);
    det_arena_deinit(&workers->arena);
    DET_DELETE(allocator, workers);
    up->workers = NULL;
}

size_t up_workers_count(const struct up *up)
{
    struct det_workers_summary summary = { 0 };

    if (up->workers && up->workers->workers && !up->workers->is_over)
        det_workers_summary(up->workers->workers, &summary);
    return summary.workers;
}
