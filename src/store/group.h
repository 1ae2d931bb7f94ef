/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group.h - group commit: the calls of several threads in one transaction.
 *
 *     call --> queue --> nobody writes? this thread is the leader: takes all that is queued, at
 *                        most `items_max` items, writes them, wakes whose calls are done, and
 *                        makes the first of the rest the next leader
 *                    --> somebody writes: sleeps until its items are written, or it is the leader
 *
 * An item is what the writer defines: a pointer to a commit, or a call that puts jobs. The group
 * only copies items.
 *
 * One sender alone writes on its own thread, without a hand-over. With many, whoever comes while a
 * batch is on its way to the disk is in the next one.
 *
 * Invariants
 *   1. At most `writers` leaders at once, each with its own batch and its own number (from 0), so
 *      that each can have its own connection.
 *   2. A call is in exactly one batch, whole; a batch has at least one call. Calls are taken in the
 *      order in which they came.
 *   3. The items of a call are written, results and all, when det_group_commit() returns. */
#ifndef DET_STORE_GROUP_H
#define DET_STORE_GROUP_H

#include <detent/driver/store.h>

struct det_group;

/* Writes a batch, an array of items: 0 and the result of each item, or an error for all. */
typedef int det_group_write_fn(void *context, unsigned writer, const void *items, size_t count);

struct det_group_options {
    struct det_world *world;
    const struct det_allocator *allocator;
    unsigned writers; /* 0: 1 */
    size_t item_size; /* bytes */
    size_t items_max; /* in a batch, unless one call has more; 0: 512 */
    det_group_write_fn *write;
    void *context;
};

DET_MUST_CHECK int det_group_open(const struct det_group_options *options, struct det_group **ret);
/* Not while a call is under way. */
void det_group_close(struct det_group *group);
/* From any thread. Allocates nothing while it is used by one thread at a time. */
DET_MUST_CHECK int det_group_commit(struct det_group *group, const void *items, size_t count);
/* Runs something as the only writer: no batch is under way meanwhile, and none begins. For what
 * must not run beside commits (checkpoints, compaction, leases on the same connection). */
DET_MUST_CHECK int det_group_alone(
    struct det_group *group, int (*run)(void *context), void *context);

#endif
