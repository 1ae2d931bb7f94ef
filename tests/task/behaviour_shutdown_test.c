/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_shutdown_test.c - the end of all: one operation, one deadline, one verdict for all who
 * ask; and what remains when memory runs out. */
#include "task/behaviour_test.h"

static void a_cooperative_shutdown_stops_all_tasks(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script scripts[4];
        char name[8];

        for (size_t i = 0; i < 4; i++) {
            scripts[i] = (struct script){ .acts = "h", .kind = kind };
            snprintf(name, sizeof name, "t%zu", i);
            det_waiter_close(lab_add(lab, &scripts[i], name, NULL));
        }
        lab_settle(lab);
        assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL), 0);
        assert_true(
            lab_event(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL, 0).sequence <
            lab_event(lab, DET_TASK_EVENT_ALL_STOPPED, NULL, 0).sequence);
        for (size_t i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "t%zu", i);
            assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, name), 1);
            assert_true(
                lab_event(lab, DET_TASK_EVENT_TASK_REMOVED, name, 0).sequence <
                lab_event(lab, DET_TASK_EVENT_ALL_STOPPED, NULL, 0).sequence);
            assert_int_equal(lab_end_of(lab, scripts[i].id).outcome, DET_TASK_OUTCOME_CANCELLED);
        }
        assert_true(lab->empties > 0);
        lab_close(lab);
    }
}

static void a_shutdown_without_tasks_has_a_result(void **unused)
{
    struct lab *lab = lab_open(NULL);

    (void)unused;
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 1);
    lab_close(lab);
}

static void a_shutdown_names_only_tasks_that_do_not_stop(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(&(struct det_tasks_options){ .grace = 200 * DET_MILLISECOND });
        struct script stubborn = { .acts = kind == LAB_STEP ? "s" : "r",
                                   .span = DET_HOUR,
                                   .kind = kind };
        struct script polite = { .acts = "h", .kind = kind };
        struct det_error error = { 0 };
        det_time began = lab_now(lab);

        det_waiter_close(lab_add(lab, &stubborn, "stubborn", NULL));
        det_waiter_close(lab_add(lab, &polite, "polite", NULL));
        lab_settle(lab);
        assert_int_equal(det_tasks_shutdown(lab->tasks, &error), DET_ERR_TIMEOUT);
        assert_int_equal(error.code, DET_ERR_TIMEOUT);
        assert_non_null(strstr(error.text, "stubborn"));
        assert_null(strstr(error.text, "polite"));
        assert_in_range(lab_now(lab) - began, 200 * DET_MILLISECOND, 10 * DET_SECOND);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 0);
        assert_non_null(
            strstr(lab_event(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL, 0).reason, "stubborn"));
        assert_int_equal(lab_end_of(lab, polite.id).outcome, DET_TASK_OUTCOME_CANCELLED);
        lab_close(lab);
        /* The close has waited for the function. */
        assert_false(stubborn.is_inside && kind == LAB_FUNCTION);
    }
}

static void a_forced_step_ends_before_the_result_of_the_shutdown(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .grace = 200 * DET_MILLISECOND });
    struct script stubborn = { .acts = "s", .kind = LAB_STEP };

    (void)unused;
    det_waiter_close(lab_add(lab, &stubborn, "stubborn", NULL));
    lab_settle(lab);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), DET_ERR_TIMEOUT);
    assert_int_equal(lab_end_of(lab, stubborn.id).outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    assert_true(
        lab_event(lab, DET_TASK_EVENT_TASK_REMOVED, "stubborn", 0).sequence <
        lab_event(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL, 0).sequence);
    lab_close(lab);
}

static void a_negative_grace_forces_at_once(void **unused)
{
    (void)unused;
    for (unsigned by_call = 0; by_call < 2; by_call++) {
        struct lab *lab = lab_open(&(struct det_tasks_options){ .grace = by_call ? DET_DAY : -1 });
        struct script stubborn = { .acts = "s", .kind = LAB_STEP };
        struct det_waiter *waiter = lab_add(lab, &stubborn, "stubborn", NULL);
        det_time began = lab_now(lab);

        lab_settle(lab);
        if (by_call)
            det_tasks_force(lab->tasks);
        assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), DET_ERR_TIMEOUT);
        assert_int_equal(lab_now(lab), began);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
        lab_close(lab);
    }
}

