/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* files.c - the folder of one run: stores, and the input of children. It is on a disk unless the
 * caller chooses otherwise, since a sync in memory is free. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "bench.h"
#include "lib/test.h"

static const char *place = "/var/tmp";
static char folder[BENCH_PATH_MAX];

void bench_place_use(const char *chosen)
{
    place = chosen;
    det_test_place_use(chosen);
}

const char *bench_place(void)
{
    return place;
}

const char *bench_file_system(void)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } known[] = {
        { 0xEF53, "ext4" },
        { 0x58465342, "xfs" },
        { 0x9123683E, "btrfs" },
        { 0x794C7630, "overlay" },
        { 0x2FC12FC1, "zfs" },
        { 0x01021994, "tmpfs: in memory, not on a disk" },
        { 0x858458F6, "ramfs: in memory, not on a disk" },
    };
    struct statfs status;

    if (statfs(place, &status) < 0)
        return "unknown";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if ((uint32_t)status.f_type == known[i].magic)
            return known[i].name;
    }
    return "unknown";
}

static int folder_make(void)
{
    if (folder[0])
        return 0;
    (void)snprintf(folder, sizeof folder, "%s/detent-bench.XXXXXX", place);
    if (mkdtemp(folder))
        return 0;
    folder[0] = '\0';
    return DET_ERR_IO;
}

int bench_file_write(const char *name, const void *data, size_t size, char *path)
{
    FILE *file;
    bool is_written;

    if (folder_make() < 0)
        return DET_ERR_IO;
    (void)snprintf(path, BENCH_PATH_MAX, "%.400s/%.100s", folder, name);
    file = fopen(path, "we");
    if (!file)
        return DET_ERR_IO;
    is_written = fwrite(data, 1, size, file) == size;
    is_written = fclose(file) == 0 && is_written;
    return is_written ? 0 : DET_ERR_IO;
}

int bench_folder_make(const char *name, char *path)
{
    if (folder_make() < 0)
        return DET_ERR_IO;
    (void)snprintf(path, BENCH_PATH_MAX, "%.400s/%.100s", folder, name);
    if (mkdir(path, 0700) == 0)
        return 0;
    return errno == EEXIST ? DET_ERR_EXISTS : DET_ERR_IO;
}

char *bench_file_read(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "re");
    struct stat status;
    char *data = NULL;

    if (!file)
        return NULL;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode))
        data = malloc((size_t)status.st_size + 1);
    if (data) {
        *ret_size = fread(data, 1, (size_t)status.st_size, file);
        data[*ret_size] = '\0';
    }
    (void)fclose(file);
    return data;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *depth)
{
    (void)status;
    (void)kind;
    (void)depth;
    (void)remove(path);
    return 0;
}

void bench_folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void bench_files_remove(void)
{
    if (folder[0])
        bench_folder_remove(folder);
    folder[0] = '\0';
}
