/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - opens a supervisor of workers on the loop of the daemon, reports its events, and
 * closes it. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/machines.h"
#include "daemon/workers_internal.h"
#include "inspect/worker_event.h"
#include "kinds/kinds.h"
#include "observe/worker_metrics.h"
#include "worker/application.h"
#include "worker/spec.h"

#define LOG_NAME      "workers"
#define METRICS_EVERY DET_SECOND
#define THREADS       2 /* at most, of the pool of requests */
#define ROOT_DEFAULT  "root"
/* Bytes of a message's content that are printed. */
#define MESSAGE_SHOWN 200

/* Events and messages. */

static void print_object(struct up *up, const struct det_worker_event *event)
{
    struct det_json_writer json;

    cli_json_begin(up_cli(up), &json, NULL);
    det_json_text(&json, "kind", "worker_event");
    det_json_time(&json, "at", event->wall);
    det_json_text(&json, "level", det_log_level_name(worker_event_level(event->kind)));
    worker_event_members(&json, event);
    cli_json_end(up_cli(up), &json);
}

static void print_note(struct up *up, const struct det_worker_event *event)
{
    struct det_buffer text;

    det_buffer_init(&text, up_allocator(up));
    det_buffer_append_text(&text, det_worker_event_name(event->kind));
    worker_event_text(&text, event);
    if (det_buffer_status(&text) == 0)
        prefix_note(up_prefix(up), LOG_NAME, event->wall, "%s", det_buffer_text(&text));
    det_buffer_deinit(&text);
}

static void print_event(struct up *up, const struct det_worker_event *event)
{
    enum det_log_level level = worker_event_level(event->kind);
    struct det_log_line line;

    if (!serve_log_has_level(up, level) || !up_has_output_room(up) ||
        (up_options(up)->is_quiet && level < DET_LOG_WARNING))
        return;
    if (up_logger(up)) {
        det_log_line_begin(
            up_logger(up), &line, level, "worker", "%s", det_worker_event_name(event->kind));
        worker_event_line(&line, event);
        det_log_line_end(&line);
    } else if (up_cli(up)->is_json)
        print_object(up, event);
    else
        print_note(up, event);
}

static void on_event(void *user, const struct det_worker_event *event)
{
    struct up_workers *workers = user;
    struct up *up = workers->up;

    det_monitor_worker(up_metrics(up), event);
    print_event(up, event);
    if (event->kind == DET_WORKER_EVENT_REMOVED && event->identity &&
        strcmp(event->identity->id, workers->name) == 0)
        workers->is_over = true;
}

/* Prints the sender and the beginning of the content. */
static void note_message(struct up *up, const struct channel_message *message, det_time wall)
{
    char shown[MESSAGE_SHOWN + 1], size[32];
    bool is_complete = det_text_copy(shown, sizeof shown, message->text.content);
    struct det_buffer text;

    det_buffer_init(&text, up_allocator(up));
    det_buffer_append_text(&text, "message_received");
    worker_event_pair(&text, "instance", message->text.instance);
    worker_event_pair(&text, "trace_id", message->text.trace_id);
    worker_event_pair(&text, "content", shown);
    if (!is_complete) {
        snprintf(size, sizeof size, "%zu", strlen(message->text.content));
        worker_event_pair(&text, "cut_from", size);
    }
    if (det_buffer_status(&text) == 0)
        prefix_note(up_prefix(up), LOG_NAME, wall, "%s", det_buffer_text(&text));
    det_buffer_deinit(&text);
}

static void print_message_object(
    struct up *up, const struct channel_message *message, det_time wall)
{
    struct det_json_writer json;

    cli_json_begin(up_cli(up), &json, NULL);
    det_json_text(&json, "kind", "worker_message");
    det_json_time(&json, "at", wall);
    det_json_text(&json, "instance", message->text.instance);
    det_json_text(&json, "trace_id", message->text.trace_id);
    det_json_text(&json, "content", message->text.content);
    cli_json_end(up_cli(up), &json);
}

/* A message from the relay of a communicator. */
static void print_message(struct up *up, const struct channel_message *message)
{
    det_time wall = det_world_now(up_cli(up)->world, DET_CLOCK_WALL);
    struct det_log_line line;

    if (up_logger(up)) {
        det_log_line_begin(up_logger(up), &line, DET_LOG_INFO, "worker", "message_received");
        det_log_line_text(&line, "instance", message->text.instance);
        det_log_line_text(&line, "trace_id", message->text.trace_id);
        det_log_line_text(&line, "content", message->text.content);
        det_log_line_end(&line);
    } else if (up_cli(up)->is_json)
        print_message_object(up, message, wall);
    else
        note_message(up, message, wall);
}

