/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reading_test.c - with any failure of SQLite a read is correct or refused. */
/* test: sanitized */
#include <detent/tool/store.h>

#include "store/sqlite/operation_test.h"

static int do_load(struct shelf *shelf, struct det_buffer *printed)
{
    struct found found;
    int r = shelf_load(shelf, &found);

    if (r == 0)
        det_buffer_format(
            printed, "%d %d %d %d timers %d effects %d deferred %d history %d",
            (int)found.loaded.head.sequence, (int)found.loaded.head.visit,
            (int)found.loaded.head.state, (int)found.data, (int)found.timer_count,
            (int)found.effect_count, (int)found.deferred_count, (int)found.loaded.history_count);
    return r;
}

static int do_answer(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_answer answer;
    int r = store->ops->answer(store, shelf->pad.instance, "id-2", &answer);

    if (r == 0)
        det_buffer_format(
            printed, "%d %d %d %d", answer.outcome, answer.state, (int)answer.sequence,
            (int)answer.visit);
    return r;
}

static int print_event(void *context, const struct det_store_event *row)
{
    det_buffer_format(
        context, "%d:%d>%d %s %s; ", (int)row->sequence, row->from, row->to,
        row->event_id ? row->event_id : "-", row->cause ? row->cause : "-");
    return 0;
}

static int do_events(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->events(store, shelf->pad.instance, 0, print_event, printed);
}

static int print_listed(void *context, const struct det_store_listed *row)
{
    det_buffer_format(context, "%s %d %d; ", row->id, (int)row->state, (int)row->sequence);
    return 0;
}

static int do_list(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->list(
        store, shelf->machine, &(struct det_store_query){ 0 }, print_listed, printed);
}

static int do_list_dead(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->list(
        store, shelf->machine,
        &(struct det_store_query){ .has_dead = true, .has_state = true, .state = 0 }, print_listed,
        printed);
}

static int print_due(void *context, const struct det_store_due *row)
{
    det_buffer_format(context, "%s %d %d; ", row->id, (int)row->due, row->is_timer);
    return 0;
}

static int do_due(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    det_time next = 0;
    int r = store->ops->due(
        store, shelf->machine, &(struct det_store_due_query){ .before = 1000, .limit = 2 },
        print_due, printed, &next);

    if (r == 0)
        det_buffer_format(printed, "then %lld", (long long)next);
    return r;
}

static int do_snapshot(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    uint64_t data;
    struct det_store_snapshot snapshot = { .loaded.data = &data };
    int r = store->ops->snapshot(store, shelf->pad.instance, &snapshot);

    if (r == 0)
        det_buffer_format(
            printed, "%d %d history %d", (int)snapshot.loaded.head.sequence,
            snapshot.loaded.head.state, (int)snapshot.loaded.history_count);
    return r;
}

static int do_start(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    uint64_t data;
    struct det_store_start began = { .data = &data };
    int r = store->ops->start(store, shelf->pad.instance, &began);

    if (r == 0)
        det_buffer_format(
            printed, "%d %d %d %d", (int)began.at, (int)began.version, began.state, (int)data);
    return r;
}

static int print_logged(void *context, const struct det_store_logged *row)
{
    det_buffer_format(
        context, "%d %s/%s %d %s>%s %s %s %s %s %d; ", (int)row->position, row->machine, row->id,
        (int)row->sequence, row->from ? row->from : "-", row->to, row->event ? row->event : "-",
        row->outcome, row->event_id ? row->event_id : "-", row->cause ? row->cause : "-",
        (int)row->payload_size);
    return 0;
}

static int do_log(struct shelf *shelf, struct det_buffer *printed)
{
    uint64_t next = 0;
    int r = det_store_log(shelf->pad.store, NULL, print_logged, printed, &next);

    if (r == 0)
        det_buffer_format(printed, "then %d", (int)next);
    return r;
}

