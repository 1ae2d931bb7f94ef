/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.h - a runtime full of instances, for benches and gates that send to them. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <detent/runtime.h>

#define FSM_SPEC "load.fsm"
#include <detent/fsm/declare.h>

#define LOAD_ID_MAX 16

/* A runtime on a store in memory with `count` instances, load-0, load-1, ... */
struct load {
    struct det_store *store;
    struct det_runtime *runtime;
    char (*ids)[LOAD_ID_MAX];
    uint32_t count;
};

DET_MUST_CHECK int load_open(
    struct load *load, uint32_t count, const struct det_runtime_options *options,
    struct det_error *reterr);
void load_close(struct load *load);

#endif
