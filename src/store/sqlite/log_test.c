/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_test.c - the log of a file: many pages, visitors that use the store, and lack of memory. */
#include <detent/tool/store.h>

#include "store/sqlite/sqlite_test.h"

#define MANY 25000

struct seen {
    struct shelf *shelf; /* NULL: the visitor only counts */
    uint64_t count, last;
};

static int count_row(void *context, const struct det_store_logged *row)
{
    struct seen *seen = context;

    assert_true(row->position > seen->last);
    seen->last = row->position;
    seen->count++;
    return 0;
}

/* Events of "p" that nobody has sent, in one go. */
static void add_many(struct shelf *shelf)
{
    char text[400];

    snprintf(
        text, sizeof text,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "INSERT INTO events SELECT i + 100, 1, i, 0, 1, 1, 'A', 'B', 'BARE', 'goto', 0, 0, i, "
        "NULL, "
        "NULL, NULL, x'', NULL FROM n",
        MANY);
    shelf_exec(shelf, text);
}

static void a_long_log_is_read_in_many_transactions(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store_log_query query = { 0 };
    struct seen seen = { 0 };
    uint64_t next = 0;

    (void)state;
    shelf_close(shelf);
    add_many(shelf);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(det_store_log(shelf->pad.store, &query, count_row, &seen, &next), 0);
    assert_int_equal(seen.count, MANY + 1);
    assert_int_equal(next, MANY + 100);
    /* No row is selected, so no page is ever full. */
    query.id = "nobody";
    seen = (struct seen){ 0 };
    assert_int_equal(det_store_log(shelf->pad.store, &query, count_row, &seen, &next), 0);
    assert_int_equal(seen.count, 0);
    assert_int_equal(next, MANY + 100);
    query.budget = 15000;
    assert_int_equal(det_store_log(shelf->pad.store, &query, count_row, &seen, &next), 0);
    assert_int_equal(next, 15000 - 1 + 100);
    query = (struct det_store_log_query){ .since = 10, .until = 20 };
    assert_int_equal(det_store_log(shelf->pad.store, &query, count_row, &seen, &next), 0);
    assert_int_equal(seen.count, 10);
    shelf_free(shelf);
}

/* The sent events come after those it reads, so the walk ends. */
static int send_one(void *context, const struct det_store_logged *row)
{
    struct seen *seen = context;
    int r = count_row(seen, row);

    if (r == 0 && seen->count < 10)
        r = send(&seen->shelf->pad, TEXT, NULL);
    return r;
}

static void a_visitor_may_send(void **state)
{
    struct shelf shelf;
    struct seen seen = { .shelf = &shelf };
    uint64_t next = 0;

    (void)state;
    shelf_init(&shelf);
    assert_int_equal(shelf_open_with(&shelf, &(struct det_store_options){ .connections = 1 }), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    do
        assert_int_equal(
            det_store_log(
                shelf.pad.store, &(struct det_store_log_query){ .after = next }, send_one, &seen,
                &next),
            0);
    while (seen.count < 10);
    assert_int_equal(seen.last, 10);
    shelf_deinit(&shelf);
}

static int prune_all(void *context, const struct det_store_logged *row)
{
    struct seen *seen = context;
    struct det_store *store = seen->shelf->pad.store;
    uint64_t gone;

    (void)count_row(seen, row);
    if (seen->count > 1)
        return 0;
    return store->ops->prune(store, seen->shelf->pad.instance, 400, 0, &gone);
}

/* Events of the page are shown, pruned ones are not, later ones are. */
static void events_pruned_during_a_log_walk_are_the_only_gap(void **state)
{
    struct shelf *shelf = shelf_new();
    struct seen seen = { .shelf = shelf };
    struct pad *pad = &shelf->pad;
    uint64_t next = 0;

    (void)state;
    for (int i = 0; i < 400; i++)
        assert_int_equal(send(pad, TEXT, NULL), 0);
    begin(pad);
    pad->commit.is_snapshot = true;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(send(pad, TEXT, NULL), 0);
    assert_int_equal(det_store_log(pad->store, NULL, prune_all, &seen, &next), 0);
    assert_true(seen.count > 10 && seen.count < 402);
    assert_int_equal(seen.last, 402);
    assert_int_equal(next, 402);
    shelf_free(shelf);
}

static int count_trace(void *context, const struct det_store_logged *row)
{
    uint64_t *count = context;

    *count += row->trace && row->trace->flags == 7 && row->event_id && row->payload;
    return 0;
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    const struct det_store_options options = { .allocator = &memory->allocator,
                                               .is_read_only = true };
    struct shelf *shelf = argument;
    struct det_store *store = NULL;
    uint64_t next = 0, count = 0;
    int r;

    r = det_store_open_with(shelf->url, &options, &store, NULL);
    if (r == 0)
        r = det_store_log(store, NULL, count_trace, &count, &next);
    if (r == 0)
        assert_true(count == 1 && next == 3);
    det_store_close(store);
    return r;
}

static void log_reading_reports_failed_allocations(void **state)
{
    struct det_trace_context trace = { .flags = 7 };
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, TEXT);
    pad->event.trace = &trace;
    pad->event.event_id = "an-id";
    assert_int_equal(commit(pad), 0);
    det_test_each_failure(read_all, shelf);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_log_is_read_in_many_transactions),
        cmocka_unit_test(a_visitor_may_send),
        cmocka_unit_test(events_pruned_during_a_log_walk_are_the_only_gap),
        cmocka_unit_test(log_reading_reports_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
