/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* step.h - the steps of the protocol between a node and its store, and a place to stop at each.
 *
 * The operations of an opened store are replaced by ones that call them; nothing of the product
 * knows about it. A step has two sides, "commit.before" and "commit.after". When the step that was
 * named comes next, the process says "stopped STEP" and stops itself, all threads of it, as
 * SIGSTOP does; it is the test's to continue it.
 *
 * The store can also be made a bad one, so that the test is seen to find out: NODES_BUG in the
 * environment is
 *     early   some commits are said to be durable and never made
 *     id      event ids are not remembered
 *     fence   the fence is not checked */
#ifndef DET_NODES_STEP_H
#define DET_NODES_STEP_H

#include <detent/store.h>

/* A line to the test, in one piece. */
void step_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on the store's operations are steps. */
void step_watch(struct det_store *store);
/* Which step to stop at, once; "none": none. */
void step_arm(const char *name);
/* Here is one. */
void step_reach(const char *name, const char *side);

#endif
