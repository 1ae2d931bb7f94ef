/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timetable_test.c - what is due next: in time, late, after sleep, and when the clock is set. */
#include <detent/driver/schedule.h>

#include "task/cron.h"

#include "base/text.h"
#include "lib/test.h"

#define ADDED (1000 * DET_DAY) /* a midnight */
#define AT(n) (ADDED + (n)*DET_SECOND)

static struct det_timetable make(struct det_schedule schedule, uint64_t chance)
{
    struct det_error error = { 0 };
    struct det_timetable table;

    if (det_timetable_init(&table, &schedule, ADDED, chance, &error) < 0)
        fail_msg("%s", error.text);
    return table;
}

static struct det_timetable make_every(det_time every, enum det_missed missed)
{
    return make((struct det_schedule){ .every = every, .missed = missed }, 0);
}

static void expect_next(
    struct det_timetable *table, det_time last, det_time now, det_time due, uint32_t missed)
{
    uint32_t found = 99;

    /* Twice, as asking changes nothing. */
    assert_true(det_timetable_next(table, last, now, NULL) == due);
    assert_true(det_timetable_next(table, last, now, &found) == due);
    assert_int_equal(found, missed);
}

static void without_a_schedule_nothing_is_ever_due(void **state)
{
    struct det_timetable table = make((struct det_schedule){ 0 }, 5);

    (void)state;
    assert_false(table.is_on);
    expect_next(&table, 0, ADDED, DET_NEVER, 0);
    assert_false(det_timetable_is_over(&table, 0, ADDED));
}

static void the_first_run_is_one_period_after_adding(void **state)
{
    struct det_timetable table = make_every(10 * DET_SECOND, DET_MISSED_SKIP);

    (void)state;
    expect_next(&table, 0, AT(0), AT(10), 0);
    expect_next(&table, AT(10), AT(12), AT(20), 0);
    expect_next(&table, AT(20), AT(29), AT(30), 0);
}

static void from_sets_the_first_run(void **state)
{
    struct det_schedule schedule = { .every = 10 * DET_SECOND, .from = AT(35) };
    struct det_timetable table = make(schedule, 0);

    (void)state;
    expect_next(&table, 0, AT(0), AT(35), 0);
    expect_next(&table, AT(35), AT(36), AT(45), 0);
    /* The clock may go back, but nothing runs before `from`. */
    expect_next(&table, AT(45), AT(-100), AT(35), 0);
    /* In the past: its times go on, and those before adding were not missed. */
    schedule.from = AT(-25);
    schedule.missed = DET_MISSED_ALL;
    table = make(schedule, 0);
    expect_next(&table, 0, AT(0), AT(5), 0);
    expect_next(&table, 0, AT(16), AT(5), 0);
    assert_int_equal(table.owed, 1);
    /* Now: at once. */
    schedule.from = AT(0);
    table = make(schedule, 0);
    expect_next(&table, 0, AT(0), AT(0), 0);
    schedule.missed = DET_MISSED_SKIP;
    table = make(schedule, 0);
    expect_next(&table, 0, AT(0), AT(0), 0);
}

static void skip_waits_for_the_next_time(void **state)
{
    struct det_timetable table = make_every(10 * DET_SECOND, DET_MISSED_SKIP);

    (void)state;
    expect_next(&table, AT(10), AT(45), AT(50), 3);
    /* A time that is due now has not passed. */
    expect_next(&table, AT(10), AT(50), AT(50), 3);
    expect_next(&table, AT(10), AT(50) + 1, AT(60), 4);
    assert_int_equal(table.owed, 0);
}

static void missed_once_runs_the_latest_missed_time(void **state)
{
    struct det_timetable table = make_every(10 * DET_SECOND, DET_MISSED_ONCE);

    (void)state;
    expect_next(&table, AT(10), AT(45), AT(40), 2);
    expect_next(&table, AT(10), AT(50), AT(50), 3);
    expect_next(&table, AT(40), AT(46), AT(50), 0);
    expect_next(&table, AT(10), AT(25), AT(20), 0);
    assert_int_equal(table.owed, 0);
}

static void missed_all_runs_every_missed_time(void **state)
{
    struct det_timetable table = make_every(10 * DET_SECOND, DET_MISSED_ALL);

    (void)state;
    expect_next(&table, AT(10), AT(45), AT(20), 0);
    assert_int_equal(table.owed, 2);
    expect_next(&table, AT(20), AT(46), AT(30), 0);
    expect_next(&table, AT(30), AT(47), AT(40), 0);
    assert_int_equal(table.owed, 0);
    expect_next(&table, AT(40), AT(48), AT(50), 0);
    assert_int_equal(table.owed, 0);
}

