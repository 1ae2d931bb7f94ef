/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_slot_next_test.c - who comes next in a slot: the ways in which it could be freed too
 * early, too late or twice. */
#include "task/behaviour_slot_test.h"

static void a_queued_id_is_removed_once_and_does_not_start(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), a = step_of("s"), b = step_of("s"), c = step_of("s"),
                  direct = step_of("h");
    struct det_waiter *waiter;

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &c, "c");
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 1);
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 0);
    assert_int_equal(det_tasks_stop(lab->tasks, a.id, DET_NEVER), 1);
    assert_int_equal(det_tasks_stop(lab->tasks, a.id, DET_NEVER), 0);
    lab_settle(lab);
    assert_int_equal(lab_end_of(lab, a.id).outcome, DET_TASK_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, a.id).rejection, DET_REJECTION_REMOVED);
    assert_int_equal(lab_end_of(lab, b.id).rejection, DET_REJECTION_REMOVED);
    assert_int_equal(inspect(lab, "x").depth, 1);
    report_and_settle(lab, &owner);
    assert_int_equal(inspect(lab, "x").owner, c.id);
    assert_int_equal(a.runs + b.runs, 0);
    assert_int_equal(a.released + b.released, 2);
    waiter = lab_add(lab, &direct, "direct", &lab_once);
    assert_int_equal(det_tasks_stop(lab->tasks, direct.id, DET_NEVER), 1);
    (void)lab_end(waiter);
    lab_close(lab);
}

static void a_stale_removal_frees_no_slot_and_starts_no_task(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s"), third = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &second, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &third, "same");
    report_and_settle(lab, &first);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(det_tasks_remove(lab->tasks, first.id), 0);
        assert_int_equal(det_tasks_stop(lab->tasks, first.id, DET_NEVER), 0);
        lab_settle(lab);
    }
    assert_int_equal(inspect(lab, "x").owner, second.id);
    assert_int_equal(third.runs, 0);
    /* Terminating until it is gone, however often it is asked. */
    assert_int_equal(det_slot_cancel(lab->tasks, "x"), 1);
    assert_int_equal(det_slot_cancel(lab->tasks, "x"), 0);
    assert_int_equal(det_tasks_remove(lab->tasks, second.id), 0);
    lab_settle(lab);
    assert_string_equal(inspect(lab, "x").state, "terminating");
    assert_int_equal(third.runs, 0);
    report_and_settle(lab, &second);
    assert_int_equal(inspect(lab, "x").owner, third.id);
    assert_int_equal(third.runs, 1);
    lab_close(lab);
}

static void the_next_task_may_have_the_name_of_the_owner(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s");

    (void)unused;
    submit_ok(lab, NULL, DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, NULL, DET_ADMIT_REPLACE, &second, "same");
    report_and_settle(lab, &first);
    assert_int_equal(second.runs, 1);
    assert_int_equal(det_tasks_find(lab->tasks, "same"), second.id);
    lab_close(lab);
}

static void a_queued_task_whose_name_is_taken_is_skipped(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script direct = step_of("h"), owner = step_of("s"), head = step_of("s"),
                  next = step_of("s");
    struct det_waiter *waiter = lab_add(lab, &direct, "taken", &lab_once);

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &head, "taken");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &next, "next");
    report_and_settle(lab, &owner);
    assert_int_equal(lab_end_of(lab, head.id).outcome, DET_TASK_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, head.id).rejection, DET_REJECTION_ALREADY_EXISTS);
    assert_int_equal(head.runs, 0);
    assert_int_equal(inspect(lab, "x").owner, next.id);
    assert_int_equal(det_tasks_find(lab->tasks, "taken"), direct.id);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void a_submission_with_a_taken_name_is_refused_and_creates_no_slot(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script direct = step_of("h"), script = step_of("s");
    struct det_waiter *waiter = lab_add(lab, &direct, "taken", &lab_once);
    struct det_admitted admitted;
    int r;

    (void)unused;
    r = lab_submit(lab, "x", DET_ADMIT_QUEUE, &script, "taken", &admitted);
    assert_true(r == DET_ERR_EXISTS || r == DET_ERR_REFUSED);
    assert_int_equal(admitted.rejection, DET_REJECTION_ALREADY_EXISTS);
    lab_settle(lab);
    assert_false(inspect(lab, "x").was_found);
    assert_int_equal(script.runs, 0);
    assert_int_equal(script.released, 1);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void queued_tasks_do_not_start_during_a_shutdown(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owners[4], queued[4];
    char slot[8], name[8];

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        owners[i] = step_of("h");
        queued[i] = step_of("o");
        snprintf(slot, sizeof slot, "s%zu", i);
        snprintf(name, sizeof name, "o%zu", i);
        submit_ok(lab, slot, DET_ADMIT_QUEUE, &owners[i], name);
        snprintf(name, sizeof name, "q%zu", i);
        submit_ok(lab, slot, i % 2 ? DET_ADMIT_QUEUE : DET_ADMIT_REPLACE, &queued[i], name);
    }
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    for (size_t i = 1; i < 4; i += 2) {
        assert_int_equal(queued[i].runs, 0);
        assert_int_equal(lab_end_of(lab, queued[i].id).outcome, DET_TASK_OUTCOME_REJECTED);
        assert_int_equal(lab_end_of(lab, queued[i].id).rejection, DET_REJECTION_SHUTTING_DOWN);
    }
    assert_int_equal(lab->end_count, 8);
    assert_string_equal(inspect(lab, "s0").order, "");
    lab_close(lab);
}

