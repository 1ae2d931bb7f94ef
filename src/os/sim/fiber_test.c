/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fiber_test.c - switching stacks, and what happens when the system does not go along. Two of its
 * functions are replaced here, and fail on request. */
/* test: alone */
#include "os/sim/fiber.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/sim/shared_cases.h"

static bool is_refused, is_vain;
static int (*real_go_on)(const ucontext_t *context);

int protect(void *address, size_t size, int protection) __asm__("mprotect");
int go_on(const ucontext_t *context) __asm__("setcontext");

int protect(void *address, size_t size, int protection)
{
    if (!is_refused)
        return (int)syscall(SYS_mprotect, address, size, protection);
    errno = ENOMEM;
    return -1;
}

int go_on(const ucontext_t *context)
{
    return is_vain ? -1 : real_go_on(context);
}

/* The test's own context, and one that is tried. */
struct pair {
    struct det_context first, second;
    int steps;
};

static void step_and_come_back(void *argument)
{
    struct pair *pair = argument;

    for (;;) {
        pair->steps++;
        det_context_switch(&pair->second, &pair->first);
    }
}

static void a_context_continues_where_it_was(void **state)
{
    static const size_t sizes[] = { 1, 100000 };
    struct pair pair;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pair = (struct pair){ .steps = 0 };
        assert_int_equal(0, det_context_init(&pair.second, sizes[i], step_and_come_back, &pair));
        assert_true(pair.second.stack_size >= 32768 && pair.second.stack_size >= sizes[i]);
        det_context_switch(&pair.first, &pair.second);
        assert_int_equal(1, pair.steps);
        det_context_switch(&pair.first, &pair.second);
        assert_int_equal(2, pair.steps);
        det_context_deinit(&pair.second);
    }
}

static void stack_allocation_failure_fails_context_and_thread(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_thread *thread = NULL;
    struct pair pair;

    (void)state;
    assert_int_equal(
        DET_ERR_NO_MEMORY, det_context_init(&pair.second, SIZE_MAX / 2, step_and_come_back, &pair));
    is_refused = true;
    assert_int_equal(
        DET_ERR_NO_MEMORY, det_context_init(&pair.second, 1, step_and_come_back, &pair));
    assert_int_equal(
        DET_ERR_NO_MEMORY, det_thread_start(det_sim_world(sim), "none", free, NULL, &thread));
    is_refused = false;
    assert_null(thread);
    det_sim_close(sim);
}

static void return_to_nobody(void *argument)
{
    (void)argument;
}

static void come_back(void *argument)
{
    struct pair pair = { .steps = 0 };

    (void)argument;
    assert_int_equal(0, det_context_init(&pair.second, 1, return_to_nobody, NULL));
    det_context_switch(&pair.first, &pair.second);
}

static void leave_in_vain(void *argument)
{
    static struct pair pair; /* not on the stack that is left for good */

    (void)argument;
    is_vain = true;
    assert_int_equal(0, det_context_init(&pair.second, 1, return_to_nobody, NULL));
    det_context_leave(&pair.first, &pair.second);
}

static void return_from_a_context_aborts(void **state)
{
    (void)state;
    assert_true(det_test_aborts(come_back, NULL, "a simulated thread never returns"));
    assert_true(det_test_aborts(leave_in_vain, NULL, "setcontext() does not return"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_continues_where_it_was),
        cmocka_unit_test(stack_allocation_failure_fails_context_and_thread),
        cmocka_unit_test(return_from_a_context_aborts),
    };

    /* Now: between two stacks nothing else is called. */
    *(void **)&real_go_on = dlsym(RTLD_NEXT, "setcontext");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
