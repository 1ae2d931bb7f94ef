/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server.c - private servers of peers, on loopback or a socket in the folder of this run. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS INT64_C(10000000000)
#define PAUSE_NS    1000000

extern char **environ;

int bench_server_folder(struct bench_server *server, const char *name)
{
    static unsigned count;
    char unique[64];

    (void)snprintf(unique, sizeof unique, "%.40s-%u", name, ++count);
    return bench_folder_make(unique, server->folder);
}

unsigned bench_server_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port = 0;

    if (probe >= 0 && bind(probe, (struct sockaddr *)&address, size) == 0 &&
        getsockname(probe, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (probe >= 0)
        (void)close(probe);
    return port;
}

static bool accepts_at_port(unsigned port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_open =
        probe >= 0 && connect(probe, (const struct sockaddr *)&address, sizeof address) == 0;

    if (probe >= 0)
        (void)close(probe);
    return is_open;
}

static bool accepts_at_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int probe;
    bool is_open;

    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    is_open = probe >= 0 && connect(probe, (const struct sockaddr *)&address, sizeof address) == 0;
    if (probe >= 0)
        (void)close(probe);
    return is_open;
}

static int spawn_server(struct bench_server *server, const char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(
        &server->process, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
        environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0)
        return 0;
    server->process = 0;
    return error == ENOENT ? DET_ERR_UNSUPPORTED : DET_ERR_IO;
}

int bench_server_start(
    struct bench_server *server, const char *const *arguments, unsigned port, const char *path)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    int64_t deadline = bench_now_ns() + PATIENCE_NS;
    int r;

    r = spawn_server(server, arguments);
    if (r < 0)
        return r;
    while (port ? !accepts_at_port(port) : !accepts_at_path(path)) {
        if (waitpid(server->process, NULL, WNOHANG) == server->process) {
            server->process = 0;
            return DET_ERR_CLOSED;
        }
        if (bench_now_ns() > deadline) {
            bench_server_stop(server);
            return DET_ERR_TIMEOUT;
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

void bench_server_stop(struct bench_server *server)
{
    if (server->process > 0) {
        (void)kill(server->process, SIGKILL);
        (void)waitpid(server->process, NULL, 0);
        server->process = 0;
    }
    if (server->folder[0])
        bench_folder_remove(server->folder);
    server->folder[0] = '\0';
}
