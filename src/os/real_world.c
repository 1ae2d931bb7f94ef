/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_world.c - Linux as a world: the table of operations, clocks, random numbers and errors. */
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include "base/assert.h"
#include "os/real.h"

static const struct det_world_ops operations = {
    .version = DET_WORLD_VERSION,
    .name = "real",
    .now = det_real_now,
    .random = det_real_random,
    .thread_start = det_real_thread_start,
    .thread_join = det_real_thread_join,
    .thread_self = det_real_thread_self,
    .mutex_open = det_real_mutex_open,
    .mutex_close = det_real_mutex_close,
    .mutex_lock = det_real_mutex_lock,
    .mutex_unlock = det_real_mutex_unlock,
    .condition_open = det_real_condition_open,
    .condition_close = det_real_condition_close,
    .condition_wait = det_real_condition_wait,
    .condition_signal = det_real_condition_signal,
    .condition_broadcast = det_real_condition_broadcast,
    .poller_open = det_real_poller_open,
    .poller_close = det_real_poller_close,
    .poller_watch = det_real_poller_watch,
    .poller_wait = det_real_poller_wait,
    .poller_wake = det_real_poller_wake,
    .poller_descriptor = det_real_poller_descriptor,
    .file_open = det_real_file_open,
    .file_close = det_real_file_close,
    .file_read = det_real_file_read,
    .file_write = det_real_file_write,
    .file_sync = det_real_file_sync,
    .file_truncate = det_real_file_truncate,
    .file_size = det_real_file_size,
    .file_rename = det_real_file_rename,
    .file_remove = det_real_file_remove,
    .folder_sync = det_real_folder_sync,
    .folder_make = det_real_folder_make,
    .file_lock = det_real_file_lock,
    .file_forget = det_real_file_forget,
    .file_share = det_real_file_share,
    .path_is_remote = det_real_path_is_remote,
    .self_number = det_real_self_number,
    .process_start = det_real_process_start,
    .process_kill = det_real_process_kill,
    .process_wait = det_real_process_wait,
    .process_number = det_real_process_number,
    .process_descriptor = det_real_process_descriptor,
    .process_stream = det_real_process_stream,
    .process_read = det_real_process_read,
    .process_close = det_real_process_close,
};

int det_real_error(int number)
{
    switch (number) {
    case ENOMEM:
        return DET_ERR_NO_MEMORY;
    case EINVAL:
    case ENAMETOOLONG:
        return DET_ERR_INVALID;
    case ENOENT:
        return DET_ERR_NOT_FOUND;
    case EEXIST:
        return DET_ERR_EXISTS;
    case ENOSPC:
    case EDQUOT:
        return DET_ERR_NO_SPACE;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return DET_ERR_LIMIT;
    default:
        return DET_ERR_IO;
    }
}

struct timespec det_real_timespec(det_time time)
{
    return (struct timespec){
        .tv_sec = (time_t)(time / DET_SECOND),
        .tv_nsec = (long)(time % DET_SECOND),
    };
}

det_time det_real_now(struct det_world *world, enum det_clock clock)
{
    static const clockid_t ids[] = {
        [DET_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
        [DET_CLOCK_BOOT] = CLOCK_BOOTTIME,
        [DET_CLOCK_WALL] = CLOCK_REALTIME,
        [DET_CLOCK_TICK] = CLOCK_MONOTONIC_COARSE,
    };
    struct timespec now;
    int r;

    (void)world;
    r = clock_gettime(ids[clock], &now);
    det_assert(r == 0);
    return (det_time)now.tv_sec * DET_SECOND + now.tv_nsec;
}

void det_real_random(struct det_world *world, void *target, size_t size)
{
    char *at = target;

    (void)world;
    while (size) {
        ssize_t count = getrandom(at, size, 0);

        /* A large request may be interrupted; no other failure is possible. */
        det_assert(count > 0 || errno == EINTR);
        if (count <= 0)
            continue;
        at += count;
        size -= (size_t)count;
    }
}

struct det_world *det_world_real(void)
{
    /* Never written; not const because other worlds change the operations of theirs. */
    static struct det_real_world shared = { .world = { .ops = &operations } };

    return &shared.world;
}
