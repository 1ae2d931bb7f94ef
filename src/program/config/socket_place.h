/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_place.h - the project of a folder, and the place of its local socket. */
#ifndef DET_CONFIG_SOCKET_PLACE_H
#define DET_CONFIG_SOCKET_PLACE_H

#include <sys/types.h>

#include <detent/base.h>

#define SOCKET_FOLDER    ".detent"
#define SOCKET_NAME      "detent.sock"
#define SOCKET_LOCK_NAME "detent.lock"

/* The first folder from `from` upwards that has a detent.yaml, as an absolute path of DET_PATH_MAX
 * bytes. DET_ERR_NOT_FOUND with what to do; DET_ERR_REFUSED when a parent folder belongs to
 * another user. */
DET_MUST_CHECK int socket_find(const char *from, char *target, struct det_error *reterr);

/* Resources of a listener; -1: not open. */
struct socket_listener {
    int folder, lock, descriptor;
};
/* Listens in this project. DET_ERR_EXISTS when another one does, DET_ERR_REFUSED when others could
 * put their own socket in its place. The descriptor does not block. */
DET_MUST_CHECK int socket_listen(
    const char *project, struct socket_listener *ret, struct det_error *reterr);
/* Removes the socket and releases the lock. */
void socket_unlisten(struct socket_listener *listener);
/* A blocking connection. DET_ERR_NOT_FOUND: no process listens; DET_ERR_REFUSED: the socket belongs
 * to another user. */
DET_MUST_CHECK int socket_connect(const char *project, int *ret, struct det_error *reterr);
/* Finds the socket of the API in this project, served by a trusted process: `target`, of
 * SOCKET_PATH_TEXT bytes, is a path through a descriptor of the folder, which the caller closes.
 * Errors as socket_connect(), and DET_ERR_TIMEOUT if it accepts no connection. */
#define SOCKET_PATH_TEXT 64
DET_MUST_CHECK int socket_reach(
    const char *project, int *ret_folder, char *target, struct det_error *reterr);
/* Checks that the peer of a connection is trusted: else DET_ERR_REFUSED. */
DET_MUST_CHECK int socket_check_peer(const char *project, int descriptor, struct det_error *reterr);
/* Returns the user of the peer. */
DET_MUST_CHECK int socket_peer(int descriptor, uid_t *ret);
/* Returns true if this user may send requests to a process of `own`. */
static inline bool socket_is_allowed(uid_t peer, uid_t own)
{
    return peer == own || peer == 0;
}

/* Returns true if a process of `own` may send requests to one of `peer`. */
static inline bool socket_is_trusted(uid_t peer, uid_t own)
{
    return socket_is_allowed(peer, own) || own == 0;
}

#endif
