/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fault_test.c - disk failures: acknowledged commits survive, refused ones do not exist, and after
 * a failed write no commit is acknowledged. */
/* test: sanitized */
#include "store/sqlite/sqlite_test.h"

#include <signal.h>
#include <sys/resource.h>

#include "store/sqlite/scarce_test.h"
#include "store/sqlite/vfs_test.h"

static void faulty_shelf(struct shelf *shelf)
{
    faulty_init();
    shelf_init(shelf);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty", shelf->path);
}

static void after_a_failed_sync_nothing_is_acknowledged_until_it_is_opened_again(void **state)
{
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "leader", .owner = "me", .span = DET_SECOND
    };
    struct det_store_lease lease;
    struct shelf shelf;
    struct pad *pad = &shelf.pad;
    struct found found;
    uint64_t gone;

    (void)state;
    faulty_shelf(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    assert_int_equal(send(pad, BARE, "one"), 0);
    faulty.sync_fails = true;
    assert_int_equal(send(pad, BARE, "two"), DET_ERR_IO);
    faulty.sync_fails = false;
    /* The next sync would succeed, and prove nothing. */
    assert_true(pad->store->ops->is_lost(pad->store));
    assert_int_equal(send(pad, BARE, "three"), DET_ERR_IO);
    assert_int_equal(pad->store->ops->lease(pad->store, &change, &lease), DET_ERR_IO);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 1, 0, &gone), DET_ERR_IO);
    assert_int_equal(pad->store->ops->compact(pad->store, &shelf.error), DET_ERR_IO);
    assert_true(shelf.error.text[0]);
    /* It can still be read, and closed without touching the file. */
    assert_int_equal(shelf_load(&shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(shelf_reopen(&shelf, &found), 0);
    assert_true(found.loaded.head.sequence == 1 || found.loaded.head.sequence == 2);
    assert_int_equal(send(pad, BARE, "three"), 0);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    shelf_deinit(&shelf);
}

static void full_disk_refuses_commits_until_there_is_space(void **state)
{
    struct shelf shelf;
    struct pad *pad = &shelf.pad;
    struct found found;
    uint64_t before;
    int refused = 0;

    (void)state;
    faulty_shelf(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    memset(pad->value.as.note.text, 'x', 99);
    for (int i = 0; i < 60; i++) {
        struct det_store_head head = pad->head;
        int r;

        faulty.is_full = i % 10 >= 5;
        r = send(pad, TEXT, NULL);
        assert_true(r == 0 || r == DET_ERR_NO_SPACE);
        if (r < 0) {
            pad->head = head;
            refused++;
        }
    }
    assert_true(refused > 10);
    faulty.is_full = false;
    before = pad->head.sequence;
    assert_int_equal(send(pad, TEXT, NULL), 0);
    assert_int_equal(shelf_reopen(&shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, before + 1);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    shelf_deinit(&shelf);
}

static void limit_files(rlim_t size)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Returns the number of sends that fail for lack of space. */
static unsigned send_limited(struct pad *pad, unsigned count)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < count; i++) {
        struct det_store_head head = pad->head;
        int r = send(pad, TEXT, NULL);

        assert_true(r == 0 || r == DET_ERR_NO_SPACE);
        if (r < 0) {
            pad->head = head;
            refused++;
        }
    }
    return refused;
}

static void file_size_limit_is_reported_as_a_full_disk(void **state)
{
    struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    char copy[300];
    struct found found;
    uint64_t last;

    (void)state;
    assert_int_equal(sigaction(SIGXFSZ, &ignored, &before), 0);
    limit_files(400000);
    assert_true(send_limited(pad, 100) > 10);
    assert_false(pad->store->ops->is_lost(pad->store));
    snprintf(copy, sizeof copy, "%s/copy.db", shelf->folder);
    limit_files(20000);
    assert_int_equal(pad->store->ops->backup(pad->store, copy, &shelf->error), DET_ERR_NO_SPACE);
    assert_non_null(strstr(shelf->error.text, "the size of files"));
    assert_int_equal(pad->store->ops->compact(pad->store, &shelf->error), DET_ERR_NO_SPACE);
    assert_non_null(strstr(shelf->error.text, "the size of files"));
    limit_files(RLIM_INFINITY);
    assert_int_equal(send_limited(pad, 10), 0);
    assert_int_equal(pad->store->ops->compact(pad->store, &shelf->error), 0);
    last = pad->head.sequence;
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, last);
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
    shelf_free(shelf);
}

