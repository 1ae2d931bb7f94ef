/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_test.c - records are reported in order, and refusals at a limited rate. */
#include "daemon/audit.h"

#include <stdio.h>
#include <string.h>

#include <detent/sim.h>

#include "lib/test.h"

struct fixture {
    struct det_sim *sim;
    struct audit *audit;
    unsigned woken, printed;
    uint64_t not_reported;
    char last[AUDIT_WHAT];
};

static void wake(void *user)
{
    struct fixture *fixture = user;

    fixture->woken++;
}

static void report(void *user, const struct audit_action *action)
{
    struct fixture *fixture = user;

    fixture->printed++;
    fixture->not_reported += action->not_reported;
    memcpy(fixture->last, action->what, sizeof fixture->last);
}

static struct audit_options options_of(struct fixture *fixture)
{
    return (struct audit_options){
        .world = det_sim_world(fixture->sim), .wake = wake, .report = report, .user = fixture
    };
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct audit_options options;

    fixture = (struct fixture){ 0 };
    assert_int_equal(det_sim_open(NULL, &fixture.sim, NULL), 0);
    options = options_of(&fixture);
    assert_int_equal(audit_open(&options, &fixture.audit), 0);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    audit_close(fixture->audit);
    det_sim_close(fixture->sim);
    return 0;
}

static void add(struct fixture *fixture, enum audit_outcome outcome, unsigned count)
{
    struct audit_action action = { .outcome = outcome };

    for (unsigned i = 0; i < count; i++) {
        snprintf(action.what, sizeof action.what, "%s %u", audit_outcome_name(outcome), i);
        audit_add(fixture->audit, &action);
    }
}

static void records_are_reported_in_order_with_one_wakeup(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 3);
    assert_int_equal(fixture->woken, 1);
    assert_int_equal(fixture->printed, 0);
    audit_report(fixture->audit);
    assert_int_equal(fixture->printed, 3);
    assert_string_equal(fixture->last, "done 2");
    add(fixture, AUDIT_FAILED, 1);
    assert_int_equal(fixture->woken, 2);
    audit_report(fixture->audit);
    assert_string_equal(fixture->last, "failed 0");
    assert_int_equal(fixture->not_reported, 0);
}

static void refusals_are_logged_at_a_limited_rate(void **state)
{
    struct fixture *fixture = *state;

    for (int second = 0; second < 100; second++) {
        add(fixture, AUDIT_REFUSED, 1000);
        audit_report(fixture->audit);
        assert_int_equal(det_sim_advance(fixture->sim, DET_SECOND), 0);
    }
    /* A burst of 20, then one a second; the others are counted. */
    assert_int_equal(fixture->printed, 119);
    add(fixture, AUDIT_DONE, 1);
    audit_report(fixture->audit);
    assert_int_equal(fixture->printed + fixture->not_reported, 100001);
    assert_string_equal(fixture->last, "done 0");
}

static void everything_over_the_capacity_is_counted(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 1000);
    audit_report(fixture->audit);
    assert_true(fixture->printed >= 100 && fixture->printed < 1000);
    add(fixture, AUDIT_DONE, 1);
    audit_report(fixture->audit);
    assert_int_equal(fixture->printed + fixture->not_reported, 1001);
}

static void pending_records_are_reported_on_close(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 2);
    audit_close(fixture->audit);
    fixture->audit = NULL;
    assert_int_equal(fixture->printed, 2);
    audit_add(NULL, &(struct audit_action){ .what = "" });
}

static int live(struct det_test_memory *memory, void *argument)
{
    struct audit_options options = options_of(argument);
    struct audit *audit = NULL;
    int r;

    options.allocator = &memory->allocator;
    r = audit_open(&options, &audit);
    if (r == 0)
        audit_close(audit);
    return r;
}

static void every_failed_allocation_is_survived(void **state)
{
    det_test_each_failure(live, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(records_are_reported_in_order_with_one_wakeup),
        TEST(refusals_are_logged_at_a_limited_rate),
        TEST(everything_over_the_capacity_is_counted),
        TEST(pending_records_are_reported_on_close),
        TEST(every_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
