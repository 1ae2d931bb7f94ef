/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trust.c - finds out who may change a file or a folder that decides what runs. */
#include "terminal/trust.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/assert.h"

#define GROUPS_MAX 256

static bool is_listed(gid_t group, const gid_t *groups, int count)
{
    for (int i = 0; i < count; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* The kernel has the groups of this process's user, the user database those of others. */
static bool is_member(uid_t user, gid_t group)
{
    const struct passwd *entry;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;

    if (user == geteuid())
        return group == getegid() || is_listed(group, groups, getgroups(GROUPS_MAX, groups));
    entry = getpwuid(user); /* NOLINT(concurrency-mt-unsafe): there are no threads yet */
    if (!entry || getgrouplist(entry->pw_name, entry->pw_gid, groups, &count) < 0)
        return false;
    return is_listed(group, groups, count);
}

static bool is_group_trusted(uid_t runner, gid_t group)
{
    if (group == 0)
        return true;
    return runner != 0 && is_member(runner, group);
}

enum trust trust_of(const struct stat *status, uid_t runner)
{
    if (status->st_mode & S_IWOTH)
        return TRUST_EVERYBODY;
    if (status->st_uid != 0 && status->st_uid != runner)
        return TRUST_OWNER;
    if ((status->st_mode & S_IWGRP) && !is_group_trusted(runner, status->st_gid))
        return TRUST_GROUP;
    return TRUST_GIVEN;
}

enum trust trust_of_sticky(const struct stat *status, uid_t runner)
{
    struct stat seen = *status;

    if (S_ISDIR(seen.st_mode) && (seen.st_mode & S_ISVTX))
        seen.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
    return trust_of(&seen, runner);
}

const char *trust_who(enum trust trust)
{
    det_assert(trust == TRUST_GROUP || trust == TRUST_EVERYBODY);
    return trust == TRUST_GROUP ? "its group" : "everybody";
}

const char *trust_chmod(enum trust trust)
{
    det_assert(trust == TRUST_GROUP || trust == TRUST_EVERYBODY);
    return trust == TRUST_GROUP ? "chmod g-w" : "chmod o-w";
}
