/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity_remote.c - asks the daemon that serves a store which effects of an instance run. */
#include <detent/tool/store.h>

#include "client/activity_remote.h"

#include <string.h>

#include "client/remote.h"
#include "client/served_store.h"
#include "inspect/activity.h"
#include "inspect/print_tasks.h"

static void take_answer(struct instance *instance, const struct det_json_value *answer)
{
    instance->threads_used = (uint32_t)det_json_get_number(answer, "threads_used");
    instance->threads_max = (uint32_t)det_json_get_number(answer, "threads_max");
    DET_JSON_EACH (item, det_json_get(answer, "effects")) {
        const char *state = show_text(item, "state");
        struct det_pending_effect row = {
            .key = show_text(item, "key"),
            .attempts = (uint32_t)det_json_get_number(item, "attempts"),
            .began = instance->now - det_json_get_signed(item, "running_ns"),
        };

        if (strcmp(state, "running") == 0)
            row.state = DET_EFFECT_STATE_RUNNING;
        if (strcmp(state, "queued") == 0)
            row.state = DET_EFFECT_STATE_QUEUED;
        (void)activity_take(instance, &row);
    }
}

void activity_ask(struct instance *instance)
{
    const struct det_json_value *answer = NULL;
    struct daemon_client *client;
    struct det_error error = { 0 };
    struct det_buffer path;

    if (instance_effect_count(instance, false) == 0 || !instance->store->is_served ||
        served_store_connect(instance->store, &client, &error) < 0)
        return;
    det_buffer_init(&path, instance->store->cli->allocator);
    det_buffer_append_text(&path, "/v1/machines/");
    daemon_path_add(&path, instance->machine->name);
    det_buffer_append_text(&path, "/instances/");
    daemon_path_add(&path, instance->id);
    det_buffer_append_text(&path, "/effects");
    if (daemon_client_call(
            client, "GET", daemon_path_text(&path), NULL, REMOTE_PATIENCE, &answer, &error) == 0)
        take_answer(instance, answer);
    det_buffer_deinit(&path);
    daemon_client_close(client);
}
