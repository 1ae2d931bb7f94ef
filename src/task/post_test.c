/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* post_test.c - calls that do not wait: copies, order, answers, and failures without a callback as
 * events. */
#include "task/behaviour_test.h"

#define POSTS 100

struct reported {
    struct lab *lab;
    int result;
    det_task_id id;
    char text[128];
    atomic_uint count;
};

static void take_answer(void *user, int result, det_task_id id, const struct det_error *error)
{
    struct reported *reported = user;

    reported->result = result;
    reported->id = id;
    (void)snprintf(reported->text, sizeof reported->text, "%s", error ? error->text : "");
    atomic_fetch_add(&reported->count, 1);
}

static void posted_task_copies_its_spec(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "o", .kind = kind, .lab = lab };
        char name[16] = "one";
        struct det_task_spec spec = script_spec(&script, name, &lab_once);
        struct reported reported = { .result = 1 };

        assert_int_equal(
            det_tasks_post_add(lab->tasks, &spec, &(struct det_answer){ take_answer, &reported }),
            0);
        memset(name, 'x', sizeof name - 1);
        memset(&spec, 0, sizeof spec);
        lab_await_ends(lab, 1);
        assert_int_equal(atomic_load(&reported.count), 1);
        assert_int_equal(reported.result, 0);
        assert_int_equal(lab_end_of(lab, reported.id).outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "one"), 1);
        assert_int_equal(script.released, 1);
        lab_close(lab);
    }
}

static void calls_of_one_thread_keep_their_order(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "h", .kind = LAB_STEP, .lab = lab };
    struct det_task_spec spec = script_spec(&script, "one", NULL);
    struct reported reported = { .result = 1 };
    det_task_id id;

    (void)unused;
    for (int i = 0; i < POSTS; i++) {
        assert_int_equal(
            det_tasks_post_add(lab->tasks, &spec, &(struct det_answer){ take_answer, &reported }),
            0);
        id = det_tasks_find(lab->tasks, "one");
        assert_true(id > 0);
        assert_int_equal(id, reported.id);
        assert_int_equal(det_tasks_post_remove(lab->tasks, id), 0);
        assert_int_equal(det_tasks_stop(lab->tasks, id, DET_NEVER), 0);
    }
    assert_int_equal(script.released, POSTS);
    lab_close(lab);
}

static void post_failure_is_a_result_or_an_event(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "h", .kind = LAB_STEP, .lab = lab };
    struct det_task_spec spec = script_spec(&script, "one", NULL), wrong = spec;
    struct reported reported = { .result = 1 };
    const struct det_answer answer = { take_answer, &reported };

    (void)unused;
    wrong.step = NULL;
    assert_int_equal(det_tasks_post_add(lab->tasks, &spec, NULL), 0);
    assert_int_equal(det_tasks_post_add(lab->tasks, &spec, &answer), 0);
    lab_settle(lab);
    assert_int_equal(reported.result, DET_ERR_EXISTS);
    assert_non_null(strstr(reported.text, "the name is in use"));
    assert_int_equal(det_tasks_post_add(lab->tasks, &wrong, NULL), 0);
    lab_settle(lab);
    assert_non_null(
        strstr(lab_event(lab, DET_TASK_EVENT_TASK_ADD_FAILED, "one", 1).reason, "exactly one of"));
    assert_int_equal(script.released, 2);
    lab_close(lab);
}

static void submissions_are_posted_too(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "h", .kind = LAB_STEP, .lab = lab };
    struct det_task_spec spec = script_spec(&script, "one", NULL), wrong = spec;
    struct det_submission submission = { .slot = "s",
                                         .admission = DET_ADMIT_DROP_IF_RUNNING,
                                         .task = &spec };
    struct reported reported = { .result = 1 };
    const struct det_answer answer = { take_answer, &reported };

    (void)unused;
    assert_int_equal(det_slot_post_submit(lab->tasks, &submission, &answer), 0);
    lab_settle(lab);
    assert_int_equal(reported.result, 0);
    assert_int_equal(det_slot_post_submit(lab->tasks, &submission, &answer), 0);
    lab_settle(lab);
    assert_int_equal(reported.result, DET_ERR_REFUSED);
    assert_int_equal(det_slot_post_submit(lab->tasks, &submission, NULL), 0);
    wrong.step = NULL;
    submission.task = &wrong;
    assert_int_equal(det_slot_post_submit(lab->tasks, &submission, NULL), 0);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SLOT_REJECTED, "s"), 3);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_SLOT_REJECTED, "s", 2).rejection, DET_REJECTION_FAILED);
    assert_int_equal(script.released, 3);
    lab_close(lab);
}

