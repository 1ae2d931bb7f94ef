/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* monitor_run_test.c - a monitor of worker/monitor.h under a supervisor, in virtual time. */
#include <detent/sim.h>
#include <detent/workers.h>

#include "lib/test.h"

#define REC_SPEC "kinds/monitor_test.rec"
#include <detent/rec/declare.h>
#include <detent/worker/monitor.h>

static struct {
    int error;
    uint8_t free_percent;
} disk;

static int disk_poll(struct det_worker_context *context, struct disk_observed *observed)
{
    if (disk.error)
        return det_worker_fail(context, disk.error, "the disk does not answer");
    observed->free_percent = disk.free_percent;
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

struct lab {
    struct det_sim *sim;
    struct det_workers *workers;
};

static void open_lab(struct lab *lab)
{
    static const struct det_worker_kind *const kinds[] = { &disk_kind, NULL };
    struct det_workers_options options = { .name = "host", .kinds = kinds };
    struct det_error error = { 0 };

    disk.error = 0;
    disk.free_percent = 50;
    assert_int_equal(det_sim_open(NULL, &lab->sim, NULL), 0);
    options.world = det_sim_world(lab->sim);
    assert_int_equal(det_workers_open(&options, &lab->workers, &error), 0);
    assert_int_equal(
        det_workers_apply(lab->workers, "children: [{ name: disk, kind: disk }]", &error), 0);
}

static void close_lab(struct lab *lab)
{
    assert_int_equal(det_workers_stop(lab->workers, NULL), 0);
    det_workers_close(lab->workers);
    det_sim_close(lab->sim);
}

static void expect(struct lab *lab, const char *state, const char *reason)
{
    struct det_worker_status status;

    assert_int_equal(det_sim_advance(lab->sim, 8 * DET_SECOND), 0);
    assert_int_equal(det_workers_get(lab->workers, "host/disk", NULL, &status, NULL, NULL), 0);
    assert_string_equal(status.state, state);
    assert_string_equal(status.reason, reason);
}

static void a_monitor_runs_is_degraded_and_runs_again(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab);
    expect(&lab, "running", "healthy");
    disk.free_percent = 7;
    expect(&lab, "degraded", "only 7% are free");
    disk.free_percent = 6;
    expect(&lab, "degraded", "only 6% are free");
    disk.free_percent = 60;
    expect(&lab, "running", "healthy");
    close_lab(&lab);
}

static void poll_error_degrades_and_is_not_stale_data(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab);
    expect(&lab, "running", "healthy");
    disk.error = DET_ERR_IO;
    /* For longer than data may be old: it is polled all the same, and says so. */
    for (int i = 0; i < 5; i++)
        expect(&lab, "degraded", "poll error: the disk does not answer");
    disk.error = 0;
    expect(&lab, "running", "healthy");
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_monitor_runs_is_degraded_and_runs_again),
        cmocka_unit_test(poll_error_degrades_and_is_not_stale_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
