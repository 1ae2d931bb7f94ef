/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_stubs.c - the functions of a definition, answered by chance.
 *
 * Updates are the exception: they are functions of the data alone, so that the model can repeat
 * what the runtime did. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "testing/random_record.h"
#include "testing/walk_internal.h"

/* Chances in millionths. */
#define GUARD_REFUSES  200000
#define HOOK_FAILS     100000
#define EFFECT_FAILS   200000
#define EFFECT_IS_MUTE 150000
#define EFFECT_IS_SLOW 500000
#define EFFECT_IS_LATE 200000 /* of the slow ones */
#define EFFECT_IS_LED  500000 /* to what was not taken yet; in an aimed walk each one is */
#define SLOW_MAX_MS    2000

static bool answer_guard(void *context, unsigned index, const void *data, const void *event)
{
    struct walk *walk = context;

    (void)data;
    (void)event;
    det_assert(index < CLI_STUBS_MAX && walk->answered_at[index] <= walk->decisions);
    if (walk->answered_at[index] != walk->decisions)
        walk->answers[index] = !det_sim_chance(walk->stage.sim, GUARD_REFUSES);
    walk->answered_at[index] = walk->decisions;
    return walk->answers[index];
}

static int answer_hook(void *context, unsigned index, const void *data, const void *event)
{
    const struct walk *walk = context;

    (void)index;
    (void)data;
    (void)event;
    return det_sim_chance(walk->stage.sim, HOOK_FAILS) ? DET_ERR_CANCELLED : 0;
}

/* Every number goes up by one and every bool turns: valid whatever it was before. */
static void answer_update(void *context, unsigned index, void *data, const void *event)
{
    const struct walk *walk = context;
    const struct det_record *record = det_machine_data(walk->machine);

    (void)index;
    (void)event;
    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];
        uint8_t *at = (uint8_t *)data + field->offset;

        if (field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY))
            continue;
        if (field->kind == DET_KIND_BOOL)
            *at ^= 1;
        for (size_t k = 0; field->kind == DET_KIND_UNSIGNED && k < field->size; k++) {
            if (++at[k])
                break;
        }
    }
}

static void fill_event(struct walk *walk, unsigned kind, void *event)
{
    const struct det_event_def *def = &walk->machine->events[kind];
    const struct det_record *payload = det_record_of(def->payload);

    memcpy(event, &kind, sizeof kind);
    if (payload)
        cli_random_record(walk->stage.sim, payload, (char *)event + def->payload_offset);
}

static void answer_fill(void *context, unsigned index, const struct det_move *move, void *event)
{
    (void)index;
    (void)move;
    fill_event(context, det_event_kind(event), event);
}

/* Some answers arrive late: after the timeout of the state. */
static void delay_answer(struct walk *walk)
{
    det_time span = (det_time)det_sim_random_below(walk->stage.sim, SLOW_MAX_MS) * DET_MILLISECOND;
    det_time timeout = walk->machine->states[walk->model.state].timeout.after;

    if (timeout > 0 && det_sim_chance(walk->stage.sim, EFFECT_IS_LATE))
        span += timeout;
    det_mutex_lock(walk->stage.world, walk->stage.mutex);
    cli_stage_spend(&walk->stage, span);
    det_mutex_unlock(walk->stage.world, walk->stage.mutex);
}

static int answer_effect(
    void *context, unsigned index, const struct det_effect_call *call, void *ret)
{
    struct walk *walk = context;
    const struct det_effect_def *def = &walk->machine->effects[index];
    unsigned event;

    (void)call;
    if (det_sim_chance(walk->stage.sim, EFFECT_IS_SLOW))
        delay_answer(walk);
    if (walk->stage.is_closing || det_sim_chance(walk->stage.sim, EFFECT_FAILS))
        return DET_ERR_CANCELLED;
    if (def->produces_count == 0 || det_sim_chance(walk->stage.sim, EFFECT_IS_MUTE))
        return DET_EFFECT_DONE;
    memset(ret, 0, walk->machine->event_size);
    if (walk->steer.is_aimed ||
        (walk->steer.count > 0 && det_sim_chance(walk->stage.sim, EFFECT_IS_LED)))
        event = walk_steer_product(walk, def->produces, def->produces_count);
    else
        event = def->produces[det_sim_random_below(walk->stage.sim, def->produces_count)];
    fill_event(walk, event, ret);
    return DET_EFFECT_PRODUCED;
}

struct cli_stubs walk_stubs(struct walk *walk)
{
    return (struct cli_stubs){
        .guard = answer_guard,
        .hook = answer_hook,
        .update = answer_update,
        .fill = answer_fill,
        .effect = answer_effect,
        .context = walk,
    };
}
