/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_user.c - rights of another user: looked up by name before the fork, acquired after it. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/real_process.h"

#define ENTRY_SIZE 16384
#define GROUPS_MAX 65536

static int find_groups(
    struct det_real_user *user, const struct det_allocator *allocator, const char *name)
{
    int count = 32;

    for (;;) {
        user->group_capacity = (size_t)count;
        user->groups = DET_NEW_ARRAY(allocator, user->group_capacity, gid_t);
        if (!user->groups)
            return DET_ERR_NO_MEMORY;
        if (getgrouplist(name, user->group, user->groups, &count) >= 0)
            break;
        det_real_user_deinit(user, allocator);
        if (count <= (int)user->group_capacity || count > GROUPS_MAX)
            return DET_ERR_LIMIT;
    }
    user->group_count = count;
    return 0;
}

int det_real_user_init(
    struct det_real_user *user, const struct det_allocator *allocator, const char *name)
{
    char *memory = det_alloc(allocator, ENTRY_SIZE);
    struct passwd entry, *found = NULL;
    int r = 0;

    *user = (struct det_real_user){ 0 };
    if (!memory)
        return DET_ERR_NO_MEMORY;
    /* The return value is less reliable than `found`: libraries differ in what they call an
     * error. */
    (void)getpwnam_r(name, &entry, memory, ENTRY_SIZE, &found);
    if (found) {
        user->user = found->pw_uid;
        user->group = found->pw_gid;
    }
    det_free(allocator, memory, ENTRY_SIZE);
    if (!found)
        return DET_ERR_NOT_FOUND;
    if (user->user == geteuid() && user->user == getuid())
        return 0;
    r = find_groups(user, allocator, name);
    return r < 0 ? r : 1;
}

void det_real_user_deinit(struct det_real_user *user, const struct det_allocator *allocator)
{
    if (user->groups)
        DET_DELETE_ARRAY(allocator, user->groups, user->group_capacity);
    user->groups = NULL;
}

/* The C library's functions would signal all threads of the process, and the child has only one. */
int det_real_user_become(const struct det_real_user *user)
{
    if (syscall(SYS_setgroups, user->group_count, user->groups) < 0 ||
        syscall(SYS_setresgid, user->group, user->group, user->group) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, user->user, user->user, user->user);
}
