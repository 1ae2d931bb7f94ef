/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_spawn_error.c - why a process did not start, told with what helps.
 *
 * The kernel gives one number for many reasons: ENOENT may be the program, its folder, or the
 * interpreter that a script names. So it looks again, after the fact. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_process.h"

/* How much of a name or of PATH is told: the remedy must still fit behind it. */
#define NAME   "%.64s"
#define FOLDER "%.96s"

static const char *reason_of(int number)
{
    const char *text = strerrordesc_np(number);

    return text ? text : "unknown error";
}

/* errno of the folder, or 0 when it is a folder that may be entered. */
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

static int tell_folder(
    const struct det_process_options *options, int number, struct det_error *error)
{
    return det_error_set(
        error, det_real_error(number),
        "cannot start \"" NAME "\" in the folder " FOLDER
        ": %s; make the folder, or name another one",
        options->argv[0], options->folder, reason_of(number));
}

static int tell_absent(const char *name, struct det_error *error)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): as posix_spawnp() reads it */
    const char *path = getenv("PATH");

    if (strchr(name, '/') == NULL)
        return det_error_set(
            error, DET_ERR_NOT_FOUND,
            "cannot start \"" NAME "\": there is no such program in PATH (" FOLDER
            "); install it, or give its path",
            name, path ? path : "not set");
    if (access(name, F_OK) == 0)
        return det_error_set(
            error, DET_ERR_NOT_FOUND,
            "cannot start \"" FOLDER "\": it is there, but not the interpreter or loader that it "
            "names; look at its first line",
            name);
    return det_error_set(
        error, DET_ERR_NOT_FOUND,
        "cannot start \"" FOLDER "\": there is no such file; give the path of a program", name);
}

/* Whether a folder of PATH has such a file: a folder that may not be entered is told as if it were
 * the program, also where there is none. */
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

static int tell_refused(const char *name, int number, struct det_error *error)
{
    struct stat status;

    if (strchr(name, '/') == NULL && !is_in_path(name))
        return tell_absent(name, error);
    if (strchr(name, '/') && stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        return det_error_set(
            error, DET_ERR_IO, "cannot start \"" FOLDER "\": it is a folder; give a program", name);
    return det_error_set(
        error, DET_ERR_IO,
        "cannot start \"" FOLDER
        "\": %s: it may not be executed by this user; chmod +x it, and look "
        "at the folders on its way",
        name, reason_of(number));
}

static int tell_user(const struct det_process_options *options, int number, struct det_error *error)
{
    return det_error_set(
        error, det_real_error(number),
        "cannot start \"" NAME "\" as the user " NAME ": %s: only root, or a process with "
        "CAP_SETUID and CAP_SETGID, may change users; run this as root, or leave the user out",
        options->argv[0], options->user, reason_of(number));
}

static int tell_program(
    const struct det_process_options *options, int number, struct det_error *error)
{
    const char *name = options->argv[0], *remedy;

    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return tell_absent(name, error);
    case EACCES:
    case EPERM:
        return tell_refused(name, number, error);
    case ENOEXEC:
        remedy = "a script needs #! and its interpreter as its first line";
        break;
    case E2BIG:
        remedy = "give fewer or shorter arguments and variables";
        break;
    case EAGAIN:
        remedy = "too many processes run: raise the limit (ulimit -u), or run fewer";
        break;
    case EMFILE:
    case ENFILE:
        remedy = "raise the limit of open files (ulimit -n)";
        break;
    default:
        remedy = "see whether it starts from a shell";
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

/* Whether a limit that the process has of its own explains this: then nothing is short here, and to
 * wait does not help. */
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
        return tell_user(options, number, error);
    case DET_SPAWN_LIMITS:
        return det_error_set(
            error, det_real_error(number),
            "cannot start \"" NAME "\": its limits cannot be set: %s: only root may raise one "
            "above that of this process (ulimit -H); choose lower ones",
            options->argv[0], reason_of(number));
    case DET_SPAWN_FOLDER:
        return tell_folder(options, number, error);
    case DET_SPAWN_SOMEWHERE:
        if (options->folder && folder_errno(options->folder))
            return tell_folder(options, folder_errno(options->folder), error);
        break;
    case DET_SPAWN_US:
    case DET_SPAWN_PROGRAM:
        break;
    }
    return tell_program(options, number, error);
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
