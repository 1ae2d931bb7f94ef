/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter.c - measures times for a meter. */
#include "runtime/meter.h"

det_time det_meter_begin(const struct det_runtime *runtime)
{
    return runtime->options.meter ? det_world_now(runtime->world, DET_CLOCK_MONOTONIC) : 0;
}

static void report_commit(
    const struct det_runtime *runtime, struct det_store_commit *const *commits, size_t count,
    struct det_commit_figures figures)
{
    const struct det_meter *meter = runtime->options.meter;

    if (!meter->commit)
        return;
    figures.commits = count;
    for (size_t i = 0; i < count; i++) {
        figures.events += commits[i]->event_count + commits[i]->is_new;
        if (figures.result == 0 && commits[i]->result < 0)
            figures.result = commits[i]->result;
    }
    meter->commit(runtime->options.observer, &figures);
}

int det_meter_commit(
    struct det_runtime *runtime, struct det_store_commit *const *commits, size_t count,
    det_time *ret_took)
{
    det_time began = det_meter_begin(runtime);
    int r;

    r = runtime->ops->commit(runtime->store, commits, count);
    if (!runtime->options.meter)
        return r;
    *ret_took = det_meter_begin(runtime) - began;
    report_commit(
        runtime, commits, count, (struct det_commit_figures){ .took = *ret_took, .result = r });
    return r;
}

void det_meter_attempt(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run, det_time began)
{
    const struct det_meter *meter = runtime->options.meter;

    if (!meter || !meter->attempt)
        return;
    meter->attempt(
        runtime->options.observer, &(struct det_attempt_figures){
                                       .machine = effect_run->due.resident->served->machine,
                                       .instance = effect_run->due.resident->id,
                                       .effect = effect_run->row.effect,
                                       .name = effect_run->call.effect,
                                       .key = effect_run->key,
                                       .attempt = effect_run->call.attempt,
                                       .result = effect_run->result,
                                       .began = effect_run->call.now,
                                       .took = det_meter_begin(runtime) - began,
                                       .trace = effect_run->call.trace,
                                   });
}

void det_meter_fire(struct det_turn *turn)
{
    const struct det_meter *meter = turn->runtime->options.meter;

    if (meter && meter->fire && meter->fire(turn->runtime->options.observer, &turn->firing.trace))
        turn->request.trace = &turn->firing.trace;
}

void det_meter_timeout(const struct det_turn *turn)
{
    const struct det_meter *meter = turn->runtime->options.meter;

    if (meter && meter->timeout)
        meter->timeout(
            turn->runtime->options.observer, turn->served->machine,
            turn->now - turn->firing.deadline);
}

void det_meter_unhandled(const struct det_turn *turn, unsigned event)
{
    const struct det_meter *meter = turn->runtime->options.meter;

    if (meter && meter->unhandled)
        meter->unhandled(
            turn->runtime->options.observer, turn->served->machine, turn->draft->head.state, event);
}
