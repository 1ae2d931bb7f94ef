/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_client_signal_test.c - an interrupt right before a client sleeps ends its wait.
 *
 * The calls that sleep are replaced by ones that raise SIGINT first: after the client has looked
 * for an interrupt, and before the kernel waits. */
/* test: alone */
#include "terminal/folder_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/socket_client.h"

static unsigned sleeps; /* that no signal has ended */

static int sleep_after_signal(struct pollfd *fds, nfds_t count, const sigset_t *mask)
{
    struct timespec span = { .tv_nsec = 1000000 };
    int found;

    (void)raise(SIGINT);
    found = (int)syscall(SYS_ppoll, fds, count, &span, mask, _NSIG / 8);
    sleeps += found >= 0;
    return found;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)timeout_ms;
    return sleep_after_signal(fds, count, NULL);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    (void)timeout;
    return sleep_after_signal(fds, count, mask);
}

static void an_interrupt_right_before_the_wait_ends_it(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct socket_client *client;
    struct det_error error = { 0 };
    sigset_t before, after;
    json_t *data;

    assert_int_equal(socket_listen(fixture->folder, &listener, NULL), 0);
    assert_int_equal(socket_client_open(fixture->folder, NULL, &client, NULL), 0);
    cli_catch_signals();
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
    assert_int_equal(socket_client_next(client, DET_NEVER, &data, &error), DET_ERR_CANCELLED);
    assert_int_equal(sleeps, 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    socket_client_close(client);
    socket_unlisten(&listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_interrupt_right_before_the_wait_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