static void log_pages_over_the_file_limit_wait_for_space(void **state)
{
    struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
    struct shelf shelf;
    struct pad *pad = &shelf.pad;
    struct found found;
    unsigned refused;
    uint64_t last;

    (void)state;
    shelf_init(&shelf);
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s?checkpoint_pages=20", shelf.path);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    assert_int_equal(sigaction(SIGXFSZ, &ignored, &before), 0);
    assert_int_equal(send_limited(pad, 600), 0);
    /* The log may be as long as this, the file is longer already. */
    limit_files(150000);
    refused = send_limited(pad, 60);
    assert_true(refused > 0 && refused < 60);
    assert_false(pad->store->ops->is_lost(pad->store));
    limit_files(RLIM_INFINITY);
    assert_int_equal(send_limited(pad, 60), 0);
    last = pad->head.sequence;
    assert_int_equal(shelf_reopen(&shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, last);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
    shelf_deinit(&shelf);
}

/* The known bounds of the instance while any call may fail. */
struct belief {
    uint64_t acknowledged; /* its sequence is at least this */
    uint64_t possible;     /* and at most this: attempted, with unknown outcome */
    bool is_started;
};

static void believe(struct belief *belief, int r, uint64_t sequence)
{
    if (r == 0)
        belief->acknowledged = belief->possible = sequence;
    else if (r == DET_ERR_IO || r == DET_ERR_BUSY || r == DET_ERR_CORRUPT)
        belief->possible = sequence;
}

static void try_send(struct shelf *shelf, struct belief *belief, int number)
{
    struct pad *pad = &shelf->pad;
    struct det_store_timer_change timer = { number % 2 ? DET_STORE_CLEAR : DET_STORE_SET,
                                            { .timer = 0, .event = BARE, .visit = 1, .due = 5 } };
    char id[16];
    int r;

    begin(pad);
    add_event(pad, BARE);
    snprintf(id, sizeof id, "id-%d", (int)pad->head.sequence);
    pad->event.event_id = pad->commit.event_id = id;
    pad->commit.timers = &timer;
    pad->commit.timer_count = 1;
    pad->commit.is_snapshot = number % 3 == 0;
    /* As in a file that is larger than the cache: what is written to is read first. */
    (void)sqlite3_db_release_memory(sqlite_store_of(pad->store)->writer.database);
    r = commit(pad);
    believe(belief, r, pad->head.sequence);
    if (r < 0) {
        /* Loads again after an unknown outcome, like the runtime. */
        struct found found;

        if (shelf_load(shelf, &found) < 0)
            pad->head.sequence--;
    }
}

/* A life of a store in which any call of the disk may fail. */
static void run_life(struct shelf *shelf, struct belief *belief)
{
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "p", .owner = "me", .span = 1
    };
    struct det_store_lease lease;
    struct det_store *store;
    struct found found;
    struct rows rows = { 0 };
    uint64_t gone;
    int r;

    if (shelf_open(shelf) < 0) {
        shelf_close(shelf);
        return;
    }
    store = shelf->pad.store;
    r = shelf_start(shelf);
    belief->is_started = r == 0;
    for (int i = 0; shelf->pad.instance && i < 5; i++)
        try_send(shelf, belief, i);
    if (shelf->pad.instance) {
        (void)store->ops->lock(store, shelf->machine, &change, &lease);
        (void)store->ops->prune(store, shelf->pad.instance, 2, 0, &gone);
        (void)shelf_load(shelf, &found);
        (void)walk(&shelf->pad, 0, &rows);
        (void)store->ops->compact(store, NULL);
    }
    shelf_close(shelf);
}

static void assert_belief(struct shelf *shelf, const struct belief *belief, uint64_t point)
{
    struct findings *findings;
    struct found found;
    int r;

    faulty.fail_at = 0;
    shelf->pad.instance = NULL;
    assert_int_equal(shelf_open(shelf), 0);
    r = shelf_load(shelf, &found);
    if (belief->is_started)
        assert_int_equal(r, 0);
    if (r == 0 && (found.loaded.head.sequence < belief->acknowledged ||
                   found.loaded.head.sequence > belief->possible))
        fail_msg(
            "call %d: it stands at %d; %d were acknowledged, %d tried", (int)point,
            (int)found.loaded.head.sequence, (int)belief->acknowledged, (int)belief->possible);
    findings = shelf_check(shelf);
    if (findings->count)
        fail_msg("call %d: %s", (int)point, findings->texts);
    assert_int_equal(
        shelf_ask(shelf, "SELECT count(*) FROM answers"), r == 0 ? found.loaded.head.sequence : 0);
    shelf_close(shelf);
}

static void no_disk_failure_loses_an_acknowledged_commit(void **state)
{
    uint64_t points = 0;

    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t point = 1;; point += 1 + (uint64_t)sticky * 2) {
            struct belief belief = { 0 };
            struct shelf shelf;
            bool has_failed;

            faulty_shelf(&shelf);
            faulty.fail_at = point;
            faulty.is_sticky = sticky;
            run_life(&shelf, &belief);
            has_failed = faulty.has_failed;
            assert_belief(&shelf, &belief, point);
            shelf_deinit(&shelf);
            if (!has_failed) {
                assert_int_equal(belief.acknowledged, 5);
                break;
            }
            points++;
        }
    }
    printf("             %d failing calls of the disk\n", (int)points);
    assert_true(points > 200);
}

