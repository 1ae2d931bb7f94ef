/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* detent.h - includes what a program with machines, tasks and workers calls.
 *
 * The templates <detent/fsm/declare.h>, <detent/fsm/define.h> and <detent/rec/declare.h> are
 * included where a spec is used. Two folders are separate, so that this part stays small:
 *
 *   driver/   for authors of a store, a world or a supervisor
 *   tool/     for authors of tools: build, read and draw definitions at run time, inspect machines,
 *             stores and workers, as the program detent does
 *
 * Both are as stable as the rest. */
#ifndef DETENT_H
#define DETENT_H

#include <detent/base.h>
#include <detent/bus.h>
#include <detent/durable.h>
#include <detent/expression.h>
#include <detent/flow.h>
#include <detent/journal.h>
#include <detent/lock.h>
#include <detent/loop.h>
#include <detent/machine.h>
#include <detent/policy.h>
#include <detent/record.h>
#include <detent/runtime.h>
#include <detent/schedule.h>
#include <detent/sim.h>
#include <detent/slot.h>
#include <detent/store.h>
#include <detent/supervise.h>
#include <detent/task.h>
#include <detent/trace.h>
#include <detent/worker.h>
#include <detent/worker_test.h>
#include <detent/workers.h>
#include <detent/world.h>

#endif
