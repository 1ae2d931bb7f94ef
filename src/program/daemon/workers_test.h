/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.h - the workers of `detent up` without the rest of it, and somebody who asks. */
#ifndef DET_DAEMON_WORKERS_TEST_H
#define DET_DAEMON_WORKERS_TEST_H

#include "lib/test.h"

#include <detent/sim.h>

#include "daemon/telemetry.h"
#include "daemon/workers.h"
#include "observe/metrics.h"

#define HEAD "version: 1\nworkers:\n  name: plant\n"

struct stage {
    struct det_sim *sim; /* NULL: it is in the real world */
    struct cli cli;
    struct up_options options;
    struct up up;
    char *printed;
    size_t printed_size;
};

/* A configuration in the place of the one that is there. */
static inline void read_file(struct stage *stage, const char *text)
{
    struct config_file *file = &stage->up.file;
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
    up->output.limit = SIZE_MAX;
    up->options = &stage->options;
    up->log_level = DET_LOG_INFO;
    read_file(stage, text);
    prefix_init(&up->prefix, &stage->cli, false);
    assert_int_equal(det_loop_open(stage->cli.world, NULL, &up->loop), 0);
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

static inline void close_stage(struct stage *stage)
{
    struct up *up = &stage->up;

    up_workers_close(up);
    up_workers_close_store(up);
    up_observe_close(up);
    det_loop_close(up->loop);
    det_arena_deinit(&up->file.arena);
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

/* Asking. */

struct answer {
    struct socket_call call; /* the first member */
    json_t *parts;
    char error[512], code[64];
    bool is_finished, is_gone;
};

static inline void on_put(struct socket_call *call, const char *key, json_t *value_take)
{
    struct answer *answer = (struct answer *)(void *)call;

    assert_non_null(value_take);
    if (strcmp(key, "data") == 0)
        json_array_append(answer->parts, value_take);
    else if (strcmp(key, "error") == 0) {
        snprintf(
            answer->error, sizeof answer->error, "%s",
            json_string_value(json_object_get(value_take, "text")));
        snprintf(
            answer->code, sizeof answer->code, "%s",
            json_string_value(json_object_get(value_take, "code")));
    }
    json_decref(value_take);
}

static inline size_t on_waiting(const struct socket_call *call)
{
    (void)call;
    return 0;
}

static inline bool on_is_gone(const struct socket_call *call)
{
    return ((const struct answer *)(const void *)call)->is_gone;
}

static inline void on_release(struct socket_call *call)
{
    ((struct answer *)(void *)call)->is_finished = true;
}

static const struct socket_call_ops ops = { on_put, on_waiting, on_is_gone, on_release };

static inline void begin_ask(
    struct stage *stage, struct answer *answer, const char *verb, json_t *arguments_take)
{
    struct socket_request request = { .verb = verb, .arguments = arguments_take };
    const struct socket_verb *found = up_verbs;

    *answer = (struct answer){ .call = { .ops = &ops }, .parts = json_array() };
    while (found->name && strcmp(found->name, verb) != 0)
        found++;
    assert_non_null(found->name);
    found->run(&stage->up, &request, &answer->call);
    json_decref(arguments_take);
}

static inline json_t *ask(struct stage *stage, const char *verb, json_t *arguments_take)
{
    struct answer answer;

    begin_ask(stage, &answer, verb, arguments_take);
    while (!answer.is_finished)
        assert_true(det_loop_turn(stage->up.loop, DET_NEVER) >= 0);
    if (*answer.error)
        fail_msg("%s: %s", verb, answer.error);
    return answer.parts;
}

static inline void expect_refusal(
    struct stage *stage, const char *verb, json_t *arguments_take, const char *code,
    const char *part)
{
    struct answer answer;

    begin_ask(stage, &answer, verb, arguments_take);
    while (!answer.is_finished)
        assert_true(det_loop_turn(stage->up.loop, DET_NEVER) >= 0);
    assert_string_equal(answer.code, code);
    if (!strstr(answer.error, part))
        fail_msg("no '%s' in: %s", part, answer.error);
    json_decref(answer.parts);
}

static inline const char *text_of(json_t *list, size_t index, const char *key)
{
    const char *text = json_string_value(json_object_get(json_array_get(list, index), key));

    return text ? text : "";
}

static inline void assert_state(struct stage *stage, const char *id, const char *state)
{
    json_t *list = ask(stage, "workers-list", json_pack("{s:s}", "id", id));

    assert_string_equal(text_of(list, 0, "state"), state);
    json_decref(list);
}

static inline const char *desired_address(json_t *list)
{
    json_t *desired = json_object_get(json_array_get(list, 0), "desired");

    return json_string_value(json_object_get(desired, "address"));
}

#endif
