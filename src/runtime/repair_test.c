/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* repair_test.c - a damaged head is restored only if the checksum proves that the result equals the
 * original. */
#include "runtime/runtime_test.h"

#include <sqlite3.h>

struct file {
    struct fixture *f;
    char *folder;
    char path[300];
};

static void file_reopen_with(struct file *file, bool is_read_only)
{
    char url[320];

    det_runtime_close(file->f->runtime);
    file->f->runtime = NULL;
    det_store_close(file->f->store);
    snprintf(url, sizeof url, "sqlite:%s", file->path);
    assert_int_equal(
        det_store_open_with(
            url,
            &(struct det_store_options){ .world = det_sim_world(file->f->sim),
                                         .is_read_only = is_read_only },
            &file->f->store, &file->f->error),
        0);
    fixture_reopen(file->f, (struct det_runtime_options){ 0 });
}

static void file_reopen(struct file *file)
{
    file_reopen_with(file, false);
}

/* An order with a snapshot, and events of every kind after it, unless it is `bare`. */
static void file_open(struct file *file, bool is_bare)
{
    struct fixture *f = file->f = fixture_open((struct det_runtime_options){ 0 });

    file->folder = det_test_folder();
    snprintf(file->path, sizeof file->path, "%s/orders.db", file->folder);
    file_reopen(file);
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    if (is_bare)
        return;
    assert_int_equal(det_runtime_snapshot(f->runtime, f->order, "o-1", &f->error), 0);
    advance(f, DET_SECOND);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(send_kind(f, "o-1", JUNK), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
}

static void file_close(struct file *file)
{
    fixture_close(file->f);
    det_test_folder_remove(file->folder);
}

/* While the store is not open. */
static void damage(struct file *file, const char *statement)
{
    sqlite3 *database;

    det_runtime_close(file->f->runtime);
    file->f->runtime = NULL;
    det_store_close(file->f->store);
    file->f->store = NULL;
    assert_int_equal(sqlite3_open(file->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    file_reopen(file);
}

static int load(struct file *file, struct det_instance *ret, struct order_data *data)
{
    return det_runtime_get(file->f->runtime, file->f->order, "o-1", ret, data, NULL);
}

static int repair(struct file *file)
{
    return det_runtime_repair(file->f->runtime, file->f->order, "o-1", &file->f->error);
}

static void damaged_head_is_repaired(void **unused)
{
    static const char *const damages[] = {
        "UPDATE instances SET state = 'PENDING'",   "UPDATE instances SET visit = visit + 1",
        "UPDATE instances SET transitions = 7",     "UPDATE instances SET moved_at = moved_at + 1",
        "UPDATE instances SET started_at = 1",      "UPDATE instances SET stopped = 1",
        "UPDATE instances SET reason = 'because'",  "UPDATE instances SET version = 9",
        "UPDATE instances SET hash = zeroblob(32)", "UPDATE instances SET checksum = checksum + 1",
        "UPDATE instances SET data = zeroblob(40)",
    };
    struct det_instance before, after;
    struct order_data data, data_after;
    struct file file;

    (void)unused;
    file_open(&file, false);
    memset(&data, 0, sizeof data);
    memset(&data_after, 0, sizeof data_after);
    assert_int_equal(load(&file, &before, &data), 0);
    assert_int_equal(data.updates, 2);
    assert_int_equal(repair(&file), DET_ERR_EXISTS);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        damage(&file, damages[i]);
        assert_int_equal(load(&file, &after, &data_after), DET_ERR_CORRUPT);
        if (repair(&file) < 0)
            fail_msg("%s: %s", damages[i], file.f->error.text);
        assert_int_equal(load(&file, &after, &data_after), 0);
        assert_int_equal(after.state, before.state);
        assert_int_equal(after.sequence, before.sequence);
        assert_int_equal(after.visit, before.visit);
        assert_int_equal(after.transition_count, before.transition_count);
        assert_int_equal(after.last_transition_at, before.last_transition_at);
        assert_memory_equal(&data_after, &data, sizeof data);
        assert_int_equal(repair(&file), DET_ERR_EXISTS);
    }
    /* It continues, and its chain is complete. */
    assert_int_equal(send_kind(file.f, "o-1", SHIP), 0);
    file_close(&file);
}

static void repair_restores_a_stop(void **unused)
{
    struct det_instance after;
    struct file file;

    (void)unused;
    file_open(&file, false);
    assert_int_equal(send_kind(file.f, "o-1", HALT), 0);
    /* From the event first, then from a snapshot after it. */
    for (int i = 0; i < 2; i++) {
        damage(&file, "UPDATE instances SET stopped = 0, reason = NULL");
        assert_int_equal(repair(&file), 0);
        assert_int_equal(load(&file, &after, NULL), 0);
        assert_true(after.is_stopped);
        assert_string_equal(after.reason, "done");
        assert_int_equal(
            det_runtime_snapshot(file.f->runtime, file.f->order, "o-1", &file.f->error), 0);
    }
    file_close(&file);
}

static void head_that_cannot_be_proven_is_not_repaired(void **unused)
{
    static const struct {
        const char *statement, *text;
    } cases[] = {
        /* Another payload makes other data. */
        { "UPDATE events SET payload = (SELECT payload FROM events WHERE event = 'PAY')"
          " WHERE event = 'JUNK'; UPDATE instances SET state = 'PENDING', checksum = 1",
          NULL },
        { "UPDATE instances SET state = 'PENDING';"
          "UPDATE events SET to_state = 'SHIPPED' WHERE event = 'CHARGED'",
          "does not fit the definition" },
        { "UPDATE instances SET state = 'PENDING'; DELETE FROM events WHERE event = 'JUNK'",
          "its events: the checksum" },
        { "UPDATE instances SET state = 'PENDING'; DELETE FROM snapshots;"
          "UPDATE events SET previous = 0 WHERE sequence = 2",
          "event 1 is missing" },
        { "UPDATE instances SET state = 'PENDING'; DELETE FROM snapshots; DELETE FROM starts",
          "it has neither a snapshot nor its start" },
        { "UPDATE instances SET state = 'PENDING'; DELETE FROM snapshots;"
          "UPDATE starts SET data = x'00'",
          NULL },
        { "UPDATE instances SET state = 'PENDING'; UPDATE snapshots SET visit = 77",
          "its snapshot: the checksum" },
        { "UPDATE instances SET hash = x'00'", NULL },
        { "UPDATE instances SET state = 'PENDING', checksum = 1", "does not match the checksum" },
    };
    struct det_instance after;

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct file file;

        file_open(&file, false);
        damage(&file, cases[i].statement);
        assert_true(repair(&file) < 0);
        if (cases[i].text)
            assert_non_null(strstr(file.f->error.text, cases[i].text));
        assert_int_equal(load(&file, &after, NULL), DET_ERR_CORRUPT);
        file_close(&file);
    }
}

static void an_event_that_the_definition_does_not_have_is_named(void **unused)
{
    struct file file;

    (void)unused;
    file_open(&file, false);
    damage(
        &file, "UPDATE instances SET state = 'PENDING';"
               "UPDATE events SET to_state = 'SHIPPED' WHERE event = 'CHARGED'");
    assert_int_equal(repair(&file), DET_ERR_REPLAY);
    assert_string_equal(file.f->error.state, "CHARGING");
    assert_string_equal(file.f->error.event, "CHARGED");
    assert_int_equal(file.f->error.expected, 6);
    file_close(&file);
}

static void a_read_only_repair_reports_its_result(void **unused)
{
    struct det_instance after;
    struct file file;

    (void)unused;
    file_open(&file, false);
    damage(&file, "UPDATE instances SET visit = 5");
    file_reopen_with(&file, true);
    assert_int_equal(repair(&file), DET_ERR_READ_ONLY);
    assert_int_equal(load(&file, &after, NULL), DET_ERR_CORRUPT);
    damage(&file, "UPDATE instances SET checksum = 1");
    file_reopen_with(&file, true);
    assert_int_equal(repair(&file), DET_ERR_CORRUPT);
    file_close(&file);
}

static void repair_without_a_snapshot_begins_at_the_start(void **unused)
{
    struct order_data data;
    struct det_instance after;
    struct file file;

    (void)unused;
    file_open(&file, false);
    damage(&file, "UPDATE instances SET data = zeroblob(40); DELETE FROM snapshots");
    assert_int_equal(repair(&file), 0);
    assert_int_equal(load(&file, &after, &data), 0);
    assert_int_equal(after.state, PAID);
    assert_int_equal(data.updates, 2);
    file_close(&file);
    file_open(&file, true);
    damage(&file, "UPDATE instances SET visit = 5");
    assert_int_equal(repair(&file), 0);
    file_close(&file);
}

static void repair_of_an_instance_without_events_uses_its_start(void **unused)
{
    struct det_instance after;
    struct file file;
    struct fixture *f;

    (void)unused;
    file_open(&file, true);
    f = file.f;
    assert_int_equal(start(f, "o-2"), 0);
    damage(&file, "UPDATE instances SET state = 'PAID' WHERE id = 'o-2'");
    assert_int_equal(
        det_runtime_get(f->runtime, f->order, "o-2", &after, NULL, NULL), DET_ERR_CORRUPT);
    assert_int_equal(det_runtime_repair(f->runtime, f->order, "o-2", &f->error), 0);
    assert_int_equal(get(f, "o-2").state, PENDING);
    assert_int_equal(get(f, "o-2").sequence, 0);
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    /* Without a hash the result cannot be proven, unless an event has it. */
    assert_int_equal(start(f, "o-3"), 0);
    damage(&file, "UPDATE instances SET checksum = 1 WHERE id = 'o-3'");
    assert_int_equal(det_runtime_repair(f->runtime, f->order, "o-3", &f->error), DET_ERR_CORRUPT);
    file_close(&file);
}

static void repair_is_unsupported_by_other_stores(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct file file;

    (void)unused;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_repair(f->runtime, f->order, "o-1", &f->error), DET_ERR_UNSUPPORTED);
    fixture_close(f);
    file_open(&file, true);
    assert_int_equal(
        det_runtime_repair(file.f->runtime, file.f->order, "o-2", NULL), DET_ERR_NOT_FOUND);
    file_close(&file);
}

