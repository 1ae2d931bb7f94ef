/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_watch.c - watches files by inotify. */
#include "connectors/file_watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/memory.h"
#include "connectors/waker.h"
#include "os/os.h"

#define WRITES  (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
#define ENTRIES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
#define LOOK    DET_SECOND

struct file_watch {
    const struct det_allocator *allocator;
    struct waker *waker;
    int inotify;      /* -1: not available */
    int file, folder; /* of inotify; -1: none */
    bool is_partial;  /* something could not be watched */
};

int file_watch_open(struct det_stage_call *call, struct file_watch **ret)
{
    struct file_watch *watch = DET_NEW(call->allocator, struct file_watch);
    int r;

    if (!watch)
        return DET_ERR_NO_MEMORY;
    watch->allocator = call->allocator;
    watch->file = watch->folder = -1;
    watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->is_partial = watch->inotify < 0;
    r = watch->inotify < 0 ? 0 : waker_open(call, &watch->waker);
    if (r < 0) {
        file_watch_close(watch);
        return r;
    }
    *ret = watch;
    return 0;
}

void file_watch_close(struct file_watch *watch)
{
    if (!watch)
        return;
    waker_close(watch->waker);
    if (watch->inotify >= 0)
        (void)close(watch->inotify);
    DET_DELETE(watch->allocator, watch);
}

/* Returns false if the path exists, but cannot be watched. */
static bool replace_watch(struct file_watch *watch, int *number, const char *path, uint32_t mask)
{
    int before = *number;
    bool is_good;

    *number = inotify_add_watch(watch->inotify, path, mask);
    is_good = *number >= 0 || errno == ENOENT;
    if (before >= 0 && before != *number)
        (void)inotify_rm_watch(watch->inotify, before);
    return is_good;
}

void file_watch_file(struct file_watch *watch, const char *path)
{
    char folder[DET_PATH_MAX];

    watch->is_partial = watch->inotify < 0 || det_file_folder(path, folder) < 0;
    if (watch->is_partial)
        return;
    watch->is_partial = !replace_watch(watch, &watch->folder, folder, ENTRIES) ||
                        !replace_watch(watch, &watch->file, path, WRITES) || watch->folder < 0;
}

void file_watch_folder(struct file_watch *watch, const char *path)
{
    watch->is_partial = watch->inotify < 0 ||
                        !replace_watch(watch, &watch->folder, path, ENTRIES | IN_MODIFY) ||
                        watch->folder < 0;
}

void file_watch_arm(struct file_watch *watch, struct det_stage_call *call)
{
    char events[4096];

    if (watch->is_partial)
        det_stage_wake_at(call, det_world_now(call->world, DET_CLOCK_MONOTONIC) + LOOK);
    if (watch->inotify < 0)
        return;
    while (read(watch->inotify, events, sizeof events) > 0)
        ;
    waker_arm(watch->waker, watch->inotify, POLLIN);
}
