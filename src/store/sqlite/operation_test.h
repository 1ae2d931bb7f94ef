/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* operation_test.h - runs every operation of the driver while any request of SQLite for memory, or
 * any call of the disk, fails.
 *
 *   1. A read returns the stored rows or fails; lack of memory is never reported as damage or as a
 *      missing row.
 *   2. A change refused for lack of memory did not happen; an acknowledged one is complete; an
 *      unknown one is either.
 *   3. Afterwards the same store reads as before, without being opened again. */
#ifndef DET_STORE_SQLITE_OPERATION_TEST_H
#define DET_STORE_SQLITE_OPERATION_TEST_H

#include "store/sqlite/sqlite_test.h"

#include "base/buffer.h"
#include "store/jobs_test.h"
#include "store/sqlite/scarce_test.h"
#include "store/sqlite/vfs_test.h"

#define SPAN DET_HOUR

/* An operation, its store, and its result as text. */
struct action {
    const char *name;
    int (*run)(struct shelf *shelf, struct det_buffer *printed);
    const char *before; /* done to the file; NULL: nothing */
    bool is_change;
    bool is_unserved; /* the machine is not served, and its instance not loaded */
};

/* The kind of failure. */
enum lack { LACK_MEMORY, LACK_ALL_MEMORY, LACK_DISK, LACK_ALL_DISK, LACK_COUNT };

static inline void lack_at(enum lack lack, uint64_t point)
{
    if (lack == LACK_MEMORY || lack == LACK_ALL_MEMORY) {
        scarce.calls = 0;
        scarce.has_failed = false;
        scarce.is_sticky = lack == LACK_ALL_MEMORY;
        scarce.fail_at = point;
    } else {
        faulty.calls = 0;
        faulty.has_failed = false;
        faulty.is_sticky = lack == LACK_ALL_DISK;
        faulty.fail_at = point;
    }
}

/* Ends the failures; returns true if one was hit. */
static inline bool lack_nothing(void)
{
    bool has_failed = scarce.has_failed || faulty.has_failed;

    scarce.fail_at = faulty.fail_at = 0;
    scarce.has_failed = faulty.has_failed = false;
    return has_failed;
}

static inline struct det_store_effect ring(struct pad *pad, uint64_t sequence)
{
    return (struct det_store_effect){ .sequence = sequence,
                                      .from = 0,
                                      .to = 1,
                                      .visit = 1,
                                      .asked = 2,
                                      .at = 10,
                                      .next = 20,
                                      .data = &pad->data,
                                      .event = &pad->value };
}

static inline int do_migrate(struct shelf *shelf, struct det_buffer *printed)
{
    static const struct det_rename renames[] = { { DET_NAME_STATE, "A", "B" },
                                                 { DET_NAME_STATE, "B", "A" },
                                                 { DET_NAME_EVENT, "WORD", "BARE" } };
    struct det_store *store = shelf->pad.store;
    uint64_t changed;

    (void)printed;
    return store->ops->migrate(store, shelf->machine, renames, 3, &changed, NULL);
}

static inline int print_job(void *context, const struct det_job_row *row)
{
    det_buffer_format(
        context, "%s %s %s %d %d %s; ", row->queue, row->id, row->task, (int)row->body_size,
        (int)row->state, row->reason);
    return 0;
}

/* The file that each operation begins with. */

/* An event with an effect, a timer, and every third a deferred event. */
static inline void fill_send(struct pad *pad, unsigned number)
{
    struct det_store_effect_change effect = { DET_STORE_SET, ring(pad, pad->head.sequence + 1) };
    struct det_store_timer_change timer = { DET_STORE_SET,
                                            { .timer = 0, .event = BARE, .visit = 1, .due = 5 } };
    struct det_store_deferred_change deferred = {
        DET_STORE_SET, { .sequence = pad->head.sequence + 1, .event = &pad->value }
    };
    char id[16];

    begin(pad);
    add_event(pad, BARE);
    snprintf(id, sizeof id, "id-%u", number);
    pad->event.event_id = pad->commit.event_id = id;
    pad->commit.answer = (struct det_store_answer){ .outcome = DET_OUTCOME_GOTO,
                                                    .state = pad->head.state,
                                                    .sequence = pad->head.sequence,
                                                    .visit = pad->head.visit };
    pad->commit.effects = &effect;
    pad->commit.effect_count = number <= 4;
    pad->commit.timers = &timer;
    pad->commit.timer_count = 1;
    pad->commit.deferred = &deferred;
    pad->commit.deferred_count = number == 2;
    pad->commit.is_snapshot = number == 4;
    assert_int_equal(commit(pad), 0);
}

