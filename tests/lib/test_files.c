/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_files.c - folders and files of the tests. */
#include <errno.h>
#include <ftw.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/test.h"

#define OPEN_FOLDERS_MAX 16

/* What a suite with a server of its own may need. */
#define ROOM_WANTED ((unsigned long long)1 << 30)

/* Chosen by det_test_place_use(); NULL: not chosen. */
static const char *chosen_place;

void det_test_place_use(const char *folder)
{
    chosen_place = folder;
}

const char *det_test_place(void)
{
    static const char memory[] = "/dev/shm";
    struct statvfs status;

    if (chosen_place)
        return chosen_place;
    if (access(memory, W_OK) == 0 && statvfs(memory, &status) == 0 &&
        (unsigned long long)status.f_bavail * status.f_bsize >= ROOM_WANTED)
        return memory;
    return P_tmpdir;
}

char *det_test_folder(void)
{
    char text[64];
    char *folder;

    snprintf(text, sizeof text, "%s/detent-test-XXXXXX", det_test_place());
    folder = strdup(text);
    assert_non_null(folder);
    if (mkdtemp(folder) == NULL)
        fail_msg("cannot make the folder %s: %s", folder, strerrordesc_np(errno));
    return folder;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void det_test_folder_remove(char *folder)
{
    int r;

    if (folder == NULL)
        return;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): it is unsafe only when the current folder changes. */
    r = nftw(folder, remove_entry, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
    if (r != 0)
        fail_msg("cannot remove the folder %s: %s", folder, strerrordesc_np(errno));
    free(folder);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (file == NULL)
        fail_msg("cannot open %s: %s", path, strerrordesc_np(errno));
    return file;
}

char *det_test_read_file(const char *path, size_t *ret_size)
{
    FILE *file = open_file(path, "rbe");
    size_t size = 0, capacity = 4096, count;
    char *data = malloc(capacity + 1);

    assert_non_null(data);
    while ((count = fread(data + size, 1, capacity - size, file)) > 0) {
        size += count;
        if (size == capacity) {
            capacity *= 2;
            data = realloc(data, capacity + 1);
            assert_non_null(data);
        }
    }
    assert_false(ferror(file));
    (void)fclose(file);
    data[size] = '\0';
    if (ret_size != NULL)
        *ret_size = size;
    return data;
}

void det_test_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = open_file(path, "wbe");

    if (size > 0 && fwrite(data, 1, size, file) != size)
        fail_msg("cannot write %s: %s", path, strerrordesc_np(errno));
    if (fclose(file) != 0)
        fail_msg("cannot write %s: %s", path, strerrordesc_np(errno));
}
