/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect.c - binds effects, and runs one attempt. */
#include "daemon/effect.h"

#include <string.h>

#include <detent/tool/builder.h>
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/client.h"
#include "inspect/stored_instance.h"
#include "os/os.h"
#include "json/writer.h"

#define SHORTAGE_REPORTED_EVERY (10 * DET_SECOND)
/* Retry delay of an interrupted attempt: a later process makes it. */
#define STOPPED_SPAN DET_HOUR

int effects_open(
    struct effects *effects, const struct det_allocator *allocator, struct det_world *world,
    const struct config *config)
{
    size_t count = 0;
    bool has_http = false;
    int r;

    *effects = (struct effects){ .allocator = allocator, .world = world };
    modules_init(&effects->modules, allocator);
    atomic_store(&effects->stop_at, DET_NEVER);
    for (size_t i = 0; i < config->machine_count; i++) {
        count += config->machines[i].effect_count;
        for (size_t j = 0; j < config->machines[i].effect_count; j++)
            has_http = has_http || !config->machines[i].effects[j].argv;
    }
    det_assert(count < SIZE_MAX);
    effects->bindings = DET_NEW_ARRAY(allocator, count + 1, struct effect_binding);
    if (!effects->bindings)
        return DET_ERR_NO_MEMORY;
    effects->capacity = count + 1;
    r = has_http ? http_client_load() : 0;
    effects->has_http = has_http && r == 0;
    if (r < 0)
        effects_close(effects);
    return r;
}

void effects_close(struct effects *effects)
{
    if (effects->bindings)
        DET_DELETE_ARRAY(effects->allocator, effects->bindings, effects->capacity);
    if (effects->has_http)
        http_client_unload();
    modules_close(&effects->modules);
    *effects = (struct effects){ .allocator = effects->allocator };
}

void effects_stop(struct effects *effects, det_time at)
{
    atomic_store(&effects->stop_at, at);
}

static const struct effect_binding *find_binding(
    const struct effects *effects, const char *machine, const char *effect)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct effect_binding *binding = &effects->bindings[i];

        if (strcmp(binding->config->name, effect) == 0 &&
            strcmp(binding->machine->name, machine) == 0)
            return binding;
    }
    return NULL;
}

bool effects_has(const struct effects *effects, const char *machine, const char *effect)
{
    return find_binding(effects, machine, effect) != NULL;
}

const struct det_effect_policy *effects_policy(
    void *user, const struct det_machine *machine, unsigned effect)
{
    const struct effect_binding *binding =
        find_binding(user, machine->name, machine->effects[effect].name);

    return binding ? &binding->config->policy : NULL;
}

det_time effect_deadline(const struct effects *effects, const struct effect_binding *binding)
{
    return det_add_time(
        det_world_now(effects->world, DET_CLOCK_MONOTONIC), binding->config->timeout);
}

static det_time stops_at(const struct effects *effects)
{
    det_time at = atomic_load(&effects->stop_at);
    det_time forced = effects->forced_at ? atomic_load(effects->forced_at) : DET_NEVER;

    return at < forced ? at : forced;
}

bool effect_is_over(const struct effects *effects, det_time deadline)
{
    det_time now = det_world_now(effects->world, DET_CLOCK_MONOTONIC);

    return now >= deadline || now >= stops_at(effects);
}

void effect_time_out(
    const struct effects *effects, const struct effect_binding *binding, det_time deadline,
    struct effect_outcome *outcome)
{
    det_time now = det_world_now(effects->world, DET_CLOCK_MONOTONIC), stop = stops_at(effects);
    char span[DET_DURATION_TEXT];

    outcome->code = -1;
    outcome->error = DET_ERR_TIMEOUT;
    outcome->is_cut_off = now >= stop && deadline > stop;
    if (outcome->is_cut_off)
        snprintf(outcome->why, sizeof outcome->why, "interrupted, since detent is stopping");
    else
        snprintf(
            outcome->why, sizeof outcome->why, "timed out after %s",
            det_format_duration(binding->config->timeout, span, sizeof span));
}

/* Writes the input of the effect with the values of sensitive fields. */
static void write_input(
    struct det_json_writer *json, const struct effect_binding *binding,
    const struct det_effect_call *call, const void *data, const void *event)
{
    const struct det_machine *machine = binding->machine;

    det_json_open(json, NULL, '{');
    det_json_text(json, "key", call->key);
    det_json_number(json, "attempt", call->attempt);
    det_json_text(json, "machine", machine->name);
    det_json_text(json, "instance", call->move.instance);
    det_json_number(json, "sequence", call->move.sequence);
    det_json_text(json, "effect", call->effect);
    det_json_record(json, "data", det_machine_data(machine), data, DET_TEXT_REVEAL);
    if (event) {
        unsigned kind = det_event_kind(event);

        det_json_open(json, "event", '{');
        det_json_text(json, "name", machine->events[kind].name);
        det_json_record(
            json, "payload", det_machine_payload(machine, kind),
            instance_payload_of(machine, event), DET_TEXT_REVEAL);
        det_json_close(json, '}');
    } else {
        det_json_text(json, "event", NULL);
    }
    det_json_close(json, '}');
    det_buffer_append_char(&json->text, '\n');
}