/* Every so many requests, each time others, since there are thousands of them in a life. */
static void no_sqlite_allocation_failure_loses_a_commit(void **state)
{
    uint64_t points = 0;

    (void)state;
    for (uint64_t point = 1;; point += 1 + point % 97) {
        struct belief belief = { 0 };
        struct shelf shelf;
        bool has_failed;

        faulty_shelf(&shelf);
        scarce.calls = 0;
        scarce.fail_at = point;
        scarce.has_failed = false;
        run_life(&shelf, &belief);
        has_failed = scarce.has_failed;
        scarce.fail_at = 0;
        assert_belief(&shelf, &belief, point);
        shelf_deinit(&shelf);
        if (!has_failed)
            break;
        points++;
    }
    printf("             %d requests for memory\n", (int)points);
    assert_true(points > 100);
}

static int open_and_serve(struct shelf *shelf)
{
    int r;

    memset(&shelf->error, 0, sizeof shelf->error);
    r = shelf_open(shelf);
    shelf_close(shelf);
    return r;
}

/* Lack of memory must not be reported as damage, which suggests a backup. */
static void open_without_memory_is_never_reported_as_damage(void **state)
{
    struct shelf shelf;
    uint64_t refused = 0;
    int r;

    (void)state;
    faulty_shelf(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    shelf_close(&shelf);
    for (uint64_t point = 1;; point += 1 + point % 11) {
        scarce.calls = 0;
        scarce.fail_at = point;
        scarce.has_failed = false;
        r = open_and_serve(&shelf);
        scarce.fail_at = 0;
        if (!scarce.has_failed)
            break;
        if (r != 0 && r != DET_ERR_NO_MEMORY)
            fail_msg("request %d: %s", (int)point, shelf.error.text);
        assert_true(r == 0 || shelf.error.text[0]);
        refused += r < 0;
    }
    printf("             %d openings refused\n", (int)refused);
    assert_true(refused > 50);
    assert_int_equal(open_and_serve(&shelf), 0);
    shelf_deinit(&shelf);
}

/* The same for the store's own memory, where something is to be told. */
static int open_lacking(struct det_test_memory *memory, void *argument)
{
    const struct det_store_options options = { .allocator = &memory->allocator };
    struct shelf *shelf = argument;
    struct det_store *store;
    int r;

    r = det_store_open_with(shelf->url, &options, &store, &shelf->error);
    assert_true(r == DET_ERR_CORRUPT || r == DET_ERR_NO_MEMORY);
    assert_true(shelf->error.text[0]);
    return r == DET_ERR_CORRUPT ? 0 : r;
}

static void missing_schema_parts_are_reported_despite_low_memory(void **state)
{
    struct shelf shelf;

    (void)state;
    faulty_shelf(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_close(&shelf);
    shelf_exec(&shelf, "ALTER TABLE jobs DROP COLUMN reason; DROP TABLE deferred");
    det_test_each_failure(open_lacking, &shelf);
    shelf_deinit(&shelf);
}

/* A checkpoint that failed for lack of memory is repeated by the next commit. */
static void checkpoint_without_memory_is_repeated_later(void **state)
{
    struct shelf shelf;
    struct pad *pad = &shelf.pad;
    struct sqlite_store *store;
    unsigned put_off = 0;

    (void)state;
    faulty_shelf(&shelf);
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s?vfs=faulty&checkpoint_pages=1", shelf.path);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    store = sqlite_store_of(pad->store);
    for (uint64_t point = 1;; point++) {
        struct det_store_head before = pad->head;
        int r;

        scarce.calls = 0;
        scarce.has_failed = false;
        scarce.fail_at = point;
        r = send(pad, BARE, NULL);
        scarce.fail_at = 0;
        if (r == 0 && !scarce.has_failed)
            break;
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        put_off += r == 0 && atomic_load(&store->checkpoint_wanted);
        if (r < 0)
            pad->head = before;
        assert_int_equal(send(pad, BARE, NULL), 0);
        assert_false(atomic_load(&store->checkpoint_wanted));
    }
    assert_true(put_off > 0);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    shelf_deinit(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_failed_sync_nothing_is_acknowledged_until_it_is_opened_again),
        cmocka_unit_test(full_disk_refuses_commits_until_there_is_space),
        cmocka_unit_test(file_size_limit_is_reported_as_a_full_disk),
        cmocka_unit_test(log_pages_over_the_file_limit_wait_for_space),
        cmocka_unit_test(no_disk_failure_loses_an_acknowledged_commit),
        cmocka_unit_test(no_sqlite_allocation_failure_loses_a_commit),
        cmocka_unit_test(checkpoint_without_memory_is_repeated_later),
        cmocka_unit_test(open_without_memory_is_never_reported_as_damage),
        cmocka_unit_test(missing_schema_parts_are_reported_despite_low_memory),
    };

    make_scarce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