static void missed_all_is_limited(void **state)
{
    struct det_timetable table = make_every(10 * DET_SECOND, DET_MISSED_ALL);

    (void)state;
    expect_next(&table, AT(10), AT(10010), AT(20), 0);
    assert_int_equal(table.owed, 999);
    expect_next(&table, AT(10), AT(10030), AT(40), 2);
    assert_int_equal(table.owed, 999);
    expect_next(&table, AT(40), AT(10030), AT(50), 0);
    assert_int_equal(table.owed, 998);
    /* A clock that was wrong for 200 years. */
    table = make_every(DET_MILLISECOND, DET_MISSED_ALL);
    expect_next(
        &table, AT(1), AT(0) + 73000 * DET_DAY, AT(0) + 73000 * DET_DAY - 999 * DET_MILLISECOND,
        UINT32_MAX);
}

static void clock_going_back_slightly_repeats_no_time(void **state)
{
    (void)state;
    for (int missed = DET_MISSED_SKIP; missed <= DET_MISSED_ALL; missed++) {
        struct det_timetable table = make_every(10 * DET_SECOND, (enum det_missed)missed);

        expect_next(&table, AT(30), AT(29), AT(40), 0);
        expect_next(&table, AT(30), AT(20), AT(40), 0);
        /* By more than a period: the times continue from now, or the schedule would stall. */
        expect_next(&table, AT(30), AT(19), AT(20), 0);
        expect_next(&table, AT(30), AT(-1234), AT(-1230), 0);
        /* Also before the first run. */
        expect_next(&table, 0, AT(-5), AT(10), 0);
        expect_next(&table, 0, AT(-1234), AT(-1230), 0);
    }
}

static void spread_shifts_all_times_equally(void **state)
{
    struct det_schedule schedule = { .every = 10 * DET_SECOND, .spread = 4 * DET_SECOND };
    struct det_timetable table = make(schedule, UINT64_MAX);

    (void)state;
    assert_true(table.spread == 4 * DET_SECOND);
    expect_next(&table, 0, AT(0), AT(14), 0);
    expect_next(&table, AT(14), AT(15), AT(24), 0);
    expect_next(&table, AT(14), AT(33), AT(34), 1);
    expect_next(&table, AT(14), AT(34), AT(34), 1);
    expect_next(&table, AT(34), AT(32), AT(44), 0);
    table = make(schedule, UINT64_MAX / 2);
    assert_true(table.spread == 2 * DET_SECOND);
    table = make(schedule, 0);
    assert_true(table.spread == 0);
    /* More than a period. */
    schedule.spread = 25 * DET_SECOND;
    table = make(schedule, UINT64_MAX);
    expect_next(&table, 0, AT(0), AT(35), 0);
    expect_next(&table, AT(35), AT(36), AT(45), 0);
}

static void missed_cron_times_are_counted(void **state)
{
    struct det_schedule schedule = { .cron = "*/10 * * * *" };
    struct det_timetable table = make(schedule, 0);

    (void)state;
    expect_next(&table, 0, AT(0), AT(600), 0);
    expect_next(&table, AT(600), AT(2000), AT(2400), 2);
    expect_next(&table, AT(600), AT(2400), AT(2400), 2);
    expect_next(&table, AT(600), AT(599), AT(1200), 0);
    expect_next(&table, AT(3600), AT(599), AT(600), 0);
    schedule.missed = DET_MISSED_ONCE;
    table = make(schedule, 0);
    expect_next(&table, AT(600), AT(2000), AT(1800), 1);
    schedule.missed = DET_MISSED_ALL;
    schedule.spread = 60 * DET_SECOND;
    table = make(schedule, UINT64_MAX);
    expect_next(&table, AT(660), AT(2000), AT(1260), 0);
    assert_int_equal(table.owed, 1);
}

static void cron_overdue_by_decades_is_computed_quickly(void **state)
{
    struct det_schedule schedule = { .cron = "* * * * * *", .missed = DET_MISSED_ALL };
    struct det_timetable table = make(schedule, 0);
    det_time now = ADDED + 20000 * DET_DAY;

    (void)state;
    expect_next(&table, AT(1), now, now - 999 * DET_SECOND, 20000u * 86400 - 1 - 1000);
}

static void the_end_of_time_is_never(void **state)
{
    struct det_timetable table = make_every(DET_DAY, DET_MISSED_SKIP);

    (void)state;
    expect_next(&table, DET_NEVER - DET_HOUR, DET_NEVER - DET_HOUR, DET_NEVER, 0);
}

static void only_missed_skip_omits_late_runs(void **state)
{
    struct det_timetable table = make_every(DET_HOUR, DET_MISSED_SKIP);

    (void)state;
    assert_false(det_timetable_is_over(&table, AT(3600), AT(3599)));
    assert_false(det_timetable_is_over(&table, AT(3600), AT(3600)));
    assert_false(det_timetable_is_over(&table, AT(3600), AT(3660)));
    assert_true(det_timetable_is_over(&table, AT(3600), AT(3660) + 1));
    table.missed = DET_MISSED_ONCE;
    assert_false(det_timetable_is_over(&table, AT(3600), AT(36000)));
    table.missed = DET_MISSED_ALL;
    assert_false(det_timetable_is_over(&table, AT(3600), AT(36000)));
    /* With close times the next one ends the wait. */
    table = make(
        (struct det_schedule){ .every = 10 * DET_SECOND, .spread = 3 * DET_SECOND }, UINT64_MAX);
    assert_false(det_timetable_is_over(&table, AT(13), AT(23) - 1));
    assert_true(det_timetable_is_over(&table, AT(13), AT(23)));
}

