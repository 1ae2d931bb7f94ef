/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* notify.c - `detent notify`: reports to the supervisor that a script is ready, or its status. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "terminal/command.h"

enum { OPTION_READY };

static const struct cli_option option_table[] = {
    [OPTION_READY] = { "ready", 0, NULL, NULL, "report that the script is ready" },
    { NULL, 0, NULL, NULL, NULL },
};

/* A name that begins with @ is an abstract address: its first byte is 0. */
static bool read_address(const char *name, struct sockaddr_un *ret, socklen_t *ret_size)
{
    size_t size = strlen(name);

    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if ((*name != '@' && *name != '/') || size < 2 || size >= sizeof ret->sun_path)
        return false;
    memcpy(ret->sun_path, name, size);
    if (*name == '@')
        ret->sun_path[0] = '\0';
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    return true;
}

static int send_message(struct cli *cli, const char *name, const struct det_buffer *message)
{
    struct sockaddr_un address;
    socklen_t size;
    ssize_t count;
    int descriptor;

    if (!read_address(name, &address, &size)) {
        cli_report_error(cli, "NOTIFY_SOCKET is not the name of a socket: '%s'", name);
        return CLI_FAILURE;
    }
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    count = descriptor < 0 ? -1
                           : sendto(
                                 descriptor, message->data, message->size, MSG_NOSIGNAL,
                                 (const struct sockaddr *)&address, size);
    if (count < 0)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        cli_report_error(cli, "cannot reach NOTIFY_SOCKET: %s", strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return count < 0 ? CLI_FAILURE : CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets the environment */
    const char *name = getenv("NOTIFY_SOCKET");
    const char *status = args->operand_count ? args->operands[0] : NULL;
    bool is_ready = args->values[OPTION_READY] != NULL;
    struct det_buffer message;
    int code;

    if (!is_ready && !status) {
        cli_report_error(cli, "nothing to report: give --ready or a text");
        return CLI_USAGE;
    }
    if (status && strchr(status, '\n')) {
        cli_report_error(cli, "the text must be one line");
        return CLI_USAGE;
    }
    if (!name || !*name) {
        cli_report_error(cli, "NOTIFY_SOCKET is not set; it is set for tasks with `ready: notify`");
        return CLI_NOT_FOUND;
    }
    det_buffer_init(&message, cli->allocator);
    if (is_ready)
        det_buffer_append_text(&message, "READY=1\n");
    if (status)
        det_buffer_format(&message, "STATUS=%s\n", status);
    code = det_buffer_status(&message) < 0 ? cli_no_memory(cli) : send_message(cli, name, &message);
    det_buffer_deinit(&message);
    return code;
}

extern const struct cli_command cli_command_notify;
const struct cli_command cli_command_notify = {
    .name = "notify",
    .summary = "report to the supervisor that this script is ready",
    .about = "For scripts that are tasks with `ready: notify`: sends READY=1, a status or both\n"
             "to the socket in NOTIFY_SOCKET, like programs that implement the protocol\n"
             "themselves.",
    .operand = { .form = "[TEXT]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
