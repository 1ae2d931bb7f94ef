/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http.h - an HTTP/1.1 server on a loop: what it listens on, what a handler sees and answers.
 *
 *     bytes --http_parse--> request --handler--> http_answer(), now or later ----------> bytes
 *                                           \--> http_begin(), http_write()..., http_end()
 *
 * It is strict: what two programs could read in two ways is refused with 400 and closed;
 * docs/http.md has the list. It is ours and not a library's because the usual one accepts such
 * requests before anybody can look at them, and because its timeouts begin anew with every byte.
 *
 * Invariants
 *   1. A connection has one exchange at a time; the next request is looked at when it is over. So
 *      pipelined requests are answered in order, and cost no more memory than one.
 *   2. Every exchange is finished exactly once: by http_answer(), by http_end(), or by its client
 *      going away, which on_gone() tells.
 *   3. What a client does not read is bounded, and so is every wait for it.
 *
 * All functions are for the thread of the loop, unless it says otherwise. */
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
    const char *method_name; /* as it came */
    const char *path;        /* as it came, up to the '?': "/v1/machines/a%20b" */
    const char *query;       /* behind the '?'; "" where there is none */
    const char *host;        /* of the request line or of Host; "" in HTTP/1.0 without one */
    const struct http_header *headers;
    size_t header_count;
    const char *body; /* followed by a NUL byte that does not count */
    size_t body_size;
    const char *peer;    /* "127.0.0.1:41000", "unix" */
    const void *user;    /* of the listener */
    bool is_trusted;     /* over a unix socket, by our own user or root */
    int64_t uid;         /* of who is on the other side of a unix socket; -1: nobody knows */
    bool is_encrypted;   /* TLS */
    const char *subject; /* of the client's certificate that was checked; NULL: none */
};

/* The value of a header by its lower-case name; NULL: there is none. */
const char *http_header(const struct http_request *request, const char *name);

struct http_answer {
    unsigned status;
    const char *type; /* Content-Type; NULL: none */
    const struct http_header *headers;
    size_t header_count;
    const void *body; /* copied, unless `is_static`: then it stays as long as the server */
    size_t body_size;
    bool is_static;
    bool shall_close; /* the connection, behind this */
};

/* The body of an answer that is an error, as all of ours are: {"error":{"code":"...","text":"..."}}
 * and a newline. Returns its size. What could end a text in JSON is a question mark in it. */
#define HTTP_ERROR_BODY 512
size_t http_error_body(char target[HTTP_ERROR_BODY], const char *code, const char *text);

const struct http_request *http_request(const struct http_exchange *exchange);
/* HTTP_NOTE_SIZE bytes for who answers, aligned for anything: zero when admit() gets them, or else
 * handle(), and there until the exchange is over. */
#define HTTP_NOTE_SIZE 48
void *http_note(struct http_exchange *exchange);
/* Its client has shown that it may be here, by a token, say: from now on its connection is not
 * closed to make room for others. Until then it is, oldest first, when a limit of connections is
 * reached or there are no descriptors left. Connections over a unix socket have a limit of their
 * own. */
void http_vouch(struct http_exchange *exchange);
/* When the first byte of the request came, by the monotonic clock. */
det_time http_since(const struct http_exchange *exchange);
/* The whole answer, and the end. To a HEAD the body is counted and not sent. */
void http_answer(struct http_exchange *exchange, const struct http_answer *answer);
/* An answer whose length nobody knows, in chunks (for HTTP/1.0: until the connection closes). The
 * body of `answer` is its first part. */
void http_begin(struct http_exchange *exchange, const struct http_answer *answer);
/* Data are copied and sent in the next turn of the loop, with all that is written until then.
 * DET_ERR_CLOSED: the client is gone, or would let more than `unread_max` wait (of several writes:
 * one alone may be longer) and is cut off now, or there is no memory for it, which is the same;
 * on_gone() will be called. */
