/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* declare.h - template: the C interface of a machine for its callers. One machine per include; a
 * file may include any number of them.
 *
 *     #define FSM_SPEC "order.fsm"        on the include path; it names FSM_NAME and FSM_PREFIX
 *     #include <detent/fsm/declare.h>
 *
 * For a machine called order with prefix ORDER this declares:
 *     enum order_state { ORDER_PENDING, ... };          and enum order_event_kind
 *     struct order_event { kind; union { struct payment pay; ... }; };
 *     order_pay((struct payment){ ... }), order_cancel()   constructors, one per event
 *     order_is_open(state), order_event_is_input(kind)     one per GROUP and EVENT_GROUP
 *     order_send(), order_instance_start(), order_instance_cancel(), order_instance_get(); the
 *     first three also as order_send_with() and so on, with options and `reterr`
 *     order_state_name()
 *     extern const struct det_machine order_machine;       made by define.h in one .c file
 * and the structs of the records in the spec. #define FSM_LOCAL before each of the two templates
 * keeps the machine inside one .c file.
 *
 * If the spec contains #define FSM_CONTEXT pump, the machine is that of a component (supervise.h).
 * Instead of functions for instances this declares
 *     pump_supervise(), pump_offer(), pump_handle_send(), pump_handle_state()
 *     extern const struct det_component_def pump_component; */
#include <detent/rec/language.h>
#if REC__IS_C11

/* Included before the spec is first read, so that an invalid row causes few further errors. */
#include <detent/supervise.h>

#include <detent/fsm/pre.h>

#ifndef FSM_CONTEXT
#include <detent/runtime.h>
#endif

/* Checks that names have no other meaning in C. This comes first, since such a name breaks later
 * passes. */
