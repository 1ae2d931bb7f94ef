/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* senders_cases.h - senders on one store, for the test suites with real and simulated threads. */
#ifndef DET_STORE_SQLITE_SENDERS_CASES_H
#define DET_STORE_SQLITE_SENDERS_CASES_H

#include "store/sqlite/sqlite_test.h"

#include "os/os.h"

#define SENDERS 6
#define SENDS   20

struct sender {
    struct shelf *shelf;
    struct det_thread *thread;
    int number;
};

/* Sends through its own pad on the same store. */
static inline void send_some(void *argument)
{
    struct sender *sender = argument;
    struct pad pad = { .machine = sender->shelf->machine, .store = sender->shelf->pad.store };
    char id[16];

    snprintf(id, sizeof id, "i%d", sender->number);
    pad.head = (struct det_store_head){ .visit = 1 };
    begin(&pad);
    pad.commit.id = id;
    pad.commit.is_new = true;
    pad.commit.data = &pad.data;
    assert_int_equal(commit(&pad), 0);
    pad.instance = pad.commit.instance;
    for (int i = 0; i < SENDS; i++) {
        struct rows rows = { 0 };

        pad.value.as.small = (pad.head.sequence + 1) * 3;
        assert_int_equal(send(&pad, SMALL, NULL), 0);
        if (i % 5 == 0) {
            assert_int_equal(walk(&pad, 0, &rows), 0);
            assert_int_equal(rows.count, i + 1);
        }
    }
    pad.store->ops->release(pad.store, pad.instance);
}

static inline int count_listed(void *context, const struct det_store_listed *row)
{
    (void)row;
    ++*(int *)context;
    return 0;
}

static inline void run_senders(struct shelf *shelf, struct det_world *world)
{
    struct sender senders[SENDERS];
    int listed = 0;

    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){ .shelf = shelf, .number = i };
        assert_int_equal(
            det_thread_start(world, "sender", send_some, &senders[i], &senders[i].thread), 0);
    }
    for (int i = 0; i < SENDERS; i++)
        det_thread_join(world, senders[i].thread);
    assert_int_equal(
        shelf->pad.store->ops->list(shelf->pad.store, shelf->machine, NULL, count_listed, &listed),
        0);
    assert_int_equal(listed, SENDERS);
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM events"), SENDERS * SENDS);
}

#endif
