/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_test.c - children of the real world, good ones and nasty ones: what they say is heard, how
 * they end is known, and nothing of them is left. */
#include <detent/driver/loop.h>

#include "task/child_real_cases.h"

#include <poll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>

/* Any process, not only a child: waits until it is gone or only its name is left. */
static void is_gone(pid_t number)
{
    struct pollfd poll_one = { .fd = pidfd_open(number, 0), .events = POLLIN };

    if (poll_one.fd < 0) {
        assert_int_equal(ESRCH, errno);
        return;
    }
    assert_int_equal(1, poll(&poll_one, 1, 30000));
    close(poll_one.fd);
}

static void a_child_ends_with_its_code(void **state)
{
    const int codes[] = { 0, 1, 7, 127, 255 };

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char text[8];

        (void)snprintf(text, sizeof text, "%d", codes[i]);
        start_nasty("exit", text);
        ends_with(&witness, codes[i], 0);
        assert_int_equal(0, witness.lines);
        again();
    }
}

static void a_child_ends_with_its_signal(void **state)
{
    const int signals[] = { SIGABRT, SIGSEGV, SIGKILL, SIGTERM, SIGPIPE };

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char text[8];

        (void)snprintf(text, sizeof text, "%d", signals[i]);
        start_nasty("raise", text);
        ends_with(&witness, -1, signals[i]);
        again();
    }
}

static void child_output_precedes_its_end(void **state)
{
    (void)state;
    start_nasty("say", "one\ntwo\r\n\nno end");
    ends_with(&witness, 0, 0);
    assert_string_equal("one|two||no end|", witness.printed[DET_STREAM_OUTPUT]);
    assert_string_equal("", witness.printed[DET_STREAM_ERROR]);
    again();
    start_nasty("scream", "help\n");
    ends_with(&witness, 0, 0);
    assert_string_equal("help|", witness.printed[DET_STREAM_ERROR]);
    again();
    start_nasty("binary", NULL);
    ends_with(&witness, 0, 0);
    assert_int_equal(255, witness.bytes);
    assert_int_equal(2, witness.lines);
}

static void child_without_a_reader_discards_its_output(void **state)
{
    struct det_child_events events = events_of(&witness);
    const struct det_process_spec spec = { .argv =
                                               (const char *const[]){ nasty, "flood", "4", NULL },
                                           .has_notify = true };

    (void)state;
    events.on_line = NULL;
    events.on_notify = NULL;
    assert_int_equal(0, det_child_start(witness.loop, NULL, &spec, &events, &witness.child, NULL));
    ends_with(&witness, 0, 0);
    assert_int_equal(0, witness.lines);
}

static void child_ends_at_the_stop_signal(void **state)
{
    (void)state;
    start_nasty("polite", NULL);
    turn_until(&witness, has_printed, "ready");
    assert_int_equal(0, det_child_signal(witness.child, 0));
    assert_int_equal(0, det_child_stop(witness.child));
    ends_with(&witness, 7, 0);
    assert_string_equal("ready|bye|", witness.printed[0]);
}

/* A test that kills its supervisor checks that it ends: tests/e2e/durable.py. */
static void child_with_ends_with_us_runs_normally(void **state)
{
    (void)state;
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "exit", "3", NULL }, .ends_with_us = true });
    ends_with(&witness, 3, 0);
}

static void the_stop_signal_is_the_one_that_was_asked_for(void **state)
{
    char text[8];

    (void)state;
    (void)snprintf(text, sizeof text, "%d", SIGQUIT);
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "polite", text, NULL }, .stop_signal = SIGQUIT });
    turn_until(&witness, has_printed, "ready");
    assert_int_equal(0, det_child_stop(witness.child));
    ends_with(&witness, 7, 0);
}

static void child_ignoring_the_stop_ends_when_killed(void **state)
{
    (void)state;
    start_nasty("deaf", NULL);
    turn_until(&witness, has_printed, "ready");
    assert_int_equal(0, det_child_stop(witness.child));
    assert_int_equal(0, det_loop_turn(witness.loop, 0));
    assert_int_equal(0, witness.ends);
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
}

static void stands_still(void)
{
    siginfo_t info;

    assert_int_equal(
        0, waitid(P_PID, (id_t)det_child_number(witness.child), &info, WSTOPPED | WNOWAIT));
}

static void suspended_child_receives_the_stop(void **state)
{
    (void)state;
    start_nasty("frozen", NULL);
    stands_still();
    assert_int_equal(0, det_child_stop(witness.child));
    ends_with(&witness, -1, SIGTERM);
    again();
    start_nasty("frozen", "deaf");
    stands_still();
    assert_int_equal(0, det_child_stop(witness.child));
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
    again();
    start_nasty("frozen", "deaf");
    stands_still();
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
}

static void rest_of_the_process_group_dies_with_its_leader(void **state)
{
    (void)state;
    start_nasty("family", NULL);
    ends_with(&witness, 0, 0);
    is_gone((pid_t)strtol(witness.printed[0], NULL, 10));
}

