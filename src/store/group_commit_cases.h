/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_commit_cases.h - a counting writer and senders, for the suites of group commit. */
#ifndef DET_STORE_GROUP_COMMIT_CASES_H
#define DET_STORE_GROUP_COMMIT_CASES_H

#include "store/group_commit.h"

#include "lib/test.h"

#include <stdatomic.h>

#include <detent/sim.h>

#include "os/os.h"

#define THREADS 8u
#define CALLS   40u

/* A writer that counts. */
struct desk {
    struct det_world *world;
    struct det_group *group;
    unsigned writers;
    size_t items_max;
    atomic_uint inside, alone;
    atomic_bool seats[4];
    atomic_uint written, batches, largest;
    int result;          /* the result of a batch */
    struct det_sim *sim; /* not NULL: a batch takes time */
    struct det_mutex *mutex;
    struct det_condition *gate;
    bool is_open, is_gated;
};

static inline void pass_gate(struct desk *desk)
{
    int r = 0;

    if (!desk->is_gated)
        return;
    det_mutex_lock(desk->world, desk->mutex);
    while (!desk->is_open && r == 0)
        r = det_condition_wait(desk->world, desk->gate, desk->mutex, DET_NEVER);
    det_mutex_unlock(desk->world, desk->mutex);
}

static inline int write_batch(void *context, unsigned writer, const void *items, size_t count)
{
    struct det_store_commit *const *commits = items;
    struct desk *desk = context;

    assert_true(count > 0);
    assert_true(writer < desk->writers);
    assert_false(atomic_exchange(&desk->seats[writer], true));
    assert_true(atomic_fetch_add(&desk->inside, 1) < desk->writers);
    assert_int_equal(atomic_load(&desk->alone), 0);
    if (desk->sim)
        assert_int_equal(det_world_sleep(desk->world, DET_MILLISECOND), 0);
    pass_gate(desk);
    for (size_t i = 0; i < count; i++) {
        commits[i]->actual++;
        commits[i]->result = (int)commits[i]->expected;
    }
    atomic_fetch_add(&desk->written, (unsigned)count);
    atomic_fetch_add(&desk->batches, 1);
    if (count > atomic_load(&desk->largest))
        atomic_store(&desk->largest, (unsigned)count);
    atomic_fetch_sub(&desk->inside, 1);
    atomic_store(&desk->seats[writer], false);
    return desk->result;
}

static inline int run_alone(void *context)
{
    struct desk *desk = context;

    assert_int_equal(atomic_fetch_add(&desk->alone, 1), 0);
    assert_int_equal(atomic_load(&desk->inside), 0);
    if (desk->sim)
        assert_int_equal(det_world_sleep(desk->world, DET_MILLISECOND), 0);
    atomic_fetch_sub(&desk->alone, 1);
    return 7;
}

static inline int desk_open(struct desk *desk, const struct det_allocator *allocator)
{
    return det_group_open(
        &(struct det_group_options){ .world = desk->world,
                                     .allocator = allocator,
                                     .writers = desk->writers,
                                     .item_size = sizeof(struct det_store_commit *),
                                     .items_max = desk->items_max,
                                     .write = write_batch,
                                     .context = desk },
        &desk->group);
}

struct sender {
    struct desk *desk;
    unsigned number;
    struct det_thread *thread;
};

/* Calls of one to three commits, now and then one that is larger than a batch, or alone. */
static inline void send_many(void *argument)
{
    struct sender *sender = argument;
    struct det_store_commit commits[20];
    struct det_store_commit *pointers[20];

    for (unsigned i = 0; i < CALLS; i++) {
        size_t count = i % 16 == 5 ? 20 : 1 + (i + sender->number) % 3;

        if (i % 10 == 9)
            assert_int_equal(det_group_alone(sender->desk->group, run_alone, sender->desk), 7);
        for (size_t k = 0; k < count; k++) {
            commits[k] = (struct det_store_commit){ .expected = sender->number * 1000 + i };
            pointers[k] = &commits[k];
        }
        assert_int_equal(det_group_commit(sender->desk->group, pointers, count), 0);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(commits[k].actual, 1);
            assert_int_equal(commits[k].result, sender->number * 1000 + i);
        }
    }
}

static inline unsigned expected_commits(void)
{
    unsigned sum = 0;

    for (unsigned number = 0; number < THREADS; number++) {
        for (unsigned i = 0; i < CALLS; i++)
            sum += i % 16 == 5 ? 20 : 1 + (i + number) % 3;
    }
    return sum;
}

static inline void run_senders(struct desk *desk)
{
    struct sender senders[THREADS];

    assert_int_equal(desk_open(desk, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){ desk, i, NULL };
        assert_int_equal(
            det_thread_start(desk->world, "sender", send_many, &senders[i], &senders[i].thread), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        det_thread_join(desk->world, senders[i].thread);
    assert_int_equal(atomic_load(&desk->written), expected_commits());
    det_group_close(desk->group);
}

#endif
