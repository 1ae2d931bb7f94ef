/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_place.c - the path of the local socket, and creating it.
 *
 * Invariants
 *   1. Only the holder of the lock removes or creates the socket.
 *   2. The socket has its mode before it has its name.
 *   3. No other user can put another socket into the folder: only this user may write to it.
 *
 * The name of a unix socket has at most 108 bytes, and a folder may have more: the socket is opened
 * through the folder's descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "config/project_file.h"
#include "config/socket_place.h"
#include "os/os.h"
#include "terminal/input.h"

#define BACKLOG         64
#define CONNECT_SECONDS 5
/* A process killed while it forks leaves the lock open in the child until that calls exec or
 * exits. */
#define LOCK_TRIES    50
#define LOCK_AGAIN_MS 20

static int fail_errno(struct det_error *reterr, const char *project, const char *what)
{
    int cause = errno;
    int code = cause == ENOMEM ? DET_ERR_NO_MEMORY : DET_ERR_IO;

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    code = det_error_set(reterr, code, "%.200s: %s: %s", project, what, strerror(cause));
    if (reterr)
        reterr->cause = cause;
    return code;
}

/* Returns true if the folder, `length` bytes of `path`, has a detent.yaml. */
static bool is_project(const char *path, size_t length)
{
    char file[DET_PATH_MAX];
    int size = snprintf(file, sizeof file, "%.*s/" CONFIG_FILE_NAME, (int)length, path);

    return size < (int)sizeof file && cli_is_there(file) && !cli_is_folder(file);
}

static bool has_state(const char *folder)
{
    char path[DET_PATH_MAX];

    return snprintf(path, sizeof path, "%s/" SOCKET_FOLDER, folder) < (int)sizeof path &&
           cli_is_folder(path) && config_folder_has_specs(folder);
}

/* A file in a folder above must be trusted, since its commands run: every user may write to a
 * folder such as /tmp. A link counts as owned by its creator. */
static int check_owner(const char *project, struct det_error *reterr)
{
    char file[DET_PATH_MAX + sizeof CONFIG_FILE_NAME + 1];
    struct stat status;

    snprintf(file, sizeof file, "%s/" CONFIG_FILE_NAME, project[1] ? project : "");
    if (lstat(file, &status) < 0)
        return fail_errno(reterr, file, "cannot be read");
    if (socket_is_allowed(status.st_uid, geteuid()))
        return 0;
    return det_error_set(
        reterr, DET_ERR_REFUSED, "%.200s belongs to another user; go to its folder if you trust it",
        file);
}

int socket_find(const char *from, char *target, struct det_error *reterr)
{
    char *path = realpath(from, NULL);
    size_t length = path ? strlen(path) : 0, whole = length;
    bool is_found = false;

    if (!path)
        return fail_errno(reterr, from, "cannot be read");
    while (!is_found && length > 0 && length < DET_PATH_MAX) {
        is_found = is_project(path, length);
        if (!is_found)
            while (length > 0 && path[--length] != '/')
                ;
    }
    /* The root is the slash itself. */
    is_found = is_found || is_project("/", 0);
    if (is_found)
        snprintf(target, DET_PATH_MAX, "%.*s", length ? (int)length : 1, length ? path : "/");
    /* A project without a file is where a detent ran before. */
    if (!is_found && has_state(path)) {
        snprintf(target, DET_PATH_MAX, "%s", path);
        length = whole;
        is_found = true;
    }
    free(path);
    det_assert(!is_found || *target == '/');
    if (!is_found)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "there is no " CONFIG_FILE_NAME " here or in a folder above; go to your "
            "project, or begin one with 'detent new NAME'");
    return length < whole ? check_owner(target, reterr) : 0;
}

static struct sockaddr_un address_in(int folder, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int length =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);

    det_assert(folder >= 0 && length < (int)sizeof address.sun_path);
    return address;
}

