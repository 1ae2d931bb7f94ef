/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervisor_notify_test.c - messages to a slow service manager: its queue of datagrams is short,
 * and shared with other services. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/host.h"
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

/* Another service, which fills the queue. */
static void fill(struct place *place)
{
    const struct sockaddr *to = (const struct sockaddr *)&place->address;

    while (sendto(place->stranger, "X", 1, 0, to, sizeof place->address) == 1)
        ;
    assert_int_equal(errno, EAGAIN);
}

/* The next message of detent; "": none. */
static const char *receive(struct place *place, char target[256])
{
    ssize_t size;

    do {
        size = recv(place->supervisor, target, 255, 0);
    } while (size == 1 && target[0] == 'X');
    target[size > 0 ? size : 0] = '\0';
    return target;
}

static void assert_received(struct place *place, const char *text)
{
    char received[256];

    assert_string_equal(receive(place, received), text);
}

static void turn(struct place *place)
{
    assert_true(det_loop_turn(place->loop, 0) >= 0);
}

static void queued_message_is_sent_when_the_socket_has_room(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_send(&place.notify, "READY=1");
    serve_notify_send(&place.notify, "RELOADING=1");
    serve_notify_send(&place.notify, "READY=1\nSTATUS=%s", "two tasks");
    turn(&place);
    assert_received(&place, "");
    turn(&place);
    assert_received(&place, "READY=1");
    assert_received(&place, "RELOADING=1");
    assert_received(&place, "READY=1\nSTATUS=two tasks");
    /* Each message is sent once; a message that fits is sent immediately. */
    turn(&place);
    serve_notify_send(&place.notify, "STOPPING=1");
    assert_received(&place, "STOPPING=1");
    assert_received(&place, "");
    close_place(&place);
}

static void queued_messages_keep_their_order(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_send(&place.notify, "READY=1");
    assert_received(&place, "");
    serve_notify_send(&place.notify, "STOPPING=1");
    turn(&place);
    assert_received(&place, "READY=1");
    assert_received(&place, "STOPPING=1");
    close_place(&place);
}

static void only_the_newest_queued_messages_are_sent(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    for (int i = 0; i <= SERVE_NOTIFY_KEPT; i++)
        serve_notify_send(&place.notify, "STATUS=%d", i);
    assert_received(&place, "");
    turn(&place);
    for (int i = 1; i <= SERVE_NOTIFY_KEPT; i++) {
        char text[32];

        snprintf(text, sizeof text, "STATUS=%d", i);
        assert_received(&place, text);
    }
    assert_received(&place, "");
    close_place(&place);
}

static void the_watchdog_takes_one_place_in_the_queue(void **state)
{
    struct place place;

    open_place(*state, &place, "2");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_received(&place, "WATCHDOG=1");
    assert_received(&place, "");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_received(&place, "WATCHDOG=1");
    assert_received(&place, "");
    close_place(&place);
}

/* Only WATCHDOG=1 feeds a watchdog: another message that is unread must not hold it back. */
static void the_watchdog_is_fed_after_an_unread_message(void **state)
{
    struct place place;

    open_place(*state, &place, "2");
    serve_notify_send(&place.notify, "RELOADING=1");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_received(&place, "RELOADING=1");
    assert_received(&place, "WATCHDOG=1");
    assert_received(&place, "");
    fill(&place);
    serve_notify_send(&place.notify, "READY=1");
    for (int i = 0; i < 100; i++)
        turn(&place);
    assert_received(&place, "");
    turn(&place);
    assert_received(&place, "READY=1");
    assert_received(&place, "WATCHDOG=1");
    close_place(&place);
}

static void queued_messages_are_sent_on_close(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_send(&place.notify, "STOPPING=1");
    assert_received(&place, "");
    serve_notify_close(&place.notify);
    assert_received(&place, "STOPPING=1");
    close_place(&place);
}

static void closed_service_manager_socket_is_not_waited_for(void **state)
{
    struct place place;

    open_place(*state, &place, NULL);
    fill(&place);
    serve_notify_send(&place.notify, "READY=1");
    close(place.supervisor);
    place.supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    turn(&place);
    serve_notify_send(&place.notify, "STOPPING=1");
    assert_int_equal(place.notify.kept_count, 0);
    close_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queued_message_is_sent_when_the_socket_has_room),
        TEST(queued_messages_keep_their_order),
        TEST(only_the_newest_queued_messages_are_sent),
        TEST(the_watchdog_takes_one_place_in_the_queue),
        TEST(the_watchdog_is_fed_after_an_unread_message),
        TEST(queued_messages_are_sent_on_close),
        TEST(closed_service_manager_socket_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
