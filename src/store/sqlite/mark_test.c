/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mark_test.c - only a store that has lost acknowledged commits is refused. */
#include "store/sqlite/sqlite_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/os.h"

#define SENT 60

static char *path_of(const struct shelf *shelf, const char *suffix, char *target, size_t size)
{
    snprintf(target, size, "%s%s", shelf->path, suffix);
    return target;
}

/* Sends, reports, and waits to be killed. */
static void send_and_wait(struct shelf *shelf, int done)
{
    if (shelf_open(shelf) < 0 || shelf_start(shelf) < 0)
        _exit(1);
    for (int i = 0; i < SENT; i++) {
        if (send(&shelf->pad, BARE, NULL) < 0)
            _exit(1);
    }
    if (write(done, "", 1) != 1)
        _exit(1);
    for (;;)
        (void)pause();
}

/* A store whose writer was killed with all commits in the log. */
static void shelf_of_killed(struct shelf *shelf)
{
    int done[2], status;
    pid_t child;
    char byte;

    shelf_init(shelf);
    assert_int_equal(pipe(done), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        send_and_wait(shelf, done[1]);
    assert_int_equal(close(done[1]), 0);
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(close(done[0]), 0);
}

/* One bit at a part of a file. */
static void flip_in(const char *path, double part)
{
    size_t size;
    char *data = det_test_read_file(path, &size);

    assert_true(size > 100);
    data[(size_t)((double)size * part)] ^= 4;
    det_test_write_file(path, data, size);
    free(data);
}

static void assert_lost(struct shelf *shelf, const char *words)
{
    assert_int_equal(shelf_open(shelf), DET_ERR_CORRUPT);
    if (!strstr(shelf->error.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, shelf->error.text);
    assert_non_null(strstr(shelf->error.text, "lost acknowledged commits"));
    assert_non_null(strstr(shelf->error.text, ".mark"));
    /* All of it has room. */
    assert_non_null(strstr(shelf->error.text, "; nothing was changed"));
}

static void commits_acknowledged_by_a_killed_writer_are_present(void **state)
{
    struct shelf shelf;
    struct found found;

    (void)state;
    shelf_of_killed(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_load(&shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, SENT);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    assert_int_equal(shelf_reopen(&shelf, &found), 0);
    shelf_deinit(&shelf);
}

static void a_flipped_bit_in_the_log_is_refused_and_not_taken_for_its_end(void **state)
{
    static const double parts[] = { 0.0005, 0.3, 0.9 };
    char path[300];

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct det_store_options options = { .is_read_only = true };
        struct shelf shelf;
        struct found found;

        shelf_of_killed(&shelf);
        flip_in(path_of(&shelf, "-wal", path, sizeof path), parts[i]);
        assert_lost(&shelf, "positions of its log are missing");
        /* Again, since nothing was changed. What there is can be looked at. */
        assert_lost(&shelf, "positions of its log are missing");
        if (i > 0) {
            assert_int_equal(shelf_open_with(&shelf, &options), 0);
            assert_non_null(strstr(shelf_check(&shelf)->texts, "lost acknowledged commits"));
            shelf_close(&shelf);
            /* How the loss is accepted. */
            assert_int_equal(unlink(path_of(&shelf, ".mark", path, sizeof path)), 0);
            assert_int_equal(shelf_open(&shelf), 0);
            assert_int_equal(shelf_load(&shelf, &found), 0);
            assert_true(found.loaded.head.sequence < SENT);
            assert_int_equal(send(&shelf.pad, BARE, NULL), 0);
            assert_int_equal(shelf_reopen(&shelf, &found), 0);
        }
        shelf_deinit(&shelf);
    }
}

static void a_log_that_is_gone_is_missed(void **state)
{
    struct shelf shelf;
    char path[300];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct found found;

        shelf_of_killed(&shelf);
        if (i) {
            /* What was in the file before is there, and no more. */
            assert_int_equal(shelf_open(&shelf), 0);
            assert_int_equal(shelf_reopen(&shelf, &found), 0);
            assert_int_equal(send(&shelf.pad, BARE, NULL), 0);
            shelf.pad.store->ops->release(shelf.pad.store, shelf.pad.instance);
            shelf.pad.instance = NULL;
            sqlite_store_of(shelf.pad.store)->is_poisoned = true;
            shelf_close(&shelf);
        }
        assert_int_equal(unlink(path_of(&shelf, "-wal", path, sizeof path)), 0);
        assert_lost(&shelf, i ? "the last 1 of 62 positions" : "positions of its log are missing");
        shelf_deinit(&shelf);
    }
}

/* Removing the file means that a new store is wanted. */
static void removed_store_is_created_again(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    shelf_close(shelf);
    assert_int_equal(unlink(shelf->path), 0);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_start(shelf), 0);
    shelf_free(shelf);
}

