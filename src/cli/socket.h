/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket.h - the local socket (docs/formats/socket.md): its place, its lines, who may talk. */
#ifndef DET_CLI_SOCKET_H
#define DET_CLI_SOCKET_H

#include <jansson.h>
#include <sys/types.h>

#include <detent/base.h>

#define SOCKET_FOLDER    ".detent"
#define SOCKET_NAME      "detent.sock"
#define SOCKET_LOCK_NAME "detent.lock"
#define SOCKET_PROTOCOL  1
/* Of a request with its newline; of answers that wait for a client; before it is not read on. */
#define SOCKET_LINE_MAX  65536
#define SOCKET_QUEUE_MAX (4 << 20)
#define SOCKET_PAUSE_AT  65536
#define SOCKET_VERB_MAX  63
#define SOCKET_ID_MAX    ((UINT64_C(1) << 53) - 1)

/* socket_place.c */

/* The first folder from `from` upwards that has a detent.yaml, as an absolute path of DET_PATH_MAX
 * bytes. DET_ERR_NOT_FOUND with what to do; DET_ERR_REFUSED when one above is another user's. */
DET_MUST_CHECK int socket_find(const char *from, char *target, struct det_error *reterr);

/* What listening holds; -1: not open. */
struct socket_listener {
    int folder, lock, descriptor;
};
/* Listens in this project. DET_ERR_EXISTS when another one does, DET_ERR_REFUSED when others could
 * put their own socket in its place. The descriptor does not block. */
DET_MUST_CHECK int socket_listen(
    const char *project, struct socket_listener *ret, struct det_error *reterr);
/* Removes the socket and lets go of the lock. */
void socket_unlisten(struct socket_listener *listener);
/* A connection that blocks. DET_ERR_NOT_FOUND when nobody listens, DET_ERR_REFUSED when it belongs
 * to somebody else. */
DET_MUST_CHECK int socket_connect(const char *project, int *ret, struct det_error *reterr);
/* Who is at the other end. */
DET_MUST_CHECK int socket_peer(int descriptor, uid_t *ret);
/* Whether this user may talk to one that runs as `own`. */
static inline bool socket_is_allowed(uid_t peer, uid_t own)
{
    return peer == own || peer == 0;
}

/* Whether one that runs as `own` may tell it to who listens as `peer`. */
static inline bool socket_is_trusted(uid_t peer, uid_t own)
{
    return socket_is_allowed(peer, own) || own == 0;
}

/* socket_request.c */

struct socket_request {
    uint64_t id;
    bool has_id; /* also of a line that is no request otherwise */
    const char *verb;
    json_t *arguments; /* an object; NULL: none */
    json_t *root;      /* owns the others */
};

/* Reads one line without its newline. DET_ERR_MALFORMED, DET_ERR_INVALID, DET_ERR_NO_MEMORY. `ret`
 * is written in any case, and needs socket_request_deinit(). */
DET_MUST_CHECK int socket_request_read(
    const char *line, size_t size, struct socket_request *ret, struct det_error *reterr);
void socket_request_deinit(struct socket_request *request);
/* The line of an answer with its newline, of free(); NULL when there is no memory. Takes `value`,
 * which is that of the member `key`. `id` NULL: unknown. */
char *socket_answer_line(const uint64_t *id, const char *key, json_t *value_take);
/* The value of "error". */
json_t *socket_error_value(int code, const char *text);
/* The error of a name, DET_ERR_IO when it is none of ours. */
int socket_error_code(const char *name);

#endif
