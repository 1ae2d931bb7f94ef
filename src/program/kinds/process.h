/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.h - the records of the kind `process`, and the derivation of its config. */
#ifndef DET_KINDS_PROCESS_H
#define DET_KINDS_PROCESS_H

#define WORKER_SPEC "kinds/process.worker"
#include <detent/worker/declare.h>

/* Returns the number of a permitted signal, "TERM" or "SIGTERM"; 0: unknown. */
int process_signal(const char *name);
/* Fills the defaults of a config; or refuses it with a code. */
DET_MUST_CHECK int process_settle(
    struct det_derive *derive, const struct process_desired *config,
    struct process_desired *desired);

#endif
