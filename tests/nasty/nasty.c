/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nasty.c - a process that behaves badly in the way its first argument names; a suite starts it.
 *
 * Those that go on until somebody ends them say "ready" first, or the number of the process that
 * the suite should look after, so that nobody has to wait a while and hope. Nothing here lives
 * longer than a minute. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE 60 /* seconds */

static void print(const char *text)
{
    size_t size = strlen(text);

    while (size) {
        ssize_t count = write(1, text, size);

        if (count < 0)
            _exit(9);
        text += count;
        size -= (size_t)count;
    }
}

static void print_number(long number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%ld\n", number);
    print(text);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static int do_exit(const char *argument)
{
    return (int)strtol(argument, NULL, 10);
}

static int do_raise(const char *argument)
{
    raise((int)strtol(argument, NULL, 10));
    return 1;
}

static int do_deaf(const char *argument)
{
    (void)argument;
    signal(SIGTERM, SIG_IGN);
    print("ready\n");
    wait_for_ever();
    return 0;
}

static void leave_politely(int number)
{
    (void)number;
    print("bye\n");
    _exit(7);
}

static int do_polite(const char *argument)
{
    signal(*argument ? (int)strtol(argument, NULL, 10) : SIGTERM, leave_politely);
    print("ready\n");
    wait_for_ever();
    return 0;
}

static int do_frozen(const char *argument)
{
    if (strcmp(argument, "deaf") == 0)
        signal(SIGTERM, SIG_IGN);
    print("ready\n");
    raise(SIGSTOP);
    wait_for_ever();
    return 0;
}

/* Leaves somebody behind who holds the pipes and is deaf: in the group, or in another session. That
 * one is ready before its parent ends. */
static int leave_behind(bool is_runaway, bool is_flood)
{
    static char bytes[4096];
    int ends[2];
    pid_t number;

    if (pipe(ends) < 0 || (number = fork()) < 0)
        return 9;
    if (number > 0) {
        if (read(ends[0], bytes, 1) != 1)
            return 9;
        print_number(number);
        return 0;
    }
    signal(SIGTERM, SIG_IGN);
    if (is_runaway)
        (void)setsid();
    alarm(LIFE);
    (void)!write(ends[1], bytes, 1);
    while (is_flood)
        (void)!write(2, bytes, sizeof bytes);
    wait_for_ever();
    return 0;
}

static int do_family(const char *argument)
{
    (void)argument;
    return leave_behind(false, false);
}

static int do_runaway(const char *argument)
{
    return leave_behind(true, strcmp(argument, "flood") == 0);
}

/* A tree: each forks the next, all wait; the last says that all are there. */
static int do_generations(const char *argument)
{
    long count = strtol(argument, NULL, 10);

    signal(SIGTERM, SIG_IGN);
    for (long i = 1; i < count; i++) {
        print_number(getpid());
        if (fork() > 0)
            wait_for_ever();
        alarm(LIFE);
    }
    print_number(getpid());
    wait_for_ever();
    return 0;
}

static int do_flood(const char *argument)
{
    static char bytes[65536];
    long count = strtol(argument, NULL, 10) * 16;

    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 63; i < sizeof bytes; i += 64)
        bytes[i] = '\n';
    for (long i = 0; i < count; i++)
        for (size_t done = 0; done < sizeof bytes;) {
            ssize_t size = write(1, bytes + done, sizeof bytes - done);

            if (size < 0)
                return 9;
            done += (size_t)size;
        }
    return 0;
}

static int do_print(const char *argument)
{
    print(argument);
    return 0;
}

static int do_scream(const char *argument)
{
    (void)!write(2, argument, strlen(argument));
    return 0;
}

static int do_binary(const char *argument)
{
    char bytes[256];

    (void)argument;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    return write(1, bytes, sizeof bytes) == (ssize_t)sizeof bytes ? 0 : 9;
}

/* Closes its streams, tells it through the socket, and lives on. */
static int do_silent(const char *argument)
{
    (void)argument;
    print("last words");
    close(1);
    close(2);
    wait_for_ever();
    return 0;
}

static int do_descriptors(const char *argument)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    (void)argument;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != dirfd(folder)) {
            print(entry->d_name);
            print("\n");
        }
    return 0;
}