int http_write(struct http_exchange *exchange, const void *data, size_t size);
void http_end(struct http_exchange *exchange);
/* How many bytes of this connection wait for its client to read them. */
size_t http_waiting(const struct http_exchange *exchange);
/* Whether its client has ended its own side: it is gone, or has nothing more to say. */
bool http_is_ended(const struct http_exchange *exchange);
/* The exchange is finished later; a handler that has not finished it must call this before it
 * returns. `on_gone` comes instead of the end, and the exchange is over, when the client goes away
 * first or the server is closed; never from inside a function of this header but
 * http_server_close(). `on_drained` (may be NULL) comes when all that was written is on its way. A
 * client that ends its own side is still answered, but for a stream, whose client is gone then. */
void http_keep(
    struct http_exchange *exchange, void (*on_gone)(void *user), void (*on_drained)(void *user),
    void *user);

/* 0: the default; all have a hard maximum, see `limits.def`. */
struct http_limits {
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) type name;
#include "http/limits.def"
#undef HTTP_LIMIT
};

/* Told on the loop, for logs and metrics. Borrowed. */
struct http_done {
    const struct http_request *request; /* NULL: it was none, and `status` was answered */
    const void *note;                   /* of its exchange; NULL: there was none */
    const char *peer;
    unsigned status;     /* 0: the client went away first */
    uint64_t size;       /* of the answer's body */
    det_time span;       /* from the first byte to the answer's last */
    bool is_stream;      /* it has lasted as long as its client liked */
    const char *why_not; /* of a request that was refused by the server itself; NULL: it was not */
};

struct http_tls {
    const char *certificate, *key; /* files, PEM */
    const char *clients; /* certificates of those who sign our clients', who each must have one that
                            they have signed; NULL: they need none */
};

/* Instead of a status. */
#define HTTP_LATER 1

struct http_options {
    const struct det_allocator *allocator;
    struct det_loop *loop;
    struct http_limits limits;
    const struct http_tls *tls; /* of all TCP listeners; NULL: plain */
    /* Of every answer, also of those that the server makes itself, unless it has one of the same
     * name. They stay. */
    const struct http_header *headers;
    size_t header_count;
    /* Runs for each request, on the loop. */
    void (*handle)(void *context, struct http_exchange *exchange);
    /* Runs for each request, when its headers are there and its body is not read yet. If it
     * returns another status than 0, `ret` is sent with that status, and if there is a body the
     * connection is closed: so nobody without a right to it makes us read one. It may also call
     * http_keep() and return HTTP_LATER: the exchange then is that of a request whose body nobody
     * reads, which is answered later, and closed the same way. May be NULL. */
    unsigned (*admit)(void *context, struct http_exchange *exchange, struct http_answer *ret);
    void (*done)(void *context, const struct http_done *done); /* may be NULL */
    void *context;
};

int http_server_open(
    const struct http_options *options, struct http_server **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Closes every connection at once; exchanges that are kept get their on_gone(). Takes NULL. Not
 * from a callback of the server. */
void http_server_close(struct http_server *server);
/* No further connection is accepted, idle ones are closed, and each other one behind its answer. */
void http_server_drain(struct http_server *server);
/* Connections that are open. */
size_t http_server_connections(const struct http_server *server);
/* Certificate and key are read again, for new connections; what is wrong with them changes
 * nothing. */
int http_server_renew(
    struct http_server *server, const struct http_tls *tls,
    struct det_error *reterr) DET_MUST_CHECK;

/* Listeners; `user` comes with each request. */
/* "127.0.0.1:7788", "[::1]:7788", "localhost:7788"; port 0: any. */
int http_listen(
    struct http_server *server, const char *address, const void *user,
    struct det_error *reterr) DET_MUST_CHECK;
/* A unix socket at this path, which must not be there, or be a socket nobody answers at. */
int http_listen_path(
    struct http_server *server, const char *path, unsigned mode, const void *user,
    struct det_error *reterr) DET_MUST_CHECK;
/* The same without a server: a descriptor that listens, for http_listen_given(). */
int http_bind_path(const char *path, unsigned mode, int *ret, struct det_error *reterr)
    DET_MUST_CHECK;
/* A descriptor that listens already (socket activation); it is closed with the server. */
int http_listen_given(
    struct http_server *server, int descriptor, const void *user,
    struct det_error *reterr) DET_MUST_CHECK;
/* The address of the listener of this number, as it is bound: "127.0.0.1:41234"; NULL: no more. */
const char *http_listener_address(const struct http_server *server, size_t index);

#endif
