/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_id_prune_test.c - event ids older than event_ids_span are deleted when the instance is
 * pruned; in virtual time, on a real file. */
#include "runtime/runtime_test.h"

struct file {
    struct fixture *f;
    char *folder;
};

/* The fixture, on a file in place of memory. */
static void file_open(struct file *file, det_time span, struct det_runtime_options options)
{
    struct det_store_options store = { .event_ids_span = span };
    char url[320];

    file->f = fixture_open((struct det_runtime_options){ 0 });
    file->folder = det_test_folder();
    snprintf(url, sizeof url, "sqlite:%s/orders.db", file->folder);
    det_runtime_close(file->f->runtime);
    file->f->runtime = NULL;
    det_store_close(file->f->store);
    store.world = det_sim_world(file->f->sim);
    assert_int_equal(det_store_open_with(url, &store, &file->f->store, &file->f->error), 0);
    fixture_reopen(file->f, options);
    assert_int_equal(start(file->f, "o-1"), 0);
}

static void file_close(struct file *file)
{
    fixture_close(file->f);
    det_test_folder_remove(file->folder);
}

/* True if it is the first answer again. */
static bool is_known(struct file *file, const char *event_id)
{
    struct det_send_options options = { .event_id = event_id };

    assert_int_equal(send_with(file->f, "o-1", TOUCH, options), 0);
    return file->f->sent.is_duplicate;
}

static void prune(struct file *file)
{
    struct fixture *f = file->f;

    assert_int_equal(det_runtime_snapshot(f->runtime, f->order, "o-1", &f->error), 0);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 99, NULL, &f->error), 0);
}

static void forget_after(det_time given, det_time span)
{
    struct file file;

    file_open(&file, given, (struct det_runtime_options){ 0 });
    assert_false(is_known(&file, "a"));
    prune(&file);
    assert_true(is_known(&file, "a"));
    /* The order would expire after 30 minutes, but for what touches it. */
    for (det_time left = span; left > 0; left -= 10 * DET_MINUTE) {
        advance(file.f, left < 10 * DET_MINUTE ? left : 10 * DET_MINUTE);
        assert_int_equal(send_kind(file.f, "o-1", TOUCH), 0);
    }
    assert_false(is_known(&file, "b"));
    prune(&file);
    assert_true(is_known(&file, "a"));
    advance(file.f, 1);
    assert_true(is_known(&file, "a"));
    prune(&file);
    assert_false(is_known(&file, "a"));
    assert_true(is_known(&file, "b"));
    file_close(&file);
}

static void pruning_forgets_event_ids_that_are_older_than_the_span(void **unused)
{
    (void)unused;
    forget_after(DET_HOUR, DET_HOUR);
}

static void event_ids_are_remembered_seven_days_by_default(void **unused)
{
    (void)unused;
    forget_after(0, 7 * DET_DAY);
}

static void pruning_by_policy_forgets_old_event_ids(void **unused)
{
    struct file file;

    (void)unused;
    file_open(
        &file, DET_MINUTE,
        (struct det_runtime_options){ .snapshots = { .every = 2, .events_kept = 1 } });
    assert_false(is_known(&file, "a"));
    advance(file.f, DET_MINUTE + 1);
    assert_true(is_known(&file, "a"));
    assert_int_equal(send_kind(file.f, "o-1", TOUCH), 0);
    assert_false(is_known(&file, "a"));
    file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pruning_forgets_event_ids_that_are_older_than_the_span),
        cmocka_unit_test(event_ids_are_remembered_seven_days_by_default),
        cmocka_unit_test(pruning_by_policy_forgets_old_event_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
