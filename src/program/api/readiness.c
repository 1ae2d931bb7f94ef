/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* readiness.c - whether this process can do its work: its store is reachable and has room on its
 * disk, and descriptors are left.
 *
 *     daemon status --> descriptors --> disk of the store (in a lane: it may hang) --> answer
 *
 * The disk is tested by allocating room in a temporary file beside the store: the free space that a
 * file system reports ignores quotas and limits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api_internal.h"
#include "daemon/daemon.h"
#include "daemon/lookups.h"
#include "os/os.h"

#define SPARE_DESCRIPTORS 8
#define SPARE_ROOM        (256 << 10)
#define SQLITE            "sqlite:"

static void write_ready(struct api_call *call, const char *why)
{
    call->status = why ? 503 : 200;
    det_buffer_clear(&call->json.text);
    call->json.needs_comma = false;
    det_json_open(&call->json, NULL, '{');
    det_json_bool(&call->json, "ready", !why);
    det_json_text(&call->json, "why", why);
    det_json_close(&call->json, '}');
}

/* Tries to allocate room in a temporary file at this path. Returns errno; 0: there is room. */
static int try_room(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int number = descriptor < 0 ? errno : 0;

    if (descriptor < 0)
        return number;
    (void)unlink(path);
    number = posix_fallocate(descriptor, 0, SPARE_ROOM);
    close(descriptor);
    return number;
}

/* In a lane. */
static void check_disk(struct api_call *call)
{
    const char *address = call->api->source.address;
    char path[DET_PATH_MAX + 32];
    int number;

    snprintf(
        path, sizeof path, "%.*s-room%ld-%u", (int)strcspn(address + strlen(SQLITE), "?"),
        address + strlen(SQLITE), (long)getpid(), call->own_number);
    number = try_room(path);
    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        write_ready(call, "the disk of the store is full");
    else if (number == EROFS)
        write_ready(call, "the disk of the store is read-only");
    else if (det_errno_is_shortage(number))
        write_ready(call, "out of file descriptors: raise the limit of open files (ulimit -n)");
    else
        write_ready(call, NULL);
}

/* The reason is for operators: `status` and the log have it. */
static void check_daemon(struct up *up, struct api_call *call)
{
    char unused[UP_UNREACHABLE_TEXT];

    if (up_store_is_unreachable(up, unused))
        write_ready(call, "the store cannot be reached");
    else if (!up_is_running(up))
        write_ready(call, up_state_name(up));
}

static void check_process(struct api_call *call)
{
    static unsigned number; /* used on the http thread only */
    const char *address = call->api->source.address;

    call->own_number = ++number;
    if (det_descriptors_are_short(SPARE_DESCRIPTORS))
        write_ready(call, "out of file descriptors: raise the limit of open files (ulimit -n)");
    else if (address && strncmp(address, SQLITE, strlen(SQLITE)) == 0) {
        api_defer(call, check_disk);
        return;
    } else
        write_ready(call, NULL);
    api_finish(call);
}

void api_readyz(struct api_call *call)
{
    api_on_daemon(call, check_daemon, check_process);
}
