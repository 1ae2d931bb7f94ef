/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_record.c - the file that lists started processes; see docs/formats/processes.md.
 *
 * A new run creates a new file in place of the old one, which may still be mapped by a guard that
 * has not finished or by a child before its exec. An earlier record is copied, not mapped: its
 * owner may still live, and truncates it as its last action. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "os/os.h"
#include "os/real_guard.h"

/* How long to wait for a claimed slot. */
#define CLAIMED_SPAN (100 * DET_MILLISECOND)

static const char magic[8] = { 'D', 'E', 'T', 'P', 'R', 'O', 'C', '1' };

uint32_t det_process_guard_record_checksum(const struct det_process_guard_record *record)
{
    uint32_t sum = det_crc32c(0, record, offsetof(struct det_process_guard_record, checksum));

    return det_crc32c(sum, record->cgroup, sizeof record->cgroup);
}

/* Empty if it cannot be read: a service may see only processes in /proc. */
static void read_boot(char target[DET_GUARD_ID_SIZE])
{
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    memset(target, 0, DET_GUARD_ID_SIZE);
    if (file < 0)
        return;
    if (read(file, target, 36) != 36)
        memset(target, 0, DET_GUARD_ID_SIZE);
    close(file);
}

int det_process_guard_record_grow(struct det_process_guard *guard, uint32_t count)
{
    int number;

    if (count > DET_PROCESS_GUARD_MAX)
        return DET_ERR_LIMIT;
    do
        number = posix_fallocate(guard->file, 0, (off_t)DET_GUARD_SIZE(count));
    while (number == EINTR);
    if (number)
        return det_real_error(number);
    guard->allocated = count;
    return 0;
}

static int fill_header(struct det_process_guard_record *record, const char *run, int *ret_cgroup)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct det_process_guard_seen self;
    bool is_seen = proc >= 0 && det_process_guard_find(proc, getpid(), &self);

    if (proc >= 0)
        close(proc);
    if (!is_seen)
        return DET_ERR_UNSUPPORTED;
    read_boot(record->boot);
    (void)snprintf(record->run, sizeof record->run, "%s", run);
    record->owner = (uint32_t)self.number;
    record->session = (uint32_t)self.session;
    record->owner_start = self.start;
    *ret_cgroup = det_process_guard_cgroup_make(record->cgroup, run);
    memcpy(record->magic, magic, sizeof magic);
    record->checksum = det_process_guard_record_checksum(record);
    return 0;
}

static void copy_run(
    const struct det_process_guard_record *record, struct det_process_guard_run *ret)
{
    *ret = (struct det_process_guard_run){ .session = record->session,
                                           .owner_start = record->owner_start };
    memcpy(ret->name, record->run, sizeof ret->name);
    memcpy(ret->cgroup, record->cgroup, sizeof ret->cgroup);
}

static int map_new(struct det_process_guard *guard, const char *run)
{
    void *map;
    int r;

    r = det_process_guard_record_grow(guard, DET_GUARD_SLOTS_STEP);
    if (r < 0)
        return r;
    map = mmap(
        NULL, DET_GUARD_SIZE(DET_PROCESS_GUARD_MAX), PROT_READ | PROT_WRITE, MAP_SHARED,
        guard->file, 0);
    if (map == MAP_FAILED)
        return det_real_error(errno);
    guard->record = map;
    r = fill_header(guard->record, run, &guard->cgroup);
    copy_run(guard->record, &guard->run);
    return r;
}

void det_process_guard_record_close(struct det_process_guard *guard, bool is_over)
{
    if (guard->record)
        (void)munmap(guard->record, DET_GUARD_SIZE(DET_PROCESS_GUARD_MAX));
    guard->record = NULL;
    guard->count = guard->allocated = guard->free = 0;
    if (guard->cgroup >= 0)
        close(guard->cgroup);
    guard->cgroup = -1;
    if (is_over)
        (void)!ftruncate(guard->file, 0);
    close(guard->file);
    guard->file = -1;
}

