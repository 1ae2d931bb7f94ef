/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* host.h - the parts of a daemon: its project, the checks before its start, its sockets, its user,
 * and messages to the supervisor that started it.
 *
 * Root privileges end as soon as no step needs them:
 *
 *     read and check the file -> check safety -> bind sockets -> change user -> state, store, tasks
 */
#ifndef DET_DAEMON_HOST_H
#define DET_DAEMON_HOST_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "config/project_file.h"

/* The option of `up` and `serve`. */
#define SERVE_OPTION_LISTEN                                                           \
    {                                                                                 \
        "listen", 'l', "ADDRESS", NULL,                                               \
            "addresses of the HTTP API, such as 127.0.0.1:7788, with commas, or none" \
    }

/* project_place.c */

/* Finds the project of the working directory, as an absolute path of DET_PATH_MAX bytes: that of
 * socket_find(), or the directory itself if it has specs. */
DET_MUST_CHECK int serve_project(char *target, struct det_error *reterr);
/* The folder `.detent` of the project, which may not exist yet. */
DET_MUST_CHECK int serve_state_folder(char *target, struct det_error *reterr);
/* Changes to the folder that the operand names: it contains a slash, is `.` or `..`, or is a folder
 * while the working directory has no project. Sets `*ret` to whether it is a folder.
 * DET_ERR_NOT_FOUND: no such folder, or no project in it. */
DET_MUST_CHECK int serve_enter(const char *operand, bool *ret, struct det_error *reterr);
/* Changes to a folder. */
DET_MUST_CHECK int serve_go(const char *folder, struct det_error *reterr);

/* listen_sockets.c */

#define SERVE_SOCKETS_MAX 16

struct serve_socket {
    int descriptor; /* listens, non-blocking; -1: taken */
    char text[128]; /* "127.0.0.1:7788" as it is bound, or the path of a unix socket */
    char name[64];  /* from LISTEN_FDNAMES; "": not inherited */
    bool is_unix;
    bool is_loopback; /* unreachable from other machines; also for a unix socket */
};
struct serve_sockets {
    struct serve_socket items[SERVE_SOCKETS_MAX];
    size_t count;
    bool is_given; /* inherited, which overrides the file */
};
/* A number from an environment variable; 0: none. Call before there are threads. */
uint64_t serve_environment_number(const char *variable);
/* Takes the sockets of LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES; none is not an error.
 * DET_ERR_INVALID: a descriptor is not a listening socket. */
DET_MUST_CHECK int serve_sockets_given(struct serve_sockets *sockets, struct det_error *reterr);
/* Binds the addresses of the file, unless sockets are inherited. */
DET_MUST_CHECK int serve_sockets_bind(
    struct serve_sockets *sockets, const struct config_http *http, struct det_error *reterr);
/* The caller owns the returned descriptor. */
int serve_socket_take(struct serve_socket *socket);
/* Closes the sockets that were not taken. */
void serve_sockets_close(struct serve_sockets *sockets);
/* The unix socket of the API. Zero it first. */
struct serve_local {
    int descriptor;
    char path[108]; /* "": not open */
};
/* Moves the socket to this path; NULL: closes it. No effect if it is at this path already. An error
 * changes nothing. */
DET_MUST_CHECK int serve_local_bind(
    struct serve_local *local, const char *path, struct det_error *reterr);
void serve_local_close(struct serve_local *local);
/* Reads the addresses of `--listen` or of the variable DETENT_LISTEN: a list with commas, or
 * the word `none`. If both are absent, nothing changes. DET_ERR_INVALID. */
DET_MUST_CHECK int serve_listen(
    const char *option, struct det_arena *arena, struct config_http *http,
    struct det_error *reterr);

/* port_holder.c: "detent (process 4711, in /srv/shop)", or "" if it is unknown. */
#define SERVE_HOLDER_TEXT 256
const char *serve_holder(uint16_t port, char target[SERVE_HOLDER_TEXT]);

/* safety_checks.c */

struct serve_request {
    const char *project; /* the folder */
    const char *path;    /* of detent.yaml, which may not exist */
    const char *user;    /* user to change to; NULL: keep the current one */
    bool is_serving;     /* production: stricter checks */
    bool may_be_root;
};
/* Receives a finding: what is unsafe and what to do, and the exit code of a refused run. */
typedef void serve_found_fn(void *user, int code, const char *text);
void serve_examine(
    struct cli *cli, const struct serve_request *request, const struct config_http *http,
    const struct serve_sockets *sockets, serve_found_fn *found, void *user);
/* The first address that other machines can reach; NULL: none. */
const char *serve_open_address(const struct config_http *http, const struct serve_sockets *sockets);
/* CLI_OK, or the code of the first finding, after its message. */
DET_MUST_CHECK int serve_check(
    struct cli *cli, const struct serve_request *request, const struct config_http *http,
    const struct serve_sockets *sockets);

/* user_change.c: `name` may be a number. The change is permanent. */
DET_MUST_CHECK int serve_find_user(const char *name, uid_t *ret);
DET_MUST_CHECK int serve_become(const char *name, struct det_error *reterr);
/* Keeps other processes of our user from reading our memory, which has keys and passwords, and
 * disables core dumps. */
void serve_hide(void);

/* supervisor_notify.c */

/* The service manager that receives our messages. Its socket may be full: it may be slow, and other
 * services send to the same socket. */
#define SERVE_NOTIFY_KEPT 4
#define SERVE_NOTIFY_TEXT 1024
struct serve_notify {
    int descriptor;    /* connected; -1: none */
    det_time watchdog; /* interval of watchdog messages; 0: none */
    struct det_loop *loop;
    struct det_timer timer;
    struct det_watch room;                           /* set while messages are queued */
    char kept[SERVE_NOTIFY_KEPT][SERVE_NOTIFY_TEXT]; /* queued messages, the oldest first */
    size_t kept_count;
    bool is_fed; /* the newest message is WATCHDOG=1 */
};
/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without a service manager nothing is
 * sent. */
void serve_notify_open(struct serve_notify *notify);
/* Sends lines such as "READY=1\nSTATUS=...". Does not block: if the socket is full, the message is
 * queued and sent from the loop, in order. Only the newest SERVE_NOTIFY_KEPT messages are
 * queued. */
void serve_notify_send(struct serve_notify *notify, const char *format, ...) DET_PRINTF(2, 3);
/* From now on the loop sends queued messages and feeds the watchdog. */
DET_MUST_CHECK int serve_notify_watch(struct serve_notify *notify, struct det_loop *loop);
/* Waits up to a second for room to send queued messages. */
void serve_notify_close(struct serve_notify *notify);

#endif
