/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module.h - machines with functions in C, and kinds of workers, for the program `detent`: a shared
 * object with one descriptor (docs/modules.md).
 *
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/define.h>
 *     ... the guards, hooks, updates, fills and effects that order.fsm names ...
 *     DET_MODULE("order", DET_MODULE_MACHINES(&order_machine));
 *
 *     cc -shared -fPIC order.c -o order.so
 *
 * and `machines: {order: {module: ./order.so}}` in a detent.yaml. Kinds of workers likewise:
 *
 *     #define WORKER_SPEC "valve.worker"
 *     #include <detent/worker/define.h>
 *     ... its collect, its states, its actions ...
 *     DET_MODULE("valve", DET_MODULE_WORKERS(&valve_kind));
 *
 * and `workers: {modules: [./valve.so], children: [...]}`. It needs no library: whatever these
 * headers use is inline. Functions run in the process of detent, with its rights, on any of its
 * threads; the contracts of machine.h and worker.h hold. */
#ifndef DETENT_MODULE_H
#define DETENT_MODULE_H

#include <detent/machine.h>
#include <detent/worker.h>

DET_BEGIN

/* Changes when this header, or the layout of what functions are given, does. */
#define DET_MODULE_ABI 2
/* Tells headers apart that should have had different numbers. */
#define DET_MODULE_LAYOUT (DET_MODULE_MACHINE_LAYOUT ^ DET_MODULE_WORKER_LAYOUT)
#define DET_MODULE_MACHINE_LAYOUT \
    ((uint32_t)(sizeof(struct det_machine) * 4096 + sizeof(struct det_effect_call)))
#define DET_MODULE_WORKER_LAYOUT \
    ((uint32_t)(sizeof(struct det_worker_view) * 4096 + DET_MODULE_KIND_LAYOUT))
#define DET_MODULE_KIND_LAYOUT (sizeof(struct det_worker_kind) + sizeof(struct det_worker_calls))

/* What a module is given when it is opened. Borrowed for the call. */
struct det_module_settings {
    const char *folder; /* of the project */
};

struct det_module {
    uint32_t abi, layout;                      /* DET_MODULE sets them */
    const char *name;                          /* for people */
    const struct det_machine *const *machines; /* NULL at the end; NULL: none */
    /* Once, before any function runs; may be NULL. 0 with a context of its own, or a negative error
     * with a sentence in `reterr->text`. */
    int (*open)(const struct det_module_settings *settings, void **ret, struct det_error *reterr);
    /* Once, when no function runs any more; may be NULL. Not when open() failed. */
    void (*close)(void *context);
    const struct det_worker_kind *const *workers; /* NULL at the end; NULL: none */
};

/* The name under which the descriptor is found. */
#define DET_MODULE_SYMBOL "det_module"

/* DET_MODULE("name", DET_MODULE_MACHINES(&a_machine, &b_machine), .open = ..., .close = ...); */
/* DET_MODULE("name", DET_MODULE_WORKERS(&a_kind, &b_kind)); or both. */
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
#define DET_MODULE(module_name, ...)                                                           \
    extern DET_MODULE_EXPORT const struct det_module det_module;                               \
    DET_MODULE_EXPORT const struct det_module det_module = {                                   \
        .abi = DET_MODULE_ABI, .layout = DET_MODULE_LAYOUT, .name = (module_name), __VA_ARGS__ \
    }
#define DET_MODULE_EXPORT __attribute__((visibility("default")))

/* What det_move.user is for functions of a module, and det_worker_context.user. */
struct det_module_host {
    uint32_t abi;
    void *(*context)(const struct det_module_host *host, const char *machine);
    void *(*kind_context)(const struct det_module_host *host, const char *kind);
};

/* What open() of the module has given, for its functions: det_module_context(move), or of an effect
 * det_module_context(&call->move). */
static inline void *det_module_context(const struct det_move *move)
{
    const struct det_module_host *host = (const struct det_module_host *)move->user;

    return host->context(host, move->machine);
}

/* The same for the functions of a kind of worker. */
static inline void *det_module_worker_context(const struct det_worker_context *context)
{
    const struct det_module_host *host = (const struct det_module_host *)context->user;

    return host->kind_context(host, context->identity->kind);
}

DET_END
#endif
