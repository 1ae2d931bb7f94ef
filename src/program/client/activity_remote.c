/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity_remote.c - asks the detent that serves a store what the effects of an instance do. */
#include <detent/tool/store.h>

#include "client/activity_remote.h"

#include <string.h>

#include "client/instance_change.h"
#include "client/remote.h"
#include "inspect/activity.h"
#include "inspect/print_tasks.h"

static uint32_t number_of(const json_t *object, const char *name)
{
    return (uint32_t)json_integer_value(json_object_get(object, name));
}

static void take_answer(struct instance *instance, const json_t *answer)
{
    const json_t *effects = json_object_get(answer, "effects");

    instance->threads_used = number_of(answer, "threads_used");
    instance->threads_max = number_of(answer, "threads_max");
    for (size_t i = 0; i < json_array_size(effects); i++) {
        const json_t *item = json_array_get(effects, i);
        const char *state = show_text(item, "state");
        struct det_pending_effect row = { .key = show_text(item, "key"),
                                          .attempts = number_of(item, "attempts") };

        if (strcmp(state, "running") == 0)
            row.state = DET_EFFECT_STATE_RUNNING;
        if (strcmp(state, "queued") == 0)
            row.state = DET_EFFECT_STATE_QUEUED;
        row.began =
            instance->now - (det_time)json_integer_value(json_object_get(item, "running_ns"));
        (void)activity_take(instance, &row);
    }
}

void activity_ask(struct instance *instance)
{
    struct daemon_client *client;
    struct det_error error = { 0 };
    struct det_buffer path;
    json_t *answer = NULL;
    char identity[33];

    if (instance_effect_count(instance, false) == 0)
        return;
    client = act_find_up(instance->store->cli, "store", identity);
    if (!client)
        return;
    det_buffer_init(&path, instance->store->cli->allocator);
    det_buffer_append_text(&path, "/v1/machines/");
    daemon_path_add(&path, instance->machine->name);
    det_buffer_append_text(&path, "/instances/");
    daemon_path_add(&path, instance->id);
    det_buffer_append_text(&path, "/effects");
    if (strcmp(identity, det_store_identity(instance->store->store)) == 0 &&
        daemon_client_call(
            client, "GET", daemon_path_text(&path), NULL, REMOTE_PATIENCE, &answer, &error) == 0)
        take_answer(instance, answer);
    json_decref(answer);
    det_buffer_deinit(&path);
    daemon_client_close(client);
}
