/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_output.c - writes lines of the log as far as the descriptor takes them. */
#include "cli/log_output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <detent/base.h>

static int error_of(int number)
{
    if (number == EAGAIN)
        return DET_ERR_BUSY;
    return number == ENOSPC || number == EDQUOT ? DET_ERR_NO_SPACE : DET_ERR_IO;
}

static bool is_ready(int descriptor)
{
    struct pollfd asked = { .fd = descriptor, .events = POLLOUT };

    return poll(&asked, 1, 0) == 1 && (asked.revents & (POLLOUT | POLLERR | POLLNVAL)) != 0;
}

/* How many bytes got out, of PIPE_BUF at most; or an error. */
static int write_some(int descriptor, const char *data, size_t size)
{
    ssize_t count;

    if (!is_ready(descriptor))
        return DET_ERR_BUSY;
    do
        count = write(descriptor, data, size < PIPE_BUF ? size : PIPE_BUF);
    while (count < 0 && errno == EINTR);
    return count < 0 ? error_of(errno) : (int)count;
}

int log_output_write(void *user, const char *line, size_t size)
{
    struct log_output *output = user;
    size_t sent = 0;
    int r;

    if (output->is_torn) {
        r = write_some(output->descriptor, "\n", 1);
        if (r < 0)
            return r;
        output->is_torn = false;
    }
    while (sent < size) {
        r = write_some(output->descriptor, line + sent, size - sent);
        if (r < 0) {
            output->is_torn = sent > 0;
            return r;
        }
        sent += (size_t)r;
    }
    return 0;
}
