/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_signal_test.c - a signal right before the client sleeps ends its wait.
 *
 * ppoll() is replaced by one that raises SIGINT first: after the client has looked for it, and
 * before the kernel waits. */
/* test: alone */
#include "http/client.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/test.h"

static unsigned sleeps; /* not ended by a signal */
static volatile sig_atomic_t is_interrupted;

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec span = { .tv_nsec = 1000000 };
    int found;

    (void)timeout;
    (void)raise(SIGINT);
    found = (int)syscall(SYS_ppoll, fds, count, &span, mask, _NSIG / 8);
    sleeps += found >= 0;
    return found;
}

/* The name of ppoll() in a fortified build. */
int __ppoll_chk(
    struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
    size_t size);
int __ppoll_chk(
    struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
    size_t size)
{
    (void)size;
    return ppoll(fds, count, timeout, mask);
}

static void note_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

static bool is_cancelled(void *user)
{
    (void)user;
    return is_interrupted;
}

static void a_signal_right_before_the_wait_ends_it(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct http_client_options options = { .is_cancelled = is_cancelled, .signal = SIGINT };
    struct http_call call = { .url = "http://localhost/", .timeout = DET_NEVER };
    struct sigaction action = { .sa_handler = note_signal }, old;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_client *client;
    struct http_result result;
    sigset_t before, after;

    (void)state;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/client_signal.%d", (int)getpid());
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    options.socket_path = address.sun_path;
    assert_int_equal(http_client_open(&options, &client), 0);
    assert_int_equal(sigaction(SIGINT, &action, &old), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
    assert_int_equal(http_client_call(client, &call, &result), DET_ERR_CANCELLED);
    assert_int_equal(sleeps, 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    assert_int_equal(sigaction(SIGINT, &old, NULL), 0);
    http_client_close(client);
    close(listener);
    assert_int_equal(unlink(address.sun_path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_right_before_the_wait_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
