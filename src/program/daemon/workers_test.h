/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.h - the workers of `detent up` without its other parts, and a client. */
#ifndef DET_DAEMON_WORKERS_TEST_H
#define DET_DAEMON_WORKERS_TEST_H

#include "lib/test.h"

#include <detent/sim.h>

#include "daemon/daemon.h"
#include "daemon/project_internal.h"
#include "daemon/run.h"
#include "daemon/telemetry.h"
#include "daemon/worker_queries.h"
#include "daemon/worker_requests.h"
#include "daemon/worker_totals.h"
#include "daemon/workers_internal.h"
#include "observe/metrics.h"
#include "json/reader.h"

#define HEAD "version: 1\nworkers:\n  name: plant\n"

/* A request and its answer. */
struct answer {
    struct up_request request; /* first */
    struct det_json_writer json;
    struct det_arena arena;
    const struct det_json_value *value;
    bool is_finished;
};

struct stage {
    struct det_sim *sim; /* NULL: the real world */
    struct cli cli;
    struct up_options options;
    struct up up;
    struct up_project project;
    char *printed;
    size_t printed_size;
    struct answer answer; /* the last one of ask() */
};

/* There are only workers. */

static inline void stop_workers(struct up *up, const char *why)
{
    (void)why;
    up_workers_stop(up);
}

static inline void report_nothing(struct up *up, bool is_late)
{
    (void)up;
    (void)is_late;
}

static const struct up_life_handler stage_life = {
    .stop = stop_workers,
    .is_empty = up_workers_are_over,
    .grace = up_grace,
    .report_stop = report_nothing,
};

/* Replaces the configuration. */
static inline void read_file(struct stage *stage, const char *text)
{
    struct config_file *file = &stage->project.file;
    struct cli_problems problems = { .count = 0 };
    struct det_datum *root = NULL;

    det_arena_init(&file->arena, NULL);
    file->path = "detent.yaml";
    assert_int_equal(det_yaml_read(&file->arena, text, strlen(text), &root, &problems.items[0]), 0);
    file->config = (struct config){ 0 };
    if (config_read(&file->arena, root, &file->config, &problems) < 0)
        fail_msg("%s", problems.items[0].text);
}