int det_process_guard_record_create(struct det_process_guard *guard, const char *path)
{
    char name[DET_PATH_MAX + 8], run[33];
    uint64_t random[2];
    int r;

    det_real_random(NULL, random, sizeof random);
    (void)snprintf(
        run, sizeof run, "%016llx%016llx", (unsigned long long)random[0],
        (unsigned long long)random[1]);
    if (snprintf(name, sizeof name, "%s.new", path) >= (int)sizeof name)
        return DET_ERR_LIMIT;
    (void)unlink(name);
    guard->file = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (guard->file < 0)
        return det_real_error(errno);
    r = fchmod(guard->file, 0600) < 0 ? det_real_error(errno) : map_new(guard, run);
    if (r == 0)
        r = det_real_file_rename(&guard->world.world, name, path);
    if (r < 0) {
        if (guard->record && guard->record->cgroup[0])
            (void)det_process_guard_cgroup_remove(guard->record->cgroup);
        det_process_guard_record_close(guard, true);
        (void)unlink(name);
    }
    return r;
}

/* Returns true if the file was last written before this machine booted. */
static bool is_of_another_boot(const struct stat *status)
{
    struct timespec wall, up;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    return status->st_mtim.tv_sec < wall.tv_sec - up.tv_sec - 1;
}

static bool is_valid(const struct det_process_guard_record *record)
{
    return memcmp(record->magic, magic, sizeof magic) == 0 &&
           record->checksum == det_process_guard_record_checksum(record) &&
           !record->boot[DET_GUARD_ID_SIZE - 1] && strnlen(record->run, sizeof record->run) == 32 &&
           !record->cgroup[DET_GUARD_CGROUP_SIZE - 1];
}

/* If one of the boot ids is unknown, the time of the file decides. */
static bool is_same_boot(const struct det_process_guard_record *record, const struct stat *status)
{
    char boot[DET_GUARD_ID_SIZE];

    read_boot(boot);
    return *boot && *record->boot ? strcmp(record->boot, boot) == 0 : !is_of_another_boot(status);
}

/* Returns false if the file has become shorter. */
static bool copy_file(int file, void *target, size_t size)
{
    size_t used = 0;
    ssize_t count = 1;

    while (used < size && count > 0) {
        count = pread(file, (char *)target + used, size - used, (off_t)used);
        if (count > 0)
            used += (size_t)count;
        else if (count < 0 && errno == EINTR)
            count = 1;
    }
    return used == size;
}

static bool has_claimed(const struct det_process_guard_record *record, size_t size)
{
    size_t most = (size - sizeof *record) / sizeof *record->slots;

    for (size_t i = 0; i < record->count && i < most; i++)
        if (record->slots[i].state == DET_GUARD_CLAIMED)
            return true;
    return false;
}

/* A child whose parent was killed fills its slot shortly before its exec; one that was never forked
 * never does. Returns false if the file has become shorter. */
static bool await_claimed(int file, struct det_process_guard_record *record, size_t size)
{
    det_time until = det_real_now(NULL, DET_CLOCK_MONOTONIC) + CLAIMED_SPAN;
    struct timespec rest = det_real_timespec(DET_MILLISECOND);

    while (has_claimed(record, size) && det_real_now(NULL, DET_CLOCK_MONOTONIC) < until) {
        (void)nanosleep(&rest, NULL);
        if (!copy_file(file, record, size))
            return false;
    }
    return true;
}

static int load_file(
    int file, const struct stat *status, struct det_process_guard_run *ret_run,
    struct det_process_guard_record **ret, size_t *ret_size)
{
    size_t size = (size_t)status->st_size;
    struct det_process_guard_record *record;
    int r = 0;

    if (size == 0)
        return 0;
    if (!S_ISREG(status->st_mode) || size < sizeof *record)
        return is_of_another_boot(status) ? 0 : DET_ERR_CORRUPT;
    record = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (record == MAP_FAILED)
        return det_real_error(errno);
    if (!copy_file(file, record, size))
        r = 0; /* its owner has just ended; nothing is left */
    else if (!is_valid(record))
        r = is_of_another_boot(status) ? 0 : DET_ERR_CORRUPT;
    else if (is_same_boot(record, status)) {
        copy_run(record, ret_run);
        if (await_claimed(file, record, size)) {
            *ret = record;
            *ret_size = size;
            return 0;
        }
    }
    (void)munmap(record, size);
    return r;
}

int det_process_guard_record_load(
    const char *path, struct det_process_guard_run *ret_run, struct det_process_guard_record **ret,
    size_t *ret_size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r = DET_ERR_IO;
    struct stat status;

    *ret = NULL;
    if (file < 0)
        return errno == ENOENT ? 0 : det_real_error(errno);
    if (fstat(file, &status) == 0)
        r = load_file(file, &status, ret_run, ret, ret_size);
    close(file);
    return r;
}

void det_process_guard_record_unload(struct det_process_guard_record *record, size_t size)
{
    if (record)
        (void)munmap(record, size);
}
