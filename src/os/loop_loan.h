/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_loan.h - lends a sleeping loop to another thread for a moment.
 *
 * Handing a small piece of work to a sleeping thread and waiting for its answer takes two thread
 * switches, tens of microseconds. While the owner of the loop sleeps, the caller can take its
 * place, do the work itself and return the loop. The loop still has one owner at a time.
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

/* Allows borrowing while the owner sleeps in det_loop_run() or det_loop_start(). Call it before
 * either. Callbacks that run in a loan must not depend on their thread.
 *
 * `nap`: an owner whose loop was borrowed recently sleeps at most this long and is not woken
 * meanwhile. Many calls in a row then cost one wake, or none if the callers do the work; work that
 * no caller waits for starts up to one nap later. 0: every return that leaves work wakes the
 * owner. */
void det_loop_lend(struct det_loop *loop, det_time nap);
/* Returns true if the calling thread is now the owner until det_loop_return(). Returns false if the
 * loop is awake, already lent, or not lendable. Never waits. */
DET_MUST_CHECK bool det_loop_borrow(struct det_loop *loop);
/* Called by the borrower: runs all messages posted until now, in order. Returns how many. */
int det_loop_run_posts(struct det_loop *loop);
/* Wakes the owner if it has work: messages, an earlier timer, a stop. */
void det_loop_return(struct det_loop *loop);
/* For a thread without other work: first runs messages and due timers, until none is left,
 * `is_over` returns true, or the owner wants its loop back. */
void det_loop_work_and_return(
    struct det_loop *loop, bool (*is_over)(void *argument), void *argument);
/* For a thread that waits for a result of the loop: runs messages and due timers in place of the
 * owner until `is_over` returns true, none is left, the deadline passes, or the owner wants its
 * loop back. */
void det_loop_help(
    struct det_loop *loop, det_time deadline, bool (*is_over)(void *argument), void *argument);

#endif
