/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_schedule_test.c - when a task runs again: the delays of a backoff, and runs by the
 * clock, over a year. */
#include <detent/driver/policy.h>

#include "task/behaviour_test.h"

static struct det_backoff backoff_of(
    det_time first, det_time max, double factor, enum det_jitter jitter)
{
    struct det_policy policy = { .backoff = { first, max, factor, jitter, 0 } }, resolved;

    assert_int_equal(det_policy_resolve(&policy, NULL, &resolved, NULL), 0);
    return resolved.backoff;
}

static void a_backoff_doubles_up_to_its_maximum_for_every_exponent(void **unused)
{
    struct det_backoff open = backoff_of(100 * DET_MILLISECOND, DET_HOUR, 2.0, DET_JITTER_NONE);
    struct det_backoff capped = backoff_of(100 * DET_MILLISECOND, DET_SECOND, 2.0, DET_JITTER_NONE);

    (void)unused;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(det_backoff_base(&open, i), (100 << i) * DET_MILLISECOND);
        assert_int_equal(
            det_backoff_delay(&open, i, 0, (uint64_t)i * 77), (100 << i) * DET_MILLISECOND);
    }
    assert_int_equal(det_backoff_base(&capped, 10), DET_SECOND);
    assert_int_equal(det_backoff_base(&capped, UINT32_MAX), DET_SECOND);
    assert_int_equal(det_backoff_base(&open, UINT32_MAX), DET_HOUR);
    for (uint32_t i = 1; i < 100; i++)
        assert_true(det_backoff_base(&open, i) >= det_backoff_base(&open, i - 1));
}

static void an_invalid_backoff_is_refused(void **unused)
{
    static const struct det_policy bad[] = {
        { .backoff = { .first = DET_MINUTE, .max = DET_SECOND } },
        { .backoff = { .factor = 0.5 } },
        { .backoff = { .factor = -1.0 } },
        { .backoff = { .factor = 1e308 * 10 } },
        { .backoff = { .max = -DET_SECOND } },
        { .interval = -DET_SECOND },
        { .timeout = -DET_SECOND },
        { .grace = -DET_SECOND },
    };
    struct det_policy resolved;
    struct det_error error;

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error = (struct det_error){ 0 };
        assert_int_equal(det_policy_resolve(&bad[i], NULL, &resolved, &error), DET_ERR_INVALID);
        assert_true(error.text[0] != '\0');
    }
}

static void a_task_with_an_invalid_policy_is_refused(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "o", .lab = lab };
    struct det_policy policy = { .backoff = { .factor = 0.5 } };
    struct det_task_spec spec = script_spec(&script, "one", &policy);
    det_task_id id = 0;

    (void)unused;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), DET_ERR_INVALID);
    assert_int_equal(script.released, 1);
    assert_int_equal(det_tasks_find(lab->tasks, "one"), 0);
    lab_close(lab);
}

