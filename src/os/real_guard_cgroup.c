/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_cgroup.c - a cgroup of a run, below that of this program.
 *
 * No process leaves a cgroup by itself, and one write to cgroup.kill ends all of them, including
 * those that have cleared their environment and left their session. One is created only with
 * version 2 of cgroups, and if systemd has delegated the cgroup to us or does not run here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_guard.h"

#define CGROUP2_MAGIC 0x63677270

static bool is_cgroup2(const char *path)
{
    struct statfs status;

    return statfs(path, &status) == 0 && status.f_type == CGROUP2_MAGIC;
}

/* Returns the path below the root of the hierarchy, from the line "0::/path" of
 * /proc/self/cgroup. */
static bool read_own(char *target, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[DET_PATH_MAX];
    bool is_found = false;

    if (!file)
        return false;
    while (!is_found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        is_found = strncmp(line, "0::/", 4) == 0 &&
                   snprintf(target, size, "%s", line[4] ? line + 3 : "") < (int)size;
    }
    (void)fclose(file);
    return is_found;
}

static bool is_delegated(const char *path)
{
    char value = 0;

    if (access("/run/systemd/system", F_OK) < 0)
        return true;
    return (getxattr(path, "user.delegate", &value, 1) == 1 ||
            getxattr(path, "trusted.delegate", &value, 1) == 1) &&
           value == '1';
}

static int open_in(const char *path, const char *name)
{
    char whole[DET_GUARD_CGROUP_SIZE + 32];

    (void)snprintf(whole, sizeof whole, "%s/%s", path, name);
    return open(whole, O_WRONLY | O_CLOEXEC);
}

int det_process_guard_cgroup_make(char path[DET_GUARD_CGROUP_SIZE], const char *run)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    char own[256], whole[DET_GUARD_CGROUP_SIZE];
    const char *root = is_cgroup2(roots[0]) ? roots[0] : roots[1];
    int descriptor, kill;

    memset(path, 0, DET_GUARD_CGROUP_SIZE);
    if (!is_cgroup2(root) || !read_own(own, sizeof own))
        return -1;
    (void)snprintf(whole, sizeof whole, "%s%s", root, own);
    if (!is_delegated(whole))
        return -1;
    (void)snprintf(whole, sizeof whole, "%s%s/detent-%s", root, own, run);
    if (mkdir(whole, 0700) < 0)
        return -1;
    descriptor = open_in(whole, "cgroup.procs");
    kill = open_in(whole, "cgroup.kill");
    if (kill >= 0)
        close(kill);
    if (descriptor >= 0 && kill >= 0) {
        memcpy(path, whole, strlen(whole));
        return descriptor;
    }
    if (descriptor >= 0)
        close(descriptor);
    (void)rmdir(whole);
    return -1;
}

/* Called by the helper: only system calls. */

void det_process_guard_cgroup_kill(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int descriptor = folder < 0 ? -1 : openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC);

    if (descriptor >= 0) {
        (void)!write(descriptor, "1", 1);
        close(descriptor);
    }
    if (folder >= 0)
        close(folder);
}

bool det_process_guard_cgroup_remove(const char *path)
{
    return rmdir(path) == 0 || errno != EBUSY;
}
