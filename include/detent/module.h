/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module.h - machines and flows with functions in C, and kinds of workers, for `detent`:
 * a shared object with one descriptor (docs/modules.md).
 *
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/define.h>
 *     ... the guards, hooks, updates, fills and effects that order.fsm names ...
 *     DET_MODULE("order", DET_MODULE_MACHINES(&order_machine));
 *
 *     cc -I. -shared -fPIC order.c -o order.so
 *
 * and `machines: {order: {module: ./order.so}}` in a detent.yaml. Kinds of workers likewise:
 *
 *     #define WORKER_SPEC "valve.worker"
 *     #include <detent/worker/define.h>
 *     ... its collect, its states, its actions ...
 *     DET_MODULE("valve", DET_MODULE_WORKERS(&valve_kind));
 *
 * and `workers: {modules: [./valve.so], children: [...]}`. Flows likewise:
 *
 *     #define FLOW_SPEC "flights.flow"
 *     #include <detent/flow/define.h>
 *     ... the functions of its stages that have no connector ...
 *     DET_MODULE("flights", DET_MODULE_FLOWS(&flights_flow));
 *
 * and `flows: {flights: {module: ./flights.so}}`, or `detent flow run flights.flow --module
 * ./flights.so`. A module needs no library: these headers use inline functions only. The functions
 * run in the process of detent, with its rights, on any of its threads; the contracts of machine.h,
 * worker.h and flow.h hold. */
#ifndef DETENT_MODULE_H
#define DETENT_MODULE_H

#include <detent/flow.h>
#include <detent/machine.h>
#include <detent/worker.h>

DET_BEGIN

/* Changes with this header and with the layout of the structs passed to functions. */
#define DET_MODULE_ABI 3
/* Detects headers that differ without a change of the number. */
#define DET_MODULE_LAYOUT \
    (DET_MODULE_MACHINE_LAYOUT ^ DET_MODULE_WORKER_LAYOUT ^ DET_MODULE_FLOW_LAYOUT)
#define DET_MODULE_MACHINE_LAYOUT \
    ((uint32_t)(sizeof(struct det_machine) * 4096 + sizeof(struct det_effect_call)))
#define DET_MODULE_WORKER_LAYOUT \
    ((uint32_t)(sizeof(struct det_worker_view) * 4096 + DET_MODULE_KIND_LAYOUT))
#define DET_MODULE_FLOW_LAYOUT \
    ((uint32_t)(sizeof(struct det_stage) * 4096 + DET_MODULE_STAGE_LAYOUT) << 3)
#define DET_MODULE_STAGE_LAYOUT                                       \
    (sizeof(struct det_stage_call) + sizeof(struct det_stage_calls) + \
     sizeof(struct det_stage_functions))
#define DET_MODULE_KIND_LAYOUT (sizeof(struct det_worker_kind) + sizeof(struct det_worker_calls))

/* Arguments of open(). Borrowed for the call. */
struct det_module_settings {
    const char *folder; /* folder of the project */
};

struct det_module {
    uint32_t abi, layout;                      /* set by DET_MODULE */
    const char *name;                          /* for people */
    const struct det_machine *const *machines; /* NULL at the end; NULL: none */
    /* Called once, before any function runs; may be NULL. Returns 0 with a context, or a negative
     * error with a sentence in `reterr->text`. */
    int (*open)(const struct det_module_settings *settings, void **ret, struct det_error *reterr);
    /* Called once, when no function runs and no call will follow; may be NULL. Not called if open()
     * failed. */
    void (*close)(void *context);
    const struct det_worker_kind *const *workers; /* NULL at the end; NULL: none */
    const struct det_flow *const *flows;          /* NULL at the end; NULL: none */
};

/* The symbol of the descriptor. */
#define DET_MODULE_SYMBOL "det_module"

/* DET_MODULE("name", DET_MODULE_MACHINES(&a_machine, &b_machine), .open = ..., .close = ...); */
/* DET_MODULE("name", DET_MODULE_WORKERS(&a_kind, &b_kind)); */
/* DET_MODULE("name", DET_MODULE_FLOWS(&a_flow, &b_flow)); or several of them. */
#define DET_MODULE_MACHINES(...)                    \
    .machines = (const struct det_machine *const[]) \
    {                                               \
        __VA_ARGS__, NULL                           \
    }
#define DET_MODULE_WORKERS(...)                        \
    .workers = (const struct det_worker_kind *const[]) \
    {                                                  \
        __VA_ARGS__, NULL                              \
    }
#define DET_MODULE_FLOWS(...)                 \
    .flows = (const struct det_flow *const[]) \
    {                                         \
        __VA_ARGS__, NULL                     \
    }
#define DET_MODULE(module_name, ...)                                                           \
    extern DET_MODULE_EXPORT const struct det_module det_module;                               \
    DET_MODULE_EXPORT const struct det_module det_module = {                                   \
        .abi = DET_MODULE_ABI, .layout = DET_MODULE_LAYOUT, .name = (module_name), __VA_ARGS__ \
    }
#define DET_MODULE_EXPORT __attribute__((visibility("default")))

/* Type of det_move.user for functions of a module, and of det_worker_context.user. */
struct det_module_host {
    uint32_t abi;
    void *(*context)(const struct det_module_host *host, const char *machine);
    void *(*kind_context)(const struct det_module_host *host, const char *kind);
};

/* The context from the module's open(), for its functions: det_module_context(move), or in an
 * effect det_module_context(&call->move). */
static inline void *det_module_context(const struct det_move *move)
{
    const struct det_module_host *host = (const struct det_module_host *)move->user;

    return host->context(host, move->machine);
}

/* The context from the module's open(), for the functions of a kind of worker. */
static inline void *det_module_worker_context(const struct det_worker_context *context)
{
    const struct det_module_host *host = (const struct det_module_host *)context->user;

    return host->kind_context(host, context->identity->kind);
}

DET_END
#endif
