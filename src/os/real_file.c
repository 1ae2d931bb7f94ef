/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_file.c - files of the real world: positioned reads and writes, and durability. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "os/real.h"

#define FILE_MODE   0600
#define FOLDER_MODE 0750

struct det_file {
    int descriptor;
    bool is_locked;
};

/* Returns true if the kernel can represent the offsets of the range. */
static bool range_is_valid(uint64_t offset, size_t size)
{
    return offset <= INT64_MAX && size <= INT64_MAX - offset;
}

static int open_retried(const char *path, int flags)
{
    int descriptor;

    do
        descriptor = open(path, flags | O_CLOEXEC, FILE_MODE);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

static int native_flags(unsigned flags)
{
    int native = O_RDONLY;

    if (flags & DET_FILE_WRITE)
        native = flags & DET_FILE_READ ? O_RDWR : O_WRONLY;
    if (flags & DET_FILE_CREATE)
        native |= O_CREAT;
    if (flags & DET_FILE_EXCLUSIVE)
        native |= O_EXCL;
    if (flags & DET_FILE_NO_LINK)
        native |= O_NOFOLLOW;
    return native;
}

int det_real_file_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    const struct det_allocator *allocator = det_real_allocator(world);
    struct det_file *file;

    det_assert(flags & (DET_FILE_READ | DET_FILE_WRITE));
    file = DET_NEW(allocator, struct det_file);
    if (!file)
        return DET_ERR_NO_MEMORY;
    file->descriptor = open_retried(path, native_flags(flags));
    if (file->descriptor < 0) {
        int r = det_real_error(errno);

        DET_DELETE(allocator, file);
        return r;
    }
    *ret = file;
    return 0;
}

void det_real_file_close(struct det_world *world, struct det_file *file)
{
    /* A forked process that has not called exec yet shares the lock. */
    if (file->is_locked)
        (void)flock(file->descriptor, LOCK_UN);
    /* Linux closes the descriptor even if close() is interrupted or reports an old error. */
    close(file->descriptor);
    DET_DELETE(det_real_allocator(world), file);
}

int64_t det_real_file_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size)
{
    char *bytes = target;
    size_t done = 0;

    (void)world;
    if (!range_is_valid(offset, size))
        return DET_ERR_INVALID;
    while (done < size) {
        ssize_t count = pread(file->descriptor, bytes + done, size - done, (off_t)(offset + done));

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return det_real_error(errno);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (int64_t)done;
}

int det_real_file_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    const char *bytes = data;

    (void)world;
    if (!range_is_valid(offset, size))
        return DET_ERR_INVALID;
    while (size) {
        ssize_t count = pwrite(file->descriptor, bytes, size, (off_t)offset);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return det_real_error(errno);
        bytes += count;
        offset += (uint64_t)count;
        size -= (size_t)count;
    }
    return 0;
}

int det_real_file_sync(struct det_world *world, struct det_file *file)
{
    int r;

    (void)world;
    /* Only an interrupted call is repeated: after any other error the kernel may have dropped the
     * dirty pages and marked them clean, and a second call would lie. */
    do
        r = fdatasync(file->descriptor);
    while (r < 0 && errno == EINTR);
    return r < 0 ? det_real_error(errno) : 0;
}

int det_real_file_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    int r;

    (void)world;
    if (!range_is_valid(size, 0))
        return DET_ERR_INVALID;
    do
        r = ftruncate(file->descriptor, (off_t)size);
    while (r < 0 && errno == EINTR);
    return r < 0 ? det_real_error(errno) : 0;
}

int64_t det_real_file_size(struct det_world *world, struct det_file *file)
{
    struct stat status;

    (void)world;
    if (fstat(file->descriptor, &status) < 0)
        return det_real_error(errno);
    return status.st_size;
}

int det_real_file_rename(struct det_world *world, const char *from, const char *to)
{
    (void)world;
    return rename(from, to) < 0 ? det_real_error(errno) : 0;
}

int det_real_file_remove(struct det_world *world, const char *path)
{
    (void)world;
    return unlink(path) < 0 ? det_real_error(errno) : 0;
}