static void older_copy_of_a_store_is_reported(void **state)
{
    struct shelf *shelf = shelf_new();
    char copy[300], mark[300];
    struct found found;

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    snprintf(copy, sizeof copy, "%s/copy.db", shelf->folder);
    assert_int_equal(shelf->pad.store->ops->backup(shelf->pad.store, copy, &shelf->error), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    shelf_close(shelf);
    assert_int_equal(rename(copy, shelf->path), 0);
    assert_lost(shelf, "the last 3 of 5 positions of its log are missing");
    assert_int_equal(unlink(path_of(shelf, ".mark", mark, sizeof mark)), 0);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    shelf_free(shelf);
}

static void torn_or_foreign_mark_is_ignored(void **state)
{
    struct shelf *shelf = shelf_new(), *other = shelf_new();
    char path[300], theirs[300];
    struct found found;

    (void)state;
    for (int i = 0; i < 9; i++)
        assert_int_equal(send(&other->pad, BARE, NULL), 0);
    shelf_close(other);
    shelf_close(shelf);
    path_of(shelf, ".mark", path, sizeof path);
    assert_int_equal(rename(path_of(other, ".mark", theirs, sizeof theirs), path), 0);
    assert_int_equal(shelf_open(shelf), 0);
    shelf_close(shelf);
    for (int i = 0; i < 2; i++) {
        flip_in(path, i ? 0.01 : 0.51);
        assert_int_equal(shelf_open(shelf), 0);
        assert_int_equal(shelf_load(shelf, &found), 0);
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
        shelf_close(shelf);
    }
    det_test_write_file(path, "", 0);
    assert_int_equal(shelf_open(shelf), 0);
    shelf_free(shelf);
    shelf_free(other);
}

static void one_valid_mark_slot_is_enough(void **state)
{
    char path[300];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shelf shelf;

        shelf_of_killed(&shelf);
        flip_in(path_of(&shelf, ".mark", path, sizeof path), i ? 0.01 : 0.51);
        flip_in(path_of(&shelf, "-wal", path, sizeof path), 0.5);
        assert_lost(&shelf, "positions of its log are missing");
        shelf_deinit(&shelf);
    }
}

/* Changes without a position, visible in the frames of the log only. */
static void lost_lease_change_is_detected(void **state)
{
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "n", .owner = "me", .span = DET_SECOND
    };
    struct shelf *shelf = shelf_new();
    struct det_store_lease lease;
    char from[300], to[300], *wal, *file, *mark;
    size_t wal_size, file_size, mark_size;

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(shelf->pad.store->ops->lease(shelf->pad.store, &change, &lease), 0);
    wal = det_test_read_file(path_of(shelf, "-wal", from, sizeof from), &wal_size);
    file = det_test_read_file(shelf->path, &file_size);
    mark = det_test_read_file(path_of(shelf, ".mark", from, sizeof from), &mark_size);
    shelf_close(shelf);
    wal[wal_size - 10] ^= 1;
    snprintf(shelf->path, sizeof shelf->path, "%s/left.db", shelf->folder);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s", shelf->path);
    det_test_write_file(shelf->path, file, file_size);
    det_test_write_file(path_of(shelf, "-wal", to, sizeof to), wal, wal_size);
    det_test_write_file(path_of(shelf, ".mark", to, sizeof to), mark, mark_size);
    assert_lost(shelf, "changes are missing");
    free(wal);
    free(file);
    free(mark);
    shelf_free(shelf);
}

