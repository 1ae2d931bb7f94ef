/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decisions.c - composes the decisions of strategies about a signal, and resolves the result. */
#include <detent/driver/control.h>

#include "base/assert.h"

static const struct det_control_decision forward = { .action = DET_CONTROL_FORWARD };

struct det_control_decision det_control_stricter(
    struct det_control_decision a, struct det_control_decision b)
{
    struct det_control_decision stricter = a.action > b.action ? a : b;

    if (a.action == DET_CONTROL_DELAY && b.action == DET_CONTROL_DELAY && a.delay > b.delay)
        stricter = a;
    if (stricter.action != DET_CONTROL_DELAY)
        stricter.delay = 0;
    return stricter;
}

static void increase_saturated(uint32_t *counter)
{
    if (*counter < UINT32_MAX)
        (*counter)++;
}

static struct det_control_decision ask_strategy(
    const struct det_control_strategy *strategy, const struct det_signal_info *info,
    struct det_control_memory *memory)
{
    struct det_control_decision decision;

    increase_saturated(&memory->asked[info->signal]);
    decision = strategy->decide(strategy->config, info, memory);
    if (decision.action == DET_CONTROL_DELAY) {
        det_assert(decision.delay >= 0);
        increase_saturated(&memory->delayed[info->signal]);
    }
    return decision;
}

struct det_control_decision det_control_decide(
    const struct det_control_strategy *strategies, size_t count, const struct det_signal_info *info,
    struct det_control_memory *memories)
{
    struct det_control_decision strictest = forward;

    if (info->signal == DET_SIGNAL_OTHER)
        return strictest;
    for (size_t i = 0; i < count; i++)
        strictest =
            det_control_stricter(strictest, ask_strategy(&strategies[i], info, &memories[i]));
    return strictest;
}

static enum det_resolution resolve_eof(const struct det_resolve_input *input)
{
    if (input->role == DET_CYCLE_ENTRY)
        return input->origin == DET_ORIGIN_EXTERNAL ? DET_RESOLVE_BUFFER : DET_RESOLVE_SUPPRESS;
    return input->all_upstreams_ended || input->is_final_eof ? DET_RESOLVE_FORWARD_AND_DRAIN
                                                             : DET_RESOLVE_FORWARD;
}

static enum det_resolution resolve_drain(const struct det_resolve_input *input)
{
    if (input->role == DET_CYCLE_ENTRY)
        return DET_RESOLVE_BUFFER;
    return input->drain_is_terminal ? DET_RESOLVE_FORWARD_AND_DRAIN : DET_RESOLVE_FORWARD;
}

/* Resolves a signal that the strategies let pass. An entry point sets no note: its buffer shows
 * which input has ended. */
static struct det_resolved resolve_passed(const struct det_resolve_input *input)
{
    struct det_resolved resolved = { .resolution = DET_RESOLVE_FORWARD };

    switch (input->info.signal) {
    case DET_SIGNAL_EOF:
        resolved.resolution = resolve_eof(input);
        resolved.note_in_guard =
            input->role == DET_CYCLE_MEMBER && input->origin != DET_ORIGIN_FORWARDED;
        break;
    case DET_SIGNAL_DRAIN:
        resolved.resolution = resolve_drain(input);
        break;
    case DET_SIGNAL_WATERMARK:
    case DET_SIGNAL_CHECKPOINT:
    case DET_SIGNAL_OTHER:
        break;
    }
    return resolved;
}

struct det_resolved det_control_resolve(const struct det_resolve_input *input)
{
    if (input->info.signal == DET_SIGNAL_OTHER)
        return resolve_passed(input);
    switch (input->decision.action) {
    case DET_CONTROL_FORWARD:
        break;
    case DET_CONTROL_SKIP:
        return (struct det_resolved){ .resolution = DET_RESOLVE_SKIP };
    case DET_CONTROL_RETRY:
        return (struct det_resolved){ .resolution = DET_RESOLVE_RETRY };
    case DET_CONTROL_DELAY:
        return (struct det_resolved){ .resolution = DET_RESOLVE_DELAY,
                                      .delay = input->decision.delay };
    }
    return resolve_passed(input);
}