int det_real_folder_sync(struct det_world *world, const char *path)
{
    int descriptor, r;

    (void)world;
    descriptor = open_retried(path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0)
        return det_real_error(errno);
    do
        r = fsync(descriptor);
    while (r < 0 && errno == EINTR);
    r = r < 0 ? det_real_error(errno) : 0;
    close(descriptor);
    return r;
}

int det_real_folder_make(struct det_world *world, const char *path)
{
    (void)world;
    return mkdir(path, FOLDER_MODE) < 0 ? det_real_error(errno) : 0;
}

int det_real_file_lock(struct det_world *world, struct det_file *file)
{
    int r;

    (void)world;
    do
        r = flock(file->descriptor, LOCK_EX | LOCK_NB);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno == EWOULDBLOCK)
        return DET_ERR_BUSY;
    file->is_locked = r == 0;
    return r < 0 ? det_real_error(errno) : 0;
}

/* Limits of the read-ahead of a file that was dropped from memory: a file that does not fit is not
 * read as a whole. The kernel handles one window per request. */
#define AHEAD_MAX    ((int64_t)1 << 30)
#define AHEAD_TIME   (400 * DET_MILLISECOND)
#define AHEAD_WINDOW (128 << 10)

static int64_t ahead_max(const struct det_file *file)
{
    int64_t pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t half = pages > 0 && page > 0 ? pages * page / 2 : 0;
    int64_t most = half < AHEAD_MAX ? half : AHEAD_MAX;
    struct stat status;

    if (fstat(file->descriptor, &status) < 0)
        return 0;
    return status.st_size < most ? status.st_size : most;
}

/* Reads dropped pages again in one pass, in the background: reading single pages on demand takes
 * many times as long. */
void det_real_file_forget(struct det_world *world, struct det_file *file)
{
    int64_t most;
    det_time end;

    (void)posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_DONTNEED);
    most = ahead_max(file);
    end = det_real_now(world, DET_CLOCK_MONOTONIC) + AHEAD_TIME;
    for (int64_t at = 0; at < most && det_real_now(world, DET_CLOCK_MONOTONIC) < end;
         at += AHEAD_WINDOW)
        (void)posix_fadvise(file->descriptor, at, AHEAD_WINDOW, POSIX_FADV_WILLNEED);
}

/* Only the administrator can change the owner of a file, and only the owner its mode. A failure is
 * not an error: a file system may have no owners, a container may not be allowed to change them,
 * and root can use the file unchanged. `detent doctor` reports it. */
void det_real_file_share(struct det_world *world, struct det_file *file, const char *path)
{
    struct stat status;
    int r = 0;

    (void)world;
    if (stat(path, &status) < 0)
        return;
    if (geteuid() == 0)
        r = fchown(file->descriptor, status.st_uid, status.st_gid);
    if (r == 0 && !S_ISDIR(status.st_mode))
        (void)fchmod(file->descriptor, (status.st_mode & 0666) | 0600);
}

/* FUSE is not listed: any file system may be below it. */
bool det_real_filesystem_is_remote(int64_t type)
{
    static const uint32_t remote[] = {
        0x6969u,     /* nfs */
        0xFF534D42u, /* cifs */
        0xFE534D42u, /* smb2 */
        0x517Bu,     /* smb */
        0x00C36400u, /* ceph */
        0x5346414Fu, /* afs */
        0x6B414653u, /* afs of the kernel */
        0x73757245u, /* coda */
        0x564Cu,     /* ncp */
        0x0BD00BD0u, /* lustre */
        0x01021997u, /* 9p */
    };

    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++) {
        if ((uint32_t)type == remote[i])
            return true;
    }
    return false;
}

bool det_real_path_is_remote(struct det_world *world, const char *path)
{
    char folder[DET_PATH_MAX];
    struct statfs status;

    (void)world;
    if (statfs(path, &status) == 0)
        return det_real_filesystem_is_remote(status.f_type);
    if (det_file_folder(path, folder) < 0 || statfs(folder, &status) < 0)
        return false;
    return det_real_filesystem_is_remote(status.f_type);
}

int64_t det_real_self_number(struct det_world *world)
{
    (void)world;
    return getpid();
}
