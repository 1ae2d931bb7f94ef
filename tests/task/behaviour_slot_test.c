/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_slot_test.c - one at a time per key: every cell of the table in slot.h. */
#include "task/behaviour_slot_test.h"

static void the_tasks_of_one_slot_run_one_after_the_other(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script scripts[3];
        struct det_admitted admitted;
        char name[8];

        for (size_t i = 0; i < 3; i++) {
            scripts[i] = (struct script){ .acts = "s", .kind = kind };
            snprintf(name, sizeof name, "t%zu", i);
            assert_int_equal(
                lab_submit(lab, "a", DET_ADMIT_QUEUE, &scripts[i], name, &admitted), 0);
            assert_int_equal(admitted.is_started, i == 0);
            assert_int_equal(admitted.depth, i);
        }
        for (size_t i = 0; i < 3; i++) {
            lab_settle(lab);
            for (size_t n = 0; n < 3; n++)
                assert_int_equal(scripts[n].runs, n <= i);
            assert_int_equal(inspect(lab, "a").owner, scripts[i].id);
            report_and_settle(lab, &scripts[i]);
            assert_int_equal(lab_end_of(lab, scripts[i].id).outcome, DET_TASK_OUTCOME_COMPLETED);
        }
        assert_int_equal(lab->active_peak, 1);
        assert_false(inspect(lab, "a").was_found);
        lab_close(lab);
    }
}

static void distinct_slots_run_concurrently(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script *scripts = calloc(128, sizeof *scripts);
    char name[8];

    (void)unused;
    assert_non_null(scripts);
    for (unsigned i = 0; i < 128; i++) {
        scripts[i] = step_of("s");
        snprintf(name, sizeof name, "t%u", i);
        submit_ok(lab, NULL, DET_ADMIT_QUEUE, &scripts[i], name);
    }
    assert_int_equal(lab->active, 128);
    assert_int_equal(det_tasks_counts(lab->tasks).running, 128);
    /* Without a name of its own a slot has that of its task. */
    assert_string_equal(inspect(lab, "t77").state, "running");
    lab_close(lab);
    free(scripts);
}

static void a_replacement_on_an_idle_slot_starts_at_once(void **unused)
{
    static const enum det_admission all[] = { DET_ADMIT_REPLACE, DET_ADMIT_REPLACE_ALL,
                                              DET_ADMIT_QUEUE, DET_ADMIT_DROP_IF_RUNNING };

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        struct lab *lab = lab_open(NULL);
        struct script script = step_of("s");

        submit_ok(lab, "a", all[i], &script, "one");
        assert_int_equal(script.runs, 1);
        assert_string_equal(inspect(lab, "a").state, "running");
        for (size_t n = 0; n < lab_count(lab, DET_TASK_EVENT_SLOT_CHANGED, "a"); n++)
            assert_null(
                strstr(lab_event(lab, DET_TASK_EVENT_SLOT_CHANGED, "a", n).reason, "terminating"));
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_SLOT_SUBMITTED, "a"), 1);
        assert_int_equal(lab_event(lab, DET_TASK_EVENT_SLOT_SUBMITTED, "a", 0).id, script.id);
        lab_close(lab);
    }
}

static void a_replacement_starts_after_the_end_of_the_old_task(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script old = step_of("s"), new = step_of("s");
    size_t changes;

    (void)unused;
    submit_ok(lab, "a", DET_ADMIT_QUEUE, &old, "old");
    changes = lab_count(lab, DET_TASK_EVENT_SLOT_CHANGED, "a");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &new, "new");
    assert_string_equal(inspect(lab, "a").state, "terminating");
    assert_true(lab_count(lab, DET_TASK_EVENT_SLOT_CHANGED, "a") > changes);
    assert_int_equal(new.runs, 0);
    assert_true(lab_inspect(lab, old.id).is_removing);
    report_and_settle(lab, &old);
    assert_int_equal(new.runs, 1);
    assert_int_equal(lab_end_of(lab, old.id).outcome, DET_TASK_OUTCOME_CANCELLED);
    assert_true(
        lab_event(lab, DET_TASK_EVENT_TASK_REMOVED, "old", 0).sequence <
        lab_event(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "new", 0).sequence);
    assert_string_equal(inspect(lab, "a").state, "running");
    lab_close(lab);
}

/* Head replace: the latest wins, those behind it keep their order and their place. */
static void the_latest_replacement_wins_and_the_queue_is_kept(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), n = step_of("s"), a = step_of("s"), b = step_of("s"),
                  c = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &n, "n");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_REPLACE, &c, "c");
    assert_int_equal(inspect(lab, "x").depth, 3);
    assert_int_equal(lab_end_of(lab, n.id).outcome, DET_TASK_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, n.id).rejection, DET_REJECTION_SUPERSEDED);
    report_and_settle(lab, &owner);
    assert_int_equal(inspect(lab, "x").owner, c.id);
    report_and_settle(lab, &c);
    assert_int_equal(inspect(lab, "x").owner, a.id);
    report_and_settle(lab, &a);
    assert_int_equal(inspect(lab, "x").owner, b.id);
    assert_int_equal(n.runs, 0);
    assert_int_equal(n.released, 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVE_REQUESTED, "owner"), 1);
    lab_close(lab);
}