/* Runs of random length, with sleep in between: each time is run once or missed once. */
static void live(struct det_schedule schedule, uint64_t seed)
{
    struct det_timetable table = make(schedule, det_test_random(&seed));
    det_time now = ADDED, last = 0, due;
    uint64_t runs = 0, missed = 0;
    uint32_t more;

    for (int i = 0; i < 500; i++) {
        due = det_timetable_next(&table, last, now, &more);
        assert_true(due > last && due < DET_NEVER);
        assert_true(schedule.missed != DET_MISSED_SKIP || due >= now);
        missed += more;
        runs++;
        last = due;
        now = due > now ? due : now;
        now += (det_time)(det_test_random(&seed) % (uint64_t)(25 * DET_SECOND));
        if (det_test_random(&seed) % 40 == 0)
            now += (det_time)(det_test_random(&seed) % (uint64_t)(20 * DET_HOUR));
    }
    if (schedule.cron)
        assert_true(det_cron_count(&table.cron, ADDED, last - table.spread) == runs + missed);
    else
        assert_true((uint64_t)((last - table.spread - ADDED) / schedule.every) == runs + missed);
}

static void every_time_is_run_once_or_missed_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct det_schedule schedule = {
            .missed = (enum det_missed)(seed % 3),
            .spread = seed % 2 ? 0 : 7 * DET_SECOND,
        };

        schedule.cron = "*/20 * * * * *";
        live(schedule, seed);
        schedule.cron = "30 */3 1-20 * * *";
        live(schedule, seed);
        schedule.cron = NULL;
        schedule.every = 1 + 10 * DET_SECOND;
        live(schedule, seed);
    }
}

static void expect_refused(struct det_schedule schedule, int code, const char *words)
{
    struct det_timetable table = { .owed = 99 };
    struct det_error error = { 0 };

    assert_int_equal(det_timetable_init(&table, &schedule, ADDED, 0, &error), code);
    if (!strstr(error.text, words))
        fail_msg("'%s' has no '%s'", error.text, words);
    assert_int_equal(table.owed, 99);
    assert_int_equal(det_timetable_init(&table, &schedule, ADDED, 0, NULL), code);
}

static void schedules_that_make_no_sense_are_refused(void **state)
{
    const struct det_schedule bad_cron = { .cron = "0 24 * * *" };
    struct det_timetable table;
    struct det_error error = { 0 };

    (void)state;
    expect_refused(
        (struct det_schedule){ .every = DET_SECOND, .cron = "@daily" }, DET_ERR_INVALID, "both");
    expect_refused(
        (struct det_schedule){ .every = DET_MILLISECOND - 1 }, DET_ERR_INVALID, "at least 1ms");
    expect_refused((struct det_schedule){ .every = -1 }, DET_ERR_INVALID, "at least 1ms");
    expect_refused((struct det_schedule){ .cron = "@daily", .from = 5 }, DET_ERR_INVALID, "`from`");
    expect_refused((struct det_schedule){ .from = 5 }, DET_ERR_INVALID, "`from` is for `every`");
    expect_refused(
        (struct det_schedule){ .every = DET_SECOND, .from = -5 }, DET_ERR_INVALID, "not negative");
    expect_refused(
        (struct det_schedule){ .cron = "@daily", .spread = -1 }, DET_ERR_INVALID, "not negative");
    expect_refused(
        (struct det_schedule){ .cron = "@daily", .missed = (enum det_missed)3 }, DET_ERR_INVALID,
        "use skip, once or all");
    expect_refused((struct det_schedule){ .spread = 1 }, DET_ERR_INVALID, "need `every` or");
    expect_refused(
        (struct det_schedule){ .missed = DET_MISSED_ALL }, DET_ERR_INVALID, "need `every` or");
    expect_refused(bad_cron, DET_ERR_MALFORMED, "not 24");
    assert_int_equal(det_timetable_init(&table, &bad_cron, ADDED, 0, &error), DET_ERR_MALFORMED);
    assert_int_equal(error.offset, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_schedule_nothing_is_ever_due),
        cmocka_unit_test(the_first_run_is_one_period_after_adding),
        cmocka_unit_test(from_sets_the_first_run),
        cmocka_unit_test(skip_waits_for_the_next_time),
        cmocka_unit_test(missed_once_runs_the_latest_missed_time),
        cmocka_unit_test(missed_all_runs_every_missed_time),
        cmocka_unit_test(missed_all_is_limited),
        cmocka_unit_test(clock_going_back_slightly_repeats_no_time),
        cmocka_unit_test(spread_shifts_all_times_equally),
        cmocka_unit_test(missed_cron_times_are_counted),
        cmocka_unit_test(cron_overdue_by_decades_is_computed_quickly),
        cmocka_unit_test(the_end_of_time_is_never),
        cmocka_unit_test(only_missed_skip_omits_late_runs),
        cmocka_unit_test(every_time_is_run_once_or_missed_once),
        cmocka_unit_test(schedules_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
