/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* append_test.c - a large batch, whose statements insert many events each: the rows are the same as
 * with single inserts, and a refused commit does not affect the others. */
#include "store/sqlite/sqlite_test.h"

#define COUNT (2 * SQLITE_ROWS + 5)

/* New instances, each with one event. */
struct crowd {
    struct det_store_commit commits[COUNT];
    struct det_store_commit *pointers[COUNT];
    struct det_store_event events[COUNT];
    struct pad_event values[COUNT];
    char ids[COUNT][16];
};

static void crowd_init(struct crowd *crowd, const struct pad *pad)
{
    memset(crowd, 0, sizeof *crowd);
    for (unsigned i = 0; i < COUNT; i++) {
        struct pad_event *value = &crowd->values[i];

        snprintf(crowd->ids[i], sizeof crowd->ids[i], "c-%u", i);
        value->kind = (uint16_t)(i % 3);
        if (value->kind == SMALL)
            value->as.small = i;
        if (value->kind == TEXT)
            snprintf(value->as.note.text, 100, "%0*u", (int)(i * 2 + 1), i);
        crowd->events[i] = (struct det_store_event){
            .sequence = 1,
            .visit = 2,
            .from = 0,
            .to = 1,
            .event = (uint16_t)(i % 3),
            .outcome = DET_OUTCOME_GOTO,
            .at = 100 + i,
            .value = value,
            .event_id = i % 4 == 0 ? crowd->ids[i] : NULL,
            .cause = i % 5 == 0 ? crowd->ids[i] : NULL,
        };
        crowd->commits[i] = (struct det_store_commit){
            .machine = pad->machine,
            .id = crowd->ids[i],
            .is_new = true,
            .head = &pad->head,
            .data = &pad->data,
            .events = &crowd->events[i],
            .event_count = 1,
        };
        crowd->pointers[i] = &crowd->commits[i];
    }
}

static int crowd_commit(struct crowd *crowd, struct det_store *store)
{
    return store->ops->commit(store, crowd->pointers, COUNT);
}

static void crowd_release(struct crowd *crowd, struct det_store *store)
{
    for (unsigned i = 0; i < COUNT; i++) {
        if (crowd->commits[i].instance)
            store->ops->release(store, crowd->commits[i].instance);
        crowd->commits[i].instance = NULL;
    }
}

/* Heads as one event leaves them. */
static void set_head(struct pad *pad)
{
    pad->head.sequence = 1;
    pad->head.visit = 2;
    pad->head.transition_count = 1;
    pad->head.state = 1;
}

static void large_batch_writes_the_same_rows_as_single_commits(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    static struct crowd crowd;
    struct found found;

    (void)state;
    set_head(pad);
    crowd_init(&crowd, pad);
    assert_int_equal(crowd_commit(&crowd, pad->store), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(crowd.commits[i].result, 0);
    }
    crowd_release(&crowd, pad->store);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM events"), COUNT);
    assert_int_equal(
        shelf_ask(shelf, "SELECT max(position) - min(position) FROM events"), COUNT - 1);
    assert_int_equal(
        shelf_ask(
            shelf, "SELECT count(*) FROM events e JOIN instances i ON i.key = e.instance"
                   " WHERE e.event_id = i.id AND i.last_event = e.position"),
        (COUNT + 3) / 4);
    /* The chain, which covers every column, is the same as with single inserts. */
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

/* A foreign trigger stands for any unforeseen failure. */
static void make_refusal(struct shelf *shelf, unsigned number)
{
    char text[160];

    shelf_close(shelf);
    snprintf(
        text, sizeof text,
        "CREATE TRIGGER bad BEFORE INSERT ON events WHEN new.at = %u BEGIN"
        " SELECT raise(ABORT, 'no'); END",
        100 + number);
    shelf_exec(shelf, text);
    assert_int_equal(shelf_open(shelf), 0);
}

static void one_refused_commit_of_a_batch_is_the_only_one(void **state)
{
    static struct crowd crowd;

    (void)state;
    for (unsigned bad = 0; bad < COUNT; bad += 9) {
        struct shelf *shelf = shelf_new();
        struct det_store *store;

        make_refusal(shelf, bad);
        store = shelf->pad.store;
        set_head(&shelf->pad);
        crowd_init(&crowd, &shelf->pad);
        assert_int_equal(crowd_commit(&crowd, store), 0);
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(crowd.commits[i].result, i == bad ? DET_ERR_CORRUPT : 0);
        assert_null(crowd.commits[bad].instance);
        crowd_release(&crowd, store);
        assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM events"), COUNT - 1);
        assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM instances"), COUNT);
        assert_int_equal(shelf_check(shelf)->count, 0);
        shelf_free(shelf);
    }
}

/* All commits that were not refused are there, and no others. */
static int commit_crowd(struct det_test_memory *memory, void *argument)
{
    static struct crowd crowd;
    struct shelf shelf;
    int64_t good = 0;
    int r;

    (void)argument;
    shelf_init(&shelf);
    r = shelf_open_with(&shelf, &(struct det_store_options){ .allocator = &memory->allocator });
    if (r == 0) {
        set_head(&shelf.pad);
        crowd_init(&crowd, &shelf.pad);
        r = crowd_commit(&crowd, shelf.pad.store);
        for (unsigned i = 0; r == 0 && i < COUNT; i++)
            good += crowd.commits[i].result == 0;
        crowd_release(&crowd, shelf.pad.store);
        assert_int_equal(shelf_ask(&shelf, "SELECT count(*) FROM events"), good);
        if (r == 0 && good < COUNT)
            r = DET_ERR_NO_MEMORY;
    }
    shelf_deinit(&shelf);
    return r;
}

static void batch_commit_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(commit_crowd, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_batch_writes_the_same_rows_as_single_commits),
        cmocka_unit_test(one_refused_commit_of_a_batch_is_the_only_one),
        cmocka_unit_test(batch_commit_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
