/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_orphans.h - adopts, reaps and ends processes that left the groups of the program's children.
 *
 * A process that leaves its group (setsid) cannot be reached through its parent; when the parent
 * has ended, init would inherit it. A program that adopts inherits it instead. A library must not
 * do this, so it is for the program alone, and only in the real world.
 *
 * Call all of it from the thread that starts processes: a process that was just started, and is not
 * yet registered, would be taken for an orphan. */
#ifndef DET_OS_REAL_ORPHANS_H
#define DET_OS_REAL_ORPHANS_H

#include <detent/base.h>

/* Returns true if other code of this program owns the child with this number. */
typedef bool det_orphans_fn(void *user, int64_t number);

/* From here on orphans below this process become its children. Returns 0 or DET_ERR_UNSUPPORTED. */
DET_MUST_CHECK int det_orphans_adopt(void);
/* Reaps orphans that have ended and sends `signal` to the others; 0 only counts. Returns how many
 * were alive, or a negative error if /proc is unavailable. */
int det_orphans_sweep(det_orphans_fn *is_ours, void *user, int signal);
/* Kills all orphans and their descendants, and waits until they are gone. Returns DET_ERR_TIMEOUT
 * at the (monotonic) deadline. */
DET_MUST_CHECK int det_orphans_end(det_orphans_fn *is_ours, void *user, det_time deadline);

#endif
