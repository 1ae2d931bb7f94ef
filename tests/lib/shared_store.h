/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_store.h - a store that several runtimes share, in one world: the memory store behind a
 * server that knows owners, leases and locks, and nodes that can be stopped, cut off and killed.
 *
 *     server -- the memory store         instances, events, timers, effects
 *            -- rows                     who owns which timer and which effect
 *            -- instances, leases        locks with their fences; leases by name
 *            -- nodes: a det_store each, for one runtime each
 *
 *     a call of a node:  paused? waits -> dead, or lost on the way? DET_ERR_IO -> done under the
 *                        server's mutex -> answer lost? DET_ERR_IO -> paused? waits -> answer
 *
 * The server's clock counts while the machine sleeps, and does not follow jumps of the wall clock.
 */
#ifndef DET_TEST_SHARED_STORE_H
#define DET_TEST_SHARED_STORE_H

#include <detent/driver/store.h>
#include <detent/sim.h>

struct det_shared;

/* Chances in millionths, drawn from the simulation: a call that never arrives, and one whose answer
 * does not. */
struct det_shared_faults {
    uint32_t before, after;
};

/* `sim` may be NULL: then `world` is any, and there are no chances. */
struct det_shared *det_shared_open(struct det_sim *sim, struct det_world *world);
/* After its nodes. */
void det_shared_close(struct det_shared *shared);
/* A node; det_store_close() closes it. */
struct det_store *det_shared_node(struct det_shared *shared);

void det_shared_set_faults(struct det_shared *shared, struct det_shared_faults faults);
/* The next `count` calls of the node fail: the answer is lost, or (`is_before`) the call itself. */
void det_shared_fail(struct det_store *store, unsigned count, bool is_before);
/* Its calls wait, before they are done and before they are answered, until it is resumed. */
void det_shared_pause(struct det_store *store, bool is_paused);
/* Nothing of it reaches the server any more: as others see it, it is gone. */
void det_shared_kill(struct det_store *store);
/* What the calls of other nodes would have told it is told now. */
void det_shared_report(struct det_store *store);

/* Looking, as the server sees it. */
det_time det_shared_now(const struct det_shared *shared);
/* Timers and effects (not dead ones) of a node; NULL: of all. */
size_t det_shared_rows(struct det_shared *shared, const struct det_store *node);
/* False when there never was such a lease. */
bool det_shared_lease(struct det_shared *shared, const char *name, struct det_store_lease *ret);
/* How often leases and locks were renewed, and how many commits were refused for an old fence. */
struct det_shared_counts {
    uint64_t calls, renewals, fenced, locked, adoptions;
};
struct det_shared_counts det_shared_counts(struct det_shared *shared);

#endif
