/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* damage_test.c - rows and pages changed by another program: calls that read them report the
 * damage, others continue. */
#include "store/sqlite/sqlite_test.h"

#include <fcntl.h>

#include <detent/tool/documents.h>

/* Four events with ids, a snapshot of the second, the first of which is gone. */
static struct shelf *shelf_of_events(void)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    static const uint16_t history[] = { 1, 0 };
    uint64_t gone;

    for (int i = 1; i <= 4; i++) {
        char id[8];

        snprintf(id, sizeof id, "id-%d", i);
        begin(pad);
        add_event(pad, BARE);
        pad->event.event_id = pad->commit.event_id = id;
        pad->commit.answer = (struct det_store_answer){ .outcome = DET_OUTCOME_GOTO,
                                                        .state = pad->head.state,
                                                        .sequence = pad->head.sequence,
                                                        .visit = pad->head.visit };
        pad->commit.is_snapshot = i == 2;
        pad->commit.history = history;
        pad->commit.history_count = 2;
        assert_int_equal(commit(pad), 0);
    }
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 1, 0, &gone), 0);
    assert_int_equal(gone, 1);
    return shelf;
}

static void answer_with_an_unknown_name_is_a_version_error(void **state)
{
    struct shelf *shelf = shelf_of_events();
    struct det_store *store = shelf->pad.store;
    struct det_store_answer answer;

    (void)state;
    shelf_exec(shelf, "UPDATE answers SET outcome = 'gone' WHERE event_id = 'id-3'");
    shelf_exec(shelf, "UPDATE answers SET state = 'gone' WHERE event_id = 'id-4'");
    shelf_exec(
        shelf, "UPDATE answers SET checksum = row_checksum('answers', instance, event_id, outcome,"
               " state, sequence, visit, at, event, request)");
    assert_int_equal(
        store->ops->answer(store, shelf->pad.instance, "id-3", &answer), DET_ERR_VERSION);
    assert_int_equal(
        store->ops->answer(store, shelf->pad.instance, "id-4", &answer), DET_ERR_VERSION);
    assert_int_equal(store->ops->answer(store, shelf->pad.instance, "id-2", &answer), 0);
    shelf_free(shelf);
}

/* A damaged snapshot is not used, and does not disturb other calls. */
static void unreadable_snapshot_is_reported_only_when_requested(void **state)
{
    struct shelf *shelf = shelf_of_events();
    struct det_store *store = shelf->pad.store;
    uint64_t data;
    struct det_store_snapshot snapshot = { .loaded.data = &data };
    static const struct det_rename swap[] = { { DET_NAME_STATE, "A", "B" },
                                              { DET_NAME_STATE, "B", "A" } };
    struct found found;
    uint64_t changed;

    (void)state;
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.history_count, 4);
    shelf_exec(shelf, "UPDATE snapshots SET hash = x'01'");
    assert_int_equal(store->ops->snapshot(store, shelf->pad.instance, &snapshot), DET_ERR_CORRUPT);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.history_count, 3);
    shelf_close(shelf);
    assert_int_equal(shelf_open_unserved(shelf), 0);
    store = shelf->pad.store;
    assert_int_equal(store->ops->migrate(store, shelf->machine, swap, 2, &changed, NULL), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    shelf_free(shelf);
}

static void a_snapshot_from_later_than_the_instance_is_found(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    shelf_exec(shelf, "CREATE TABLE kept AS SELECT * FROM instances");
    begin(&shelf->pad);
    add_event(&shelf->pad, BARE);
    shelf->pad.commit.is_snapshot = true;
    assert_int_equal(commit(&shelf->pad), 0);
    shelf_exec(
        shelf, "DELETE FROM instances; INSERT INTO instances SELECT * FROM kept; DROP TABLE kept");
    assert_non_null(strstr(shelf_check(shelf)->texts, "the snapshot is newer than the instance"));
    shelf_free(shelf);
}

static void unknown_past_state_ends_the_history(void **state)
{
    struct shelf *shelf = shelf_of_events();
    struct found found;

    (void)state;
    shelf_exec(shelf, "UPDATE events SET from_state = 'gone' WHERE sequence = 3");
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.history_count, 1);
    shelf_exec(shelf, "UPDATE events SET hash = x'01' WHERE sequence = 4");
    assert_int_equal(shelf_load(shelf, &found), DET_ERR_CORRUPT);
    shelf_free(shelf);
}

