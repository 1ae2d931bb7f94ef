/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upgrade_cases.h - the content of the stores of tests/schema, which an upgrade must preserve: the
 * instance "q" after its start, and "p" with four events and rows in every other table. */
#ifndef DET_STORE_UPGRADE_CASES_H
#define DET_STORE_UPGRADE_CASES_H

#include <detent/tool/store.h>

#include "store/effect_key.h"
#include "store/jobs_test.h"
#include "store/pad_test.h"

#define OLD_IDENTITY "00112233445566778899aabbccddeeff"

/* The statements that make a store of an older schema; free() them. */
static inline char *old_store(const char *name)
{
    char path[512];
    size_t size;

    snprintf(path, sizeof path, "%s/tests/schema/%s", DET_SOURCE_DIR, name);
    return det_test_read_file(path, &size);
}

static inline void check_old_rows(const struct found *found)
{
    assert_int_equal(found->loaded.head.sequence, 4);
    assert_int_equal(found->loaded.head.started_at, 100);
    assert_int_equal(found->loaded.history_count, 4);
    assert_int_equal(found->data, 2);
    assert_int_equal(found->timer_count, 2);
    assert_int_equal(found->timers[0].due + found->timers[1].due, 11000);
    assert_int_equal(found->timer_values[0] + found->timer_values[1], 77);
    assert_int_equal(found->effect_count, 2);
    assert_false(found->effects[0].is_dead);
    assert_true(found->effects[1].is_dead);
    assert_int_equal(found->effects[1].last_error, -5);
    assert_null(found->effects[1].reason);
    assert_int_equal(found->effect_data[0], 5);
    assert_int_equal(found->deferred_count, 1);
    assert_int_equal(found->deferred_values[0], 77);
}

static inline void check_key(
    const struct pad *pad, const struct det_store_effect *row, const char *wanted)
{
    char key[300];

    det_effect_key(key, sizeof key, pad->store, pad->machine->name, "p", row);
    assert_string_equal(key, wanted);
}

/* An attempt of the older program may have reached the other side under its key. One that is asked
 * for now has the store in its key. */
static inline void check_old_keys(const struct pad *pad, const struct found *found)
{
    struct det_store_effect fresh = found->effects[0];

    check_key(pad, &found->effects[0], "pad/p/2/0");
    check_key(pad, &found->effects[1], "pad/p/2/1");
    fresh.index = det_effect_index(pad->store, 0);
    check_key(pad, &fresh, "0011223344556677/pad/p/2/0");
}

static inline int must_not_find(void *context, const struct det_store_finding *row)
{
    (void)context;
    fail_msg("%s/%s: %s", row->machine ? row->machine : "", row->id ? row->id : "", row->text);
    return 0;
}

static inline int load_old(struct pad *pad, const char *id, struct found *found)
{
    const struct det_store_rows rows = { found, found_timer, found_effect, found_deferred };

    memset(found, 0, sizeof *found);
    found->loaded.data = &found->data;
    return pad->store->ops->load(pad->store, pad->machine, id, &rows, &found->loaded);
}

/* Everything is there, and the instances can continue. */
static inline void check_old_store(struct pad *pad)
{
    struct det_store *store = pad->store;
    struct det_store_answer answer;
    struct det_store_snapshot snapshot;
    struct found found;
    struct rows rows = { 0 };
    uint64_t data;

    assert_string_equal(det_store_identity(store), OLD_IDENTITY);
    assert_int_equal(store->schema, 7);
    assert_int_equal(store->ops->check(store, must_not_find, NULL, NULL), 0);
    assert_int_equal(load_old(pad, "q", &found), 0);
    assert_int_equal(found.data, 9);
    assert_int_equal(found.loaded.head.sequence, 0);
    store->ops->release(store, found.loaded.instance);
    assert_int_equal(load_old(pad, "p", &found), 0);
    check_old_rows(&found);
    check_old_keys(pad, &found);
    pad->instance = found.loaded.instance;
    pad->head = found.loaded.head;
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_true(rows.count == 4 && rows.first == 1 && rows.ids == 1 && rows.causes == 1);
    assert_int_equal(store->ops->answer(store, pad->instance, "id-1", &answer), 0);
    assert_true(answer.sequence == 1 && answer.state == 1);
    snapshot.loaded.data = &data;
    assert_int_equal(store->ops->snapshot(store, pad->instance, &snapshot), 0);
    assert_true(snapshot.loaded.head.sequence == 3 && data == 2);
}

/* The log as text: its positions, with the id before each, and a star behind a start. */
static inline int write_logged(void *context, const struct det_store_logged *row)
{
    char *text = context;
    size_t length = strlen(text);

    snprintf(
        text + length, 160 - length, "%s%d%s ", row->id, (int)row->position,
        row->is_start ? "*" : "");
    return 0;
}

/* In pages of one row: rows that share a position are not separated. */
static inline void check_old_log(struct pad *pad, int schema)
{
    static const char *const pages[] = { "p1 ", "p2 ", "p3 ", "p4 ", "r5* s5* s5 ", "t6* ", "" };
    struct det_store_log_query query = { .limit = 1 };
    size_t count = schema < 3 ? 4 : 6;
    char text[160];

    for (size_t i = 0; i <= count; i++) {
        text[0] = 0;
        assert_int_equal(det_store_log(pad->store, &query, write_logged, text, &query.after), 0);
        assert_string_equal(text, i < count ? pages[i] : "");
    }
    assert_int_equal(query.after, count);
    query = (struct det_store_log_query){ .is_backward = true };
    text[0] = 0;
    assert_int_equal(det_store_log(pad->store, &query, write_logged, text, &query.after), 0);
    assert_string_equal(text, schema < 3 ? "p4 p3 p2 p1 " : "t6* s5 s5* r5* p4 p3 p2 p1 ");
    assert_int_equal(query.after, 0);
}

/* New rows have their own positions. */
static inline void check_new_log(struct pad *pad, int schema)
{
    struct det_store_log_query query = { .after = schema < 3 ? 4 : 6 };
    uint64_t next;
    char text[160] = "";

    assert_int_equal(det_store_log(pad->store, &query, write_logged, text, &next), 0);
    assert_string_equal(text, schema < 3 ? "p5 " : "p7 ");
}

static inline void go_on_with_old_store(struct pad *pad)
{
    struct det_store *store = pad->store;
    const struct det_job_put job = { "q", "1", "task", "body", 4, 0 };
    const struct det_document_save document = {
        .kind = "link", .id = "a", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2
    };
    struct det_document_saved saved;
    struct det_job_place place;

    assert_int_equal(send(pad, BARE, "id-5"), 0);
    assert_int_equal(store->ops->documents->save(store, &document, 1, &saved, NULL), 0);
    assert_true(saved.is_changed && saved.sync == 1 && saved.version == 1);
    assert_int_equal(det_jobs_put(store, &job, &place), 0);
    assert_int_equal(store->ops->check(store, must_not_find, NULL, NULL), 0);
    store->ops->release(store, pad->instance);
    pad->instance = NULL;
}

#endif
