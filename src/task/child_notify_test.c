/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_notify_test.c - notifications of children: accepted senders, refused ones, and limits. */
#include "task/child_real_cases.h"

#include <sys/socket.h>
#include <sys/un.h>

/* It has ended, but the loop does not know yet: so its helpers are gone as well. */
static void lies_dead(void)
{
    siginfo_t info;

    assert_int_equal(
        0, waitid(P_PID, (id_t)det_child_number(witness.child), &info, WEXITED | WNOWAIT));
}

static void notifications_of_a_child_and_its_helpers_are_received(void **state)
{
    const char *const ways[] = { "notify", "notify-helper" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        start_spec(&(struct det_process_spec){
            .argv = (const char *const[]){ nasty, ways[i], "READY=1\nSTATUS=warm\n\n", NULL },
            .has_notify = true });
        lies_dead();
        ends_with(&witness, 0, 0);
        assert_string_equal("READY=1,STATUS=warm,", witness.news);
        again();
    }
}

static void barrier_completes_after_earlier_notifications(void **state)
{
    (void)state;
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "barrier", "STATUS=on its way", NULL },
        .has_notify = true });
    ends_with(&witness, 0, 0);
    assert_string_equal("STATUS=on its way,BARRIER=1,", witness.news);
}

/* Sends as this process, which is not in the child's group. */
static void send_news(const char *name, const char *message, size_t size)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strcspn(name, "|");
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, name, length);
    address.sun_path[0] = '\0';
    assert_int_equal(
        size, sendto(
                  descriptor, message, size, 0, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)));
    close(descriptor);
}

static void notifications_of_other_processes_are_ignored(void **state)
{
    (void)state;
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "notify-where", NULL }, .has_notify = true });
    turn_until(&witness, has_printed, "|");
    for (int i = 0; i < 9; i++)
        send_news(witness.printed[0], "READY=1", 7);
    assert_true(det_loop_turn(witness.loop, 0) > 0);
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
    assert_string_equal("", witness.news);
}

static void oversized_notifications_are_ignored(void **state)
{
    static char message[5001];

    (void)state;
    memset(message, 'x', sizeof message - 1);
    start_spec(&(struct det_process_spec){
        .argv = (const char *const[]){ nasty, "notify", message, NULL }, .has_notify = true });
    ends_with(&witness, 0, 0);
    assert_string_equal("", witness.news);
}

static void notifications_of_a_child_of_another_user_are_received(void **state)
{
    (void)state;
    if (!somebody())
        skip();
    start_as("nobody", (const char *const[]){ "test", "-x", nasty, NULL });
    turn_until(&witness, has_ended, NULL);
    if (witness.end.code != 0)
        skip();
    det_child_close(witness.child);
    witness = (struct witness){ .loop = witness.loop };
    start_as("nobody", (const char *const[]){ nasty, "notify-helper", "READY=1", NULL });
    ends_with(&witness, 0, 0);
    assert_string_equal("READY=1,", witness.news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(notifications_of_a_child_and_its_helpers_are_received),
        CASE(barrier_completes_after_earlier_notifications),
        CASE(notifications_of_other_processes_are_ignored),
        CASE(oversized_notifications_are_ignored),
        CASE(notifications_of_a_child_of_another_user_are_received),
    };

    return cmocka_run_group_tests(tests, find_nasty, NULL);
}
