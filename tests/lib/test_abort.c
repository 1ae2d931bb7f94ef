/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_abort.c - tries in a child process what should end it. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

/* In the build that counts lines it writes the counts; elsewhere there is no such function. */
extern void write_counts(void) __asm__("__gcov_dump") __attribute__((weak));

/* The lines that lead to the end count too. When this returns, abort() ends the process. */
static void keep_counts(int number)
{
    (void)number;
    if (write_counts)
        write_counts(); /* NOLINT(bugprone-signal-handler): abort() interrupts nothing */
}

static _Noreturn void run_child(void (*function)(void *argument), void *argument, int error_end)
{
    const struct rlimit no_core = { 0, 0 };

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(SIGABRT, keep_counts);
    /* Else a failed test would jump back into the runner and go on with all tests, here. */
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)dup2(error_end, STDERR_FILENO);
    function(argument);
    _exit(0);
}

static void read_all(int end, char *target, size_t capacity)
{
    size_t size = 0;
    ssize_t count;

    while (size < capacity - 1 && (count = read(end, target + size, capacity - 1 - size)) > 0)
        size += (size_t)count;
    target[size] = '\0';
}

bool det_test_aborts(void (*function)(void *argument), void *argument, const char *text)
{
    char errors[4096];
    int ends[2];
    int status;
    pid_t child;

    (void)fflush(NULL);
    assert_int_equal(0, pipe(ends));
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_child(function, argument, ends[1]);
    (void)close(ends[1]);
    read_all(ends[0], errors, sizeof errors);
    (void)close(ends[0]);
    assert_int_equal(child, waitpid(child, &status, 0));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        return false;
    return text == NULL || strstr(errors, text) != NULL;
}
