/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_real_cases.h - shared by the suites of children in the real world: one witness, the nasty
 * program, and the check that no process is left at the end. */
#ifndef DET_TASK_CHILD_REAL_CASES_H
#define DET_TASK_CHILD_REAL_CASES_H

#include "lib/nasty.h"
#include "task/child_cases.h"

#include <errno.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

static struct witness witness;

/* No process of ours is left: neither a running one nor a zombie. */
static inline void has_no_children(void)
{
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
    assert_int_equal(ECHILD, errno);
}

static inline int setup(void **state)
{
    (void)state;
    witness = (struct witness){ 0 };
    return det_loop_open(NULL, NULL, &witness.loop);
}

static inline int teardown(void **state)
{
    (void)state;
    det_child_close(witness.child);
    det_loop_close(witness.loop);
    has_no_children();
    return 0;
}

static inline void start_spec(const struct det_process_spec *spec)
{
    struct det_child_events events = events_of(&witness);
    struct det_error error = { .code = 0 };
    int r;

    r = det_child_start(witness.loop, NULL, spec, &events, &witness.child, &error);
    if (r < 0)
        fail_msg("%s", error.text);
    assert_true(det_child_number(witness.child) > 0);
    assert_int_equal(0, witness.lines);
}

static inline void start_nasty(const char *behaviour, const char *argument)
{
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, behaviour, argument, NULL } });
}

static inline void again(void)
{
    det_child_close(witness.child);
    witness = (struct witness){ .loop = witness.loop };
}

static inline void fails_with(const struct det_process_spec *spec, int code, const char *text)
{
    struct det_child_events events = events_of(&witness);
    struct det_error error = { .code = 0 };

    assert_int_equal(
        code, det_child_start(witness.loop, NULL, spec, &events, &witness.child, &error));
    assert_int_equal(code, error.code);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    assert_int_equal(code == DET_ERR_IO, error.cause != 0);
    /* Without a callback there is no report, and nothing else changes. */
    assert_int_equal(
        code, det_child_start(witness.loop, NULL, spec, &events, &witness.child, NULL));
    assert_null(witness.child);
}

/* The name of an ordinary user, or NULL when this suite may not become one. */
static inline const char *somebody(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    const struct passwd *entry = getpwnam("nobody");

    return geteuid() == 0 && entry && entry->pw_uid != 0 ? "nobody" : NULL;
}

static inline void start_as(const char *user, const char *const *argv)
{
    const struct det_process_spec spec = { .argv = argv, .user = user, .has_notify = true };
    struct det_child_events events = events_of(&witness);
    struct det_error error;

    if (det_child_start(witness.loop, NULL, &spec, &events, &witness.child, &error) < 0)
        fail_msg("%s", error.text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