/* The handle does not match, so the row is read again, and it does not exist. */
static void an_instance_that_is_gone_gets_no_commit(void **state)
{
    struct shelf *shelf = shelf_of_events();
    struct pad *pad = &shelf->pad;
    uint64_t gone;

    (void)state;
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 2, 0, &gone), 0);
    shelf_exec(shelf, "DELETE FROM instances");
    assert_int_equal(send(pad, BARE, NULL), DET_ERR_CORRUPT);
    assert_false(pad->store->ops->is_lost(pad->store));
    shelf_free(shelf);
}

static int derive_as_it_is(
    void *context, struct det_store_instance *instance, struct det_store_loaded *loaded)
{
    struct pad *pad = context;

    (void)instance;
    assert_string_equal(loaded->reason, "");
    loaded->head = pad->head;
    loaded->data = &pad->data;
    return 0;
}

static void oversized_stored_reason_is_damage(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    char reason[DET_REASON_MAX + 2];
    struct found found;

    (void)state;
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    begin(pad);
    add_event(pad, BARE);
    pad->commit.reason = reason;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_load(shelf, &found), DET_ERR_CORRUPT);
    shelf_exec(shelf, "UPDATE instances SET checksum = checksum + 1");
    assert_int_equal(
        pad->store->ops->repair(pad->store, shelf->machine, "p", derive_as_it_is, pad),
        DET_ERR_CORRUPT);
    shelf_free(shelf);
}

/* The first page of a table, while the store is open and has not read it. */
static void tear(struct shelf *shelf, const char *table)
{
    static const char rubbish[64] = "rubbish";
    char text[100];
    int64_t page, size;
    int file;

    snprintf(text, sizeof text, "SELECT rootpage FROM sqlite_master WHERE name = '%s'", table);
    page = shelf_ask(shelf, text);
    size = shelf_ask(shelf, "PRAGMA page_size");
    file = open(shelf->path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(
        pwrite(file, rubbish, sizeof rubbish, (off_t)((page - 1) * size)), sizeof rubbish);
    assert_int_equal(close(file), 0);
}

static void torn_page_is_reported_and_the_rest_checked(void **state)
{
    static const struct {
        const char *table, *words;
    } cases[] = {
        { "timers", "not all timers can be read" },
        { "deferred", "not all deferred events can be read" },
        { "starts", "not all starts can be read" },
        { "instances", "the file cannot be checked" },
        { "sqlite_autoindex_instances_1", "the file cannot be checked" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shelf *shelf = shelf_of_events();
        struct findings *findings;

        shelf_close(shelf);
        assert_int_equal(shelf_open_unserved(shelf), 0);
        tear(shelf, cases[i].table);
        findings = shelf_check(shelf);
        if (!strstr(findings->texts, cases[i].words))
            fail_msg("%s: %s", cases[i].table, findings->texts);
        shelf_free(shelf);
    }
}

/* Without the renames older rows could not be read. */
static void unreadable_rename_row_prevents_the_open(void **state)
{
    static const struct det_rename swap[] = { { DET_NAME_STATE, "A", "B" },
                                              { DET_NAME_STATE, "B", "A" } };
    struct shelf *shelf = shelf_new();
    struct det_store *store;
    uint64_t changed;

    (void)state;
    shelf_close(shelf);
    assert_int_equal(det_store_open(shelf->url, &store, NULL), 0);
    assert_int_equal(store->ops->migrate(store, shelf->machine, swap, 2, &changed, NULL), 0);
    det_store_close(store);
    shelf_exec(shelf, "UPDATE renames SET kind = 'gone'");
    assert_int_equal(det_store_open(shelf->url, &store, &shelf->error), DET_ERR_CORRUPT);
    assert_true(shelf->error.text[0]);
    shelf_free(shelf);
}

/* The position after it would be negative. */
static void the_last_position_prevents_the_open(void **state)
{
    static const char *const damages[] = {
        "UPDATE events SET position = 9223372036854775807 WHERE sequence = 1",
        "UPDATE starts SET position = 9223372036854775807",
        "UPDATE store SET position = 9223372036854775807",
    };

    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct shelf *shelf = shelf_new();
        struct det_store *store;

        assert_int_equal(send(&shelf->pad, BARE, "a"), 0);
        shelf_close(shelf);
        shelf_exec(shelf, damages[i]);
        assert_int_equal(det_store_open(shelf->url, &store, &shelf->error), DET_ERR_CORRUPT);
        assert_non_null(strstr(shelf->error.text, shelf->path));
        shelf_free(shelf);
    }
}

/* Whole instances: no remaining row refers to them. */
static void an_instance_that_is_gone_with_all_its_rows_is_missed(void **state)
{
    static const char *const tables[] = { "events",  "starts", "snapshots",    "timers",
                                          "answers", "outbox", "dead_letters", "deferred" };
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    char text[100];

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, "a"), 0);
    pad->store->ops->release(pad->store, pad->instance);
    pad->head = (struct det_store_head){ .visit = 1, .started_at = 100, .last_transition_at = 100 };
    begin(pad);
    pad->commit.id = "second";
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    assert_int_equal(commit(pad), 0);
    pad->instance = pad->commit.instance;
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_exec(shelf, "DELETE FROM instances WHERE key = 1");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(text, sizeof text, "DELETE FROM %s WHERE instance = 1", tables[i]);
        shelf_exec(shelf, text);
    }
    assert_non_null(strstr(shelf_check(shelf)->texts, "instances are missing"));
    shelf_free(shelf);
}

