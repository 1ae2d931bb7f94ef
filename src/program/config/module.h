/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module.h - modules that a detent.yaml names (docs/modules.md), loaded.
 *
 * Invariants
 *   1. A module is opened once, however many machines are from it, and closed once.
 *   2. Nothing of a file runs before its owner and its rights were looked at; which file it is
 *      cannot change between the two, since it is loaded by the descriptor that was looked at.
 *   3. What is loaded is a copy of the file in memory: whoever writes over it changes nothing of
 *      what runs, and a file that is loaded twice has two lives. */
#ifndef DET_CONFIG_MODULE_H
#define DET_CONFIG_MODULE_H

#include <detent/module.h>

#include "config/config.h"
#include "config/isolated_worker.h"

struct module; /* one that is open */

struct modules {
    struct det_module_host host; /* the first member: what functions get as their user */
    const struct det_allocator *allocator;
    struct module *first;
    struct isolated_kinds *isolated; /* one for each module whose kinds are */
};

/* Loads the module of a machine, and looks whether it defines what `spec` says, without running its
 * open(): one that is open may have what only one can have. */
DET_MUST_CHECK int module_try(
    const struct det_allocator *allocator, const struct config_machine *config,
    const struct det_machine *spec, struct det_error *reterr);

void modules_init(struct modules *modules, const struct det_allocator *allocator);
/* When none of their functions runs any more. */
void modules_close(struct modules *modules);

/* Runs their close(), and keeps them loaded; and their open() again, in which `folder` is that of
 * the project. When none of their functions runs. */
void modules_rest(struct modules *modules);
DET_MUST_CHECK int modules_wake(
    struct modules *modules, const char *folder, struct det_error *reterr);

/* Whether the file may be loaded, without doing it. `reterr` has the sentence. */
DET_MUST_CHECK int module_check(const char *path, struct det_error *reterr);
/* The definition of this name from the module at this path, which is opened if it is not; it must
 * be the same as `spec`. `ret` stays until modules_close(); its effects may be bound anew. `folder`
 * is that of the project. */
struct module_machine {
    struct det_machine machine;
    struct det_effect_def *effects; /* those of the machine */
};
/* The kinds of workers of the module at this path, NULL at the end, checked; it is opened if it is
 * not, unless `folder` is NULL. They stay until modules_close(). The path is borrowed for as long.
 */
DET_MUST_CHECK int modules_load_kinds(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* The same kinds, but with their functions that do I/O in a process of its own for each worker
 * (isolated_worker.h); the module itself is loaded, and not opened, here. `folder` is borrowed
 * until modules_close(). */
DET_MUST_CHECK int modules_load_isolated(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* In such a process: the kinds of the copy that its parent has checked and loaded, and opened. */
DET_MUST_CHECK int modules_load_copy(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr);
/* By the name of its kind; NULL: that is not isolated. `user` is that of a worker's context. */
const struct kind_proxy *modules_proxy(const void *user, const char *kind);
/* Whether two definitions say the same. */
DET_MUST_CHECK int module_is_same_machine(
    const struct det_machine *a, const struct det_machine *b, const struct det_allocator *allocator,
    bool *ret, struct det_error *reterr);
/* Whether what is at this path is the file that was loaded from there, unchanged. */
bool modules_is_same(const struct modules *modules, const char *path);
DET_MUST_CHECK int modules_load(
    struct modules *modules, const struct config_machine *config, const char *folder,
    const struct det_machine *spec, struct module_machine **ret, struct det_error *reterr);

#endif