static void wipe_buffer(struct det_buffer *buffer)
{
    if (buffer->size)
        explicit_bzero(buffer->data, buffer->size);
    det_buffer_deinit(buffer);
}

/* Many attempts are postponed for one reason: reports one in ten seconds. */
static bool is_report_due(struct effects *effects)
{
    det_time now = det_world_now(effects->world, DET_CLOCK_MONOTONIC);
    det_time until = atomic_load(&effects->short_until);

    return now >= until &&
           atomic_compare_exchange_strong(
               &effects->short_until, &until, det_add_time(now, SHORTAGE_REPORTED_EVERY));
}

static void report_failure(
    const struct effects *effects, const struct det_effect_call *call, const char *why,
    bool is_put_off)
{
    if (effects->report)
        effects->report(
            effects->user,
            &(struct effect_failure){ .call = call, .why = why, .is_put_off = is_put_off });
}

static int run_binding(
    struct effects *effects, const struct effect_binding *binding, struct det_effect_call *call,
    const struct det_buffer *input, void *ret)
{
    struct effect_outcome outcome = { .code = -1 };
    bool begins = !effect_is_over(effects, DET_NEVER);
    int r;

    det_assert(binding->effect < binding->machine->effect_count);
    det_buffer_init(&outcome.body, effects->allocator);
    if (!begins)
        effect_time_out(effects, binding, DET_NEVER, &outcome);
    else if (binding->config->argv)
        effect_command(effects, binding, input, &outcome);
    else
        effect_http(effects, binding, call, input, &outcome);
    /* An attempt that has run counts, even if there is no memory for its answer. */
    r = outcome.is_shortage || outcome.is_cut_off ? DET_EFFECT_POSTPONED
                                                  : effect_answer(effects, binding, &outcome, ret);
    det_assert(
        r < 0 || r == DET_EFFECT_DONE || r == DET_EFFECT_PRODUCED || r == DET_EFFECT_POSTPONED);
    if (r < 0)
        call->retry_after = outcome.retry_after;
    else if (outcome.is_cut_off)
        call->retry_after = STOPPED_SPAN;
    if ((r < 0 || r == DET_EFFECT_POSTPONED) && call->reason)
        (void)det_text_copy(call->reason, DET_REASON_MAX + 1, outcome.why);
    if (r < 0 || (outcome.is_cut_off && begins) || (outcome.is_shortage && is_report_due(effects)))
        report_failure(effects, call, outcome.why, r == DET_EFFECT_POSTPONED);
    wipe_buffer(&outcome.body);
    return r;
}

/* The function of all effects; the call names its effect. */
static int run_effect(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct effects *effects = call->move.user;
    const struct effect_binding *binding = find_binding(effects, call->move.machine, call->effect);
    struct det_json_writer json;
    int r = DET_EFFECT_POSTPONED;

    det_assert(binding);
    det_json_writer_init(&json, effects->allocator);
    write_input(&json, binding, call, data, event);
    if (det_buffer_status(&json.text) == 0)
        r = run_binding(effects, binding, call, &json.text, ret);
    wipe_buffer(&json.text);
    return r;
}

/* Returns the index of the effect in the definition, or -1. */
static int add_binding(
    struct effects *effects, const struct config_effect *config, const struct det_machine *machine)
{
    int effect = det_machine_find_effect(machine, config->name);

    if (effect < 0)
        return -1;
    det_assert(effects->count < effects->capacity);
    effects->bindings[effects->count++] =
        (struct effect_binding){ config, machine, (unsigned)effect };
    return effect;
}

int effects_bind(
    struct effects *effects, const struct config_machine *config, struct det_machine *machine)
{
    int r = 0;

    for (size_t i = 0; i < config->effect_count && r == 0; i++) {
        if (add_binding(effects, &config->effects[i], machine) < 0)
            return DET_ERR_NOT_FOUND;
        r = det_machine_bind_effect(machine, config->effects[i].name, run_effect);
    }
    return r;
}

int effects_bind_module(
    struct effects *effects, const struct config_machine *config, struct module_machine *machine)
{
    for (size_t i = 0; i < config->effect_count; i++) {
        int effect = add_binding(effects, &config->effects[i], &machine->machine);

        if (effect < 0)
            return DET_ERR_NOT_FOUND;
        machine->effects[effect].run = run_effect;
    }
    return 0;
}
