/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* user_change.c - becoming another user for good: groups, group, user, in this order; and keeping
 * others of that user out of our memory. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/serve.h"

static const struct passwd *find(const char *name)
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
    const struct passwd *entry = find(name);

    if (!entry)
        return DET_ERR_NOT_FOUND;
    *ret = entry->pw_uid;
    return 0;
}

/* Programs that are started later look there. */
static int tell_environment(const struct passwd *entry)
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
    const struct passwd *entry = find(name);
    char text[128];

    if (!entry)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no user '%.100s'", name);
    if (entry->pw_uid == geteuid() && entry->pw_uid == getuid())
        return 0;
    if (initgroups(entry->pw_name, entry->pw_gid) < 0 || setgid(entry->pw_gid) < 0 ||
        setuid(entry->pw_uid) < 0 || tell_environment(entry) < 0)
        return det_error_set(
            reterr, DET_ERR_REFUSED, "cannot become user '%.100s': %s", name,
            strerror_r(errno, text, sizeof text));
    if (entry->pw_uid != 0 && setuid(0) == 0)
        return det_error_set(reterr, DET_ERR_REFUSED, "the rights of root do not go away");
    return 0;
}

void serve_hide(void)
{
    /* A process is always let at its own /proc/self, and its children begin anew when they run a
     * program. */
    (void)prctl(PR_SET_DUMPABLE, 0);
}
