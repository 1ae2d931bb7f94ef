/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page_test.c - walks in pages: rows deleted meanwhile, damaged rows, lack of memory. */
#include "store/sqlite/sqlite_test.h"

#define MANY 900u

static struct shelf *shelf_many(void)
{
    struct shelf *shelf = shelf_new();

    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    return shelf;
}

struct pruning_walk {
    struct shelf *writer;
    uint64_t prune_to; /* when the first one is shown; 0: not */
    uint64_t first, last;
    size_t count, gaps;
};

static void prune(struct shelf *shelf, uint64_t sequence)
{
    struct pad *pad = &shelf->pad;
    uint64_t gone;

    begin(pad);
    pad->commit.is_snapshot = true;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, sequence, 0, &gone), 0);
    assert_int_equal(gone, sequence);
}

static int prune_at_first(void *context, const struct det_store_event *row)
{
    struct pruning_walk *walk = context;

    if (!walk->count++) {
        walk->first = row->sequence;
        if (walk->prune_to)
            prune(walk->writer, walk->prune_to);
    } else {
        assert_true(row->sequence > walk->last);
        walk->gaps += row->sequence != walk->last + 1;
    }
    walk->last = row->sequence;
    return 0;
}

/* Opens the same file beside, for reading only, and walks through the events of "p". */
static void walk_beside(struct pruning_walk *walk)
{
    struct shelf reader = *walk->writer;
    struct found found;
    struct pad *pad = &reader.pad;

    pad->instance = NULL;
    assert_int_equal(
        shelf_open_with(
            &reader, &(struct det_store_options){ .is_read_only = true, .connections = 1 }),
        0);
    assert_int_equal(shelf_load(&reader, &found), 0);
    assert_int_equal(
        pad->store->ops->events(pad->store, pad->instance, 0, prune_at_first, walk), 0);
    shelf_close(&reader);
}

static void events_that_go_while_another_process_walks_are_not_damage(void **state)
{
    struct pruning_walk walk = { .writer = shelf_many(), .prune_to = MANY - 10 };

    (void)state;
    walk_beside(&walk);
    assert_int_equal(walk.first, 1);
    assert_int_equal(walk.last, MANY);
    assert_int_equal(walk.gaps, 1);
    assert_true(walk.count > 10 && walk.count < MANY);
    walk = (struct pruning_walk){ .writer = walk.writer };
    walk_beside(&walk);
    assert_int_equal(walk.first, MANY - 9);
    assert_int_equal(walk.count, 10);
    shelf_free(walk.writer);
}

static void all_events_may_be_pruned_during_a_walk(void **state)
{
    struct pruning_walk walk = { .writer = shelf_many(), .prune_to = MANY };

    (void)state;
    walk_beside(&walk);
    assert_true(walk.count < MANY && walk.last == walk.count);
    shelf_free(walk.writer);
}

static void events_before_a_damaged_one_are_visited(void **state)
{
    struct shelf *shelf = shelf_many();
    struct rows rows = { 0 };
    struct found found;

    (void)state;
    shelf_close(shelf);
    shelf_exec(shelf, "UPDATE events SET outcome = 'nonsense' WHERE sequence = 850");
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(walk(&shelf->pad, 0, &rows), DET_ERR_VERSION);
    assert_int_equal(rows.count, 849);
    shelf_free(shelf);
}

struct scarce {
    struct shelf *shelf;
    struct det_test_memory *memory;
    unsigned listed, due, machines;
};

static int count_listed(void *context, const struct det_store_listed *row)
{
    (void)row;
    ((struct scarce *)context)->listed++;
    return 0;
}

static int count_due(void *context, const struct det_store_due *row)
{
    (void)row;
    ((struct scarce *)context)->due++;
    return 0;
}

static int count_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    (void)name;
    (void)version;
    (void)spec;
    ((struct scarce *)context)->machines++;
    return 0;
}

static int walk_all(struct det_test_memory *memory, void *argument)
{
    struct shelf *shelf = argument;
    struct scarce scarce = { 0 };
    struct det_store *store = shelf->pad.store;
    const struct det_allocator *before = store->allocator;
    struct rows rows = { .stop_at = 0 };
    det_time next;
    int r;

    store->allocator = &memory->allocator;
    r = walk(&shelf->pad, 0, &rows);
    if (r == 0)
        r = store->ops->list(store, shelf->machine, NULL, count_listed, &scarce);
    if (r == 0)
        r = store->ops->due(
            store, shelf->machine,
            &(struct det_store_due_query){ .before = DET_NEVER - 1, .limit = 9 }, count_due,
            &scarce, &next);
    if (r == 0)
        r = store->ops->machines(store, count_machine, &scarce);
    store->allocator = before;
    if (r == 0) {
        assert_int_equal(rows.count, 3);
        assert_int_equal(scarce.listed, 1);
        assert_int_equal(scarce.due, 1);
        assert_int_equal(scarce.machines, 1);
        assert_true(next == DET_NEVER);
    }
    return r;
}

static void walk_without_memory_keeps_no_lock(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store_timer_change timer = { DET_STORE_SET,
                                            { .timer = DET_STATE_TIMER, .event = BARE, .due = 5 } };

    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        char id[8];

        snprintf(id, sizeof id, "id-%u", i);
        assert_int_equal(send(&shelf->pad, BARE, id), 0);
    }
    begin(&shelf->pad);
    shelf->pad.commit.timers = &timer;
    shelf->pad.commit.timer_count = 1;
    assert_int_equal(commit(&shelf->pad), 0);
    det_test_each_failure(walk_all, shelf);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_that_go_while_another_process_walks_are_not_damage),
        cmocka_unit_test(all_events_may_be_pruned_during_a_walk),
        cmocka_unit_test(events_before_a_damaged_one_are_visited),
        cmocka_unit_test(walk_without_memory_keeps_no_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