static void a_late_shutdown_call_gets_the_same_result(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .grace = DET_SECOND });
    struct script stubborn = { .acts = "s", .kind = LAB_STEP };
    struct det_error first = { 0 }, second = { 0 };
    det_time then;

    (void)unused;
    det_waiter_close(lab_add(lab, &stubborn, "stubborn", NULL));
    lab_settle(lab);
    assert_int_equal(det_tasks_shutdown(lab->tasks, &first), DET_ERR_TIMEOUT);
    then = lab_now(lab);
    assert_int_equal(det_tasks_shutdown(lab->tasks, &second), DET_ERR_TIMEOUT);
    assert_string_equal(first.text, second.text);
    assert_int_equal(det_tasks_run(lab->tasks, &second), DET_ERR_TIMEOUT);
    assert_string_equal(first.text, second.text);
    assert_int_equal(lab_now(lab), then);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL), 1);
    lab_close(lab);
}

static void a_run_that_ends_by_itself_has_a_result_and_no_request(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "w", .span = DET_HOUR };

    (void)unused;
    det_waiter_close(lab_add(lab, &script, "one", &lab_once));
    assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 1);
    assert_int_equal(lab_end_of(lab, script.id).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "one"), 1);
    lab_close(lab);
}

static void run_does_not_end_between_owners_of_a_slot(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct script scripts[20];
        struct det_admitted admitted;
        char name[8];

        for (size_t i = 0; i < 20; i++) {
            scripts[i] = (struct script){ .acts = "w",
                                          .span = DET_SECOND,
                                          .kind = i % 2 ? LAB_STEP : LAB_FUNCTION };
            snprintf(name, sizeof name, "t%zu", i);
            assert_int_equal(
                lab_submit(lab, "x", DET_ADMIT_QUEUE, &scripts[i], name, &admitted), 0);
        }
        assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
        for (size_t i = 0; i < 20; i++)
            assert_int_equal(lab_end_of(lab, scripts[i].id).outcome, DET_TASK_OUTCOME_COMPLETED);
        lab_close(lab);
    }
}

/* With a loop of one's own, run turns it. */
static void run_uses_the_loop_of_the_caller(void **unused)
{
    struct lab *lab = lab_open_on_loop(NULL);
    struct script step = { .acts = "ffo", .kind = LAB_STEP }, function = { .acts = "ffo" };

    (void)unused;
    det_waiter_close(lab_add(lab, &step, "step", NULL));
    det_waiter_close(lab_add(lab, &function, "function", NULL));
    assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
    assert_int_equal(step.runs, 3);
    assert_int_equal(function.runs, 3);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 1);
    lab_close(lab);
}

static void begin_shutdown_on_the_loop_returns_and_on_empty_reports_the_end(void **unused)
{
    struct lab *lab = lab_open_on_loop(NULL);
    struct script step = { .acts = "h", .kind = LAB_STEP };

    (void)unused;
    det_waiter_close(lab_add(lab, &step, "step", NULL));
    lab_settle(lab);
    assert_int_equal(lab->empties, 0);
    det_tasks_begin_shutdown(lab->tasks);
    lab_settle(lab);
    assert_true(lab->empties > 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 1);
    lab_close(lab);
}

