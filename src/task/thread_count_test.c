/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thread_count_test.c - threads are started when something needs them, one at a time, and what
 * cannot have one waits. */
#include "task/behaviour_test.h"

#define MANY       10
#define POOL_FIRST 4 /* threads that a pool has from the beginning */

static const struct det_world_ops *inner;
static struct det_world_ops counting;
static unsigned started, started_most;

static int count_start(
    struct det_world *world, const char *name, void (*run)(void *argument), void *argument,
    struct det_thread **ret)
{
    if (started >= started_most)
        return DET_ERR_LIMIT;
    started++;
    return inner->thread_start(world, name, run, argument, ret);
}

/* From here on threads are counted, and no more than `most` are given. */
static void count_threads(struct lab *lab, unsigned most)
{
    inner = lab->world->ops;
    counting = *inner;
    counting.thread_start = count_start;
    lab->world->ops = &counting;
    started = 0;
    started_most = most;
}

struct checked {
    struct lab *lab;
    struct script script;
    atomic_uint checks;
    bool blocks;
};

static atomic_uint blocked;

static int serve(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_wait(context, DET_NEVER);
}

static int step(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

static int check(struct det_task_context *context, void *argument)
{
    struct checked *checked = argument;
    int r = 0;

    atomic_fetch_add(&checked->checks, 1);
    if (checked->blocks) {
        atomic_fetch_add(&blocked, 1);
        r = det_task_wait(context, DET_NEVER);
        atomic_fetch_sub(&blocked, 1);
    }
    return r;
}

static void add_checked(struct lab *lab, struct checked *checked, const char *name)
{
    struct det_task_spec spec = {
        .name = name,
        .step = step,
        .argument = checked,
        .readiness = { .by = DET_READY_BY_CHECK, .within = DET_NEVER, .check = { .run = check } },
    };

    checked->lab = lab;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, NULL, NULL), 0);
}

static void the_first_check_starts_one_thread(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct checked checked = { 0 };

    (void)unused;
    count_threads(lab, 1);
    add_checked(lab, &checked, "one");
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, "one"), 1);
    assert_int_equal(started, 1);
    lab_advance(lab, DET_HOUR);
    assert_true(atomic_load(&checked.checks) > 1);
    assert_int_equal(started, 1);
    lab_close(lab);
}

static void checks_that_block_each_have_a_thread(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct checked checked[MANY] = { 0 }, quick = { 0 };
    char name[16];

    (void)unused;
    count_threads(lab, UINT32_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "b%u", i);
        checked[i].blocks = true;
        add_checked(lab, &checked[i], name);
    }
    lab_settle(lab);
    assert_int_equal(atomic_load(&blocked), MANY);
    add_checked(lab, &quick, "quick");
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, "quick"), 1);
    assert_int_equal(started, MANY + 1);
    lab_close(lab);
}

static void there_are_no_more_threads_for_checks_than_for_functions(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .pool_threads = 2 });
    struct checked checked[MANY] = { 0 };
    char name[16];

    (void)unused;
    count_threads(lab, UINT32_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "b%u", i);
        checked[i].blocks = true;
        add_checked(lab, &checked[i], name);
    }
    lab_settle(lab);
    assert_int_equal(atomic_load(&blocked), 2);
    assert_int_equal(started, 2);
    lab_close(lab);
}

static void checks_share_the_available_threads(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct checked checked[MANY] = { 0 };
    char name[16];

    (void)unused;
    count_threads(lab, 1);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "c%u", i);
        add_checked(lab, &checked[i], name);
    }
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, NULL), MANY);
    lab_close(lab);
}

static void attempt_with_a_check_is_retried_without_threads(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct checked checked = { 0 };

    (void)unused;
    count_threads(lab, 0);
    add_checked(lab, &checked, "one");
    lab_advance(lab, DET_MINUTE);
    assert_true(lab_count(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one") > 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, "one"), 0);
    started_most = 1;
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, "one"), 1);
    lab_close(lab);
}

/* All threads of the pool have a function when others come that need none. */
static void tasks_that_need_no_thread_start_none(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct det_task_spec spec = { .function = serve };
    char name[16];

    (void)unused;
    count_threads(lab, UINT32_MAX);
    spec.name = name;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, NULL, NULL), 0);
        lab_settle(lab);
    }
    assert_int_equal(started, MANY - POOL_FIRST);
    spec.function = NULL;
    spec.step = step;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, NULL, NULL), 0);
        lab_settle(lab);
    }
    assert_int_equal(started, MANY - POOL_FIRST);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_check_starts_one_thread),
        cmocka_unit_test(checks_that_block_each_have_a_thread),
        cmocka_unit_test(there_are_no_more_threads_for_checks_than_for_functions),
        cmocka_unit_test(checks_share_the_available_threads),
        cmocka_unit_test(attempt_with_a_check_is_retried_without_threads),
        cmocka_unit_test(tasks_that_need_no_thread_start_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
