/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_spawn_error.c - explains why a process did not start, with a remedy.
 *
 * The kernel returns one number for many causes: ENOENT may be the program, its folder, or the
 * interpreter that a script names. So this file examines them after the failure. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_process.h"

/* Length limit of a name or of PATH in a message, so that the remedy still fits. */
#define NAME   "%.64s"
#define FOLDER "%.96s"

static const char *reason_of(int number)
{
    const char *text = strerrordesc_np(number);

    return text ? text : "unknown error";
}

/* Returns the errno of the folder, or 0 if it can be entered. */
static int folder_errno(const char *folder)
{
    int descriptor = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), number = 0;

    if (descriptor < 0)
        return errno;
    if (faccessat(descriptor, ".", X_OK, AT_EACCESS) < 0)
        number = errno;
    close(descriptor);
    return number;
}

static int explain_folder(
    const struct det_process_options *options, int number, struct det_error *error)
{
    return det_error_set(
        error, det_real_error(number),
        "cannot start \"" NAME "\" in the folder " FOLDER
        ": %s; create the folder, or name another one",
        options->argv[0], options->folder, reason_of(number));
}

static int explain_absent(const char *name, struct det_error *error)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): as posix_spawnp() reads it */
    const char *path = getenv("PATH");

    if (strchr(name, '/') == NULL)
        return det_error_set(
            error, DET_ERR_NOT_FOUND,
            "cannot start \"" NAME "\": no such program in PATH (" FOLDER
            "); install it, or give its path",
            name, path ? path : "not set");
    if (access(name, F_OK) == 0)
        return det_error_set(
            error, DET_ERR_NOT_FOUND,
            "cannot start \"" FOLDER
            "\": the interpreter or loader that it names does not exist; check its first line",
            name);
    return det_error_set(
        error, DET_ERR_NOT_FOUND,
        "cannot start \"" FOLDER "\": no such file; give the path of a program", name);
}

/* Returns true if a folder of PATH has such a file. A folder that may not be entered is reported as
 * if it were the program. */
static bool is_in_path(const char *name)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): as posix_spawnp() reads it */
    const char *folders = getenv("PATH");
    char path[DET_PATH_MAX];

    while (folders) {
        const char *end = strchrnul(folders, ':');
        int length = snprintf(path, sizeof path, "%.*s/%s", (int)(end - folders), folders, name);

        if (length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0)
            return true;
        folders = *end ? end + 1 : NULL;
    }
    return false;
}

static int explain_refused(const char *name, int number, struct det_error *error)
{
    struct stat status;

    if (strchr(name, '/') == NULL && !is_in_path(name))
        return explain_absent(name, error);
    if (strchr(name, '/') && stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        return det_error_set(
            error, DET_ERR_IO, "cannot start \"" FOLDER "\": it is a directory; give a program",
            name);
    return det_error_set(
        error, DET_ERR_IO,
        "cannot start \"" FOLDER "\": %s: this user may not execute it; run chmod +x, and check "
        "the permissions of its folders",
        name, reason_of(number));
}

static int explain_user(
    const struct det_process_options *options, int number, struct det_error *error)
{
    return det_error_set(
        error, det_real_error(number),
        "cannot start \"" NAME "\" as user " NAME
        ": %s: only root, or a process with CAP_SETUID and CAP_SETGID, may change users; run as "
        "root, or remove the user",
        options->argv[0], options->user, reason_of(number));
}

static int explain_program(
    const struct det_process_options *options, int number, struct det_error *error)
{
    const char *name = options->argv[0], *remedy;

    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return explain_absent(name, error);
    case EACCES:
    case EPERM:
        return explain_refused(name, number, error);
    case ENOEXEC:
        remedy = "the first line of a script must be #! and its interpreter";
        break;
    case E2BIG:
        remedy = "pass fewer or shorter arguments and variables";
        break;
    case EAGAIN:
        remedy = "too many processes: raise the limit (ulimit -u), or run fewer";
        break;
    case EMFILE:
    case ENFILE:
        remedy = "raise the limit of open files (ulimit -n)";
        break;
    default:
        remedy = "try to start it from a shell";
        break;
    }
    return det_error_set(
        error, det_real_error(number), "cannot start \"" FOLDER "\": %s; %s", name,
        reason_of(number), remedy);
}

static bool has_limit(const struct det_process_options *options, enum det_limit_kind kind)
{
    for (size_t i = 0; i < options->limit_count; i++)
        if (options->limits[i].kind == kind)
            return true;
    return false;
}

/* Returns true if the process's own limits explain the failure: then the machine is not short of
 * anything, and waiting does not help. */
static bool is_own_limit(
    const struct det_process_options *options, const struct det_spawn_failure *failure)
{
    if (failure->stage != DET_SPAWN_USER && failure->stage != DET_SPAWN_FOLDER &&
        failure->stage != DET_SPAWN_PROGRAM)
        return false;
    switch (failure->number) {
    case EAGAIN:
        return has_limit(options, DET_LIMIT_PROCESSES);
    case ENOMEM:
        return has_limit(options, DET_LIMIT_MEMORY) || has_limit(options, DET_LIMIT_STACK);
    case EMFILE:
        return has_limit(options, DET_LIMIT_OPEN_FILES);
    default:
        return false;
    }
}

static int report_failure(
    const struct det_process_options *options, const struct det_spawn_failure *failure,
    struct det_error *error)
{
    int number = failure->number;

    if (is_own_limit(options, failure))
        return det_error_set(
            error, DET_ERR_IO,
            "cannot start \"" FOLDER "\" within its own limits: %s; raise the limit of %s",
            options->argv[0], reason_of(number),
            number == EAGAIN   ? "processes"
            : number == ENOMEM ? "memory or stack"
                               : "open files");
    switch (failure->stage) {
    case DET_SPAWN_USER:
        return explain_user(options, number, error);
    case DET_SPAWN_LIMITS:
        return det_error_set(
            error, det_real_error(number),
            "cannot start \"" NAME "\": cannot set its limits: %s: only root may raise a limit "
            "above that of this process (ulimit -H); choose lower ones",
            options->argv[0], reason_of(number));
    case DET_SPAWN_FOLDER:
        return explain_folder(options, number, error);
    case DET_SPAWN_SOMEWHERE:
        if (options->folder && folder_errno(options->folder))
            return explain_folder(options, folder_errno(options->folder), error);
        break;
    case DET_SPAWN_US:
    case DET_SPAWN_PROGRAM:
        break;
    }
    return explain_program(options, number, error);
}

int det_real_spawn_error(
    const struct det_process_options *options, const struct det_spawn_failure *failure,
    struct det_error *reterr)
{
    struct det_error error;

    (void)report_failure(options, failure, &error);
    if (error.code == DET_ERR_IO)
        error.cause = failure->number;
    if (reterr)
        *reterr = error;
    return error.code;
}