static void replace_all_empties_the_queue(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), a = step_of("s"), b = step_of("s"), c = step_of("s"),
                  d = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_REPLACE_ALL, &c, "c");
    assert_int_equal(lab_end_of(lab, a.id).rejection, DET_REJECTION_PURGED);
    assert_int_equal(lab_end_of(lab, b.id).rejection, DET_REJECTION_PURGED);
    assert_int_equal(inspect(lab, "x").depth, 1);
    /* And again while it terminates. */
    submit_ok(lab, "x", DET_ADMIT_REPLACE_ALL, &d, "d");
    assert_int_equal(lab_end_of(lab, c.id).rejection, DET_REJECTION_PURGED);
    report_and_settle(lab, &owner);
    assert_int_equal(inspect(lab, "x").owner, d.id);
    assert_int_equal(inspect(lab, "x").depth, 0);
    assert_int_equal(a.runs + b.runs + c.runs, 0);
    lab_close(lab);
}

static void drop_if_running_is_refused_when_busy_and_starts_when_idle(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), first = step_of("s"), second = step_of("s"),
                  third = step_of("s"), next = step_of("s");

    (void)unused;
    submit_ok(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &owner, "owner");
    refuse(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &first, "first", DET_REJECTION_SLOT_BUSY);
    assert_string_equal(lab_inspect(lab, owner.id).state, "running");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &next, "next");
    refuse(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &second, "second", DET_REJECTION_SLOT_BUSY);
    report_and_settle(lab, &owner);
    report_and_settle(lab, &next);
    submit_ok(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &third, "third");
    assert_int_equal(third.runs, 1);
    lab_close(lab);
}

static void depth_of(uint32_t limit)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .slot_depth_max = limit });
    struct script owner = step_of("s"), scripts[12], last = step_of("s");
    struct det_admitted admitted;
    char name[8];

    submit_ok(lab, "a", DET_ADMIT_QUEUE, &owner, "owner");
    for (uint32_t i = 0; i < limit; i++) {
        scripts[i] = step_of("s");
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(lab_submit(lab, "a", DET_ADMIT_QUEUE, &scripts[i], name, &admitted), 0);
        assert_int_equal(admitted.depth, i + 1);
    }
    scripts[limit] = step_of("s");
    refuse(lab, "a", DET_ADMIT_QUEUE, &scripts[limit], "more", DET_REJECTION_QUEUE_FULL);
    /* A replacement is never refused for the depth. */
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &last, "last");
    assert_int_equal(inspect(lab, "a").depth, limit);
    scripts[limit] = step_of("s");
    refuse(lab, "a", DET_ADMIT_QUEUE, &scripts[limit], "more", DET_REJECTION_QUEUE_FULL);
    lab_close(lab);
}

static void the_queue_depth_limits_all_submissions_but_replacements(void **unused)
{
    (void)unused;
    depth_of(1);
    depth_of(3);
    depth_of(10);
}

static void a_slot_without_a_queue_accepts_a_replacement(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .intake_max = 1 });
    struct script owner = step_of("s"), queued = step_of("s"), next = step_of("s"),
                  latest = step_of("s");

    (void)unused;
    assert_int_equal(
        det_slot_configure(
            lab->tasks, "a", &(struct det_slot_options){ .depth_max = UINT32_MAX }, NULL),
        0);
    submit_ok(lab, "a", DET_ADMIT_QUEUE, &owner, "owner");
    refuse(lab, "a", DET_ADMIT_QUEUE, &queued, "queued", DET_REJECTION_QUEUE_FULL);
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &next, "next");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &latest, "latest");
    assert_int_equal(inspect(lab, "a").depth, 1);
    assert_int_equal(lab_end_of(lab, next.id).rejection, DET_REJECTION_SUPERSEDED);
    report_and_settle(lab, &owner);
    assert_int_equal(latest.runs, 1);
    lab_close(lab);
}

static void a_submission_after_a_shutdown_is_refused_as_closed(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "s", .lab = lab };
    struct det_admitted admitted;
    struct det_task_spec spec = script_spec(&script, "late", NULL);

    (void)unused;
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(
        lab_submit(lab, "a", DET_ADMIT_QUEUE, &script, "late", &admitted), DET_ERR_CLOSED);
    assert_int_equal(
        det_slot_try_submit(
            lab->tasks,
            &(struct det_submission){ .slot = "a", .admission = DET_ADMIT_REPLACE, .task = &spec },
            NULL, &admitted, NULL),
        DET_ERR_CLOSED);
    assert_int_equal(script.released, 2);
    assert_int_equal(script.runs, 0);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tasks_of_one_slot_run_one_after_the_other),
        cmocka_unit_test(distinct_slots_run_concurrently),
        cmocka_unit_test(a_replacement_on_an_idle_slot_starts_at_once),
        cmocka_unit_test(a_replacement_starts_after_the_end_of_the_old_task),
        cmocka_unit_test(the_latest_replacement_wins_and_the_queue_is_kept),
        cmocka_unit_test(replace_all_empties_the_queue),
        cmocka_unit_test(drop_if_running_is_refused_when_busy_and_starts_when_idle),
        cmocka_unit_test(the_queue_depth_limits_all_submissions_but_replacements),
        cmocka_unit_test(a_slot_without_a_queue_accepts_a_replacement),
        cmocka_unit_test(a_submission_after_a_shutdown_is_refused_as_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
