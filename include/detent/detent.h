/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* detent.h - all that a program with machines, tasks and workers calls.
 *
 * The templates <detent/fsm/declare.h>, <detent/fsm/define.h> and <detent/rec/declare.h> are
 * included where a spec is used. Two folders are for others, so that this part stays small enough
 * to be read as a whole:
 *
 *   driver/   for those who extend detent: what a store, a world or a supervisor is made of
 *   tool/     for those who write tools: building, reading and drawing definitions at run time,
 *             looking into machines, stores and workers, as the program detent does
 *
 * Both are as stable as the rest. */
#ifndef DETENT_H
#define DETENT_H

#include <detent/base.h>
#include <detent/bus.h>
#include <detent/durable.h>
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
