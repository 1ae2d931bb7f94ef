/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_slot_next_test.c - who comes next in a slot: the ways in which it could be freed too
 * early, too late or twice. */
#include "task/behaviour_slot_test.h"

static void b57_a_queued_id_is_taken_out_once_and_never_starts(void **unused)
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
    assert_int_equal(look_at(lab, "x").depth, 1);
    tell_and_settle(lab, &owner);
    assert_int_equal(look_at(lab, "x").owner, c.id);
    assert_int_equal(a.runs + b.runs, 0);
    assert_int_equal(a.released + b.released, 2);
    waiter = lab_add(lab, &direct, "direct", &lab_once);
    assert_int_equal(det_tasks_stop(lab->tasks, direct.id, DET_NEVER), 1);
    (void)lab_end(waiter);
    lab_close(lab);
}

static void b59_a_stale_removal_frees_nobody_and_starts_nobody(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s"), third = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &second, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &third, "same");
    tell_and_settle(lab, &first);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(det_tasks_remove(lab->tasks, first.id), 0);
        assert_int_equal(det_tasks_stop(lab->tasks, first.id, DET_NEVER), 0);
        lab_settle(lab);
    }
    assert_int_equal(look_at(lab, "x").owner, second.id);
    assert_int_equal(third.runs, 0);
    /* Terminating until it is gone, however often it is asked. */
    assert_int_equal(det_slot_cancel(lab->tasks, "x"), 1);
    assert_int_equal(det_slot_cancel(lab->tasks, "x"), 0);
    assert_int_equal(det_tasks_remove(lab->tasks, second.id), 0);
    lab_settle(lab);
    assert_string_equal(look_at(lab, "x").state, "terminating");
    assert_int_equal(third.runs, 0);
    tell_and_settle(lab, &second);
    assert_int_equal(look_at(lab, "x").owner, third.id);
    assert_int_equal(third.runs, 1);
    lab_close(lab);
}

static void b60_the_next_one_may_have_the_name_of_the_owner(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s");

    (void)unused;
    submit_ok(lab, NULL, DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, NULL, DET_ADMIT_REPLACE, &second, "same");
    tell_and_settle(lab, &first);
    assert_int_equal(second.runs, 1);
    assert_int_equal(det_tasks_find(lab->tasks, "same"), second.id);
    lab_close(lab);
}

static void b60_a_head_whose_name_is_taken_is_skipped(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script direct = step_of("h"), owner = step_of("s"), head = step_of("s"),
                  next = step_of("s");
    struct det_waiter *waiter = lab_add(lab, &direct, "taken", &lab_once);

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &head, "taken");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &next, "next");
    tell_and_settle(lab, &owner);
    assert_int_equal(lab_end_of(lab, head.id).outcome, DET_TASK_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, head.id).rejection, DET_REJECTION_ALREADY_EXISTS);
    assert_int_equal(head.runs, 0);
    assert_int_equal(look_at(lab, "x").owner, next.id);
    assert_int_equal(det_tasks_find(lab->tasks, "taken"), direct.id);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void b60_a_taken_name_at_the_door_is_refused_and_leaves_no_slot(void **unused)
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
    assert_false(look_at(lab, "x").was_found);
    assert_int_equal(script.runs, 0);
    assert_int_equal(script.released, 1);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void b61_nothing_that_is_queued_starts_once_a_shutdown_has_begun(void **unused)
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
    assert_string_equal(look_at(lab, "s0").order, "");
    lab_close(lab);
}

static void b63_a_look_shows_state_owner_depth_and_time_sorted_by_name(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script a = step_of("s"), b = step_of("s"), c = step_of("s");
    det_time wall;
    struct slot_look look;

    (void)unused;
    submit_ok(lab, "zebra", DET_ADMIT_QUEUE, &a, "za");
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &b, "an");
    wall = det_world_now(lab->world, DET_CLOCK_WALL);
    lab_advance(lab, DET_MINUTE);
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &c, "next");
    assert_int_equal(
        det_slot_configure(lab->tasks, "idle", &(struct det_slot_options){ 0 }, NULL), 0);
    look = look_at(lab, "ant");
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
    assert_string_equal(look_at(lab, "idle").state, "idle");
    assert_int_equal(look_at(lab, "idle").owner, 0);
    /* An owner that somebody else removes makes the slot terminating too. */
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 1);
    lab_settle(lab);
    assert_string_equal(look_at(lab, "ant").state, "terminating");
    assert_int_equal(look_at(lab, "ant").since, wall + DET_MINUTE);
    /* Clocks that are read one after the other differ a little; one that was set counts. */
    det_sim_jump_wall(lab->sim, 20 * DET_MICROSECOND);
    lab_advance(lab, DET_SECOND);
    assert_int_equal(look_at(lab, "ant").since, wall + DET_MINUTE);
    det_sim_jump_wall(lab->sim, DET_HOUR);
    lab_advance(lab, DET_SECOND);
    assert_int_equal(
        look_at(lab, "ant").since, wall + DET_MINUTE + DET_HOUR + 20 * DET_MICROSECOND);
    lab_close(lab);
}

/* Whatever comes first, nothing is lost: the replacement runs, and the slot is its own. */
static void b64_a_replacement_that_meets_the_natural_end_is_not_lost(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct script old = { .acts = "s", .kind = seed % 2 ? LAB_STEP : LAB_FUNCTION };
        struct script new = step_of("s");
        struct det_admitted admitted;

        submit_ok(lab, "x", DET_ADMIT_QUEUE, &old, "old");
        lab_tell(lab, &old);
        assert_int_equal(lab_submit(lab, "x", DET_ADMIT_REPLACE, &new, "new", &admitted), 0);
        lab_settle(lab);
        assert_int_equal(new.runs, 1);
        assert_int_equal(look_at(lab, "x").owner, new.id);
        assert_int_equal(look_at(lab, "x").depth, 0);
        assert_string_equal(look_at(lab, "x").state, "running");
        (void)lab_end_of(lab, old.id);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b57_a_queued_id_is_taken_out_once_and_never_starts),
        cmocka_unit_test(b59_a_stale_removal_frees_nobody_and_starts_nobody),
        cmocka_unit_test(b60_the_next_one_may_have_the_name_of_the_owner),
        cmocka_unit_test(b60_a_head_whose_name_is_taken_is_skipped),
        cmocka_unit_test(b60_a_taken_name_at_the_door_is_refused_and_leaves_no_slot),
        cmocka_unit_test(b61_nothing_that_is_queued_starts_once_a_shutdown_has_begun),
        cmocka_unit_test(b63_a_look_shows_state_owner_depth_and_time_sorted_by_name),
        cmocka_unit_test(b64_a_replacement_that_meets_the_natural_end_is_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