/* Two of its effects have died. */
static inline void fill_instance(struct pad *pad)
{
    struct det_store_effect_change dead[] = { { DET_STORE_UPDATE, ring(pad, 3) },
                                              { DET_STORE_UPDATE, ring(pad, 4) } };

    for (unsigned i = 1; i <= 6; i++)
        fill_send(pad, i);
    begin(pad);
    dead[0].effect.is_dead = dead[1].effect.is_dead = true;
    pad->commit.effects = dead;
    pad->commit.effect_count = 2;
    assert_int_equal(commit(pad), 0);
}

static inline int nothing(void *context, const struct det_job_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

/* One runs, one waits, one has ended. */
static inline void fill_jobs(struct det_store *store)
{
    struct det_job_claim claim = { "q", 1, SPAN }, other = { "ended", 1, SPAN };
    struct det_job_place place;
    det_time next;

    for (int i = 0; i < 3; i++) {
        const char *id = i == 0 ? "j1" : i == 1 ? "j2" : "j3";
        struct det_job_put job = { i == 2 ? "ended" : "q", id, "work", "body", 4, 0 };

        assert_int_equal(det_jobs_put(store, &job, &place), 0);
    }
    assert_int_equal(det_jobs_claim(store, &claim, nothing, NULL, &next), 0);
    assert_int_equal(det_jobs_claim(store, &other, nothing, NULL, &next), 0);
    assert_int_equal(
        det_jobs_end(
            store, "q",
            &(struct det_job_end){
                .key = place.key, .token = 1, .state = DET_JOB_FAILED, .reason = "tired" }),
        0);
    assert_int_equal(
        store->ops->jobs->fire(store, &(struct det_job_firing){ "nightly", 0, 100, 0, NULL }), 0);
}

static inline void take_lease_and_lock(struct shelf *shelf)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;

    assert_int_equal(
        store->ops->lease(
            store, &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "leader", "me", 0, SPAN },
            &lease),
        0);
    assert_int_equal(
        store->ops->lock(
            store, shelf->machine,
            &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "q", "me", 0, SPAN }, &lease),
        0);
}

static inline void fill(struct shelf *shelf)
{
    struct det_store *store = shelf->pad.store;
    struct pad other = shelf->pad;

    other.head = (struct det_store_head){ .visit = 1, .started_at = 7, .last_transition_at = 7 };
    begin(&other);
    other.commit.id = "q";
    other.commit.is_new = true;
    other.commit.data = &other.data;
    assert_int_equal(commit(&other), 0);
    store->ops->release(store, other.commit.instance);
    fill_instance(&shelf->pad);
    fill_jobs(store);
    take_lease_and_lock(shelf);
    /* Exchanged twice: the original names, with renames that apply. */
    shelf_close(shelf);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shelf_open_unserved(shelf), 0);
        assert_int_equal(do_migrate(shelf, NULL), 0);
        shelf_close(shelf);
    }
}

