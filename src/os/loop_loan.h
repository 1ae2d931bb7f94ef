/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_loan.h - a loop that sleeps, lent to another thread for a moment.
 *
 * To hand a small piece of work to a thread that sleeps, and to wait for its answer, takes two
 * switches of threads, tens of microseconds. While the owner of the loop sleeps its place is free:
 * the caller takes it, does the work itself and gives it back. The loop has one owner at a time as
 * ever; only which thread that is changes.
 *
 *     OWNED --the owner goes to sleep--> PARKED --borrow--> LENT --return--> PARKED
 *       ^                                  |                  | the owner wakes up
 *       +--the owner wakes up--------------+                  v
 *       +--return------------------------------------------- WANTED
 *
 * The work must be short and must not block: the owner may have woken up and wait for its loop. */
#ifndef DET_OS_LOOP_LOAN_H
#define DET_OS_LOOP_LOAN_H

#include <detent/loop.h>

/* From now on it may be borrowed while it sleeps in det_loop_run() or det_loop_start(). Before
 * either; whatever runs in a loan must not mind on which thread.
 *
 * `nap`: an owner whose loop was borrowed a moment ago sleeps no longer than this and is not woken
 * meanwhile. Many calls in a row then cost one wake, and none if their caller does the work; what
 * nobody waits for starts up to a nap later. 0: every return with anything to do wakes. */
void det_loop_lend(struct det_loop *loop, det_time nap);
/* True: the calling thread is the owner of the loop until det_loop_return(). False: the loop is
 * awake, or lent already, or never sleeps where it could be borrowed. Never waits. */
DET_MUST_CHECK bool det_loop_borrow(struct det_loop *loop);
/* By the borrower: runs all messages that were posted until now, in their order. How many. */
int det_loop_run_posts(struct det_loop *loop);
/* The owner is woken if there is anything for it to do: messages, an earlier timer, a stop. */
void det_loop_return(struct det_loop *loop);
/* For a thread that has nothing else to do: first runs messages and timers that are due, until
 * nothing is left, `is_over` says that it has, or the owner wants its loop back. */
void det_loop_work_and_return(
    struct det_loop *loop, bool (*is_over)(void *argument), void *argument);
/* For a thread that waits for what the loop does: runs messages and timers that are due, in its
 * place, until `is_over` says so, nothing is left, the deadline has passed, or the owner wants its
 * loop back. */
void det_loop_help(
    struct det_loop *loop, det_time deadline, bool (*is_over)(void *argument), void *argument);

#endif