/* A store without a writer, with a job in its log and, with `has_file`, everything else in its
 * file; the job has no event. */
static struct shelf *shelf_with_job(bool has_file)
{
    const struct det_job_put put = { .queue = "q", .id = "job-1", .task = "work" };
    struct shelf *shelf = calloc(1, sizeof *shelf);
    struct det_job_place place;

    assert_non_null(shelf);
    shelf_init(shelf);
    assert_int_equal(shelf_open(shelf), 0);
    if (has_file) {
        shelf_close(shelf);
        assert_int_equal(shelf_open(shelf), 0);
    }
    assert_int_equal(shelf->pad.store->ops->jobs->put(shelf->pad.store, &put, 1, &place), 0);
    assert_int_equal(place.result, 0);
    sqlite_store_of(shelf->pad.store)->is_poisoned = true;
    shelf_close(shelf);
    return shelf;
}

static int count_job(void *context, const struct det_job_row *row)
{
    *(unsigned *)context += strcmp(row->id, "job-1") == 0;
    return 0;
}

static void assert_job(struct shelf *shelf)
{
    unsigned count = 0;

    if (shelf_open(shelf) < 0)
        fail_msg("%s", shelf->error.text);
    assert_int_equal(
        shelf->pad.store->ops->jobs->list(
            shelf->pad.store, &(struct det_job_query){ .limit = 9 }, count_job, &count),
        0);
    assert_int_equal(count, 1);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_close(shelf);
}

static void job_lost_with_the_log_is_detected(void **state)
{
    char path[300];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct shelf *shelf = shelf_with_job(i < 2);

        path_of(shelf, "-wal", path, sizeof path);
        if (i % 2) {
            size_t size;
            char *data = det_test_read_file(path, &size);

            data[17] ^= 1;
            det_test_write_file(path, data, size);
            free(data);
        } else {
            assert_int_equal(unlink(path), 0);
        }
        assert_lost(shelf, "changes are missing");
        assert_lost(shelf, "changes are missing");
        shelf_free(shelf);
    }
}

