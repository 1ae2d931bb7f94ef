/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http.h - an HTTP/1.1 server on a loop: listeners, requests, answers.
 *
 *     bytes --http_parse--> request --handler--> http_answer(), now or later ----------> bytes
 *                                           \--> http_begin(), http_write()..., http_end()
 *
 * It is strict: a request that two programs could read in two ways is refused with 400 and the
 * connection closed; docs/http.md has the list. It is our own because the usual library accepts
 * such requests before a caller can inspect them, and restarts its timeouts with every byte.
 *
 * Invariants
 *   1. A connection has one exchange at a time; the next request is parsed when it is over. So
 *      pipelined requests are answered in order, and use no more memory than one.
 *   2. Every exchange ends exactly once: by http_answer(), by http_end(), or by its client leaving,
 *      which on_gone() reports.
 *   3. Unread output is bounded, and so is every wait.
 *
 * Call all functions on the thread of the loop unless noted otherwise. */
#ifndef DET_HTTP_HTTP_H
#define DET_HTTP_HTTP_H

#include <detent/loop.h>

struct http_server;
struct http_exchange;

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_METHODS, /* how many; also any other token but CONNECT and TRACE, which are refused */
};

struct http_header {
    const char *name, *value; /* names in lower case; values without blanks around them */
};

/* Borrowed until the exchange is over. */
struct http_request {
    enum http_method method;
    const char *method_name; /* as received */
    const char *path;        /* as received, up to the '?': "/v1/machines/a%20b" */
    const char *query;       /* after the '?'; "" if absent */
    const char *host;        /* of the request line or of Host; "" in HTTP/1.0 without one */
    const struct http_header *headers;
    size_t header_count;
    const char *body; /* followed by a NUL byte that is not counted */
    size_t body_size;
    const char *peer;    /* "127.0.0.1:41000", "unix" */
    const void *user;    /* of the listener */
    bool is_trusted;     /* over a unix socket, by our own user or root */
    int64_t uid;         /* user at the other side of a unix socket; -1: unknown */
    bool is_encrypted;   /* TLS */
    const char *subject; /* subject of the client's verified certificate; NULL: none */
};

/* Returns the value of a header by its lower-case name; NULL if absent. */
const char *http_header(const struct http_request *request, const char *name);

struct http_answer {
    unsigned status;
    const char *type; /* Content-Type; NULL: none */
    const struct http_header *headers;
    size_t header_count;
    const void *body; /* copied, unless `is_static`: then it must outlive the server */
    size_t body_size;
    bool is_static;
    bool close_wanted; /* close the connection after this */
};

/* Writes the body of an error, which always has the form {"error":{"code":"...","text":"..."}} and
 * a newline. Returns its size. A long text is cut. Allocates nothing. */
#define HTTP_ERROR_BODY 512
size_t http_error_body(char target[HTTP_ERROR_BODY], const char *code, const char *text);

const struct http_request *http_request(const struct http_exchange *exchange);
/* HTTP_NOTE_SIZE bytes for the handler, aligned for any type: zero in the first call of admit() or
 * handle(), valid until the exchange is over. */
#define HTTP_NOTE_SIZE 48
void *http_note(struct http_exchange *exchange);
/* Marks the client as trusted, for instance because it has shown a token: its connection is no
 * longer closed to make room for others. Until then the oldest ones are closed when a connection
 * limit is reached or no descriptors are left. Connections over a unix socket have their own
 * limit. */
void http_vouch(struct http_exchange *exchange);
/* Sends the whole answer and ends the exchange. For HEAD the body is counted but not sent. */
void http_answer(struct http_exchange *exchange, const struct http_answer *answer);
/* Begins an answer of unknown length, in chunks (in HTTP/1.0: until the connection closes). The
 * body of `answer` is its first part. */
void http_begin(struct http_exchange *exchange, const struct http_answer *answer);
/* Copies the data and sends it in the next turn of the loop, with everything written until then.
 * Returns DET_ERR_CLOSED if the client is gone, if more than `unread_max` would be waiting (a
 * single larger write is allowed), or without memory; on_gone() will be called. */
