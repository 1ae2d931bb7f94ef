/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity.c - the current activity of effects, as reported by the program that serves them. */
#include "inspect/activity.h"

#include <string.h>

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

/* An effect that has ended since the store was read is absent, or as the store has it. */
int activity_take(void *context, const struct det_pending_effect *row)
{
    struct instance_effect *effect = find_effect(context, row->key);

    if (!effect)
        return 0;
    if (row->state == DET_EFFECT_STATE_QUEUED)
        effect->activity = INSTANCE_QUEUED;
    if (row->state == DET_EFFECT_STATE_RUNNING) {
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
        det_runtime_effects(runtime, machine, instance->id, activity_take, instance, NULL) < 0)
        return;
    det_runtime_counts(runtime, &counts);
    instance->threads_used = (uint32_t)counts.effects_running;
    instance->threads_max = threads_max;
}
