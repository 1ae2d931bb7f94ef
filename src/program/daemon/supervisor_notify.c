/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervisor_notify.c - sends datagrams to the service manager, in the protocol of systemd.
 *
 * A timer on the loop feeds the watchdog, so a hanging loop triggers it. WATCHDOG=1 is not sent
 * while the last one is unread: the queue of the socket is short (net.unix.max_dgram_qlen, 10 by
 * default), and other messages need the room. Since the time at which the service manager reads a
 * message counts, a skipped message does no harm. */
#include <detent/driver/loop.h>
#include <detent/driver/world.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/host.h"

#define FAREWELL_MS 1000

/* Abstract names, which start with @, have no file: their first byte is 0. */
static int connect_to(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t size = strlen(name);
    int descriptor;

    if ((*name != '@' && *name != '/') || size < 2 || size >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, name, size);
    if (*name == '@')
        address.sun_path[0] = '\0';
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    if (connect(
            descriptor, (const struct sockaddr *)&address,
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

void serve_notify_open(struct serve_notify *notify)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet */
    const char *name = getenv("NOTIFY_SOCKET");
    uint64_t span = serve_environment_number("WATCHDOG_USEC");
    uint64_t number = serve_environment_number("WATCHDOG_PID");
    bool is_ours = !number || number == (uint64_t)getpid();

    *notify = (struct serve_notify){ .descriptor = name ? connect_to(name) : -1 };
    if (notify->descriptor >= 0 && is_ours && span <= (uint64_t)(DET_DAY / DET_MICROSECOND))
        notify->watchdog = (det_time)span * DET_MICROSECOND / 2;
}

/* False: the socket is full. If the service manager is gone, the message is discarded. */
static bool send_message(const struct serve_notify *notify, const char *message)
{
    return send(notify->descriptor, message, strlen(message), MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void drop_oldest(struct serve_notify *notify)
{
    notify->kept_count--;
    memmove(notify->kept[0], notify->kept[1], notify->kept_count * sizeof notify->kept[0]);
}

static void send_kept(struct serve_notify *notify)
{
    while (notify->kept_count && send_message(notify, notify->kept[0]))
        drop_oldest(notify);
    if (!notify->kept_count && notify->loop)
        det_loop_unwatch(notify->loop, &notify->room);
}

static void on_room(void *argument, unsigned events)
{
    (void)events;
    send_kept(argument);
}

static void keep_message(struct serve_notify *notify, const char *message)
{
    if (notify->kept_count == SERVE_NOTIFY_KEPT)
        drop_oldest(notify);
    det_text_copy(notify->kept[notify->kept_count++], SERVE_NOTIFY_TEXT, message);
    /* Out of memory for the watch, the next message or the end sends it. */
    if (notify->loop)
        (void)!det_loop_watch(notify->loop, &notify->room, DET_POLL_WRITE);
}

void serve_notify_send(struct serve_notify *notify, const char *format, ...)
{
    char message[SERVE_NOTIFY_TEXT];
    va_list arguments;
    int size;

    if (notify->descriptor < 0)
        return;
    va_start(arguments, format);
    size = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (size <= 0 || size >= (int)sizeof message)
        return;
    notify->is_fed = false;
    send_kept(notify);
    if (notify->kept_count || !send_message(notify, message))
        keep_message(notify, message);
}

/* True if the service manager has not read all our messages. */
static bool has_unread(const struct serve_notify *notify)
{
    int bytes = 0;

    return notify->kept_count || (ioctl(notify->descriptor, SIOCOUTQ, &bytes) == 0 && bytes > 0);
}

static void feed_watchdog(void *argument)
{
    struct serve_notify *notify = argument;

    if (!notify->is_fed || !has_unread(notify))
        serve_notify_send(notify, "WATCHDOG=1");
    notify->is_fed = true;
    /* Out of memory for the timer, the watchdog ends detent, as intended. */
    (void)!det_loop_timer_set(
        notify->loop, &notify->timer, det_loop_now(notify->loop) + notify->watchdog);
}

int serve_notify_watch(struct serve_notify *notify, struct det_loop *loop)
{
    if (notify->descriptor < 0)
        return 0;
    notify->loop = loop;
    notify->room = (struct det_watch){
        .run = on_room,
        .argument = notify,
        .descriptor = notify->descriptor,
    };
    if (!notify->watchdog)
        return 0;
    notify->timer = (struct det_timer){ .run = feed_watchdog, .argument = notify };
    return det_loop_timer_set(loop, &notify->timer, det_loop_now(loop));
}

void serve_notify_close(struct serve_notify *notify)
{
    struct pollfd room = { .fd = notify->descriptor, .events = POLLOUT };

    send_kept(notify);
    if (notify->kept_count && poll(&room, 1, FAREWELL_MS) == 1)
        send_kept(notify);
    if (notify->loop) {
        det_loop_timer_cancel(notify->loop, &notify->timer);
        det_loop_unwatch(notify->loop, &notify->room);
    }
    if (notify->descriptor >= 0)
        close(notify->descriptor);
    *notify = (struct serve_notify){ .descriptor = -1 };
}
