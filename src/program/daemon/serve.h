/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve.h - what makes a daemon of `detent up`: where its project is, what it refuses, who started
 * it and what that wants to know.
 *
 *     serve.c          the command `detent serve`
 *     project_place.c    which folder is the project, and where its state is
 *     listen_sockets.c  the sockets of the HTTP API: given to us, or bound while we may
 *     port_holder.c   who has a port that we want
 *     safety_checks.c     what is not safe to run
 *     log_output.c      what is said as lines of a log; it is in daemon.h
 *     user_change.c     becoming another user
 *     supervisor_notify.c   what our own supervisor is told
 *
 * The order of a start, so that the rights of root end as soon as nothing needs them:
 *
 *     read and check the file -> is it safe? -> sockets -> another user -> state, store, tasks */
#ifndef DET_DAEMON_SERVE_H
#define DET_DAEMON_SERVE_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "config/project_file.h"

/* The option of `up` and `serve`. */
#define SERVE_OPTION_LISTEN                                                         \
    {                                                                               \
        "listen", 'l', "ADDRESS", NULL,                                             \
            "where the HTTP API listens: 127.0.0.1:7788, several with commas, none" \
    }

/* project_place.c */

/* The project of the folder we are in, as an absolute path of DET_PATH_MAX bytes: that of
 * socket_find(), or the folder itself if it has specs. */
DET_MUST_CHECK int serve_project(char *target, struct det_error *reterr);
/* The folder `.detent` of it, which may not be there yet. */
DET_MUST_CHECK int serve_state_folder(char *target, struct det_error *reterr);
/* Goes to the folder that an operand names, if it names one: it has a slash or is a dot, or there
 * is no project here whose task it could be. True: it was one. DET_ERR_NOT_FOUND: it has no
 * project. */
DET_MUST_CHECK int serve_enter(const char *operand, bool *ret, struct det_error *reterr);
/* Goes to a folder in any case. */
DET_MUST_CHECK int serve_go(const char *folder, struct det_error *reterr);

/* listen_sockets.c */

#define SERVE_SOCKETS_MAX 16

struct serve_socket {
    int descriptor; /* listens, does not block; -1: somebody has taken it over */
    char text[128]; /* "127.0.0.1:7788" as it is bound, or the path of a unix socket */
    char name[64];  /* that of LISTEN_FDNAMES; "" where it is our own */
    bool is_unix;
    bool is_loopback; /* nobody on another machine reaches it; also of a unix socket */
};
struct serve_sockets {
    struct serve_socket items[SERVE_SOCKETS_MAX];
    size_t count;
    bool is_given; /* by who has started us, instead of what the file says */
};
/* Takes what the variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES tell of; none is no error.
 * DET_ERR_INVALID: what is there is no socket that listens. */
DET_MUST_CHECK int serve_sockets_given(struct serve_sockets *sockets, struct det_error *reterr);
/* Binds the addresses of the file, unless sockets were given. */
DET_MUST_CHECK int serve_sockets_bind(
    struct serve_sockets *sockets, const struct config_http *http, struct det_error *reterr);
/* The descriptor is the caller's from now on. */
int serve_socket_take(struct serve_socket *socket);
/* Those that nobody has taken. */
void serve_sockets_close(struct serve_sockets *sockets);
/* The unix socket of the API. Zero it first. */
struct serve_local {
    int descriptor;
    char path[108]; /* "": it is not open */
};
/* Is at this path from now on; it stays as it is where it is there already, and leaves the other
 * one where it is not. NULL: nowhere. An error changes nothing. */
DET_MUST_CHECK int serve_local_bind(
    struct serve_local *local, const char *path, struct det_error *reterr);
void serve_local_close(struct serve_local *local);
/* The addresses of `--listen` or of the variable DETENT_LISTEN: several with commas between them,
 * or none. Where there is neither, nothing changes. DET_ERR_INVALID. */
DET_MUST_CHECK int serve_listen(
    const char *option, struct det_arena *arena, struct config_http *http,
    struct det_error *reterr);

/* port_holder.c: "detent (process 4711, in /srv/shop)", or "" when nobody may know. */
#define SERVE_HOLDER_TEXT 256
const char *serve_holder(uint16_t port, char target[SERVE_HOLDER_TEXT]);

/* safety_checks.c */

struct serve_wish {
    const char *project; /* the folder */
    const char *path;    /* of detent.yaml, which need not be there */
    const char *user;    /* to become; NULL: nobody else */
    bool is_serving;     /* production: what is only careless elsewhere is refused */
    bool may_be_root;
};
/* What is not safe, and what to do; with the exit code of who does not run because of it. */
typedef void serve_found_fn(void *user, int code, const char *text);
void serve_examine(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets, serve_found_fn *found, void *user);
/* The first address that others than this machine reach; NULL: none. */
const char *serve_open_address(const struct config_http *http, const struct serve_sockets *sockets);
/* CLI_OK, or the code of the first finding, after it was said. */
DET_MUST_CHECK int serve_check(
    struct cli *cli, const struct serve_wish *wish, const struct config_http *http,
    const struct serve_sockets *sockets);

/* user_change.c: `name` may be a number. Becoming a user is for good. */
DET_MUST_CHECK int serve_find_user(const char *name, uid_t *ret);
DET_MUST_CHECK int serve_become(const char *name, struct det_error *reterr);
/* From now on no other process of our user reads our memory, which has keys and passwords in it,
 * and nobody finds them in a core dump. */
void serve_hide(void);

/* supervisor_notify.c */

/* Who wants to hear from us. The socket may have no room for a message: a supervisor is slow, and
 * other services send to the same one. */
#define SERVE_NOTIFY_KEPT 4
#define SERVE_NOTIFY_TEXT 1024
struct serve_notify {
    int descriptor;    /* connected; -1: nobody does */
    det_time watchdog; /* how often it wants to hear that we are alive; 0: it does not */
    struct det_loop *loop;
    struct det_timer timer;
    struct det_watch room;                           /* while messages are kept */
    char kept[SERVE_NOTIFY_KEPT][SERVE_NOTIFY_TEXT]; /* that found no room, the oldest first */
    size_t kept_count;
    bool is_fed; /* the newest message is WATCHDOG=1 */
};
/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. That nobody is there is no error. */
void serve_notify_open(struct serve_notify *notify);
/* Sends lines such as "READY=1\nSTATUS=...". Does not wait: a message that finds no room is sent
 * from the loop when there is some, in the order of the calls. Of more than SERVE_NOTIFY_KEPT the
 * oldest are dropped. */
void serve_notify_tell(struct serve_notify *notify, const char *format, ...) DET_PRINTF(2, 3);
/* From now on the loop sends what is kept, and feeds the watchdog. */
DET_MUST_CHECK int serve_notify_watch(struct serve_notify *notify, struct det_loop *loop);
/* Waits up to a second for room for what is kept. */
void serve_notify_close(struct serve_notify *notify);

#endif