/* Receives while the output has room; other messages stay with the relay. Once a worker receives,
 * all messages are for that worker. */
static void receive_messages(struct up_workers *workers)
{
    struct channel_message *message;

    if (channel_has_receiver(workers->channel))
        return;
    while (up_has_output_room(workers->up) && channel_receive(workers->channel, 0, &message) == 0) {
        print_message(workers->up, message);
        channel_message_close(message);
    }
}

/* Updates the metrics on the loop: their reader is another thread, and the loop may wait for it. */
static void on_timer(void *argument)
{
    struct up_workers *workers = argument;
    struct up *up = workers->up;

    det_monitor_workers(up_metrics(up), workers->supervisor);
    receive_messages(workers);
    /* Out of memory, the metrics are not updated. */
    (void)!det_loop_timer_set(
        up_loop(up), &workers->timer, det_loop_now(up_loop(up)) + METRICS_EVERY);
}

/* Opening. */

/* A run of named tasks has no workers. */
static bool are_wanted(const struct up *up)
{
    return up_config(up)->workers.node && up_options(up)->name_count == 0;
}

int up_workers_open_store(struct up *up, struct det_error *reterr)
{
    const struct det_store_options options = { .allocator = up_allocator(up) };
    struct det_store *store = NULL;
    const char *address;
    int r;

    if (!are_wanted(up))
        return 0;
    address = up_store_address(up);
    if (!address)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = cli_store_open_in_turn(up_cli(up), address, &options, &store, reterr);
    if (r == 0)
        up_set_shared_store(up, store);
    return r;
}