static int do_log_back(struct shelf *shelf, struct det_buffer *printed)
{
    const struct det_store_log_query query = { .is_backward = true, .limit = 3 };
    uint64_t next = 0;
    int r = det_store_log(shelf->pad.store, &query, print_logged, printed, &next);

    if (r == 0)
        det_buffer_format(printed, "then %d", (int)next);
    return r;
}

static int print_counted(void *context, const struct det_store_counted *row)
{
    det_buffer_format(
        context, "%s/%s %d %d %d %d %d; ", row->machine, row->state ? row->state : "-",
        (int)row->running, (int)row->stopped, (int)row->timers, (int)row->effects, (int)row->dead);
    return 0;
}

static int do_count(struct shelf *shelf, struct det_buffer *printed)
{
    uint64_t bytes;

    return det_store_count(shelf->pad.store, print_counted, printed, &bytes);
}

static int print_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    det_buffer_format(context, "%s %d %d; ", name, (int)version, (int)strlen(spec));
    return 0;
}

static int do_machines(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->machines(store, print_machine, printed);
}

static int print_finding(void *context, const struct det_store_finding *row)
{
    det_buffer_format(
        context, "%s/%d: %s; ", row->id ? row->id : "", (int)row->sequence, row->text);
    return 0;
}

static int do_check(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->check(store, print_finding, NULL, printed);
}

static int do_jobs(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->jobs->list(
        store, &(struct det_job_query){ .limit = 100 }, print_job, printed);
}

static int print_schedule(void *context, const char *name, const struct det_job_schedule *schedule)
{
    det_buffer_format(
        context, "%s %d %d %d; ", name, (int)schedule->next_at, (int)schedule->last_at,
        (int)schedule->token);
    return 0;
}

static int do_schedules(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;

    return store->ops->jobs->schedules(store, print_schedule, printed);
}

static int do_schedule(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_job_schedule schedule;
    int r = store->ops->jobs->schedule(store, "nightly", &schedule);

    return r < 0 ? r : print_schedule(printed, "nightly", &schedule);
}

static int print_lease(int r, const struct det_store_lease *lease, struct det_buffer *printed)
{
    if (r < 0)
        return r;
    assert_string_equal(lease->owner, "me");
    det_buffer_format(printed, "%s %d %d", lease->owner, (int)lease->token, (int)lease->sequence);
    return 0;
}

static int do_read_lease(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;
    int r = store->ops->lease(
        store, &(struct det_store_lease_change){ DET_LEASE_READ, "leader", NULL, 0, 0 }, &lease);

    return print_lease(r, &lease, printed);
}

static int do_look_lock(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;
    int r = store->ops->lock(
        store, shelf->machine, &(struct det_store_lease_change){ DET_LEASE_READ, "q", NULL, 0, 0 },
        &lease);

    return print_lease(r, &lease, printed);
}

static int do_backup(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    char copy[300];
    int r;

    (void)printed;
    snprintf(copy, sizeof copy, "%s/copy.db", shelf->folder);
    (void)unlink(copy);
    shelf->error = (struct det_error){ 0 };
    r = store->ops->backup(store, copy, &shelf->error);
    assert_true(r == 0 || shelf->error.text[0]);
    return r;
}

static int do_serve(struct shelf *shelf, struct det_buffer *printed)
{
    struct det_store *store = shelf->pad.store;
    int r;

    (void)printed;
    shelf->error = (struct det_error){ 0 };
    r = store->ops->serve(store, shelf->machine, &shelf->error);
    assert_true(r == 0 || shelf->error.text[0]);
    return r;
}

static const struct action deeds[] = {
    { "load", do_load, NULL, false, false },
    { "answer", do_answer, NULL, false, false },
    { "events", do_events, NULL, false, false },
    { "list", do_list, NULL, false, false },
    { "list dead", do_list_dead, NULL, false, false },
    { "due", do_due, NULL, false, false },
    { "snapshot", do_snapshot, NULL, false, false },
    { "start", do_start, NULL, false, false },
    { "log", do_log, NULL, false, false },
    { "log back", do_log_back, NULL, false, false },
    { "count", do_count, NULL, false, false },
    { "machines", do_machines, NULL, false, false },
    { "check", do_check, NULL, false, false },
    { "jobs", do_jobs, NULL, false, false },
    { "schedules", do_schedules, NULL, false, false },
    { "schedule", do_schedule, NULL, false, false },
    { "look at a lease", do_read_lease, NULL, false, false },
    { "look at a lock", do_look_lock, NULL, false, false },
    { "backup", do_backup, NULL, false, false },
    { "serve", do_serve, NULL, false, true },
};

