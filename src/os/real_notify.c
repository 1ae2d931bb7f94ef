/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_notify.c - the notify socket of a process, as systemd defines it: READY=1.
 *
 * The kernel chooses its name, which is not a file, so nothing is left over. Any process of the
 * machine may send to it; the kernel identifies the sender, and only the process and its group are
 * accepted. The helper of a script has often exited before its message is read, and then its group
 * is unknown: in that case the user must match, which is not weaker, since that user could also
 * make the process itself send it. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/real_process.h"

/* Messages of other senders that one read skips. */
#define STRANGERS_MAX 8

static int bind_anywhere(int descriptor, char variable[DET_NOTIFY_VARIABLE_SIZE])
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t size = sizeof address;
    const int yes = 1;
    size_t length;

    /* Without a name the kernel assigns a free one: a 0 byte and five letters. */
    if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof address.sun_family) < 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &size) < 0)
        return -1;
    length = size - offsetof(struct sockaddr_un, sun_path);
    det_assert(length > 1 && length < DET_NOTIFY_VARIABLE_SIZE - sizeof DET_NOTIFY_VARIABLE);
    (void)snprintf(
        variable, DET_NOTIFY_VARIABLE_SIZE, "%s@%.*s", DET_NOTIFY_VARIABLE, (int)length - 1,
        address.sun_path + 1);
    return 0;
}

int det_real_notify_open(char variable[DET_NOTIFY_VARIABLE_SIZE])
{
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

    if (descriptor >= 0 && bind_anywhere(descriptor, variable) == 0)
        return descriptor;
    r = det_real_error(errno);
    if (descriptor >= 0)
        close(descriptor);
    return r;
}

static bool is_expected(const struct ucred *sender, const struct det_notify_sender *expected)
{
    pid_t group;

    if (sender->pid <= 0)
        return false;
    if (sender->pid == expected->number)
        return true;
    group = getpgid(sender->pid);
    if (group < 0)
        return sender->uid == expected->user;
    return expected->is_group && group == expected->number;
}

/* The buffer has room for the sender only, which the kernel puts first: it closes descriptors sent
 * along, which is all that BARRIER=1 requires. */
static struct ucred sender_of(struct msghdr *message)
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    struct ucred sender = { .pid = 0 };

    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS)
        memcpy(&sender, CMSG_DATA(part), sizeof sender);
    return sender;
}

/* Returns the size of a message, 0 for one that is ignored, or -1 with errno. */
static ssize_t receive_message(
    int descriptor, const struct det_notify_sender *expected, void *target, size_t size)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = { .iov_base = target, .iov_len = size };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct ucred sender;
    ssize_t count;

    do
        count = recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return -1;
    sender = sender_of(&message);
    return is_expected(&sender, expected) && !(message.msg_flags & MSG_TRUNC) ? count : 0;
}

int64_t det_real_notify_read(
    int descriptor, const struct det_notify_sender *expected, void *target, size_t size)
{
    for (int i = 0; i < STRANGERS_MAX; i++) {
        ssize_t count = receive_message(descriptor, expected, target, size);

        if (count > 0)
            return count;
        if (count < 0)
            return errno == EAGAIN ? DET_ERR_BUSY : det_real_error(errno);
    }
    return DET_ERR_BUSY;
}
