/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* monitor_test.c - the ready-made monitor of worker/monitor.h, in ten lines of its user. */
#include "kinds/kinds_test.h"

#define REC_SPEC "kinds/monitor_test.rec"
#include <detent/rec/declare.h>
#include <detent/worker/monitor.h>

static int disk_poll(struct det_worker_context *context, struct disk_observed *observed)
{
    (void)context;
    observed->free_percent = 7;
    return 0;
}
static const char *disk_health(
    const struct det_worker_view *view, const struct disk_observed *observed)
{
    if (observed->free_percent < 10)
        return det_reason(view, "only %u%% are free", (unsigned)observed->free_percent);
    return NULL;
}
DET_MONITOR(disk, disk_observed, disk_poll, disk_health, 5 * DET_SECOND)
DET_MONITOR(validated, disk_observed, disk_poll, disk_health)
DET_MONITOR(plain, disk_observed, disk_poll)

static void monitor_is_a_valid_kind(void **state)
{
    struct disk_observed observed = { 0 };
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(det_worker_kind_check(&disk_kind, &error), 0);
    assert_int_equal(det_worker_kind_check(&validated_kind, &error), 0);
    assert_int_equal(det_worker_kind_check(&plain_kind, &error), 0);
    assert_string_equal(disk_kind.name, "disk");
    assert_true(disk_kind.observe_every == 5 * DET_SECOND);
    assert_true(validated_kind.observe_every == 0);
    assert_ptr_equal(disk_kind.observed.get(), disk_observed_record());
    assert_int_equal(disk_kind.collect(NULL, NULL, NULL, &observed), 0);
    assert_int_equal(observed.free_percent, 7);
}

static void monitor_is_degraded_while_unhealthy(void **state)
{
    struct disk_observed observed = { 50 };
    struct view view;

    (void)state;
    view_init(&view, &disk_kind, NULL, &observed);
    assert_goto(&view, DET_MONITOR_STOPPED, DET_MONITOR_RUNNING);
    assert_hold(&view, DET_MONITOR_RUNNING);
    assert_goto(&view, DET_MONITOR_DEGRADED, DET_MONITOR_RUNNING);
    observed.free_percent = 7;
    assert_goto(&view, DET_MONITOR_RUNNING, DET_MONITOR_DEGRADED);
    assert_string_equal(view_ask(&view, DET_MONITOR_DEGRADED).reason, "only 7% are free");
    assert_hold(&view, DET_MONITOR_DEGRADED);
}

static void poll_error_degrades_with_its_reason(void **state)
{
    struct disk_observed observed = { 50 };
    struct view view;

    (void)state;
    view_init(&view, &plain_kind, NULL, &observed);
    view.all.collect_error = "no such disk";
    assert_goto(&view, DET_MONITOR_RUNNING, DET_MONITOR_DEGRADED);
    assert_string_equal(view_ask(&view, DET_MONITOR_DEGRADED).reason, "poll error: no such disk");
}

static void monitor_without_a_check_is_healthy(void **state)
{
    struct disk_observed observed = { 0 };
    struct view view;

    (void)state;
    view_init(&view, &plain_kind, NULL, &observed);
    assert_hold(&view, DET_MONITOR_RUNNING);
    assert_goto(&view, DET_MONITOR_DEGRADED, DET_MONITOR_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monitor_is_a_valid_kind),
        cmocka_unit_test(monitor_is_degraded_while_unhealthy),
        cmocka_unit_test(poll_error_degrades_with_its_reason),
        cmocka_unit_test(monitor_without_a_check_is_healthy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