/* Every value of every table, or how many rows each has. */
static inline void dump(struct shelf *shelf, bool is_counted, struct det_buffer *ret)
{
    static const char *const tables[] = { "instances", "events", "starts",       "snapshots",
                                          "timers",    "outbox", "dead_letters", "deferred",
                                          "answers",   "leases", "jobs",         "schedules",
                                          "renames" };
    sqlite3_stmt *statement;
    sqlite3 *database;
    char text[100];

    det_buffer_clear(ret);
    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(text, sizeof text, "SELECT %s FROM %s", is_counted ? "count(*)" : "*", tables[i]);
        assert_int_equal(sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
        det_buffer_format(ret, "\n%s", tables[i]);
        while (sqlite3_step(statement) == SQLITE_ROW) {
            for (int column = 0; column < sqlite3_column_count(statement); column++) {
                const void *bytes = sqlite3_column_blob(statement, column);
                int size = sqlite3_column_bytes(statement, column);

                det_buffer_append_char(ret, '|');
                if (size)
                    det_buffer_append(ret, bytes, (size_t)size);
            }
        }
        sqlite3_finalize(statement);
    }
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    assert_int_equal(det_buffer_status(ret), 0);
}

static inline bool is_same(const struct det_buffer *a, const struct det_buffer *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* One operation after the other. */
struct trial {
    struct shelf shelf;
    char *file;
    size_t file_size;
    const struct action *action;
    enum lack lack;
    uint64_t point;
    unsigned points;
    bool is_seen; /* some row is another one when it is done */
    bool is_warm; /* its statements are prepared by now; for what changes nothing */
    struct det_buffer printed, truth, rows, rows_before, counts, counts_after;
};

static inline void blame(const struct trial *trial, int r, const char *what)
{
    static const char *const lacks[] = { "memory", "all memory", "the disk", "all of the disk" };

    fail_msg(
        "%s, %s fails at %d: %s: %s", trial->action->name, lacks[trial->lack], (int)trial->point,
        r == 0 ? "done" : det_error_text(r), what);
}

/* The stored rows are known to fit, so the machine is not checked each time. */
static inline void open_again(struct shelf *shelf)
{
    const struct det_store_options options = { .connections = 2 };

    assert_int_equal(det_store_open_with(shelf->url, &options, &shelf->pad.store, NULL), 0);
}

/* The file as it was filled, open, with its instance. */
static inline void trial_begin(struct trial *trial)
{
    struct shelf *shelf = &trial->shelf;
    char beside[300];
    struct found found;

    snprintf(beside, sizeof beside, "%s-wal", shelf->path);
    (void)unlink(beside);
    snprintf(beside, sizeof beside, "%s-shm", shelf->path);
    (void)unlink(beside);
    det_test_write_file(shelf->path, trial->file, trial->file_size);
    shelf->pad.instance = NULL;
    open_again(shelf);
    assert_int_equal(shelf_load(shelf, &found), 0);
    /* Opening has freed what was taken before. */
    if (!trial->action->is_change)
        take_lease_and_lock(shelf);
    if (!trial->action->is_unserved)
        return;
    /* The head of the instance is known now, for repairs. */
    shelf_close(shelf);
    if (trial->action->before)
        shelf_exec(shelf, trial->action->before);
    open_again(shelf);
}

/* Runs the operation without failures. */
static inline void find_truth(struct trial *trial)
{
    trial_begin(trial);
    det_buffer_clear(&trial->truth);
    if (trial->action->is_change)
        dump(&trial->shelf, false, &trial->rows_before);
    assert_int_equal(trial->action->run(&trial->shelf, &trial->truth), 0);
    shelf_close(&trial->shelf);
    dump(&trial->shelf, true, &trial->counts_after);
    dump(&trial->shelf, false, &trial->rows);
    trial->is_seen = !is_same(&trial->rows, &trial->rows_before);
}

static inline bool may_answer(enum lack lack, int r)
{
    if (r == 0 || r == DET_ERR_IO)
        return true;
    if (lack == LACK_MEMORY || lack == LACK_ALL_MEMORY)
        return r == DET_ERR_NO_MEMORY;
    return r == DET_ERR_BUSY || r == DET_ERR_NO_MEMORY;
}

/* Compares with the result without failures; then reads again by the same store. */
static inline void check_reading(struct trial *trial, int r)
{
    if (r == 0 && !is_same(&trial->printed, &trial->truth))
        blame(trial, r, det_buffer_text(&trial->printed));
    det_buffer_clear(&trial->printed);
    r = trial->action->run(&trial->shelf, &trial->printed);
    if (r != 0 || !is_same(&trial->printed, &trial->truth))
        blame(trial, r, "afterwards it does not read the same");
    shelf_close(&trial->shelf);
}

static inline void check_change(struct trial *trial, int r)
{
    struct shelf *shelf = &trial->shelf;
    struct findings *findings;
    bool is_before;

    shelf_close(shelf);
    dump(shelf, false, &trial->rows);
    dump(shelf, true, &trial->counts);
    is_before = is_same(&trial->rows, &trial->rows_before);
    if (r < 0 && r != DET_ERR_IO && !is_before)
        blame(trial, r, "and it happened");
    if ((r == 0 || !is_before) && !is_same(&trial->counts, &trial->counts_after))
        blame(trial, r, "and only some of it is there");
    if (r == 0 && is_before && trial->is_seen)
        blame(trial, r, "and nothing is there");
    if (trial->action->before)
        return;
    open_again(shelf);
    findings = shelf_check(shelf);
    if (findings->count)
        blame(trial, r, findings->texts);
    shelf_close(shelf);
}

/* Runs once; returns true if a failure was hit. */
static inline bool try_once(struct trial *trial)
{
    struct sqlite_connection *used = NULL;
    struct sqlite_store *store;
    bool has_failed;
    int r;

    trial_begin(trial);
    store = sqlite_store_of(trial->shelf.pad.store);
    if (trial->is_warm)
        assert_int_equal(trial->action->run(&trial->shelf, &trial->printed), 0);
    else
        assert_int_equal(det_sqlite_reader(store, &used), 0); /* so that it gets another one */
    det_buffer_clear(&trial->printed);
    lack_at(trial->lack, trial->point);
    r = trial->action->run(&trial->shelf, &trial->printed);
    has_failed = lack_nothing();
    if (used)
        det_sqlite_reader_end(store, used);
    if (!may_answer(trial->lack, r))
        blame(trial, r, "that is not what is wrong");
    if (trial->action->is_change)
        check_change(trial, r);
    else
        check_reading(trial, r);
    return has_failed;
}

/* To prepare a statement takes hundreds of requests, to run it takes few. */
static inline uint64_t stride_of(const struct trial *trial)
{
    if (trial->is_warm || trial->lack == LACK_DISK || trial->lack == LACK_ALL_DISK)
        return 1 + trial->point / 10;
    return 41;
}

static inline void try_action(struct trial *trial, enum lack lack, bool is_warm)
{
    trial->lack = lack;
    trial->is_warm = is_warm;
    /* Between those that fail alone. */
    trial->point = lack == LACK_ALL_MEMORY && !is_warm ? 21 : 1;
    for (; try_once(trial); trial->point += stride_of(trial))
        trial->points++;
}

static inline void trial_init(struct trial *trial)
{
    struct shelf *shelf = &trial->shelf;

    memset(trial, 0, sizeof *trial);
    faulty_init();
    shelf_init(shelf);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty&checkpoint_pages=1", shelf->path);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_start(shelf), 0);
    fill(shelf);
    trial->file = det_test_read_file(shelf->path, &trial->file_size);
}

static inline void trial_deinit(struct trial *trial)
{
    struct det_buffer *buffers[] = { &trial->printed,     &trial->truth,  &trial->rows,
                                     &trial->rows_before, &trial->counts, &trial->counts_after };

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        det_buffer_deinit(buffers[i]);
    free(trial->file);
    shelf_deinit(&trial->shelf);
}

static inline void try_each(const struct action *deeds, size_t count)
{
    struct trial trial;

    trial_init(&trial);
    for (size_t i = 0; i < count; i++) {
        trial.action = &deeds[i];
        find_truth(&trial);
        for (int lack = 0; lack < LACK_COUNT; lack++) {
            try_action(&trial, (enum lack)lack, false);
            if (!deeds[i].is_change)
                try_action(&trial, (enum lack)lack, true);
        }
    }
    printf("             %u failures\n", trial.points);
    assert_true(trial.points > 500);
    trial_deinit(&trial);
}

#endif
