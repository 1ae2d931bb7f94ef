/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_spawn.c - starts a process by posix_spawn(); or by fork() and exec, if it runs as another
 * user, ends with us, or is recorded.
 *
 * Either way the child starts with no signal blocked, every signal at its default, and no
 * descriptor but its streams. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/os.h"
#include "os/real_guard.h"
#include "os/real_process.h"

/* posix_spawn() and exec promise not to change these, but their types do not say so. */
static char *const *unconst(const char *const *strings)
{
    union {
        const char *const *in;
        char *const *out;
    } same = { .in = strings };

    return same.out;
}

/* Returns a positive errno. */
static int add_streams(posix_spawn_file_actions_t *actions, const int *streams)
{
    int r = 0;

    for (int i = 0; i < DET_SPAWN_STREAMS && !r; i++) {
        if (streams[i] < 0)
            r = posix_spawn_file_actions_addopen(
                actions, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
        else
            r = posix_spawn_file_actions_adddup2(actions, streams[i], i);
    }
    return r ? r : posix_spawn_file_actions_addclosefrom_np(actions, DET_SPAWN_STREAMS);
}

static void set_signals(posix_spawnattr_t *attributes, bool new_group)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t set;

    sigemptyset(&set);
    posix_spawnattr_setsigmask(attributes, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(attributes, &set);
    if (new_group) {
        flags |= POSIX_SPAWN_SETPGROUP;
        posix_spawnattr_setpgroup(attributes, 0);
    }
    posix_spawnattr_setflags(attributes, flags);
}

int det_real_spawn(const struct det_spawn *spawn, pid_t *ret, struct det_spawn_failure *failure)
{
    const struct det_process_options *options = spawn->options;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r;

    r = posix_spawnattr_init(&attributes);
    det_assert(r == 0);
    r = posix_spawn_file_actions_init(&actions);
    det_assert(r == 0);
    failure->stage = DET_SPAWN_US;
    r = add_streams(&actions, spawn->streams);
    if (!r && options->folder)
        r = posix_spawn_file_actions_addchdir_np(&actions, options->folder);
    if (!r) {
        failure->stage = DET_SPAWN_SOMEWHERE;
        set_signals(&attributes, options->new_group);
        r = posix_spawnp(
            ret, options->argv[0], &actions, &attributes, unconst(options->argv),
            unconst(spawn->environment));
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    failure->number = r;
    return r ? -1 : 0;
}

/* From here on: the forked child, which has only one thread. Other threads of the parent may have
 * held any lock, so it makes only system calls. */

static int open_streams(const int *streams)
{
    for (int i = 0; i < DET_SPAWN_STREAMS; i++) {
        int descriptor = streams[i];

        if (descriptor < 0)
            descriptor = open("/dev/null", i ? O_WRONLY : O_RDONLY);
        if (descriptor < 0)
            return -1;
        if (descriptor != i && dup2(descriptor, i) < 0)
            return -1;
    }
    /* The descriptor that reports a failure must stay open until the exec. */
    return close_range(DET_SPAWN_STREAMS, ~0U, CLOSE_RANGE_CLOEXEC);
}

static void reset_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &action, NULL);
    sigemptyset(&none);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a fork has one thread */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Like posix_spawnp(): runs the first executable in PATH; reports a permission error only if
 * nothing else matches. Never tries a shell. Returns only on failure. */
static void run_program(const struct det_spawn *spawn, const char *folders)
{
    const char *name = spawn->options->argv[0];
    size_t length = strlen(name);
    char path[DET_PATH_MAX];
    bool was_refused = false;

    if (memchr(name, '/', length)) {
        (void)execve(name, unconst(spawn->options->argv), unconst(spawn->environment));
        return;
    }
    errno = ENOENT;
    for (const char *end; length && folders; folders = *end ? end + 1 : NULL) {
        size_t size;

        end = strchrnul(folders, ':');
        size = (size_t)(end - folders);
        if (size + length + 2 > sizeof path)
            continue;
        memcpy(path, folders, size);
        path[size] = '/';
        memcpy(path + size + (size > 0), name, length + 1);
        (void)execve(path, unconst(spawn->options->argv), unconst(spawn->environment));
        if (errno == EACCES)
            was_refused = true;
        else if (errno != ENOENT && errno != ENOTDIR)
            return;
    }
    errno = was_refused ? EACCES : ENOENT;
}

/* Ends the child with its parent, which may already have exited. */
static int tie_to_parent(const struct det_spawn *spawn)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -1;
    if (getppid() == spawn->parent)
        return 0;
    errno = ESRCH;
    return -1;
}

