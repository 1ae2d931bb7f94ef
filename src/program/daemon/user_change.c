/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* user_change.c - changes the user permanently: supplementary groups, group, user, in this order;
 * and protects our memory from other processes of that user. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/host.h"

static const struct passwd *find_entry(const char *name)
{
    uint64_t number;

    /* NOLINTBEGIN(concurrency-mt-unsafe): there are no threads yet */
    if (det_parse_u64(det_view_text(name), &number) == 0 && number <= INT32_MAX)
        return getpwuid((uid_t)number);
    return getpwnam(name);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

int serve_find_user(const char *name, uid_t *ret)
{
    const struct passwd *entry = find_entry(name);

    if (!entry)
        return DET_ERR_NOT_FOUND;
    *ret = entry->pw_uid;
    return 0;
}

/* For programs that are started later. */
static int set_environment(const struct passwd *entry)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): there are no threads yet */
    return setenv("HOME", entry->pw_dir, 1) < 0 || setenv("USER", entry->pw_name, 1) < 0 ||
                   setenv("LOGNAME", entry->pw_name, 1) < 0
               ? -1
               : 0;
    /* NOLINTEND(concurrency-mt-unsafe) */
}

int serve_become(const char *name, struct det_error *reterr)
{
    const struct passwd *entry = find_entry(name);
    char text[128];

    if (!entry)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no user '%.100s'", name);
    if (entry->pw_uid == geteuid() && entry->pw_uid == getuid())
        return 0;
    if (initgroups(entry->pw_name, entry->pw_gid) < 0 || setgid(entry->pw_gid) < 0 ||
        setuid(entry->pw_uid) < 0 || set_environment(entry) < 0)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "cannot change to user '%.100s': %s", name,
            strerror_r(errno, text, sizeof text));
    if (entry->pw_uid != 0 && setuid(0) == 0)
        return det_error_set(reterr, DET_ERR_REFUSED, "root privileges could not be dropped");
    return 0;
}

void serve_hide(void)
{
    /* A process can always read its own /proc/self. Children become dumpable again when they
     * execute a program. */
    (void)prctl(PR_SET_DUMPABLE, 0);
}
