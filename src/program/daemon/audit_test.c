/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_test.c - deeds are told in order, and refusals not more often than they may. */
#include "daemon/audit.h"

#include <stdio.h>
#include <string.h>

#include <detent/sim.h>

#include "lib/test.h"

struct fixture {
    struct det_sim *sim;
    struct audit *audit;
    unsigned woken, said;
    uint64_t not_told;
    char last[AUDIT_WHAT];
};

static void wake(void *user)
{
    struct fixture *fixture = user;

    fixture->woken++;
}

static void say(void *user, const struct audit_deed *deed)
{
    struct fixture *fixture = user;

    fixture->said++;
    fixture->not_told += deed->not_told;
    memcpy(fixture->last, deed->what, sizeof fixture->last);
}

static struct audit_options options_of(struct fixture *fixture)
{
    return (struct audit_options){
        .world = det_sim_world(fixture->sim), .wake = wake, .say = say, .user = fixture
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
    struct audit_deed deed = { .outcome = outcome };

    for (unsigned i = 0; i < count; i++) {
        snprintf(deed.what, sizeof deed.what, "%s %u", audit_outcome_name(outcome), i);
        audit_add(fixture->audit, &deed);
    }
}

static void deeds_are_told_in_order_and_one_wakes(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 3);
    assert_int_equal(fixture->woken, 1);
    assert_int_equal(fixture->said, 0);
    audit_tell(fixture->audit);
    assert_int_equal(fixture->said, 3);
    assert_string_equal(fixture->last, "done 2");
    add(fixture, AUDIT_FAILED, 1);
    assert_int_equal(fixture->woken, 2);
    audit_tell(fixture->audit);
    assert_string_equal(fixture->last, "failed 0");
    assert_int_equal(fixture->not_told, 0);
}

static void who_is_refused_cannot_fill_a_disk(void **state)
{
    struct fixture *fixture = *state;

    for (int second = 0; second < 100; second++) {
        add(fixture, AUDIT_REFUSED, 1000);
        audit_tell(fixture->audit);
        assert_int_equal(det_sim_advance(fixture->sim, DET_SECOND), 0);
    }
    /* 20 at once, and then one a second; the others are counted. */
    assert_int_equal(fixture->said, 119);
    add(fixture, AUDIT_DONE, 1);
    audit_tell(fixture->audit);
    assert_int_equal(fixture->said + fixture->not_told, 100001);
    assert_string_equal(fixture->last, "done 0");
}

static void what_does_not_fit_is_counted(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 1000);
    audit_tell(fixture->audit);
    assert_true(fixture->said >= 100 && fixture->said < 1000);
    add(fixture, AUDIT_DONE, 1);
    audit_tell(fixture->audit);
    assert_int_equal(fixture->said + fixture->not_told, 1001);
}

static void what_waits_is_told_at_the_end(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, AUDIT_DONE, 2);
    audit_close(fixture->audit);
    fixture->audit = NULL;
    assert_int_equal(fixture->said, 2);
    audit_add(NULL, &(struct audit_deed){ .what = "" });
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

static void every_lack_of_memory_is_survived(void **state)
{
    det_test_each_failure(live, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deeds_are_told_in_order_and_one_wakes), TEST(who_is_refused_cannot_fill_a_disk),
        TEST(what_does_not_fit_is_counted),          TEST(what_waits_is_told_at_the_end),
        TEST(every_lack_of_memory_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