static int set_limits(const struct det_process_options *options)
{
    static const int kinds[DET_LIMIT_KINDS] = {
        [DET_LIMIT_CPU] = RLIMIT_CPU,           [DET_LIMIT_MEMORY] = RLIMIT_AS,
        [DET_LIMIT_OPEN_FILES] = RLIMIT_NOFILE, [DET_LIMIT_PROCESSES] = RLIMIT_NPROC,
        [DET_LIMIT_CORE] = RLIMIT_CORE,         [DET_LIMIT_FILE_SIZE] = RLIMIT_FSIZE,
        [DET_LIMIT_STACK] = RLIMIT_STACK,
    };

    for (size_t i = 0; i < options->limit_count; i++) {
        const struct det_process_limit *limit = &options->limits[i];
        struct rlimit value = { limit->most, limit->most };

        if (setrlimit((__rlimit_resource_t)kinds[limit->kind], &value) < 0)
            return -1;
    }
    return 0;
}

static enum det_spawn_stage become_user(const struct det_spawn *spawn, const char *folders)
{
    if (spawn->options->new_group && setpgid(0, 0) < 0)
        return DET_SPAWN_US;
    if (spawn->slot && det_process_guard_record_self(spawn->slot, spawn->cgroup) < 0)
        return DET_SPAWN_US;
    if (open_streams(spawn->streams) < 0 || det_descriptors_restore() < 0)
        return DET_SPAWN_US;
    /* Before the switch of users, while limits can still be raised. */
    if (set_limits(spawn->options) < 0)
        return DET_SPAWN_LIMITS;
    if (spawn->user && det_real_user_become(spawn->user) < 0)
        return DET_SPAWN_USER;
    if (spawn->options->folder && chdir(spawn->options->folder) < 0)
        return DET_SPAWN_FOLDER;
    if (spawn->options->ends_with_us && tie_to_parent(spawn) < 0)
        return DET_SPAWN_US;
    reset_signals();
    run_program(spawn, folders);
    return DET_SPAWN_PROGRAM;
}

static _Noreturn void child_main(const struct det_spawn *spawn, const char *folders, int report)
{
    struct det_spawn_failure failure = { .stage = become_user(spawn, folders) };

    failure.number = errno;
    /* If even this write fails, the parent sees a process that exited with 127. */
    (void)!write(report, &failure, sizeof failure);
    _exit(127);
}

/* Blocks signals around the fork, so that no handler of ours runs in the child. */
static pid_t fork_quietly(void)
{
    sigset_t all, before;
    pid_t number;
    int saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = fork();
    saved = errno;
    if (number)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return number;
}

/* Opens a pipe whose write end survives the setup of the child's streams. */
static int open_report(int report[2])
{
    int high;

    if (pipe2(report, O_CLOEXEC) < 0)
        return -1;
    high = fcntl(report[1], F_DUPFD_CLOEXEC, DET_SPAWN_STREAMS);
    close(report[1]);
    report[1] = high;
    if (high >= 0)
        return 0;
    close(report[0]);
    return -1;
}

/* End of file means that the exec succeeded. */
static int read_report(int descriptor, struct det_spawn_failure *failure)
{
    ssize_t size;

    do
        size = read(descriptor, failure, sizeof *failure);
    while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof *failure ? -1 : 0;
}

struct birth {
    const struct det_spawn *spawn;
    const char *folders;
    int report;
};

static pid_t fork_child(const void *argument)
{
    const struct birth *birth = argument;
    pid_t number = fork_quietly();

    if (number == 0)
        child_main(birth->spawn, birth->folders, birth->report);
    return number;
}

int det_real_spawn_as(const struct det_spawn *spawn, pid_t *ret, struct det_spawn_failure *failure)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): as posix_spawnp() reads it */
    const char *folders = getenv("PATH");
    struct birth birth = { .spawn = spawn, .folders = folders ? folders : "/bin:/usr/bin" };
    int report[2], r;
    pid_t number;

    if (open_report(report) < 0) {
        *failure = (struct det_spawn_failure){ DET_SPAWN_US, errno };
        return -1;
    }
    birth.report = report[1];
    number = spawn->options->ends_with_us ? det_real_fork_by_forker(fork_child, &birth)
                                          : fork_child(&birth);
    *failure = (struct det_spawn_failure){ DET_SPAWN_US, errno };
    close(report[1]);
    r = number < 0 ? -1 : read_report(report[0], failure);
    close(report[0]);
    if (number > 0 && r < 0)
        while (waitpid(number, NULL, 0) < 0 && errno == EINTR)
            continue;
    *ret = number;
    return r;
}