#include <detent/fsm/rows_off.h>
#undef STATE
#undef EVENT
#undef INTERNAL
#undef TIMER
#undef GROUP
#undef EVENT_GROUP
#undef GUARD
#undef HOOK
#undef UPDATE
#undef FILL
#undef EFFECT
#undef COMPLETION
#undef INVARIANT
#define STATE(s, ...)                     \
    REC__CHECK_NAME(#s, REC__NAME_##s, s) \
    REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define EVENT(e, ...)                     \
    REC__CHECK_NAME(#e, REC__NAME_##e, e) \
    REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define INTERNAL(e, ...)                  \
    REC__CHECK_NAME(#e, REC__NAME_##e, e) \
    REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define TIMER(t, ...)       REC__CHECK_NAME(#t, REC__NAME_##t, t)
#define GROUP(g, ...)       REC__CHECK_NAME(#g, REC__NAME_##g, g)
#define EVENT_GROUP(g, ...) REC__CHECK_NAME(#g, REC__NAME_##g, g)
#define GUARD(f)            REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define HOOK(f)             REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define UPDATE(f)           REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define FILL(f)             REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define COMPLETION(f)       REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define INVARIANT(f)        REC__CHECK_FUNCTION(#f, REC__NAME_##f, f)
#define EFFECT(...) \
    REC__CHECK_FIRST_FUNCTION(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#include FSM_SPEC
REC__CHECK_VALUE(FSM__STRING(FSM_NAME), FSM__CAT(REC__NAME_, FSM_NAME), FSM_NAME)
REC__CHECK_VALUE("FSM_PREFIX", FSM__CAT(REC__NAME_, FSM_PREFIX), FSM_PREFIX)

/* The records in the spec itself. */
#define REC_SPEC FSM_SPEC
#include <detent/rec/passes.h>
#undef REC_SPEC

/* States: ORDER_PENDING for users, PENDING_is_a_state_of_order for the rows, so that a row with an
 * event in place of a state does not compile. */
#include <detent/fsm/rows_off.h>
#undef STATE
#define STATE(s, ...) FSM__PUBLIC(s), FSM__STATE(s) = FSM__PUBLIC(s),
enum FSM__OWN(_state) {
#include FSM_SPEC
    FSM__OWN(_state_count),
};

/* Events: their kinds, the union of their payloads, their constructors. */
#include <detent/fsm/rows_off.h>
#undef EVENT
#undef INTERNAL
#define EVENT(e, ...)    FSM__PUBLIC(e), FSM__EVENT(e) = FSM__PUBLIC(e),
#define INTERNAL(e, ...) FSM__PUBLIC(e), FSM__EVENT(e) = FSM__PUBLIC(e),
enum FSM__OWN(_event_kind) {
#include FSM_SPEC
    FSM__OWN(_event_count),
};

#ifndef DETENT_FSM_DECLARE_H
#define DETENT_FSM_DECLARE_H

/* EVENT(e, wire) and EVENT(e, wire, payload). */
#define FSM__PICK3(_1, _2, _3, n, ...) n
#define FSM__EVENT_FORM(...)           FSM__PICK3(__VA_ARGS__, PAYLOAD, PLAIN, PLAIN, ~)

/* A member of the union, if the event has a payload. */
#define FSM__D_MEMBER(...) FSM__CAT(FSM__D_MEMBER_, FSM__EVENT_FORM(__VA_ARGS__))(__VA_ARGS__)
#define FSM__D_MEMBER_PLAIN(e, wire)
#define FSM__D_MEMBER_PAYLOAD(e, wire, payload) struct payload wire;

/* A constructor. */
#define FSM__D_MAKE(...) FSM__CAT(FSM__D_MAKE_, FSM__EVENT_FORM(__VA_ARGS__))(__VA_ARGS__)
#define FSM__D_MAKE_PLAIN(e, wire)                                  \
    static inline struct FSM__OWN(_event) FSM__OWN(_##wire)(void)   \
    {                                                               \
        struct FSM__OWN(_event) event = { .kind = FSM__PUBLIC(e) }; \
                                                                    \
        return event;                                               \
    }
#define FSM__D_MAKE_PAYLOAD(e, wire_name, payload_type)                                       \
    static inline struct FSM__OWN(_event) FSM__OWN(_##wire_name)(struct payload_type payload) \
    {                                                                                         \
        struct FSM__OWN(_event) event = { .kind = FSM__PUBLIC(e) };                           \
                                                                                              \
        event.wire_name = payload;                                                            \
        return event;                                                                         \
    }

#define FSM__D_GROUP(name, type, sentence, ...)                  \
    static inline bool name(type member)                         \
    {                                                            \
        return FSM__EACH_MEMBER(sentence, ~, __VA_ARGS__) false; \
    }
#define FSM__D_STATE_MEMBER(x, s) member == FSM__STATE(s) ||
#define FSM__D_EVENT_MEMBER(x, e) member == FSM__EVENT(e) ||

#endif

#include <detent/fsm/rows_off.h>
#undef EVENT
#undef INTERNAL
#define EVENT(...)    FSM__D_MEMBER(__VA_ARGS__)
#define INTERNAL(...) FSM__D_MEMBER(__VA_ARGS__)
struct FSM__OWN(_event) {
    enum FSM__OWN(_event_kind) kind;
    union {
        struct det_empty det__none;
#include FSM_SPEC
    };
};

#undef EVENT
#undef INTERNAL
#define EVENT(...)    FSM__D_MAKE(__VA_ARGS__)
#define INTERNAL(...) FSM__D_MAKE(__VA_ARGS__)
#include FSM_SPEC

#include <detent/fsm/rows_off.h>
#undef GROUP
#undef EVENT_GROUP
#define GROUP(name, ...) \
    FSM__D_GROUP(FSM__OWN(_is_##name), enum FSM__OWN(_state), FSM__D_STATE_MEMBER, __VA_ARGS__)
#define EVENT_GROUP(name, ...) \
    FSM__D_GROUP(              \
        FSM__OWN(_event_is_##name), enum FSM__OWN(_event_kind), FSM__D_EVENT_MEMBER, __VA_ARGS__)
#include FSM_SPEC

FSM__DECLARED const struct det_machine FSM__OWN(_machine);

#ifdef FSM_CONTEXT
#include <detent/fsm/component_declare.h>
#else
/* Events and data are passed by value: in C a wrong pointer only warns, a wrong struct does not
 * compile. */
DET_MUST_CHECK static inline int FSM__OWN(_send_with)(
    struct det_runtime *runtime, const char *instance, struct FSM__OWN(_event) event,
    const struct det_send_options *options, struct det_sent *ret, struct det_error *reterr)
{
    return det_runtime_send(runtime, &FSM__OWN(_machine), instance, &event, options, ret, reterr);
}

DET_MUST_CHECK static inline int FSM__OWN(_send)(
    struct det_runtime *runtime, const char *instance, struct FSM__OWN(_event) event,
    struct det_sent *ret)
{
    return det_runtime_send(runtime, &FSM__OWN(_machine), instance, &event, NULL, ret, NULL);
}

#ifdef FSM_DATA
DET_MUST_CHECK static inline int FSM__OWN(_instance_start_with)(
    struct det_runtime *runtime, const char *instance, struct FSM_DATA data,
    const struct det_send_options *options, struct det_sent *ret, struct det_error *reterr)
{
    return det_runtime_start(runtime, &FSM__OWN(_machine), instance, &data, options, ret, reterr);
}

DET_MUST_CHECK static inline int FSM__OWN(_instance_start)(
    struct det_runtime *runtime, const char *instance, struct FSM_DATA data, struct det_sent *ret)
{
    return det_runtime_start(runtime, &FSM__OWN(_machine), instance, &data, NULL, ret, NULL);
}

DET_MUST_CHECK static inline int FSM__OWN(_instance_get)(
    struct det_runtime *runtime, const char *instance, struct det_instance *ret,
    struct FSM_DATA *ret_data)
{
    return det_runtime_get(runtime, &FSM__OWN(_machine), instance, ret, ret_data, NULL);
}
#else
DET_MUST_CHECK static inline int FSM__OWN(_instance_start_with)(
    struct det_runtime *runtime, const char *instance, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    return det_runtime_start(runtime, &FSM__OWN(_machine), instance, NULL, options, ret, reterr);
}

DET_MUST_CHECK static inline int FSM__OWN(_instance_start)(
    struct det_runtime *runtime, const char *instance, struct det_sent *ret)
{
    return det_runtime_start(runtime, &FSM__OWN(_machine), instance, NULL, NULL, ret, NULL);
}

DET_MUST_CHECK static inline int FSM__OWN(_instance_get)(
    struct det_runtime *runtime, const char *instance, struct det_instance *ret)
{
    return det_runtime_get(runtime, &FSM__OWN(_machine), instance, ret, NULL, NULL);
}
#endif

DET_MUST_CHECK static inline int FSM__OWN(_instance_cancel_with)(
    struct det_runtime *runtime, const char *instance, const char *reason,
    const struct det_send_options *options, struct det_sent *ret, struct det_error *reterr)
{
    return det_runtime_cancel(runtime, &FSM__OWN(_machine), instance, reason, options, ret, reterr);
}

DET_MUST_CHECK static inline int FSM__OWN(_instance_cancel)(
    struct det_runtime *runtime, const char *instance, const char *reason, struct det_sent *ret)
{
    return det_runtime_cancel(runtime, &FSM__OWN(_machine), instance, reason, NULL, ret, NULL);
}

#endif

/* "none" for a value that is not a state, such as the state before the first one. */
static inline const char *FSM__OWN(_state_name)(unsigned state)
{
    return state < FSM__OWN(_state_count) ? FSM__OWN(_machine).states[state].name : "none";
}

#include <detent/fsm/rows_end.h>

#endif
