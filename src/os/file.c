/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file.c - whole files: atomic replacement, and loading. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "os/os.h"

int det_file_folder(const char *path, char *target)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;

    if (!*path || length >= DET_PATH_MAX)
        return DET_ERR_INVALID;
    /* Consecutive slashes count as one; at the start they all belong to the root. */
    while (length && path[length - 1] == '/')
        length--;
    if (length == 0) {
        length = 1;
        path = slash ? "/" : ".";
    }
    memcpy(target, path, length);
    target[length] = 0;
    return 0;
}

static int temporary_path(const char *path, char *target)
{
    int length = snprintf(target, DET_PATH_MAX, "%s.tmp", path);

    return length < 0 || length >= DET_PATH_MAX ? DET_ERR_INVALID : 0;
}

static int write_and_sync(
    struct det_world *world, struct det_file *file, const void *data, size_t size)
{
    int r;

    /* A crash may have left a longer file. */
    r = det_file_truncate(world, file, 0);
    if (r < 0)
        return r;
    r = det_file_write(world, file, 0, data, size);
    if (r < 0)
        return r;
    return det_file_sync(world, file);
}

static int write_new(struct det_world *world, const char *path, const void *data, size_t size)
{
    struct det_file *file;
    int r;

    r = det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file);
    if (r < 0)
        return r;
    r = write_and_sync(world, file, data, size);
    det_file_close(world, file);
    return r;
}

int det_file_replace(struct det_world *world, const char *path, const void *data, size_t size)
{
    char temporary[DET_PATH_MAX], folder[DET_PATH_MAX];
    int r;

    world = det_world_or_real(world);
    r = temporary_path(path, temporary);
    if (r < 0)
        return r;
    r = det_file_folder(path, folder);
    if (r < 0)
        return r;
    r = write_new(world, temporary, data, size);
    if (r == 0)
        r = world->ops->file_rename(world, temporary, path);
    if (r < 0) {
        /* Tidiness only: the next replace would overwrite it. */
        (void)det_file_remove(world, temporary);
        return r;
    }
    return det_folder_sync(world, folder);
}

int det_file_rename(struct det_world *world, const char *from, const char *to)
{
    return det_world_or_real(world)->ops->file_rename(world, from, to);
}

/* A file that shrinks during the read is BUSY: another process writes it. */
static int load_opened(
    struct det_world *world, const struct det_allocator *allocator, struct det_file *file,
    size_t limit, char **ret, size_t *ret_size)
{
    int64_t size = det_file_size(world, file), count;
    char *data;

    if (size < 0)
        return (int)size;
    if ((uint64_t)size > limit)
        return DET_ERR_LIMIT;
    data = det_alloc(allocator, (size_t)size + 1);
    if (!data)
        return DET_ERR_NO_MEMORY;
    count = det_file_read(world, file, 0, data, (size_t)size);
    if (count != size) {
        det_free(allocator, data, (size_t)size + 1);
        return count < 0 ? (int)count : DET_ERR_BUSY;
    }
    data[size] = 0;
    *ret = data;
    *ret_size = (size_t)size;
    return 0;
}

int det_file_load(
    struct det_world *world, const struct det_allocator *allocator, const char *path, size_t limit,
    char **ret, size_t *ret_size)
{
    struct det_file *file;
    int r;

    world = det_world_or_real(world);
    r = det_file_open(world, path, DET_FILE_READ, &file);
    if (r < 0)
        return r;
    r = load_opened(world, allocator, file, limit, ret, ret_size);
    det_file_close(world, file);
    return r;
}
