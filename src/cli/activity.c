/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity.c - what effects do now, as the program that serves them knows. */
#include "cli/activity.h"

#include <string.h>

#include "cli/act.h"
#include "cli/remote.h"
#include "cli/show.h"

static struct instance_effect *find_effect(struct instance *instance, const char *key)
{
    char own[INSTANCE_KEY_TEXT];

    for (struct instance_effect *e = instance->effects; e; e = e->next) {
        if (!e->row.is_dead && strcmp(
                                   key, instance_key(
                                            instance->store->store, instance->machine, instance->id,
                                            &e->row, own)) == 0)
            return e;
    }
    return NULL;
}

/* What has ended since the store was read is not found, or is as the store has it. */
static int take_effect(void *context, const struct det_pending_effect *row)
{
    struct instance_effect *effect = find_effect(context, row->key);

    if (!effect)
        return 0;
    if (row->state == DET_EFFECT_QUEUED)
        effect->activity = INSTANCE_QUEUED;
    if (row->state == DET_EFFECT_RUNNING) {
        effect->activity = INSTANCE_RUNNING;
        effect->attempt = row->attempts;
        effect->began = row->began;
    }
    return 0;
}

void activity_learn(
    struct instance *instance, struct det_runtime *runtime, const struct det_machine *machine,
    uint32_t threads_max)
{
    struct det_runtime_counts counts;

    if (instance_effect_count(instance, false) == 0 ||
        det_runtime_effects(runtime, machine, instance->id, take_effect, instance) < 0)
        return;
    det_runtime_counts(runtime, &counts);
    instance->threads_used = (uint32_t)counts.effects_running;
    instance->threads_max = threads_max;
}

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
            row.state = DET_EFFECT_RUNNING;
        if (strcmp(state, "queued") == 0)
            row.state = DET_EFFECT_QUEUED;
        row.began =
            instance->now - (det_time)json_integer_value(json_object_get(item, "running_ns"));
        (void)take_effect(instance, &row);
    }
}

void activity_ask(struct instance *instance)
{
    struct socket_client *client;
    struct det_error error = { 0 };
    json_t *arguments, *answer = NULL;
    char identity[33];

    if (instance_effect_count(instance, false) == 0)
        return;
    client = act_find_up(instance->store->cli, "store", identity);
    if (!client)
        return;
    arguments =
        json_pack("{s:s, s:s}", "machine", instance->machine->name, "instance", instance->id);
    if (strcmp(identity, det_store_identity(instance->store->store)) != 0)
        json_decref(arguments);
    else if (
        arguments &&
        socket_client_call(client, "effects", arguments, REMOTE_PATIENCE, &answer, &error) == 0)
        take_answer(instance, answer);
    json_decref(answer);
    socket_client_close(client);
}