static int open_folder(const char *project, bool may_make)
{
    char path[DET_PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/" SOCKET_FOLDER, project);

    if (size >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (may_make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return -1;
    return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A folder that others may write to would let them replace the socket. */
static int check_folder(const char *project, int folder, struct det_error *reterr)
{
    struct stat status;

    if (fstat(folder, &status) < 0)
        return fail_errno(reterr, project, "cannot inspect " SOCKET_FOLDER);
    if ((status.st_uid == geteuid() || geteuid() == 0) && (status.st_mode & 022) == 0)
        return 0;
    return det_error_set(
        reterr, DET_ERR_REFUSED,
        "%.200s/" SOCKET_FOLDER " belongs to another user, or others may write to it; remove it",
        project);
}

/* A new socket connected to the one in the folder; -1 with errno, EAGAIN when the other one lets
 * too many wait. */
static int connect_in(int folder, const char *name)
{
    static const struct timeval patience = { .tv_sec = CONNECT_SECONDS };
    struct sockaddr_un address = address_in(folder, name);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int cause;

    if (descriptor < 0)
        return -1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
        connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    cause = errno;
    close(descriptor);
    errno = cause;
    return -1;
}

static int fail_running(struct det_error *reterr, const char *project)
{
    return det_error_set(
        reterr, DET_ERR_EXISTS, "%.200s: a detent is running here already; `detent stop` ends it",
        project);
}

static bool try_lock(int lock)
{
    for (int i = 1; flock(lock, LOCK_EX | LOCK_NB) < 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return false;
        (void)poll(NULL, 0, LOCK_AGAIN_MS);
    }
    return true;
}

/* Admits one process; the kernel releases the lock when the process ends. */
static int take_lock(
    const char *project, struct socket_listener *listener, struct det_error *reterr)
{
    listener->lock =
        openat(listener->folder, SOCKET_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (listener->lock < 0)
        return fail_errno(reterr, project, "cannot make " SOCKET_FOLDER "/" SOCKET_LOCK_NAME);
    if (try_lock(listener->lock))
        return 0;
    return errno == EWOULDBLOCK ? fail_running(reterr, project)
                                : fail_errno(reterr, project, "cannot lock");
}

/* Removes the socket of a killed process. Without working locks, a process that still answers is
 * found here. */
static int remove_stale(
    const char *project, const struct socket_listener *listener, struct det_error *reterr)
{
    int other = connect_in(listener->folder, SOCKET_NAME);

    det_assert(listener->lock >= 0 && listener->descriptor < 0);
    if (other >= 0)
        close(other);
    if (other >= 0 || errno == EAGAIN)
        return fail_running(reterr, project);
    if (unlinkat(listener->folder, SOCKET_NAME, 0) < 0 && errno != ENOENT)
        return fail_errno(reterr, project, "cannot remove the old socket");
    return 0;
}

static int bind_socket(
    const char *project, struct socket_listener *listener, struct det_error *reterr)
{
    struct sockaddr_un address = address_in(listener->folder, SOCKET_NAME);

    listener->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->descriptor < 0 || fchmod(listener->descriptor, 0600) < 0 ||
        bind(listener->descriptor, (const struct sockaddr *)&address, sizeof address) < 0)
        return fail_errno(reterr, project, "cannot create the socket");
    if (listen(listener->descriptor, BACKLOG) < 0)
        return fail_errno(reterr, project, "cannot listen");
    return 0;
}

static void close_all(struct socket_listener *listener)
{
    int *descriptors[] = { &listener->descriptor, &listener->lock, &listener->folder };

    /* A process that was forked and has not called exec yet holds the lock with us. */
    if (listener->lock >= 0)
        (void)flock(listener->lock, LOCK_UN);
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        if (*descriptors[i] >= 0)
            close(*descriptors[i]);
        *descriptors[i] = -1;
    }
}

int socket_listen(const char *project, struct socket_listener *ret, struct det_error *reterr)
{
    struct socket_listener listener = { .lock = -1, .descriptor = -1 };
    int r;

    listener.folder = open_folder(project, true);
    if (listener.folder < 0)
        return fail_errno(reterr, project, "cannot create the folder " SOCKET_FOLDER);
    r = check_folder(project, listener.folder, reterr);
    if (r == 0)
        r = take_lock(project, &listener, reterr);
    if (r == 0)
        r = remove_stale(project, &listener, reterr);
    if (r == 0)
        r = bind_socket(project, &listener, reterr);
    if (r < 0)
        close_all(&listener);
    else
        *ret = listener;
    return r;
}

void socket_unlisten(struct socket_listener *listener)
{
    det_assert(listener->folder >= 0 && listener->lock >= 0 && listener->descriptor >= 0);
    unlinkat(listener->folder, SOCKET_NAME, 0);
    close_all(listener);
}

static int fail_foreign(struct det_error *reterr, const char *project)
{
    return det_error_set(
        reterr, DET_ERR_REFUSED, "%.200s: the detent that runs here belongs to another user",
        project);
}

/* The listener reads what a command sends, command lines for example. */
int socket_check_peer(const char *project, int descriptor, struct det_error *reterr)
{
    uid_t peer = 0;
    int r = socket_peer(descriptor, &peer);

    if (r < 0)
        return fail_errno(reterr, project, "cannot identify the process that listens");
    return socket_is_trusted(peer, geteuid()) ? 0 : fail_foreign(reterr, project);
}

static int fail_connect(const char *project, int cause, struct det_error *reterr)
{
    if (cause == ENOENT || cause == ECONNREFUSED)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%.200s: no detent is running here; start it with `detent up`", project);
    if (cause == EACCES || cause == EPERM)
        return fail_foreign(reterr, project);
    if (cause == EAGAIN)
        return det_error_set(
            reterr, DET_ERR_TIMEOUT, "%.200s: the detent that runs here does not answer", project);
    errno = cause;
    return fail_errno(reterr, project, "cannot connect");
}

/* `folder` is -1, with errno, when it is not there. */
static int connect_to(
    const char *project, const char *name, int folder, int *ret, struct det_error *reterr)
{
    int descriptor = folder < 0 ? -1 : connect_in(folder, name);
    int r;

    if (descriptor < 0)
        return fail_connect(project, errno, reterr);
    r = socket_check_peer(project, descriptor, reterr);
    if (r < 0)
        close(descriptor);
    else
        *ret = descriptor;
    return r;
}

int socket_connect(const char *project, int *ret, struct det_error *reterr)
{
    int folder = open_folder(project, false);
    int r = connect_to(project, SOCKET_NAME, folder, ret, reterr);

    if (folder >= 0)
        close(folder);
    return r;
}

int socket_reach(const char *project, int *ret_folder, char *target, struct det_error *reterr)
{
    int folder = open_folder(project, false), descriptor;
    int r = connect_to(project, SOCKET_NAME, folder, &descriptor, reterr);

    if (r < 0 && folder >= 0)
        close(folder);
    if (r < 0)
        return r;
    close(descriptor);
    *ret_folder = folder;
    (void)det_text_copy(target, SOCKET_PATH_TEXT, address_in(folder, SOCKET_NAME).sun_path);
    return 0;
}

int socket_peer(int descriptor, uid_t *ret)
{
    struct ucred credentials;
    socklen_t size = sizeof credentials;

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        return DET_ERR_IO;
    *ret = credentials.uid;
    return 0;
}