static inline void open_stage_in(struct stage *stage, bool is_real, const char *text)
{
    struct det_error error = { 0 };
    struct det_store_options store = { 0 };
    struct up *up = &stage->up;

    memset(stage, 0, sizeof *stage);
    if (!is_real)
        assert_int_equal(
            det_sim_open(&(struct det_sim_options){ .seed = 5 }, &stage->sim, NULL), 0);
    stage->cli.world = store.world = is_real ? det_world_real() : det_sim_world(stage->sim);
    stage->cli.out = stage->cli.err = open_memstream(&stage->printed, &stage->printed_size);
    up->cli = up->output.outer = &stage->cli;
    up->project = &stage->project;
    up->output.limit = SIZE_MAX;
    up->options = &stage->options;
    det_list_init(&up->requests);
    read_file(stage, text);
    assert_int_equal(up_log_open(up), 0);
    assert_int_equal(det_loop_open(stage->cli.world, NULL, &up->loop), 0);
    assert_int_equal(up_life_open(up, &stage_life), 0);
    assert_int_equal(up_observe_open(up, &error), 0);
    assert_int_equal(det_store_open_with("memory:", &store, &up->shared, &error), 0);
    if (up_workers_open(up, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void open_stage(struct stage *stage, const char *text)
{
    open_stage_in(stage, false, text);
}

/* Lets time pass. */
static inline void spend(struct stage *stage, det_time span)
{
    det_time end = det_loop_now(stage->up.loop) + span;

    while (det_world_now(stage->cli.world, DET_CLOCK_MONOTONIC) < end)
        assert_true(det_loop_turn(stage->up.loop, end) >= 0);
}

static inline void free_answer(struct answer *answer)
{
    if (!answer->request.ops)
        return;
    det_json_writer_deinit(&answer->json);
    det_arena_deinit(&answer->arena);
    answer->request.ops = NULL;
}

static inline void close_stage(struct stage *stage)
{
    struct up *up = &stage->up;

    free_answer(&stage->answer);
    up_workers_close(up);
    up_workers_close_store(up);
    up_observe_close(up);
    up_life_close(up->life);
    up_log_close(up);
    det_loop_close(up->loop);
    det_arena_deinit(&up->project->file.arena);
    fclose(stage->cli.out);
    free(stage->printed);
    if (stage->sim)
        det_sim_close(stage->sim);
}

static inline void assert_printed(struct stage *stage, const char *part)
{
    fflush(stage->cli.out);
    if (!strstr(stage->printed, part))
        fail_msg("no '%s' in: %s", part, stage->printed);
}

/* Requests. */

typedef void request_fn(struct up *up, struct up_request *request, void *arguments);

static inline void on_finished(struct up_request *request)
{
    ((struct answer *)(void *)request)->is_finished = true;
}

static inline void begin_ask(
    struct stage *stage, struct answer *answer, request_fn *run, void *arguments)
{
    static const struct up_request_ops ops = { .finished = on_finished };

    *answer = (struct answer){ .request = { .ops = &ops, .json = &answer->json } };
    det_json_writer_init(&answer->json, stage->cli.allocator);
    det_arena_init(&answer->arena, NULL);
    up_request_open(&stage->up, &answer->request);
    run(&stage->up, &answer->request, arguments);
}

/* The answer of the stage, finished. */
static inline struct answer *finish_ask(struct stage *stage, request_fn *run, void *arguments)
{
    struct answer *answer = &stage->answer;

    free_answer(answer);
    begin_ask(stage, answer, run, arguments);
    while (!answer->is_finished)
        assert_true(det_loop_turn(stage->up.loop, DET_NEVER) >= 0);
    return answer;
}

/* Valid until the next request. */
static inline const struct det_json_value *ask(
    struct stage *stage, request_fn *run, void *arguments)
{
    struct answer *answer = finish_ask(stage, run, arguments);
    struct det_buffer *text = &answer->json.text;

    if (answer->request.error.code < 0)
        fail_msg("%s", answer->request.error.text);
    assert_int_equal(det_buffer_status(text), 0);
    if (det_json_read(
            &answer->arena, det_view_of(det_buffer_text(text), text->size), &answer->value, NULL) <
        0)
        fail_msg("no JSON: %s", det_buffer_text(text));
    return answer->value;
}

static inline void expect_refusal(
    struct stage *stage, request_fn *run, void *arguments, int code, const char *part)
{
    const struct answer *answer = finish_ask(stage, run, arguments);

    assert_int_equal(answer->request.error.code, code);
    assert_int_equal(answer->json.text.size, 0);
    if (!strstr(answer->request.error.text, part))
        fail_msg("no '%s' in: %s", part, answer->request.error.text);
}

static inline void run_list(struct up *up, struct up_request *request, void *arguments)
{
    struct det_json_writer *json = request->json;

    det_json_open(json, NULL, '[');
    up_list_workers(up, request, arguments);
    if (json->text.size)
        det_json_close(json, ']');
}

static inline void run_show(struct up *up, struct up_request *request, void *arguments)
{
    up_show_worker(up, request, arguments);
}

static inline void run_history(struct up *up, struct up_request *request, void *arguments)
{
    up_show_worker_history(up, request, arguments);
}

static inline void run_put(struct up *up, struct up_request *request, void *arguments)
{
    up_put_worker(up, request, arguments);
}

static inline void run_delete(struct up *up, struct up_request *request, void *arguments)
{
    up_delete_worker(up, request, arguments);
}

struct order {
    char *id;
    enum det_worker_order order;
};

static inline void run_order(struct up *up, struct up_request *request, void *arguments)
{
    const struct order *order = arguments;

    up_order_worker(up, request, order->id, order->order);
}

/* A page of all workers. */
static inline struct up_worker_page every_worker(void)
{
    return (struct up_worker_page){ .limit = SIZE_MAX, .size_max = SIZE_MAX };
}

static inline const struct det_json_value *list_workers(struct stage *stage, const char *below)
{
    struct up_worker_page page = every_worker();

    page.below = below;
    return ask(stage, run_list, &page);
}

static inline const char *text_of(
    const struct det_json_value *list, uint32_t index, const char *key)
{
    const struct det_json_value *item = det_json_first(list);
    const char *text;

    for (; item && index; index--)
        item = item->next;
    text = det_json_get_text(item, key);
    return text ? text : "";
}

static inline void assert_state(struct stage *stage, const char *id, const char *state)
{
    assert_string_equal(text_of(list_workers(stage, id), 0, "state"), state);
}

static inline const char *desired_address(const struct det_json_value *worker)
{
    return det_json_get_text(det_json_get(worker, "desired"), "address");
}

#endif