void up_workers_close_store(struct up *up)
{
    det_store_close(up_shared_store(up));
    up_set_shared_store(up, NULL);
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
    const struct det_allocator *allocator = up_allocator(workers->up);
    const struct det_worker_kind **grown;
    size_t count = 0;

    while (kinds[count])
        count++;
    grown =
        DET_NEW_ARRAY(allocator, workers->kind_count + count + 1, const struct det_worker_kind *);
    if (!grown)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (workers->kinds) {
        memcpy(grown, workers->kinds, workers->kind_count * sizeof *grown);
        DET_DELETE_ARRAY(allocator, workers->kinds, workers->kind_room);
    }
    workers->kinds = grown;
    memcpy(grown + workers->kind_count, kinds, count * sizeof *grown);
    workers->kind_count += count;
    workers->kind_room = workers->kind_count + 1;
    det_assert(!workers->kinds[workers->kind_count]);
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
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = module->is_isolated
            ? modules_load_isolated(&workers->modules, kept, up_folder(workers->up), &kinds, reterr)
            : modules_load_kinds(&workers->modules, kept, up_folder(workers->up), &kinds, reterr);
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

/* Checks the workers once the kinds of modules are loaded. */
static int check_workers(
    const struct up *up, const struct config_workers *config, struct det_error *reterr)
{
    struct cli_problems problems = { .count = 0 };
    int r = up_workers_check(up, config, &problems);

    if (r < 0)
        det_error_set(
            reterr, r, "%.200s:%u:%u: %.250s", up_config_path(up), problems.items[0].line,
            problems.items[0].column, problems.items[0].text);
    return r;
}

static int open_supervisor(
    struct up_workers *workers, const struct config_workers *config, struct det_error *reterr)
{
    struct up *up = workers->up;
    /* For workers of the kinds persistence and communicator. */
    const struct det_provided provided[] = {
        { "documents", up_shared_store(up) },
        { DET_CHANNEL_NAME, workers->channel },
        { COMMUNICATOR_DEFAULTS, &workers->communicator },
        { NULL, NULL },
    };
    const struct det_workers_options options = {
        .world = up_cli(up)->world,
        .allocator = up_allocator(up),
        .loop = up_loop(up),
        .store = up_shared_store(up),
        .name = workers->name,
        .kinds = workers->kinds,
        .provided = provided,
        .limits = config->limits,
        .on_event = on_event,
        .user = workers,
    };
    int r;

    det_assert(!workers->supervisor && workers->kinds && workers->channel);
    /* Before its first turn, another thread could claim the loop. */
    det_loop_claim(up_loop(up));
    r = det_workers_open(&options, &workers->supervisor, reterr);
    if (r == 0 && config->globals)
        r = det_workers_set_globals_data(workers->supervisor, config->globals, reterr);
    if (r == 0)
        r = det_workers_apply_data(workers->supervisor, config->spec, reterr);
    return r < 0 ? r : up_communicator_switch(workers, reterr);
}

int up_workers_open(struct up *up, struct det_error *reterr)
{
    const struct config_workers *config = &up_config(up)->workers;
    const struct det_allocator *allocator = up_allocator(up);
    struct up_workers *workers;
    int r;

    if (!are_wanted(up))
        return 0;
    workers = DET_NEW(allocator, struct up_workers);
    if (!workers)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    up_set_workers(up, workers);
    workers->up = up;
    workers->timer = (struct det_timer){ .run = on_timer, .argument = workers };
    modules_init(&workers->modules, allocator);
    det_arena_init(&workers->arena, allocator);
    (void)det_text_copy(
        workers->name, sizeof workers->name, config->name ? config->name : ROOT_DEFAULT);
    up_communicator_read_defaults(&workers->communicator);
    prefix_learn(up_prefix(up), LOG_NAME);
    r = load_kinds(workers, config, reterr);
    if (r == 0)
        r = check_workers(up, config, reterr);
    if (r == 0 &&
        det_pool_open_growing(up_cli(up)->world, allocator, 1, THREADS, &workers->pool) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0 &&
        channel_open(
            &(struct channel_options){ .world = up_cli(up)->world, .allocator = allocator },
            &workers->channel) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (r == 0)
        r = open_supervisor(workers, config, reterr);
    if (r == 0)
        on_timer(workers);
    return r;
}

/* Changing. */

int up_workers_check(
    const struct up *up, const struct config_workers *config, struct cli_problems *problems)
{
    return config_check_workers(config, up_workers(up)->kinds, up_allocator(up), problems);
}

/* Adds the first workers of this run. */
static int begin_workers(struct up *up, struct det_error *reterr)
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
    const struct config_workers *config = &up_config(up)->workers;
    int r;

    if (!up_has_workers(up))
        return begin_workers(up, reterr);
    r = det_workers_set_globals_data(up_workers(up)->supervisor, config->globals, reterr);
    if (r < 0)
        return r;
    return config->spec ? det_workers_apply_data(up_workers(up)->supervisor, config->spec, reterr)
                        : det_workers_apply(up_workers(up)->supervisor, "", reterr);
}

/* Closing. */

void up_workers_stop(struct up *up)
{
    if (up_has_workers(up))
        det_workers_cancel(up_workers(up)->supervisor);
}

bool up_workers_are_over(const struct up *up)
{
    return !up_has_workers(up) || up_workers(up)->is_over;
}

void up_workers_finish(struct up *up)
{
    struct det_error error = { 0 };

    if (!up_has_workers(up))
        return;
    if (det_workers_stop(up_workers(up)->supervisor, &error) < 0) {
        up_set_forced(up);
        up_note_failure(up, UP_NAME, "%s", error.text);
    }
}

void up_workers_close(struct up *up)
{
    struct up_workers *workers = up_workers(up);
    const struct det_allocator *allocator;

    if (!workers)
        return;
    allocator = up_allocator(up);
    det_loop_timer_cancel(up_loop(up), &workers->timer);
    if (workers->supervisor)
        (void)!det_workers_stop(workers->supervisor, NULL);
    /* Completed jobs post to the loop. */
    while (workers->jobs && det_loop_turn(up_loop(up), DET_NEVER) >= 0)
        ;
    if (workers->pool)
        det_pool_close(workers->pool);
    det_workers_close(workers->supervisor);
    if (workers->channel)
        channel_close(workers->channel);
    modules_close(&workers->modules);
    if (workers->kinds)
        DET_DELETE_ARRAY(allocator, workers->kinds, workers->kind_room);
    det_arena_deinit(&workers->arena);
    DET_DELETE(allocator, workers);
    up_set_workers(up, NULL);
}

bool up_has_workers(const struct up *up)
{
    const struct up_workers *workers = up_workers(up);

    return workers && workers->supervisor;
}

size_t up_workers_count(const struct up *up)
{
    struct det_workers_summary summary = { 0 };

    if (!up_workers_are_over(up))
        det_workers_summary(up_workers(up)->supervisor, &summary);
    return summary.workers;
}