static void a_log_that_another_program_brought_into_the_file_is_not_missed(void **state)
{
    struct shelf *shelf = shelf_with_job(true);
    sqlite3 *database;
    struct stat status;
    char path[300];

    (void)state;
    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(database, "SELECT count(*) FROM jobs", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    assert_int_equal(stat(path_of(shelf, "-wal", path, sizeof path), &status), -1);
    assert_job(shelf);
    assert_job(shelf);
    shelf_free(shelf);
}

/* Whether its writer has closed it or was killed. */
static void change_by_another_program(bool is_closed)
{
    struct shelf *shelf = shelf_with_job(true);
    sqlite3 *database;

    if (is_closed)
        assert_job(shelf);
    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            database, "CREATE TABLE other(a); INSERT INTO other VALUES(1); VACUUM", NULL, NULL,
            NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    assert_job(shelf);
    shelf_free(shelf);
}

static void a_store_may_be_changed_by_another_program(void **state)
{
    (void)state;
    change_by_another_program(true);
    change_by_another_program(false);
}

/* The mark of an older program does not say what is in the file. */
static void a_mark_of_an_older_program_is_read(void **state)
{
    struct shelf *shelf = shelf_with_job(true);
    char path[300], *mark;
    size_t size;

    (void)state;
    mark = det_test_read_file(path_of(shelf, ".mark", path, sizeof path), &size);
    assert_true(size > 512 + 100);
    mark[100] ^= 1;
    mark[512 + 100] ^= 1;
    det_test_write_file(path, mark, size);
    free(mark);
    assert_int_equal(unlink(path_of(shelf, "-wal", path, sizeof path)), 0);
    assert_int_equal(shelf_open(shelf), 0);
    shelf_free(shelf);
}

/* Opens it for reading, and copies it. */
static int copy_of(struct shelf *shelf, bool accepts_loss, const char *copy)
{
    const struct det_store_options options = { .is_read_only = true, .accepts_loss = accepts_loss };
    struct det_store *store = NULL;
    int r;

    assert_int_equal(det_store_open_with(shelf->url, &options, &store, &shelf->error), 0);
    shelf->error.text[0] = 0;
    r = store->ops->check_loss(store, &shelf->error);
    assert_int_equal(r == 0, shelf->error.text[0] == 0);
    r = store->ops->backup(store, copy, &shelf->error);
    det_store_close(store);
    return r;
}

static void backup_after_a_loss_needs_the_accept_option(void **state)
{
    static const char *const suffixes[] = { "", "-wal", ".mark" };
    struct det_store *store = NULL;
    struct shelf shelf;
    char path[400], copy[300], refused[sizeof shelf.error.text];

    (void)state;
    shelf_of_killed(&shelf);
    flip_in(path_of(&shelf, "-wal", path, sizeof path), 0.3);
    assert_lost(&shelf, "positions of its log are missing");
    snprintf(refused, sizeof refused, "%s", shelf.error.text);
    snprintf(copy, sizeof copy, "%s/copy.db", shelf.folder);
    assert_int_equal(copy_of(&shelf, false, copy), DET_ERR_CORRUPT);
    /* With the message of the writer. */
    assert_string_equal(shelf.error.text, refused);
    assert_int_equal(access(copy, F_OK), -1);
    assert_int_equal(copy_of(&shelf, true, copy), 0);
    assert_string_equal(shelf.error.text, refused);
    assert_int_equal(access(copy, F_OK), 0);
    /* Nothing of it was changed. */
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        assert_int_equal(access(path_of(&shelf, suffixes[i], path, sizeof path), F_OK), 0);
    assert_lost(&shelf, "positions of its log are missing");
    snprintf(path, sizeof path, "sqlite:%s", copy);
    assert_int_equal(det_store_open(path, &store, NULL), 0);
    det_store_close(store);
    shelf_deinit(&shelf);
}

static void a_store_that_has_lost_nothing_is_copied(void **state)
{
    struct shelf shelf, *open = shelf_new();
    char copy[300];

    (void)state;
    shelf_of_killed(&shelf);
    snprintf(copy, sizeof copy, "%s/copy.db", shelf.folder);
    assert_int_equal(copy_of(&shelf, false, copy), 0);
    assert_string_equal(shelf.error.text, "");
    shelf_deinit(&shelf);
    /* Also beside a writer, with any content of its log. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(send(&open->pad, BARE, NULL), 0);
        if (i % 7 == 6) {
            atomic_store(&sqlite_store_of(open->pad.store)->checkpoint_wanted, true);
            det_sqlite_checkpoint(sqlite_store_of(open->pad.store));
        }
        snprintf(copy, sizeof copy, "%s/copy%d.db", open->folder, i);
        assert_int_equal(copy_of(open, false, copy), 0);
        assert_string_equal(open->error.text, "");
    }
    shelf_free(open);
}

/* The mark of another store is ignored. */
static void reader_ignores_the_mark_of_another_store(void **state)
{
    struct shelf *shelf = shelf_new(), *other = shelf_new();
    char path[300], theirs[300], copy[300];

    (void)state;
    for (int i = 0; i < 9; i++)
        assert_int_equal(send(&other->pad, BARE, NULL), 0);
    shelf_close(other);
    shelf_close(shelf);
    path_of(shelf, ".mark", path, sizeof path);
    assert_int_equal(rename(path_of(other, ".mark", theirs, sizeof theirs), path), 0);
    snprintf(copy, sizeof copy, "%s/copy.db", shelf->folder);
    assert_int_equal(copy_of(shelf, false, copy), 0);
    assert_string_equal(shelf->error.text, "");
    shelf_free(shelf);
    shelf_free(other);
}

static void assert_private(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    if ((status.st_mode & 0777) != 0600)
        fail_msg("%s has the mode %o", path, (unsigned)status.st_mode & 0777);
}

static unsigned forgotten; /* files */

static void count_forget(struct det_world *world, struct det_file *file)
{
    (void)world;
    (void)file;
    forgotten++;
}

/* Opens it and returns the number of files that are read from the disk again. */
static unsigned forgotten_by_opening(struct shelf *shelf)
{
    struct det_world *world = det_world_real();
    const struct det_world_ops *real = world->ops;
    struct det_world_ops ops = *real;

    ops.file_forget = count_forget;
    forgotten = 0;
    world->ops = &ops;
    assert_int_equal(shelf_open(shelf), 0);
    world->ops = real;
    return forgotten;
}

static void a_store_that_was_closed_is_not_read_from_the_disk_again(void **state)
{
    struct shelf shelf;
    char mark[300];

    (void)state;
    shelf_init(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send(&shelf.pad, BARE, NULL), 0);
        shelf_close(&shelf);
        assert_int_equal(forgotten_by_opening(&shelf), 0);
        assert_int_equal(shelf_load(&shelf, &(struct found){ 0 }), 0);
    }
    /* Whose mark is gone. */
    shelf_close(&shelf);
    assert_int_equal(unlink(path_of(&shelf, ".mark", mark, sizeof mark)), 0);
    assert_int_equal(forgotten_by_opening(&shelf), 1);
    shelf_close(&shelf);
    assert_int_equal(forgotten_by_opening(&shelf), 0);
    shelf_deinit(&shelf);
}

static void a_store_whose_writer_was_killed_is_read_from_the_disk_again(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_of_killed(&shelf);
    assert_int_equal(forgotten_by_opening(&shelf), 2);
    shelf_close(&shelf);
    assert_int_equal(forgotten_by_opening(&shelf), 0);
    /* As if it had been killed here: the mark says that it is open. */
    assert_false(det_sqlite_mark_take_closed(sqlite_store_of(shelf.pad.store)));
    shelf_deinit(&shelf);
}

static void a_store_whose_sync_has_failed_is_read_from_the_disk_again(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    sqlite_store_of(shelf.pad.store)->is_poisoned = true;
    shelf_close(&shelf);
    assert_true(forgotten_by_opening(&shelf) >= 1);
    shelf_deinit(&shelf);
}

static void store_files_are_private_whatever_the_umask(void **state)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", ".lock", ".mark" };
    mode_t mask = umask(0);
    struct shelf *shelf = shelf_new();
    char path[300];

    (void)state;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        assert_private(path_of(shelf, suffixes[i], path, sizeof path));
    snprintf(path, sizeof path, "%s/copy.db", shelf->folder);
    assert_int_equal(shelf->pad.store->ops->backup(shelf->pad.store, path, &shelf->error), 0);
    assert_private(path);
    shelf_free(shelf);
    (void)umask(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_acknowledged_by_a_killed_writer_are_present),
        cmocka_unit_test(a_flipped_bit_in_the_log_is_refused_and_not_taken_for_its_end),
        cmocka_unit_test(a_log_that_is_gone_is_missed),
        cmocka_unit_test(removed_store_is_created_again),
        cmocka_unit_test(older_copy_of_a_store_is_reported),
        cmocka_unit_test(torn_or_foreign_mark_is_ignored),
        cmocka_unit_test(one_valid_mark_slot_is_enough),
        cmocka_unit_test(lost_lease_change_is_detected),
        cmocka_unit_test(job_lost_with_the_log_is_detected),
        cmocka_unit_test(a_log_that_another_program_brought_into_the_file_is_not_missed),
        cmocka_unit_test(a_store_may_be_changed_by_another_program),
        cmocka_unit_test(a_mark_of_an_older_program_is_read),
        cmocka_unit_test(backup_after_a_loss_needs_the_accept_option),
        cmocka_unit_test(a_store_that_has_lost_nothing_is_copied),
        cmocka_unit_test(reader_ignores_the_mark_of_another_store),
        cmocka_unit_test(a_store_that_was_closed_is_not_read_from_the_disk_again),
        cmocka_unit_test(a_store_whose_writer_was_killed_is_read_from_the_disk_again),
        cmocka_unit_test(a_store_whose_sync_has_failed_is_read_from_the_disk_again),
        cmocka_unit_test(store_files_are_private_whatever_the_umask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
