/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* files.c - the folder of one run: what children are given to read lies there. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bench.h"

static char folder[64];

static int folder_make(void)
{
    char pattern[] = "/tmp/detent-bench.XXXXXX";

    if (folder[0])
        return 0;
    if (!mkdtemp(pattern))
        return DET_ERR_IO;
    (void)snprintf(folder, sizeof folder, "%s", pattern);
    return 0;
}

int bench_file_write(const char *name, const void *data, size_t size, char *path)
{
    FILE *file;
    bool is_written;

    if (folder_make() < 0)
        return DET_ERR_IO;
    (void)snprintf(path, BENCH_PATH_MAX, "%s/%s", folder, name);
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
    (void)snprintf(path, BENCH_PATH_MAX, "%s/%s", folder, name);
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

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void bench_files_remove(void)
{
    if (folder[0])
        (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    folder[0] = '\0';
}