/* Every allocation may fail: then it is still damaged, and can be repaired later. */
static int repair_poorly(struct det_test_memory *memory, void *argument)
{
    struct file *file = argument;
    struct fixture *f = file->f;
    struct det_instance after;
    int r;

    damage(file, "UPDATE instances SET visit = visit + 1");
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    r = det_runtime_open(
        f->store,
        &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                       .allocator = &memory->allocator,
                                       .is_passive = true,
                                       .shards = 1,
                                       .user = &f->control },
        &f->runtime, NULL);
    if (r == 0)
        r = repair(file);
    memory->fail_at = 0;
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(load(file, &after, NULL), r == 0 ? 0 : DET_ERR_CORRUPT);
    if (r < 0)
        assert_int_equal(repair(file), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    return r;
}

static void repair_survives_every_failed_allocation(void **unused)
{
    struct file file;

    (void)unused;
    file_open(&file, false);
    det_test_each_failure(repair_poorly, &file);
    file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_head_is_repaired),
        cmocka_unit_test(repair_restores_a_stop),
        cmocka_unit_test(head_that_cannot_be_proven_is_not_repaired),
        cmocka_unit_test(repair_survives_every_failed_allocation),
        cmocka_unit_test(an_event_that_the_definition_does_not_have_is_named),
        cmocka_unit_test(a_read_only_repair_reports_its_result),
        cmocka_unit_test(repair_without_a_snapshot_begins_at_the_start),
        cmocka_unit_test(repair_of_an_instance_without_events_uses_its_start),
        cmocka_unit_test(repair_is_unsupported_by_other_stores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
