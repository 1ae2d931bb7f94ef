/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* component_define.h - the part of define.h for a spec with an FSM_CONTEXT: the dispatch function
 * of each state, and the component. No include guard on purpose. */
_Static_assert(
    __builtin_types_compatible_p(
        __typeof__(((struct FSM_CONTEXT *)0)->component), struct det_component),
    "the context must have a member `struct det_component component`");
_Static_assert(
    sizeof(struct FSM__OWN(_event)) <= DET_COMPONENT_EVENT_MAX,
    "an event of a component must have at most DET_COMPONENT_EVENT_MAX bytes");

/* Every state that is not final accepts the failure event. */
_Static_assert((int)FSM__ONE_FAILURE >= 0, "a component must have one FAILURE row");
#include <detent/fsm/rows_off.h>
#undef STATE
#define STATE(...) FSM__C_MUST_ACCEPT_FAILURE(__VA_ARGS__)
enum {
    FSM__OWN(__living_states) = 0
#include FSM_SPEC
};
#include <detent/fsm/rows_off.h>
#undef ON
#undef ON_EACH
#undef STAY
#undef STOP
#define ON(S, E, ...)           FSM__PAIRS(FSM__C_FAILS, ~, S, E)
#define STAY(...)               FSM__C_STAYS(__VA_ARGS__, ~)
#define STOP(...)               FSM__C_STAYS(__VA_ARGS__, ~)
#define ON_EACH(e, t, ...)      FSM__EACH_ROW(FSM__PAIR_OF_STATE, (FSM__C_FAILS, ~, e), __VA_ARGS__)
#define FSM__C_STAYS(S, E, ...) FSM__PAIRS(FSM__C_FAILS, ~, S, E)
enum {
    FSM__OWN(__failing_states) = 0
#include FSM_SPEC
};
#undef FSM__C_STAYS
_Static_assert(
    (int)FSM__OWN(__failing_states) == (int)FSM__OWN(__living_states),
    "every state that is not FINAL must accept the FAILURE event");

#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
#pragma GCC diagnostic ignored "-Wpedantic"
#include <detent/fsm/rows_off.h>
#undef DISPATCH
#undef CLOSED
#define DISPATCH(...) FSM__C_TABLE(__VA_ARGS__)
#define CLOSED(S, e)  FSM__STATES(FSM__C_TABLE_CLOSED, e, S)
static const struct det_dispatch FSM__OWN(__dispatch)[FSM__OWN(_state_count)] = {
    [0 ... FSM__OWN(_state_count) - 1] = { .closed = DET_CLOSED_FAILS },
#include FSM_SPEC
};
#pragma GCC diagnostic pop

FSM__DEFINED const struct det_component_def FSM__OWN(_component) = {
    .machine = &FSM__OWN(_machine),
    .dispatch = FSM__OWN(__dispatch),
    .offset = offsetof(struct FSM_CONTEXT, component),
    .failure = FSM__ONE_FAILURE,
#include <detent/fsm/rows_off.h>
#undef COMPLETION
#undef INVARIANT
#define COMPLETION(f) .completed = FSM__ONE_COMPLETION,
#define INVARIANT(f)  .invariant = FSM__ONE_INVARIANT,
#include FSM_SPEC
};

#ifdef FSM_HANDLER
_Static_assert(
    __builtin_types_compatible_p(
        __typeof__(((struct FSM_CONTEXT *)0)->handler), const struct FSM_HANDLER *),
    "the context must have a member `handler`: a pointer to a const struct of FSM_HANDLER");

int FSM__OWN(_supervise)(
    struct det_executor *executor, struct FSM_CONTEXT *context, const struct FSM_HANDLER *handler,
    const struct det_supervise_options *options, struct det_handle **ret, struct det_error *reterr)
{
    if (!handler)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s is not supervised without a handler",
            FSM__OWN(_machine).name);
    if (!det_component_is_supervised(&context->component))
        context->handler = handler;
    return det_supervise(executor, &FSM__OWN(_component), context, options, ret, reterr);
}
#endif