static void slots_are_listed_by_name_with_state_owner_depth_and_time(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script a = step_of("s"), b = step_of("s"), c = step_of("s");
    det_time wall;
    struct slot_check look;

    (void)unused;
    submit_ok(lab, "zebra", DET_ADMIT_QUEUE, &a, "za");
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &b, "an");
    wall = det_world_now(lab->world, DET_CLOCK_WALL);
    lab_advance(lab, DET_MINUTE);
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &c, "next");
    assert_int_equal(
        det_slot_configure(lab->tasks, "idle", &(struct det_slot_options){ 0 }, NULL), 0);
    look = inspect(lab, "ant");
    assert_string_equal(look.order, "ant idle zebra ");
    assert_string_equal(look.state, "running");
    assert_string_equal(look.owner_name, "an");
    assert_int_equal(look.owner, b.id);
    assert_int_equal(look.owner_count, 1);
    assert_int_equal(look.depth, 1);
    assert_int_equal(look.width, 1);
    assert_int_equal(look.depth_max, 100);
    assert_int_equal(look.since, wall);
    assert_int_equal(look.started, 1);
    assert_string_equal(inspect(lab, "idle").state, "idle");
    assert_int_equal(inspect(lab, "idle").owner, 0);
    /* An owner that somebody else removes makes the slot terminating too. */
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 1);
    lab_settle(lab);
    assert_string_equal(inspect(lab, "ant").state, "terminating");
    assert_int_equal(inspect(lab, "ant").since, wall + DET_MINUTE);
    /* Clocks that are read one after the other differ a little; one that was set counts. */
    det_sim_jump_wall(lab->sim, 20 * DET_MICROSECOND);
    lab_advance(lab, DET_SECOND);
    assert_int_equal(inspect(lab, "ant").since, wall + DET_MINUTE);
    det_sim_jump_wall(lab->sim, DET_HOUR);
    lab_advance(lab, DET_SECOND);
    assert_int_equal(
        inspect(lab, "ant").since, wall + DET_MINUTE + DET_HOUR + 20 * DET_MICROSECOND);
    lab_close(lab);
}

/* Whatever comes first, nothing is lost: the replacement runs, and the slot is its own. */
static void a_replacement_at_the_natural_end_of_its_owner_is_not_lost(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct script old = { .acts = "s", .kind = seed % 2 ? LAB_STEP : LAB_FUNCTION };
        struct script new = step_of("s");
        struct det_admitted admitted;

        submit_ok(lab, "x", DET_ADMIT_QUEUE, &old, "old");
        lab_report(lab, &old);
        assert_int_equal(lab_submit(lab, "x", DET_ADMIT_REPLACE, &new, "new", &admitted), 0);
        lab_settle(lab);
        assert_int_equal(new.runs, 1);
        assert_int_equal(inspect(lab, "x").owner, new.id);
        assert_int_equal(inspect(lab, "x").depth, 0);
        assert_string_equal(inspect(lab, "x").state, "running");
        (void)lab_end_of(lab, old.id);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queued_id_is_removed_once_and_does_not_start),
        cmocka_unit_test(a_stale_removal_frees_no_slot_and_starts_no_task),
        cmocka_unit_test(the_next_task_may_have_the_name_of_the_owner),
        cmocka_unit_test(a_queued_task_whose_name_is_taken_is_skipped),
        cmocka_unit_test(a_submission_with_a_taken_name_is_refused_and_creates_no_slot),
        cmocka_unit_test(queued_tasks_do_not_start_during_a_shutdown),
        cmocka_unit_test(slots_are_listed_by_name_with_state_owner_depth_and_time),
        cmocka_unit_test(a_replacement_at_the_natural_end_of_its_owner_is_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