static void a_full_intake_refuses_at_once_and_releases(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .intake_max = 2 });
    struct script keeper = { .acts = "b", .kind = LAB_STEP };
    struct script script = { .acts = "o", .kind = LAB_STEP, .lab = lab };
    struct det_task_spec spec = script_spec(&script, "one", &lab_once);
    struct det_waiter *waiter = lab_add(lab, &keeper, "keeper", &lab_once);

    (void)unused;
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "keeper", 1);
    lab_settle(lab);
    assert_int_equal(det_tasks_post_add(lab->tasks, &spec, NULL), 0);
    assert_int_equal(det_tasks_post_remove(lab->tasks, 4711), 0);
    assert_int_equal(det_tasks_post_add(lab->tasks, &spec, NULL), DET_ERR_BUSY);
    assert_int_equal(det_tasks_post_remove(lab->tasks, 4711), DET_ERR_BUSY);
    assert_int_equal(script.released, 1);
    det_mutex_lock(lab->world, lab->mutex);
    keeper.reported = true;
    det_condition_broadcast(lab->world, lab->changed);
    det_mutex_unlock(lab->world, lab->mutex);
    (void)lab_end(waiter);
    lab_await_ends(lab, 2);
    assert_int_equal(script.runs, 1);
    lab_close(lab);
}

static void failed_allocation_is_reported_and_releases_the_argument(void **unused)
{
    static const char *const argv[] = { "true", NULL };
    static const int codes[] = { 3 };
    const struct det_process_spec process = { .argv = argv,
                                              .environment = argv,
                                              .folder = "/",
                                              .success_codes = codes,
                                              .success_code_count = 1 };
    struct lab *lab = lab_open_on_loop(NULL);
    struct script script = { .acts = "o", .lab = lab };
    struct det_task_spec spec = script_spec(&script, "one", &lab_once);
    const struct det_dependency dependency = { "missing", DET_WHEN_RUNNING };
    unsigned failures = 0;
    int r = DET_ERR_NO_MEMORY;

    (void)unused;
    spec.function = NULL;
    spec.process = &process;
    spec.depends_on = &dependency;
    spec.depends_on_count = 1;
    while (r == DET_ERR_NO_MEMORY) {
        lab->memory.fail_at = lab->memory.calls + ++failures;
        r = det_slot_post_submit(
            lab->tasks, &(struct det_submission){ .slot = "s", .task = &spec }, NULL);
        assert_int_equal(script.released, r < 0 ? failures : failures - 1);
    }
    lab->memory.fail_at = 0;
    assert_int_equal(r, 0);
    assert_true(failures > 2);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SLOT_REJECTED, "s"), 1);
    assert_int_equal(script.released, failures);
    lab_close(lab);
}

/* Threads that post as fast as they can, in the real world. */
struct poster {
    struct lab *lab;
    atomic_uint *runs;
    unsigned number;
};

static int count_run(struct det_task_context *context, void *argument)
{
    (void)context;
    atomic_fetch_add((atomic_uint *)argument, 1);
    return 0;
}

static void post_many(void *argument)
{
    struct poster *poster = argument;
    char name[32];
    const struct det_task_spec spec = { .name = name,
                                        .step = count_run,
                                        .argument = poster->runs,
                                        .policy = { .restart = DET_RESTART_NEVER } };

    for (int i = 0; i < POSTS; i++) {
        (void)snprintf(name, sizeof name, "t%u-%d", poster->number, i);
        if (det_tasks_post_add(poster->lab->tasks, &spec, NULL) < 0)
            abort();
    }
}

static void posts_of_many_threads_are_all_taken(void **unused)
{
    struct lab *lab = lab_open_real(NULL);
    struct det_thread *threads[3];
    struct poster posters[3];
    atomic_uint runs = 0;

    (void)unused;
    for (unsigned i = 0; i < 3; i++) {
        posters[i] = (struct poster){ lab, &runs, i };
        assert_int_equal(
            det_thread_start(lab->world, "poster", post_many, &posters[i], &threads[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        det_thread_join(lab->world, threads[i]);
    lab_await(lab, DET_TASK_EVENT_TASK_REMOVED, NULL, 3 * POSTS);
    assert_int_equal(atomic_load(&runs), 3 * POSTS);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posted_task_copies_its_spec),
        cmocka_unit_test(calls_of_one_thread_keep_their_order),
        cmocka_unit_test(post_failure_is_a_result_or_an_event),
        cmocka_unit_test(submissions_are_posted_too),
        cmocka_unit_test(a_full_intake_refuses_at_once_and_releases),
        cmocka_unit_test(failed_allocation_is_reported_and_releases_the_argument),
        cmocka_unit_test(posts_of_many_threads_are_all_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
