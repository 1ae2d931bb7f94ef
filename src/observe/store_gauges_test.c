/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_gauges_test.c - gauges of what a store holds, in memory and in a file. */
#include "runtime/runtime_test.h"

#include "observe/metrics_test.h"
#include "observe/store_gauges.h"

#define GAUGE(state, status, count) \
    "detent_instances{machine=\"order\",state=\"" state "\",status=\"" status "\"} " count

/* Three that wait, one whose effect is dead, one that was stopped. */
static void fill(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(start(f, "o-3"), 0);
    f->control.effect_failures = 100;
    assert_int_equal(send_kind(f, "o-3", PAY), 0);
    settle(f);
    assert_int_equal(start(f, "o-4"), 0);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-4", "x", NULL, NULL, NULL), 0);
}

static void gauges_are_what_the_store_holds_now(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .attempts_max = 1 } });
    char *text;

    (void)state;
    fill(f);
    assert_int_equal(det_store_gauges_update(metrics, f->store, NULL), 0);
    assert_metric(metrics, GAUGE("PENDING", "running", "2"));
    assert_metric(metrics, GAUGE("PENDING", "stopped", "1"));
    assert_metric(metrics, GAUGE("CHARGING", "running", "1"));
    assert_metric(metrics, "detent_timers_pending{machine=\"order\"} 3");
    assert_metric(metrics, "detent_effects_pending{machine=\"order\"} 0");
    assert_metric(metrics, "detent_dead_letters{machine=\"order\"} 1");
    /* The gauges of removed rows are hidden. */
    assert_int_equal(send_kind(f, "o-3", CANCEL), 0);
    assert_int_equal(det_store_gauges_update(metrics, f->store, NULL), 0);
    text = scrape_as(metrics, DET_METRICS_TEXT);
    assert_null(strstr(text, "CHARGING"));
    free(text);
    assert_metric(metrics, GAUGE("CANCELLED", "running", "1"));
    fixture_close(f);
    det_metrics_close(metrics);
}

static void a_file_has_a_size(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    char *folder = det_test_folder(), url[512];
    struct det_series *bytes = det_metrics_only(metrics, DET_METRIC_STORE_BYTES);
    struct det_store *store = NULL;

    (void)state;
    snprintf(url, sizeof url, "sqlite:%s/a.db", folder);
    assert_int_equal(det_store_open(url, &store, NULL), 0);
    assert_int_equal(det_store_gauges_update(metrics, store, NULL), 0);
    assert_true(atomic_load(&bytes->value) > 0);
    det_store_close(store);
    det_test_folder_remove(folder);
    det_metrics_close(metrics);
}

static int take_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct fixture *f = argument;
    int r = det_store_gauges_update(metrics, f->store, &memory->allocator);

    assert_int_equal(r == 0, has_metric(metrics, GAUGE("PENDING", "running", "2")));
    det_metrics_close(metrics);
    return r;
}

static void allocation_failure_leaves_the_gauges_unchanged(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    det_test_each_failure(take_with_failures, f);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gauges_are_what_the_store_holds_now),
        cmocka_unit_test(a_file_has_a_size),
        cmocka_unit_test(allocation_failure_leaves_the_gauges_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