static bool has_five_lines(const struct witness *one, const char *text)
{
    (void)text;
    return one->lines == 5;
}

static void a_kill_reaches_all_generations(void **state)
{
    (void)state;
    start_nasty("generations", "5");
    turn_until(&witness, has_five_lines, NULL);
    assert_int_equal(0, det_child_stop(witness.child));
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
    for (const char *at = witness.printed[0]; *at; at = strchr(at, '|') + 1)
        is_gone((pid_t)strtol(at, NULL, 10));
}

static void process_outside_the_group_does_not_delay_the_end(void **state)
{
    const char *const ways[] = { NULL, "flood" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pid_t number;

        start_nasty("runaway", ways[i]);
        ends_with(&witness, 0, 0);
        number = (pid_t)strtol(witness.printed[0], NULL, 10);
        assert_true(number > 0);
        /* The library cannot reach it; its pipe has no reader, so a flood ends it by SIGPIPE. */
        if (!ways[i])
            assert_int_equal(0, kill(number, SIGKILL));
        is_gone(number);
        again();
    }
}

static void a_flood_is_read_to_its_end_in_bounded_memory(void **state)
{
    struct rusage before, after;

    (void)state;
    assert_int_equal(0, getrusage(RUSAGE_SELF, &before));
    start_spec(
        &(struct det_process_spec){ .argv = (const char *const[]){ nasty, "flood", "100", NULL },
                                    .bytes_per_second_max = UINT64_MAX });
    ends_with(&witness, 0, 0);
    assert_int_equal(100 << 20, witness.bytes + witness.lines);
    assert_int_equal((100 << 20) / 64, witness.lines);
    assert_int_equal(0, witness.dropped);
    assert_int_equal(0, getrusage(RUSAGE_SELF, &after));
    assert_true(after.ru_maxrss - before.ru_maxrss < 8192);
}

static void a_flood_beyond_its_limit_is_dropped_and_counted(void **state)
{
    (void)state;
    start_spec(
        &(struct det_process_spec){ .argv = (const char *const[]){ nasty, "flood", "100", NULL },
                                    .bytes_per_second_max = 1 << 20 });
    ends_with(&witness, 0, 0);
    assert_true(witness.dropped > 50 << 20);
    /* Every byte is either in a line, its end, or dropped; lines that were cut had no end. */
    assert_true(witness.bytes + witness.dropped <= 100 << 20);
    assert_true(witness.bytes + witness.dropped + witness.lines >= 100 << 20);
}

/* A timer that is armed repeatedly runs in every turn, whatever the child does. */
static void count_turns(void *argument)
{
    (*(int *)argument)++;
}

static void output_flood_does_not_starve_other_calls(void **state)
{
    uint64_t bytes = 0, most = 0;
    int count = 0;
    struct det_post post = { .run = count_turns, .argument = &count };

    (void)state;
    start_spec(
        &(struct det_process_spec){ .argv = (const char *const[]){ nasty, "flood", "20", NULL },
                                    .bytes_per_second_max = UINT64_MAX });
    for (int turns = 1; !witness.ends; turns++) {
        det_loop_post(witness.loop, &post);
        assert_true(det_loop_turn(witness.loop, deadline_of(&witness)) > 0);
        assert_int_equal(turns, count);
        most = witness.bytes - bytes > most ? witness.bytes - bytes : most;
        bytes = witness.bytes;
    }
    assert_true(most <= 2 << 20);
    ends_with(&witness, 0, 0);
}

static void child_may_close_its_streams(void **state)
{
    (void)state;
    start_nasty("silent", NULL);
    /* The pipes have ended, so that nothing wakes the loop for nothing. */
    while (det_loop_turn(witness.loop, det_loop_now(witness.loop) + 50 * DET_MILLISECOND) > 0)
        assert_int_equal(0, witness.ends);
    assert_int_equal(0, det_child_signal(witness.child, 0));
    assert_int_equal(0, det_child_stop(witness.child));
    ends_with(&witness, -1, SIGTERM);
    assert_string_equal("last words|", witness.printed[0]);
}

static void child_inherits_only_its_streams(void **state)
{
    int extra = dup(2);

    (void)state;
    assert_true(extra > 2);
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "descriptors", NULL }, .has_notify = true });
    ends_with(&witness, 0, 0);
    assert_string_equal("0|1|2|", witness.printed[0]);
    close(extra);
    again();
    start_nasty("signals", NULL);
    ends_with(&witness, 0, 0);
    assert_string_equal("", witness.printed[0]);
}

static void a_child_has_the_environment_and_folder_it_was_given(void **state)
{
    const char *const environment[] = { "NOTIFY_SOCKET=@theirs", "COLOUR=red", NULL };

    (void)state;
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "environment", "COLOUR", NULL },
        .environment = environment });
    ends_with(&witness, 0, 0);
    assert_string_equal("red|", witness.printed[0]);
    again();
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "environment", "NOTIFY_SOCKET", NULL },
        .environment = environment,
        .has_notify = true });
    ends_with(&witness, 0, 0);
    assert_int_equal('@', witness.printed[0][0]);
    assert_string_not_equal("@theirs|", witness.printed[0]);
    again();
    start_spec(&(struct det_process_spec){ .argv = (const char *const[]){ nasty, "folder", NULL },
                                           .folder = "/usr" });
    ends_with(&witness, 0, 0);
    assert_string_equal("/usr|", witness.printed[0]);
}