static void copy_rows(sqlite3 *from, sqlite3 *to, const char *table)
{
    sqlite3_stmt *read, *write = NULL;
    char text[300];

    snprintf(text, sizeof text, "SELECT * FROM %s", table);
    assert_int_equal(sqlite3_prepare_v2(from, text, -1, &read, NULL), SQLITE_OK);
    snprintf(text, sizeof text, "INSERT INTO %s VALUES (?1", table);
    for (int i = 1; i < sqlite3_column_count(read); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", ?%d", i + 1);
    snprintf(text + strlen(text), sizeof text - strlen(text), ")");
    assert_int_equal(sqlite3_prepare_v2(to, text, -1, &write, NULL), SQLITE_OK);
    while (sqlite3_step(read) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(read); i++)
            assert_int_equal(sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i)), 0);
        assert_int_equal(sqlite3_step(write), SQLITE_DONE);
        sqlite3_reset(write);
    }
    sqlite3_finalize(write);
    sqlite3_finalize(read);
}

static int64_t number_of(sqlite3 *database, const char *text)
{
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static void copy_tables(sqlite3 *from, sqlite3 *to)
{
    sqlite3_stmt *list;
    char text[100];

    assert_int_equal(
        sqlite3_prepare_v2(
            from,
            "SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL "
            "AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
            -1, &list, NULL),
        SQLITE_OK);
    while (sqlite3_step(list) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(list, 2);

        assert_int_equal(sqlite3_exec(to, sql, NULL, NULL, NULL), SQLITE_OK);
        if (strcmp((const char *)sqlite3_column_text(list, 0), "table") == 0)
            copy_rows(from, to, (const char *)sqlite3_column_text(list, 1));
    }
    sqlite3_finalize(list);
    snprintf(
        text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d",
        (int)number_of(from, "PRAGMA application_id"), (int)number_of(from, "PRAGMA user_version"));
    assert_int_equal(sqlite3_exec(to, text, NULL, NULL, NULL), SQLITE_OK);
}

/* The same file in UTF-16, as SQLite can have it: then it needs memory for every text it gives. */
static void widen(struct trial *trial)
{
    char path[300];
    sqlite3 *from, *to;

    snprintf(path, sizeof path, "%s/wide.db", trial->shelf.folder);
    assert_int_equal(sqlite3_open(trial->shelf.path, &from), SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &to), SQLITE_OK);
    assert_int_equal(sqlite3_exec(to, "PRAGMA encoding = 'UTF-16'", NULL, NULL, NULL), SQLITE_OK);
    copy_tables(from, to);
    assert_int_equal(sqlite3_close(to), SQLITE_OK);
    assert_int_equal(sqlite3_close(from), SQLITE_OK);
    free(trial->file);
    trial->file = det_test_read_file(path, &trial->file_size);
}

static void no_memory_for_a_text_is_not_damage(void **state)
{
    struct trial trial;

    (void)state;
    trial_init(&trial);
    widen(&trial);
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        trial.action = &deeds[i];
        find_truth(&trial);
        try_action(&trial, LACK_MEMORY, true);
    }
    assert_true(trial.points > 100);
    trial_deinit(&trial);
}

static void sqlite_faults_leave_reads_right_or_refused(void **state)
{
    (void)state;
    try_each(deeds, sizeof deeds / sizeof deeds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_for_a_text_is_not_damage),
        cmocka_unit_test(sqlite_faults_leave_reads_right_or_refused),
    };

    make_scarce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
