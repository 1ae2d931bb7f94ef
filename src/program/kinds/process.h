/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.h - the records of a program that is kept running, and how its config is settled. */
#ifndef DET_KINDS_PROCESS_H
#define DET_KINDS_PROCESS_H

#define WORKER_SPEC "kinds/process.worker"
#include <detent/worker/declare.h>

/* The number of a signal that may be asked for, "TERM" or "SIGTERM"; 0: there is none such. */
int process_signal(const char *name);
/* The config with what it leaves out; or the refusal, and its code. */
DET_MUST_CHECK int process_settle(
    struct det_derive *derive, const struct process_desired *config,
    struct process_desired *desired);

#endif
