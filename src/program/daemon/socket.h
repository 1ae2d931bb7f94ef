/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket.h - the local socket (docs/formats/socket.md): its place, its lines, who may talk. */
#ifndef DET_DAEMON_SOCKET_H
#define DET_DAEMON_SOCKET_H

#include <jansson.h>

#include <detent/base.h>

#define SOCKET_PROTOCOL 1
/* Of a request with its newline; of answers that wait for a client; before it is not read on. */
#define SOCKET_LINE_MAX  65536
#define SOCKET_QUEUE_MAX (4 << 20)
#define SOCKET_PAUSE_AT  65536
#define SOCKET_VERB_MAX  63
#define SOCKET_ID_MAX    ((UINT64_C(1) << 53) - 1)

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
