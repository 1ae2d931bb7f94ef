/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_commit.h - group commit: the calls of several threads in one transaction.
 *
 *     call --> queue --> no writer? this thread becomes the leader: takes at most `items_max`
 *                        items, writes them, wakes the senders of finished calls, and promotes the
 *                        first of the rest
 *                    --> a writer? sleeps until its items are written or it becomes the leader
 *
 * An item is defined by the writer: a pointer to a commit, or a call that puts jobs. The group only
 * copies items.
 *
 * A single sender writes on its own thread, without a hand-over. With many senders, calls that
 * arrive while a batch is written are in the next one.
 *
 * Invariants
 *   1. At most `writers` leaders at once, each with its own batch and its own number (from 0), so
 *      that each can have its own connection.
 *   2. A call is in exactly one batch, whole; a batch has at least one call. Calls are taken in the
 *      order of arrival.
 *   3. The items of a call are written, with their results, when det_group_commit() returns. */
#ifndef DET_STORE_GROUP_COMMIT_H
#define DET_STORE_GROUP_COMMIT_H

#include <detent/driver/store.h>

struct det_group;

/* Writes a batch, an array of items: 0 and the result of each item, or an error for all. */
typedef int det_group_write_fn(void *context, unsigned writer, const void *items, size_t count);

struct det_group_options {
    struct det_world *world;
    const struct det_allocator *allocator;
    unsigned writers; /* 0: 1 */
    size_t item_size; /* bytes */
    size_t items_max; /* limit of a batch, unless one call has more items; 0: 512 */
    det_group_write_fn *write;
    void *context;
};

DET_MUST_CHECK int det_group_open(const struct det_group_options *options, struct det_group **ret);
/* Not while a call is under way. */
void det_group_close(struct det_group *group);
/* Any thread. Allocates nothing while one thread at a time uses the group. */
DET_MUST_CHECK int det_group_commit(struct det_group *group, const void *items, size_t count);
/* Runs a function as the only writer: no batch is under way or begins meanwhile. For work that must
 * exclude commits (checkpoints, compaction, leases on the same connection). */
DET_MUST_CHECK int det_group_alone(
    struct det_group *group, int (*run)(void *context), void *context);

#endif