static void within(
    const struct det_backoff *backoff, uint32_t failures, det_time before, det_time low,
    det_time high)
{
    det_time least = DET_NEVER, most = 0;
    uint64_t seed = 42;

    for (unsigned i = 0; i < 2000; i++) {
        det_time delay = det_backoff_delay(backoff, failures, before, det_test_random(&seed));

        assert_true(delay >= low && delay <= high);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    /* All of the range is used. */
    assert_true(least - low <= (high - low) / 20);
    assert_true(high - most <= (high - low) / 20);
    least = det_backoff_delay(backoff, failures, before, 0);
    most = det_backoff_delay(backoff, failures, before, UINT64_MAX);
    assert_true(least >= low && least <= high && most >= low && most <= high);
}

static void each_jitter_covers_its_whole_range(void **unused)
{
    const det_time s = DET_SECOND;
    struct det_backoff full = backoff_of(s, 100 * s, 2.0, DET_JITTER_FULL);
    struct det_backoff equal = backoff_of(s, 100 * s, 2.0, DET_JITTER_EQUAL);
    struct det_backoff band = backoff_of(s, 100 * s, 2.0, DET_JITTER_BAND);
    struct det_backoff chain = backoff_of(s, 100 * s, 2.0, DET_JITTER_DECORRELATED);

    (void)unused;
    within(&full, 3, 0, DET_DELAY_FLOOR, 8 * s);
    within(&equal, 3, 0, 4 * s, 8 * s);
    within(&band, 3, 0, s, 24 * s);
    within(&band, 6, 0, s, 100 * s);
    within(&band, 60, 0, s, 100 * s);
    within(&chain, 3, 5 * s, s, 15 * s);
    within(&chain, 3, 90 * s, s, 100 * s);
}

static void jitter_keeps_zero_delays_and_the_lower_bound(void **unused)
{
    static const enum det_jitter all[] = { DET_JITTER_NONE, DET_JITTER_FULL, DET_JITTER_EQUAL,
                                           DET_JITTER_BAND, DET_JITTER_DECORRELATED };
    struct det_backoff small = backoff_of(1500 * DET_MICROSECOND, DET_SECOND, 2.0, DET_JITTER_NONE);
    struct det_backoff tiny =
        backoff_of(100 * DET_MICROSECOND, 300 * DET_MICROSECOND, 2.0, DET_JITTER_NONE);

    (void)unused;
    for (size_t i = 0; i < 5; i++) {
        struct det_backoff none = backoff_of(DET_NO_DELAY, DET_SECOND, 2.0, all[i]);
        struct det_backoff some = backoff_of(10 * DET_MICROSECOND, DET_SECOND, 1.0, all[i]);

        for (uint64_t chance = 1; chance != 0; chance <<= 1) {
            assert_int_equal(det_backoff_delay(&none, 0, 0, chance), 0);
            assert_true(det_backoff_delay(&some, 0, 0, chance) >= DET_DELAY_FLOOR);
        }
    }
    assert_int_equal(det_backoff_delay(&small, 0, 0, 7), 1500 * DET_MICROSECOND);
    assert_int_equal(det_backoff_delay(&tiny, 0, 0, 7), 300 * DET_MICROSECOND);
}

/* An attempt that ran long enough is no failure of the streak. */
static void a_stable_run_resets_the_backoff(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "ffhfo" };
    struct det_policy policy = {
        .timeout = DET_HOUR,
        .retries_max = 3,
        .backoff = { .first = DET_SECOND, .jitter = DET_JITTER_NONE, .stable_after = DET_MINUTE },
    };

    (void)unused;
    assert_int_equal(lab_run(lab, &script, "one", &policy).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(script.runs, 5);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 1).delay, 2 * DET_SECOND);
    /* The third ran for an hour and failed: its delay is the first one again. */
    assert_int_equal(lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 2).delay, DET_SECOND);
    lab_close(lab);
}

/* Runs by the clock. */

static det_task_id add_planned(
    struct lab *lab, struct script *script, const struct det_schedule *schedule)
{
    struct det_task_spec spec;
    struct det_error error = { 0 };

    script->lab = lab;
    spec = script_spec(script, "planned", NULL);
    spec.schedule = *schedule;
    if (det_tasks_add(lab->tasks, &spec, NULL, &script->id, &error) < 0)
        fail_msg("%s", error.text);
    return script->id;
}

static void fixed_rate_schedule_ignores_the_run_time(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "w", .span = 400 * DET_MILLISECOND, .kind = kind };
        struct det_schedule schedule = { .every = DET_SECOND };
        det_time began = lab_now(lab);

        (void)add_planned(lab, &script, &schedule);
        lab_advance(lab, 10 * DET_SECOND + DET_MILLISECOND);
        assert_int_equal(script.runs, 10);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(script.begun[i] - began, (i + 1) * DET_SECOND);
        assert_string_equal(lab_inspect(lab, script.id).state, "running");
        lab_advance(lab, 500 * DET_MILLISECOND);
        assert_string_equal(lab_inspect(lab, script.id).state, "resting");
        assert_int_equal(det_tasks_stop(lab->tasks, script.id, DET_NEVER), 1);
        lab_close(lab);
    }
}

/* The first run takes 3.5 s, one is due each second. */
static unsigned runs_when_late(enum det_missed missed, uint64_t *ret_missed)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "wo", .span = 3500 * DET_MILLISECOND };
    struct det_schedule schedule = { .every = DET_SECOND, .missed = missed };
    unsigned runs;

    (void)add_planned(lab, &script, &schedule);
    lab_advance(lab, 4600 * DET_MILLISECOND);
    runs = script.runs;
    *ret_missed = 0;
    for (size_t i = 0; i < lab_count(lab, DET_TASK_EVENT_RUNS_MISSED, "planned"); i++)
        *ret_missed += lab_event(lab, DET_TASK_EVENT_RUNS_MISSED, "planned", i).count;
    /* The grid stays: the next one is at the full second. */
    lab_advance(lab, 500 * DET_MILLISECOND);
    assert_int_equal(script.runs, runs + 1);
    lab_close(lab);
    return runs;
}