static void a_child_can_be_closed_before_its_end(void **state)
{
    (void)state;
    start_nasty("deaf", NULL);
    turn_until(&witness, has_printed, "ready");
    det_child_close(witness.child);
    witness.child = NULL;
    assert_int_equal(0, det_loop_turn(witness.loop, 0));
    assert_int_equal(0, witness.ends);
}

static void close_at_end(void *user, const struct det_process_end *end)
{
    keep_end(user, end);
    det_child_close(witness.child);
    witness.child = NULL;
}

static void child_can_be_closed_in_its_end_callback(void **state)
{
    struct det_child_events events = events_of(&witness);
    const struct det_process_spec spec = { .argv =
                                               (const char *const[]){ nasty, "say", "a", NULL } };

    (void)state;
    events.on_end = close_at_end;
    assert_int_equal(0, det_child_start(witness.loop, NULL, &spec, &events, &witness.child, NULL));
    turn_until(&witness, has_ended, NULL);
    assert_null(witness.child);
}

static void child_reaped_elsewhere_has_an_unknown_end(void **state)
{
    siginfo_t info;

    (void)state;
    start_nasty("exit", "3");
    assert_int_equal(0, waitid(P_PID, (id_t)det_child_number(witness.child), &info, WEXITED));
    ends_with(&witness, -1, 0);
}

static void exit_codes_are_success_or_fatal_as_specified(void **state)
{
    const int success[] = { 3, 4 }, fatal[] = { 2, 4 };
    const struct det_process_spec spec = { .success_codes = success,
                                           .success_code_count = 2,
                                           .fatal_codes = fatal,
                                           .fatal_code_count = 2 };

    (void)state;
    assert_int_equal(1, det_child_verdict(&spec, &(struct det_process_end){ 0, 0 }));
    assert_int_equal(0, det_child_verdict(&spec, &(struct det_process_end){ 1, 0 }));
    assert_int_equal(-1, det_child_verdict(&spec, &(struct det_process_end){ 2, 0 }));
    assert_int_equal(1, det_child_verdict(&spec, &(struct det_process_end){ 3, 0 }));
    assert_int_equal(-1, det_child_verdict(&spec, &(struct det_process_end){ 4, 0 }));
    assert_int_equal(0, det_child_verdict(&spec, &(struct det_process_end){ -1, SIGTERM }));
    assert_int_equal(0, det_child_verdict(&spec, &(struct det_process_end){ -1, 0 }));
}

static void many_children_run_at_once(void **state)
{
    enum { COUNT = 50 };
    static struct witness witnesses[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        struct det_child_events events;
        const struct det_process_spec spec = { .argv = (const char *const[]){
                                                   nasty, i % 2 ? "flood" : "say",
                                                   i % 2 ? "1" : "a\n", NULL } };

        witnesses[i] = (struct witness){ .loop = witness.loop };
        events = events_of(&witnesses[i]);
        assert_int_equal(
            0, det_child_start(witness.loop, NULL, &spec, &events, &witnesses[i].child, NULL));
    }
    for (int i = 0; i < COUNT; i++) {
        turn_until(&witnesses[i], has_ended, NULL);
        assert_int_equal(0, witnesses[i].end.code);
        assert_int_equal(i % 2 ? 1 << 20 : 2, witnesses[i].bytes + witnesses[i].lines);
        det_child_close(witnesses[i].child);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_child_ends_with_its_code),
        CASE(a_child_ends_with_its_signal),
        CASE(child_output_precedes_its_end),
        CASE(child_without_a_reader_discards_its_output),
        CASE(child_ends_at_the_stop_signal),
        CASE(child_with_ends_with_us_runs_normally),
        CASE(the_stop_signal_is_the_one_that_was_asked_for),
        CASE(child_ignoring_the_stop_ends_when_killed),
        CASE(suspended_child_receives_the_stop),
        CASE(rest_of_the_process_group_dies_with_its_leader),
        CASE(a_kill_reaches_all_generations),
        CASE(process_outside_the_group_does_not_delay_the_end),
        CASE(a_flood_is_read_to_its_end_in_bounded_memory),
        CASE(a_flood_beyond_its_limit_is_dropped_and_counted),
        CASE(output_flood_does_not_starve_other_calls),
        CASE(child_may_close_its_streams),
        CASE(child_inherits_only_its_streams),
        CASE(a_child_has_the_environment_and_folder_it_was_given),
        CASE(a_child_can_be_closed_before_its_end),
        CASE(child_can_be_closed_in_its_end_callback),
        CASE(child_reaped_elsewhere_has_an_unknown_end),
        CASE(exit_codes_are_success_or_fatal_as_specified),
        CASE(many_children_run_at_once),
    };

    return cmocka_run_group_tests(tests, find_nasty, NULL);
}
