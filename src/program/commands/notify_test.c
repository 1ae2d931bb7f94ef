/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* notify_test.c - notifications of scripts by `detent notify`. */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "terminal/command.h"
#include "terminal/folder_test.h"

extern const struct cli_command cli_command_notify;

/* A socket that listens; abstract when the name begins with 0. */
static int listen_at(const char *name, size_t size)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(descriptor >= 0 && size < sizeof address.sun_path);
    memcpy(address.sun_path, name, size);
    assert_int_equal(
        bind(
            descriptor, (const struct sockaddr *)&address,
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
        0);
    return descriptor;
}

static int notify(struct fixture *fixture, const char *socket_name, bool is_ready, const char *text)
{
    const char *operands[] = { text, NULL };
    struct cli_args args = {
        .values = { is_ready ? "" : NULL },
        .operands = operands,
        .operand_count = text ? 1 : 0,
    };

    /* NOLINTBEGIN(concurrency-mt-unsafe): one thread */
    if (socket_name)
        assert_int_equal(setenv("NOTIFY_SOCKET", socket_name, 1), 0);
    else
        assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    /* NOLINTEND(concurrency-mt-unsafe) */
    return cli_command_notify.run(&fixture->cli, &args);
}

static void assert_received(int descriptor, const char *text)
{
    char received[256];
    ssize_t size = recv(descriptor, received, sizeof received - 1, 0);

    assert_true(size >= 0);
    received[size] = '\0';
    assert_string_equal(received, text);
}

static void notify_sends_to_a_socket_path(void **state)
{
    struct fixture *fixture = *state;
    char path[512];
    int descriptor;

    snprintf(path, sizeof path, "%s", path_of(fixture, "socket"));
    descriptor = listen_at(path, strlen(path));
    assert_int_equal(notify(fixture, path, true, NULL), CLI_OK);
    assert_received(descriptor, "READY=1\n");
    assert_int_equal(notify(fixture, path, false, "warm"), CLI_OK);
    assert_received(descriptor, "STATUS=warm\n");
    close(descriptor);
}

static void notify_sends_to_an_abstract_socket(void **state)
{
    struct fixture *fixture = *state;
    char name[64];
    int size = snprintf(name, sizeof name, "@detent-notify-test-%d", (int)getpid());
    char bound[64];
    int descriptor;

    memcpy(bound, name, (size_t)size);
    bound[0] = '\0';
    descriptor = listen_at(bound, (size_t)size);
    assert_int_equal(notify(fixture, name, true, "warm"), CLI_OK);
    assert_received(descriptor, "READY=1\nSTATUS=warm\n");
    close(descriptor);
}

static void invalid_input_is_reported(void **state)
{
    struct fixture *fixture = *state;
    char name[200];

    assert_int_equal(notify(fixture, "@x", false, NULL), CLI_USAGE);
    assert_int_equal(notify(fixture, "@x", true, "a\nb"), CLI_USAGE);
    assert_int_equal(notify(fixture, NULL, true, NULL), CLI_NOT_FOUND);
    assert_int_equal(notify(fixture, "", true, NULL), CLI_NOT_FOUND);
    assert_int_equal(notify(fixture, "socket", true, NULL), CLI_FAILURE);
    assert_int_equal(notify(fixture, "@", true, NULL), CLI_FAILURE);
    assert_int_equal(notify(fixture, path_of(fixture, "none"), true, NULL), CLI_FAILURE);
    memset(name, 'x', sizeof name - 1);
    name[0] = '/';
    name[sizeof name - 1] = '\0';
    assert_int_equal(notify(fixture, name, true, NULL), CLI_FAILURE);
}

static int notify_once(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    int code;

    fixture->cli.allocator = &memory->allocator;
    code = notify(fixture, "@nobody-listens-here", true, "warm");
    fixture->cli.allocator = NULL;
    assert_int_equal(code, CLI_FAILURE);
    return memory->failed ? DET_ERR_NO_MEMORY : 0;
}

static void notify_survives_every_failed_allocation(void **state)
{
    det_test_each_failure(notify_once, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(notify_sends_to_a_socket_path),
        TEST(notify_sends_to_an_abstract_socket),
        TEST(invalid_input_is_reported),
        TEST(notify_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