static void schedule_times_during_a_run_follow_the_missed_policy(void **unused)
{
    uint64_t missed;

    /* The first run is from 1.0 to 4.5 s; 2, 3 and 4 pass meanwhile. */
    (void)unused;
    assert_int_equal(runs_when_late(DET_MISSED_SKIP, &missed), 1);
    assert_int_equal(missed, 3);
    assert_int_equal(runs_when_late(DET_MISSED_ONCE, &missed), 2);
    assert_int_equal(missed, 2);
    assert_int_equal(runs_when_late(DET_MISSED_ALL, &missed), 4);
    assert_int_equal(missed, 0);
}

static void a_cron_task_runs_on_the_minute_for_a_year(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script monthly = { .acts = "o" };
    struct det_schedule schedule = { .cron = "30 4 1 * *" };
    det_time wall = det_world_now(lab->world, DET_CLOCK_WALL);

    (void)unused;
    (void)add_planned(lab, &monthly, &schedule);
    lab_advance(lab, 365 * DET_DAY);
    assert_int_equal(monthly.runs, 12);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "planned", 0).at,
        wall + 4 * DET_HOUR + 30 * DET_MINUTE);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "planned", 2).at,
        wall + (31 + 28) * DET_DAY + 4 * DET_HOUR + 30 * DET_MINUTE);
    lab_close(lab);
}

static void failed_scheduled_task_retries_then_waits_for_its_schedule(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "fffo", .lab = lab };
    struct det_policy policy = {
        .restart = DET_RESTART_ON_FAILURE,
        .retries_max = 1,
        .backoff = { .first = DET_SECOND, .jitter = DET_JITTER_NONE },
    };
    struct det_task_spec spec = script_spec(&script, "planned", &policy);
    det_time began = lab_now(lab);

    (void)unused;
    spec.schedule.every = DET_HOUR;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &script.id, NULL), 0);
    lab_advance(lab, 2 * DET_HOUR + DET_MINUTE);
    assert_int_equal(script.runs, 4);
    assert_int_equal(script.begun[0] - began, DET_HOUR);
    assert_int_equal(script.begun[1] - began, DET_HOUR + DET_SECOND);
    assert_int_equal(script.begun[2] - began, 2 * DET_HOUR);
    assert_int_equal(script.begun[3] - began, 2 * DET_HOUR + DET_SECOND);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "planned"), 0);
    lab_close(lab);
}

static int see_restarts(void *user, const struct det_task_info *info)
{
    uint64_t *restarts = user;

    *restarts = info->restarts;
    return 0;
}

static void waiting_for_the_first_run_is_not_a_restart(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "o" };
    struct det_schedule schedule = { .every = DET_HOUR };
    uint64_t restarts = 99;

    (void)unused;
    (void)add_planned(lab, &script, &schedule);
    lab_settle(lab);
    assert_int_equal(det_tasks_get(lab->tasks, script.id, see_restarts, &restarts), 0);
    assert_int_equal(restarts, 0);
    assert_int_equal(det_tasks_counts(lab->tasks).restarts, 0);
    lab_close(lab);
}

static void manual_restart_starts_at_once_and_resets_the_failures(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "ffff" };
    struct det_policy policy = {
        .backoff = { .first = DET_HOUR, .max = DET_DAY, .jitter = DET_JITTER_NONE },
    };
    det_time began = lab_now(lab);

    (void)unused;
    det_waiter_close(lab_add(lab, &script, "one", &policy));
    lab_advance(lab, DET_HOUR);
    assert_int_equal(script.runs, 2);
    assert_int_equal(lab_inspect(lab, script.id).failures, 2);
    assert_int_equal(det_tasks_restart(lab->tasks, script.id), 1);
    lab_settle(lab);
    assert_int_equal(script.runs, 3);
    assert_int_equal(script.begun[2] - began, DET_HOUR);
    assert_int_equal(lab_inspect(lab, script.id).failures, 1);
    assert_int_equal(lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 2).delay, DET_HOUR);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backoff_doubles_up_to_its_maximum_for_every_exponent),
        cmocka_unit_test(an_invalid_backoff_is_refused),
        cmocka_unit_test(a_task_with_an_invalid_policy_is_refused),
        cmocka_unit_test(each_jitter_covers_its_whole_range),
        cmocka_unit_test(jitter_keeps_zero_delays_and_the_lower_bound),
        cmocka_unit_test(a_stable_run_resets_the_backoff),
        cmocka_unit_test(fixed_rate_schedule_ignores_the_run_time),
        cmocka_unit_test(schedule_times_during_a_run_follow_the_missed_policy),
        cmocka_unit_test(a_cron_task_runs_on_the_minute_for_a_year),
        cmocka_unit_test(failed_scheduled_task_retries_then_waits_for_its_schedule),
        cmocka_unit_test(waiting_for_the_first_run_is_not_a_restart),
        cmocka_unit_test(manual_restart_starts_at_once_and_resets_the_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