static void missing_definitions_renames_and_documents_are_reported(void **state)
{
    static const struct {
        const char *damage, *words;
    } cases[] = {
        { "DELETE FROM definitions", "the definition of some of its instances is missing" },
        { "DELETE FROM renames WHERE number = 1", "renames are missing" },
        { "DELETE FROM documents WHERE id = 'b'", "documents are missing" },
        { "UPDATE documents SET sync = 1, version = 1 WHERE id = 'a'", "documents are missing" },
    };
    static const struct det_rename swap[] = { { DET_NAME_STATE, "A", "B" },
                                              { DET_NAME_STATE, "B", "A" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shelf *shelf = shelf_new();
        struct det_document_save saves[] = {
            { .kind = "k", .id = "a", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2 },
            { .kind = "k", .id = "b", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2 },
            { .kind = "k", .id = "c", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2 },
            { .kind = "k", .id = "a", .role = DET_DOCUMENT_SPEC, .text = "{\"n\":1}", .size = 7 },
            { .kind = "k", .id = "c", .role = DET_DOCUMENT_SPEC, .is_drop = true },
        };
        uint64_t changed;

        shelf_close(shelf);
        assert_int_equal(shelf_open_unserved(shelf), 0);
        assert_int_equal(
            shelf->pad.store->ops->migrate(
                shelf->pad.store, shelf->machine, swap, 2, &changed, NULL),
            0);
        for (size_t j = 0; j < sizeof saves / sizeof saves[0]; j++)
            assert_int_equal(
                det_store_documents_save(shelf->pad.store, &saves[j], 1, NULL, NULL), 0);
        assert_int_equal(shelf_check(shelf)->count, 0);
        shelf_exec(shelf, cases[i].damage);
        if (!strstr(shelf_check(shelf)->texts, cases[i].words))
            fail_msg("%s: %s", cases[i].damage, shelf_check(shelf)->texts);
        shelf_free(shelf);
    }
}

static void lease_without_a_name_is_refused(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store = shelf->pad.store;
    struct det_store_lease lease;

    (void)state;
    assert_int_equal(
        store->ops->lease(
            store, &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "", "me", 0, DET_SECOND },
            &lease),
        DET_ERR_INVALID);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM leases"), 0);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_with_an_unknown_name_is_a_version_error),
        cmocka_unit_test(unreadable_snapshot_is_reported_only_when_requested),
        cmocka_unit_test(a_snapshot_from_later_than_the_instance_is_found),
        cmocka_unit_test(unknown_past_state_ends_the_history),
        cmocka_unit_test(an_instance_that_is_gone_gets_no_commit),
        cmocka_unit_test(oversized_stored_reason_is_damage),
        cmocka_unit_test(torn_page_is_reported_and_the_rest_checked),
        cmocka_unit_test(unreadable_rename_row_prevents_the_open),
        cmocka_unit_test(the_last_position_prevents_the_open),
        cmocka_unit_test(an_instance_that_is_gone_with_all_its_rows_is_missed),
        cmocka_unit_test(missing_definitions_renames_and_documents_are_reported),
        cmocka_unit_test(lease_without_a_name_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
