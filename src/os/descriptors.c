/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptors.c - the descriptor limit of this process: raised at start, restored for its children.
 *
 * Programs that use select(), or that close every possible descriptor, expect the usual soft limit;
 * so a child gets the limit that this process was started with. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_process.h"

#define RAISED_MAX (1u << 20)
#define PROBE_MAX  16u

static atomic_ullong soft_before; /* 0: it was not raised */

bool det_errno_is_shortage(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == EAGAIN;
}

bool det_error_is_shortage(int error)
{
    return error == DET_ERR_NO_MEMORY || (error == DET_ERR_LIMIT && det_descriptors_are_short(1));
}

void det_descriptors_raise(void)
{
    struct rlimit limit;
    rlim_t before;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= RAISED_MAX)
        return;
    before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < RAISED_MAX ? limit.rlim_max : RAISED_MAX;
    if (limit.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        atomic_store(&soft_before, before);
}

bool det_descriptors_are_raised(void)
{
    return atomic_load(&soft_before) != 0;
}

int det_descriptors_restore(void)
{
    unsigned long long before = atomic_load(&soft_before);
    struct rlimit limit;

    if (!before)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -1;
    limit.rlim_cur = before < limit.rlim_max ? before : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t det_descriptors_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 1024 : limit.rlim_cur;
}

bool det_descriptors_are_short(unsigned count)
{
    int opened[PROBE_MAX];
    unsigned have = 0;
    bool is_short = false;

    while (have < count && have < PROBE_MAX && !is_short) {
        opened[have] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        is_short = opened[have] < 0 && det_errno_is_shortage(errno);
        if (opened[have] < 0)
            break;
        have++;
    }
    while (have > 0)
        close(opened[--have]);
    return is_short;
}