/* Nobody drops the last owner by accident in C: det_tasks_close() is the word for it. */
static void a_close_cancels_running_tasks_and_rejects_queued_ones(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script owner = { .acts = "h", .kind = kind }, queued = { .acts = "o" };
        struct script waits = { .acts = "f", .kind = kind };
        struct det_policy slow = { .backoff = { .first = DET_HOUR, .max = DET_HOUR } };
        struct det_admitted admitted;
        det_time began = lab_now(lab);

        assert_int_equal(lab_submit(lab, "x", DET_ADMIT_QUEUE, &owner, "owner", &admitted), 0);
        assert_int_equal(lab_submit(lab, "x", DET_ADMIT_QUEUE, &queued, "queued", &admitted), 0);
        det_waiter_close(lab_add(lab, &waits, "waits", &slow));
        lab_settle(lab);
        det_tasks_close(lab->tasks);
        lab->tasks = NULL;
        assert_int_equal(lab_now(lab), began);
        assert_int_equal(lab_end_of(lab, owner.id).outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(lab_end_of(lab, waits.id).outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(lab_end_of(lab, queued.id).outcome, DET_TASK_OUTCOME_REJECTED);
        assert_int_equal(lab_end_of(lab, queued.id).rejection, DET_REJECTION_SHUTTING_DOWN);
        assert_int_equal(owner.released + queued.released + waits.released, 3);
        lab_close(lab);
    }
}

/* Memory. */

static bool is_admitted(int r, const struct det_test_memory *memory)
{
    if (r < 0) {
        assert_int_equal(r, DET_ERR_NO_MEMORY);
        assert_true(memory->failed);
    }
    return r == 0;
}

static int whole_life(struct det_test_memory *memory, void *argument)
{
    static const char *const names[] = { "one", "two", "three" };
    struct det_tasks_options options = { .allocator = &memory->allocator, .concurrent_max = 1 };
    struct det_policy policy = { .retries_max = 3 };
    struct lab *lab = lab_new(1);
    struct script scripts[3] = { { .acts = "fo", .lab = lab, .kind = LAB_STEP },
                                 { .acts = "w", .lab = lab, .span = DET_SECOND },
                                 { .acts = "o", .lab = lab, .kind = LAB_STEP } };
    struct det_task_spec specs[3];
    struct det_admitted admitted;
    unsigned calls = 0;
    det_task_id id;
    int r;

    (void)argument;
    for (size_t i = 0; i < 3; i++)
        specs[i] = script_spec(&scripts[i], names[i], &policy);
    options.world = lab->world;
    r = det_tasks_open(&options, &lab->tasks, NULL);
    if (is_admitted(r, memory)) {
        calls = 3;
        r = det_tasks_add(lab->tasks, &specs[0], NULL, &id, NULL);
        if (is_admitted(r, memory))
            r = det_slot_submit(
                lab->tasks,
                &(struct det_submission){
                    .slot = "x", .admission = DET_ADMIT_QUEUE, .task = &specs[1] },
                NULL, &admitted, NULL);
        else
            calls = 1;
        if (r == 0)
            r = det_slot_submit(
                lab->tasks,
                &(struct det_submission){
                    .slot = "x", .admission = DET_ADMIT_QUEUE, .task = &specs[2] },
                NULL, &admitted, NULL);
        else if (calls == 3)
            calls = 2;
        (void)!det_tasks_run(lab->tasks, NULL);
        det_tasks_close(lab->tasks);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(scripts[i].released, i < calls);
    det_sim_close(lab->sim);
    free(lab);
    return r == DET_ERR_REFUSED || r == DET_ERR_EXISTS ? 0 : r;
}

static void allocation_failures_release_every_argument_once(void **unused)
{
    (void)unused;
    det_test_each_failure(whole_life, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cooperative_shutdown_stops_all_tasks),
        cmocka_unit_test(a_shutdown_without_tasks_has_a_result),
        cmocka_unit_test(a_shutdown_names_only_tasks_that_do_not_stop),
        cmocka_unit_test(a_forced_step_ends_before_the_result_of_the_shutdown),
        cmocka_unit_test(a_negative_grace_forces_at_once),
        cmocka_unit_test(a_late_shutdown_call_gets_the_same_result),
        cmocka_unit_test(a_run_that_ends_by_itself_has_a_result_and_no_request),
        cmocka_unit_test(run_does_not_end_between_owners_of_a_slot),
        cmocka_unit_test(run_uses_the_loop_of_the_caller),
        cmocka_unit_test(begin_shutdown_on_the_loop_returns_and_on_empty_reports_the_end),
        cmocka_unit_test(a_close_cancels_running_tasks_and_rejects_queued_ones),
        cmocka_unit_test(allocation_failures_release_every_argument_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