int http_write(struct http_exchange *exchange, const void *data, size_t size);
void http_end(struct http_exchange *exchange);
/* Returns how many bytes of this connection wait to be read by its client. */
size_t http_waiting(const struct http_exchange *exchange);
/* Returns true if its client has closed its side: it has left, or will send nothing more. */
bool http_is_ended(const struct http_exchange *exchange);
/* Keeps the exchange, to finish it later; a handler that has not finished it must call this before
 * it returns. `on_gone` is called instead of the end, and the exchange is over, if the client
 * leaves first or the server is closed; of the functions of this header only http_server_close()
 * calls it. `on_drained` (may be NULL) is called when all written data was sent. A client that
 * shuts down its side still gets its answer; a stream ends. */
void http_keep(
    struct http_exchange *exchange, void (*on_gone)(void *user), void (*on_drained)(void *user),
    void *user);

/* 0: the default; all have a hard maximum, see `limits.def`. */
struct http_limits {
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) type name;
#include "http/limits.def"
#undef HTTP_LIMIT
};

/* Reported on the loop, for logs and metrics. Borrowed. */
struct http_done {
    const struct http_request *request; /* NULL: malformed, answered with `status` */
    const void *note;                   /* of its exchange; NULL: there was none */
    const char *peer;
    unsigned status;     /* 0: the client went away first */
    uint64_t size;       /* of the answer's body */
    det_time span;       /* from the first byte to the answer's last */
    bool is_stream;      /* begun by http_begin(): `span` depends on its client */
    const char *why_not; /* why the server itself refused it; NULL: it did not */
};

struct http_tls {
    const char *certificate, *key; /* files, PEM */
    const char *clients; /* certificates of the CAs of clients, each of which must present one;
                          * NULL: not required */
};

/* Instead of a status. */
#define HTTP_LATER 1

struct http_options {
    const struct det_allocator *allocator;
    struct det_loop *loop;
    struct http_limits limits;
    const struct http_tls *tls; /* of all TCP listeners; NULL: plain */
    /* Added to every answer, including the server's own, unless it has a header of the same name.
     * Must outlive the server. */
    const struct http_header *headers;
    size_t header_count;
    /* Called for each request, on the loop. */
    void (*handle)(void *context, struct http_exchange *exchange);
    /* Runs for each request after its headers, before its body is read. If it returns a status
     * other than 0, `ret` is sent with that status, and the connection is closed if there is a
     * body: unauthorized clients cannot make the server read one. It may also call http_keep() and
     * return HTTP_LATER: the request is answered later without reading its body, and closed in the
     * same way. May be NULL. */
    unsigned (*admit)(void *context, struct http_exchange *exchange, struct http_answer *ret);
    void (*done)(void *context, const struct http_done *done); /* may be NULL */
    void *context;
};

int http_server_open(
    const struct http_options *options, struct http_server **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Closes every connection at once; kept exchanges get their on_gone(). NULL is allowed. Not from a
 * callback of the server. */
void http_server_close(struct http_server *server);
/* Stops accepting; closes idle connections now, and each other one after its answer. */
void http_server_drain(struct http_server *server);
/* Returns the number of open connections. */
size_t http_server_connections(const struct http_server *server);
/* Reloads certificate and key for new connections; an error changes nothing. */
int http_server_renew(
    struct http_server *server, const struct http_tls *tls,
    struct det_error *reterr) DET_MUST_CHECK;

/* Listeners; `user` comes with each request. */
/* "127.0.0.1:7788", "[::1]:7788", "localhost:7788"; port 0: any. */
int http_listen(
    struct http_server *server, const char *address, const void *user,
    struct det_error *reterr) DET_MUST_CHECK;
/* Binds a unix socket at this path, which must be free or a stale socket, for http_listen_given().
 * The caller removes the path. */
int http_bind_path(const char *path, unsigned mode, int *ret, struct det_error *reterr)
    DET_MUST_CHECK;
/* Adds a descriptor that already listens (socket activation); the server closes it. */
int http_listen_given(
    struct http_server *server, int descriptor, const void *user,
    struct det_error *reterr) DET_MUST_CHECK;
/* Returns the bound address of this listener: "127.0.0.1:41234"; NULL: no more listeners. */
const char *http_listener_address(const struct http_server *server, size_t index);

#endif
