/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module.h - loads the modules of detent.yaml (docs/modules.md).
 *
 * Invariants
 *   1. A module is opened once, however many machines use it, and closed once.
 *   2. No code of a file runs before its owner and mode were checked; it is loaded through the
 *      checked
 *      descriptor, so the file cannot change between the two.
 *   3. A copy of the file in memory is loaded: overwriting the file does not affect running code,
 *      and a file that is loaded twice has separate state. */
#ifndef DET_CONFIG_MODULE_H
#define DET_CONFIG_MODULE_H

#include <detent/module.h>

#include "config/config.h"
#include "config/isolated_worker.h"

struct module; /* an open module */

struct modules {
    struct det_module_host host; /* the first member: the `user` of its functions */
    const struct det_allocator *allocator;
    struct module *first;
    struct isolated_kinds *isolated; /* one for each module with worker kinds */
};

/* Loads the module of a machine, and checks that it defines what `spec` declares, without calling
 * its open(): an open module may hold an exclusive resource. */
DET_MUST_CHECK int module_try(
    const struct det_allocator *allocator, const struct config_machine *config,
    const struct det_machine *spec, struct det_error *reterr);

void modules_init(struct modules *modules, const struct det_allocator *allocator);
/* Call it when none of their functions runs. */
void modules_close(struct modules *modules);

/* Calls their close(), and keeps them loaded; and their open() again, where `folder` is that of the
 * project. Call it when none of their functions runs. */
void modules_suspend(struct modules *modules);
DET_MUST_CHECK int modules_resume(
    struct modules *modules, const char *folder, struct det_error *reterr);

/* Checks whether the file may be loaded, without loading it. `reterr` has the sentence. */
DET_MUST_CHECK int module_check(const char *path, struct det_error *reterr);
/* Returns the definition of this name from the module at this path, opening it if necessary; it
 * must equal `spec`. `ret` is valid until modules_close(); its effects may be bound again. `folder`
 * is that of the project. */
struct module_machine {
    struct det_machine machine;
    struct det_effect_def *effects; /* those of the machine */
};
/* Returns the checked worker kinds of the module at this path, NULL at the end; opens it if
 * necessary, unless `folder` is NULL. They are valid until modules_close(). The path is borrowed
 * for as long. */
DET_MUST_CHECK int modules_load_kinds(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* Returns the same kinds, with their I/O functions in a separate process for each worker
 * (isolated_worker.h); here the module is loaded, but not opened. `folder` is borrowed until
 * modules_close(). */
DET_MUST_CHECK int modules_load_isolated(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* For the process of an isolated worker: returns the kinds of the copy that its parent has checked
 * and loaded, and opens it. */
DET_MUST_CHECK int modules_load_copy(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* Returns the flow of this name from the module at this path, opening it if necessary; its
 * fingerprint must be that of `spec`. Valid until modules_close(); the path is borrowed for as
 * long. */
DET_MUST_CHECK int modules_load_flow(
    struct modules *modules, const char *path, const char *folder, const struct det_flow *spec,
    const struct det_flow **ret, struct det_error *reterr);
/* Looks up a kind by name; NULL: not isolated. `user` is that of a worker's context. */
const struct kind_proxy *modules_proxy(const void *user, const char *kind);
/* Returns whether two definitions are equal. */
DET_MUST_CHECK int module_is_same_machine(
    const struct det_machine *a, const struct det_machine *b, const struct det_allocator *allocator,
    bool *ret, struct det_error *reterr);
/* Returns true if the file at this path is still the one that was loaded. */
bool modules_is_same(const struct modules *modules, const char *path);
DET_MUST_CHECK int modules_load(
    struct modules *modules, const struct config_machine *config, const char *folder,
    const struct det_machine *spec, struct module_machine **ret, struct det_error *reterr);

#endif