static int do_environment(const char *argument)
{
    const char *value = getenv(argument);

    print(value ? value : "(none)");
    return 0;
}

static int do_folder(const char *argument)
{
    char path[PATH_MAX];

    (void)argument;
    print(getcwd(path, sizeof path) ? path : "(none)");
    return 0;
}

static int do_user(const char *argument)
{
    gid_t groups[64];

    (void)argument;
    print_number((long)getuid());
    print_number((long)geteuid());
    print_number((long)getgid());
    for (int i = 0, count = getgroups(64, groups); i < count; i++)
        print_number((long)groups[i]);
    return 0;
}

/* Signals that are blocked or ignored when the program begins. */
static int do_signals(const char *argument)
{
    struct sigaction action;
    sigset_t blocked;

    (void)argument;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; i++)
        if (sigismember(&blocked, i) ||
            (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL))
            print_number(i);
    return 0;
}

static int notify(const char *name, const char *message)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = name ? strlen(name) : 0;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM, 0);
    ssize_t sent;

    if (length < 2 || length >= sizeof address.sun_path || descriptor < 0)
        return 8;
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    sent = sendto(
        descriptor, message, strlen(message), 0, (struct sockaddr *)&address,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    close(descriptor);
    return sent == (ssize_t)strlen(message) ? 0 : 9;
}

static int do_notify(const char *argument)
{
    return notify(getenv("NOTIFY_SOCKET"), argument);
}

/* A helper tells the news and is gone before anybody reads them. */
static int do_notify_helper(const char *argument)
{
    pid_t number = fork();
    int status;

    if (number == 0)
        _exit(notify(getenv("NOTIFY_SOCKET"), argument));
    if (waitpid(number, &status, 0) < 0)
        return 9;
    return WEXITSTATUS(status);
}

/* Says where its socket is, and stays. */
static int do_notify_where(const char *argument)
{
    const char *name = getenv("NOTIFY_SOCKET");

    (void)argument;
    print(name ? name : "(none)");
    print("\n");
    wait_for_ever();
    return 0;
}

/* Sends a pipe along and waits until whoever reads has closed it: all before it is known then. */
static int do_barrier(const char *argument)
{
    const char *name = getenv("NOTIFY_SOCKET");
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS } };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[] = "BARRIER=1";
    struct iovec part = { .iov_base = text, .iov_len = sizeof text - 1 };
    struct msghdr message = { .msg_name = &address,
                              .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    int ends[2], descriptor = socket(AF_UNIX, SOCK_DGRAM, 0);

    if (!name || strlen(name) >= sizeof address.sun_path || descriptor < 0 || pipe(ends) < 0 ||
        notify(name, argument) != 0)
        return 8;
    memcpy(address.sun_path + 1, name + 1, strlen(name + 1));
    message.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    memcpy(CMSG_DATA(&control.head), &ends[1], sizeof ends[1]);
    if (sendmsg(descriptor, &message, 0) < 0)
        return 9;
    close(ends[1]);
    return read(ends[0], text, 1) == 0 ? 0 : 9;
}

static const struct behaviour {
    const char *name;
    int (*run)(const char *argument);
} behaviours[] = {
    { "exit", do_exit },
    { "raise", do_raise },
    { "deaf", do_deaf },
    { "polite", do_polite },
    { "frozen", do_frozen },
    { "family", do_family },
    { "runaway", do_runaway },
    { "generations", do_generations },
    { "flood", do_flood },
    { "say", do_print },
    { "scream", do_scream },
    { "binary", do_binary },
    { "silent", do_silent },
    { "descriptors", do_descriptors },
    { "environment", do_environment },
    { "folder", do_folder },
    { "user", do_user },
    { "signals", do_signals },
    { "notify", do_notify },
    { "notify-helper", do_notify_helper },
    { "notify-where", do_notify_where },
    { "barrier", do_barrier },
};

int main(int argc, char **argv)
{
    /* Not where somebody looks whether alarms are as they should be. */
    alarm(LIFE);
    for (size_t i = 0; argc > 1 && i < sizeof behaviours / sizeof *behaviours; i++)
        if (strcmp(behaviours[i].name, argv[1]) == 0)
            return behaviours[i].run(argc > 2 ? argv[2] : "");
    (void)fprintf(stderr, "nasty: no such behaviour\n");
    return 99;
}
