/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run.h - executes a plan on a store, and reads its content. */
#ifndef DET_CRASH_RUN_H
#define DET_CRASH_RUN_H

#include <detent/driver/store.h>

#include "crash/plan.h"
#include "crash/value.h"

/* A store in use. */
struct crash_run {
    const char *url;
    struct det_store_options options;
    struct det_store *store;
    struct det_machine *machines[CRASH_VERSIONS]; /* from version 1 */
    unsigned version;
    struct det_store_instance *instances[CRASH_INSTANCES];
    bool is_split;                 /* broken on purpose: timers and effects are a separate commit */
    char text[DET_ERROR_TEXT_MAX]; /* the last failure */
};

void crash_run_init(
    struct crash_run *run, const char *url, const struct det_store_options *options);
/* Closes the store, if it is open. */
void crash_run_deinit(struct crash_run *run);

/* Opens the store and serves the machine in that version. */
int crash_run_open(struct crash_run *run, unsigned version);
void crash_run_close(struct crash_run *run);
/* Opens a store after a crash and reads it: in the version that was served for certain, or, if that
 * does not fit, in the one that was about to be served. */
int crash_run_recover(
    struct crash_run *run, unsigned version, unsigned other, struct crash_model *ret);

/* Executes one step: 0 if it happened, or was refused as planned; else the error. */
int crash_run_step(struct crash_run *run, const struct crash_step *step);

/* Reads the whole content of an open store. */
int crash_run_read(struct crash_run *run, struct crash_model *ret);
/* Runs the store's own check: returns the number of findings, the first of them in `text`. */
int crash_run_check(struct crash_run *run, unsigned *ret);

#endif
