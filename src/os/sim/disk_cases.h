/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk_cases.h - files on a simulated disk, and their content, for tests. */
#ifndef DET_OS_SIM_DISK_CASES_H
#define DET_OS_SIM_DISK_CASES_H

#include "os/sim/shared_cases.h"

#include "base/memory.h"

#define READ_WRITE (DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE)
#define BLOCK      2048 /* four sectors */

static inline struct det_file *open_file(struct det_world *world, const char *path)
{
    struct det_file *file = NULL;

    assert_int_equal(0, det_file_open(world, path, READ_WRITE, &file));
    return file;
}

/* Creates a durable file with its name, filled with `fill`. */
static inline void make_durable(struct det_world *world, const char *path, char fill, size_t size)
{
    char data[BLOCK];

    memset(data, fill, sizeof data);
    assert_int_equal(0, det_file_replace(world, path, data, size));
}

enum content {
    CONTENT_MISSING,
    CONTENT_OLD,  /* complete, all 'o' */
    CONTENT_NEW,  /* complete, all 'n' */
    CONTENT_TORN, /* anything else */
};

static inline enum content content_of(struct det_world *world, const char *path, size_t size)
{
    size_t found, olds = 0, news = 0;
    char *data;
    int r;

    r = det_file_load(world, NULL, path, SIZE_MAX, &data, &found);
    if (r == DET_ERR_NOT_FOUND)
        return CONTENT_MISSING;
    assert_int_equal(0, r);
    for (size_t i = 0; i < found; i++) {
        olds += data[i] == 'o';
        news += data[i] == 'n';
    }
    det_free(NULL, data, found + 1);
    if (olds == size && found == size)
        return CONTENT_OLD;
    return news == size && found == size ? CONTENT_NEW : CONTENT_TORN;
}

#endif
