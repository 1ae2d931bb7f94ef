/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervisor_notify_test.c - what a supervisor hears that is slow to read: its queue of datagrams
 * is short, and every service of the machine sends to it. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/serve.h"
#include "os/os.h"
#include "terminal/folder_test.h"

struct place {
    struct sockaddr_un address;
    int supervisor, stranger;
    struct det_loop *loop;
    struct serve_notify notify;
};

static void set(const char *name, const char *value)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void open_place(struct fixture *fixture, struct place *place, const char *watchdog)
{
    *place = (struct place){ .address = { .sun_family = AF_UNIX } };
    snprintf(
        place->address.sun_path, sizeof place->address.sun_path, "%s", path_of(fixture, "socket"));
    place->supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    place->stranger = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(
        bind(place->supervisor, (const struct sockaddr *)&place->address, sizeof place->address),
        0);
    set("NOTIFY_SOCKET", place->address.sun_path);
    set("WATCHDOG_USEC", watchdog);
    assert_int_equal(det_loop_open(det_world_real(), NULL, &place->loop), 0);
    serve_notify_open(&place->notify);
    assert_int_equal(serve_notify_watch(&place->notify, place->loop), 0);
}

static void close_place(struct place *place)
{
    serve_notify_close(&place->notify);
    det_loop_close(place->loop);
    close(place->supervisor);
    close(place->stranger);
    set("NOTIFY_SOCKET", NULL);
    set("WATCHDOG_USEC", NULL);
}

/* Another service, until there is no room. */
static void fill(struct place *place)
{
    const struct sockaddr *to = (const struct sockaddr *)&place->address;

    while (sendto(place->stranger, "X", 1, 0, to, sizeof place->address) == 1)
        ;
    assert_int_equal(errno, EAGAIN);
}

/* The next message that is not the stranger's; "": there is none. */
static const char *hear(struct place *place, char target[256])
{
    ssize_t size;

    do {
        size = recv(place->supervisor, target, 255, 0);
    } while (size == 1 && target[0] == 'X');
    target[size > 0 ? size : 0] = '\0';
    return target;
}

static void assert_heard(struct place *place, const char *text)
{
    char heard[256];

    assert_string_equal(hear(place, heard), text);
}

static void turn(struct place *place)
{
    assert_true(det_loop_turn(place->loop, 0) >= 0);
}

static void what_finds_no_room_is_told_when_there_is_some(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_tell(&place.notify, "READY=1");
    serve_notify_tell(&place.notify, "RELOADING=1");
    serve_notify_tell(&place.notify, "READY=1\nSTATUS=%s", "two tasks");
    turn(&place);
    assert_heard(&place, "");
    turn(&place);
    assert_heard(&place, "READY=1");
    assert_heard(&place, "RELOADING=1");
    assert_heard(&place, "READY=1\nSTATUS=two tasks");
    /* Each message is sent once; a message that fits is sent immediately. */
    turn(&place);
    serve_notify_tell(&place.notify, "STOPPING=1");
    assert_heard(&place, "STOPPING=1");
    assert_heard(&place, "");
    close_place(&place);
}

static void nothing_overtakes_what_waits(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_tell(&place.notify, "READY=1");
    assert_heard(&place, "");
    serve_notify_tell(&place.notify, "STOPPING=1");
    turn(&place);
    assert_heard(&place, "READY=1");
    assert_heard(&place, "STOPPING=1");
    close_place(&place);
}

static void of_too_many_that_wait_the_newest_are_told(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    for (int i = 0; i <= SERVE_NOTIFY_KEPT; i++)
        serve_notify_tell(&place.notify, "STATUS=%d", i);
    assert_heard(&place, "");
    turn(&place);
    for (int i = 1; i <= SERVE_NOTIFY_KEPT; i++) {
        char text[32];

        snprintf(text, sizeof text, "STATUS=%d", i);
        assert_heard(&place, text);
    }
    assert_heard(&place, "");
    close_place(&place);
}

static void the_watchdog_takes_one_place_in_the_queue(void **state)
{
    struct place place;

    open_place(*state, &place, "2");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_heard(&place, "WATCHDOG=1");
    assert_heard(&place, "");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_heard(&place, "WATCHDOG=1");
    assert_heard(&place, "");
    close_place(&place);
}

/* Only WATCHDOG=1 feeds a watchdog: another message that is unread must not hold it back. */
static void the_watchdog_is_fed_after_an_unread_message(void **state)
{
    struct place place;

    open_place(*state, &place, "2");
    serve_notify_tell(&place.notify, "RELOADING=1");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_heard(&place, "RELOADING=1");
    assert_heard(&place, "WATCHDOG=1");
    assert_heard(&place, "");
    fill(&place);
    serve_notify_tell(&place.notify, "READY=1");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_heard(&place, "");
    turn(&place);
    assert_heard(&place, "READY=1");
    assert_heard(&place, "WATCHDOG=1");
    close_place(&place);
}

static void what_still_waits_at_the_end_is_told_if_there_is_room(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_tell(&place.notify, "STOPPING=1");
    assert_heard(&place, "");
    serve_notify_close(&place.notify);
    assert_heard(&place, "STOPPING=1");
    close_place(&place);
}

static void a_supervisor_that_has_gone_is_not_waited_for(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_tell(&place.notify, "READY=1");
    close(place.supervisor);
    place.supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    turn(&place);
    serve_notify_tell(&place.notify, "STOPPING=1");
    assert_int_equal(place.notify.kept_count, 0);
    close_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_finds_no_room_is_told_when_there_is_some),
        TEST(nothing_overtakes_what_waits),
        TEST(of_too_many_that_wait_the_newest_are_told),
        TEST(the_watchdog_takes_one_place_in_the_queue),
        TEST(the_watchdog_is_fed_after_an_unread_message),
        TEST(what_still_waits_at_the_end_is_told_if_there_is_room),
        TEST(a_supervisor_that_has_gone_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
