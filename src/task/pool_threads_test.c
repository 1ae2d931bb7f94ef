/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pool_threads_test.c - functions that block: each has a thread, up to a limit, and what waits for
 * one says so. */
#include "task/behaviour_test.h"

#define MANY 20

static int copy_obstacle(void *user, const struct det_task_info *info)
{
    (void)snprintf(
        user, DET_TASK_REASON_MAX + 1, "%s|%s", info->state,
        info->waits_for ? info->waits_for : "nothing");
    return 0;
}

static void assert_waits(struct lab *lab, const struct script *script, const char *expected)
{
    char text[DET_TASK_REASON_MAX + 1] = "";

    assert_int_equal(det_tasks_get(lab->tasks, script->id, copy_obstacle, text), 0);
    assert_string_equal(text, expected);
}

static void functions_that_block_all_run_by_default(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script scripts[MANY] = { { .acts = "h" } };
    struct det_waiter *waiters[MANY];
    char name[16];

    (void)unused;
    for (int i = 0; i < MANY; i++) {
        scripts[i].acts = "h";
        (void)snprintf(name, sizeof name, "f%d", i);
        waiters[i] = lab_add(lab, &scripts[i], name, NULL);
    }
    lab_settle(lab);
    assert_int_equal(atomic_load(&lab->active), MANY);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_POOL_EXHAUSTED, NULL), 0);
    for (int i = 0; i < MANY; i++)
        det_waiter_close(waiters[i]);
    lab_close(lab);
}

static void task_waiting_for_a_thread_names_the_holders(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .pool_threads = 2 });
    struct script a = { .acts = "h" }, b = { .acts = "h" }, c = { .acts = "h" },
                  d = { .acts = "h" }, step = { .acts = "h", .kind = LAB_STEP };
    struct det_waiter *waiters[5];

    (void)unused;
    waiters[0] = lab_add(lab, &a, "a", NULL);
    waiters[1] = lab_add(lab, &b, "b", NULL);
    waiters[2] = lab_add(lab, &c, "c", NULL);
    waiters[3] = lab_add(lab, &d, "d", NULL);
    waiters[4] = lab_add(lab, &step, "step", NULL);
    lab_settle(lab);
    assert_waits(lab, &a, "running|nothing");
    assert_waits(lab, &c, "waiting|a pool thread: 2 of 2 are taken by a, b");
    assert_waits(lab, &d, "waiting|a pool thread: 2 of 2 are taken by a, b");
    assert_waits(lab, &step, "running|nothing");
    /* Once for all waiting functions. */
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_POOL_EXHAUSTED, NULL), 1);
    assert_string_equal(
        lab_event(lab, DET_TASK_EVENT_POOL_EXHAUSTED, "c", 0).reason,
        "a pool thread: 2 of 2 are taken by a, b");
    assert_int_equal(det_tasks_stop(lab->tasks, a.id, DET_NEVER), 1);
    assert_int_equal(det_tasks_stop(lab->tasks, b.id, DET_NEVER), 1);
    lab_settle(lab);
    assert_waits(lab, &d, "running|nothing");
    for (int i = 0; i < 5; i++)
        det_waiter_close(waiters[i]);
    lab_close(lab);
}

static void task_waiting_for_a_permit_names_the_holders(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = 1 });
    struct script a = { .acts = "h", .kind = LAB_STEP }, b = { .acts = "h", .kind = LAB_STEP };
    struct det_waiter *first = lab_add(lab, &a, "a", NULL), *second;

    (void)unused;
    lab_settle(lab);
    second = lab_add(lab, &b, "b", NULL);
    lab_settle(lab);
    assert_waits(lab, &b, "waiting|a permit: 1 of 1 is taken by a");
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_POOL_EXHAUSTED, NULL), 0);
    det_waiter_close(first);
    det_waiter_close(second);
    lab_close(lab);
}

/* More names than a text has room for are cut. */
static void long_lists_of_holders_are_truncated(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = MANY });
    struct script scripts[MANY + 1] = { { .acts = "h" } };
    char name[16], text[DET_TASK_REASON_MAX + 1] = "";
    struct det_waiter *waiters[MANY + 1];

    (void)unused;
    for (int i = 0; i <= MANY; i++) {
        scripts[i].acts = "h";
        scripts[i].kind = LAB_STEP;
        (void)snprintf(name, sizeof name, "long-name-%d", i);
        waiters[i] = lab_add(lab, &scripts[i], name, NULL);
        lab_settle(lab);
    }
    assert_int_equal(det_tasks_get(lab->tasks, scripts[MANY].id, copy_obstacle, text), 0);
    assert_non_null(strstr(text, "20 of 20 are taken by long-name-0, long-name-1, "));
    assert_non_null(strstr(text, ", ..."));
    for (int i = 0; i <= MANY; i++)
        det_waiter_close(waiters[i]);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_that_block_all_run_by_default),
        cmocka_unit_test(task_waiting_for_a_thread_names_the_holders),
        cmocka_unit_test(task_waiting_for_a_permit_names_the_holders),
        cmocka_unit_test(long_lists_of_holders_are_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
