/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* module_file.c - checks the owner and the mode of a module's file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config/module_internal.h"
#include "os/os.h"
#include "terminal/trust.h"

int module_fail(struct det_error *reterr, const char *path)
{
    char text[128];

    return det_error_set(
        reterr, errno == ENOENT ? DET_ERR_NOT_FOUND : DET_ERR_IO, "%.200s: %s", path,
        strerror_r(errno, text, sizeof text));
}

static int check_rights(const struct stat *status, const char *path, struct det_error *reterr)
{
    enum trust trust = trust_of_sticky(status, geteuid());

    if (trust == TRUST_GIVEN)
        return 0;
    if (trust == TRUST_OWNER)
        return det_error_set(
            reterr, DET_ERR_REFUSED,
            "%.200s belongs to another user, and a module runs with the rights of detent", path);
    return det_error_set(
        reterr, DET_ERR_REFUSED,
        "%.200s: %s may write to it, and a module runs with the rights of detent; run %s on it",
        path, trust_who(trust), trust_chmod(trust));
}

int module_open_file(const char *path, int *ret, struct stat *ret_status, struct det_error *reterr)
{
    char folder[DET_PATH_MAX];
    struct stat status;
    int descriptor, r;

    if (det_file_folder(path, folder) < 0 || stat(folder, &status) < 0)
        return module_fail(reterr, path);
    r = check_rights(&status, folder, reterr);
    if (r < 0)
        return r;
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 || fstat(descriptor, ret_status) < 0)
        r = module_fail(reterr, path);
    else if (!S_ISREG(ret_status->st_mode))
        r = det_error_set(reterr, DET_ERR_INVALID, "%.200s: is not a file", path);
    else
        r = check_rights(ret_status, path, reterr);
    if (r < 0 && descriptor >= 0)
        close(descriptor);
    else
        *ret = descriptor;
    return r;
}

int module_check(const char *path, struct det_error *reterr)
{
    int descriptor = -1, r;
    struct stat status;

    r = module_open_file(path, &descriptor, &status, reterr);
    if (r == 0)
        close(descriptor);
    return r;
}
