/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_internal.h - the parts of the HTTP server among themselves.
 *
 *            accept                   first byte        headers         body
 *     ---------------> CONNECTION_IDLE ---------> _HEAD --------> _BODY ---------> _HANDLING
 *                             ^                     ^                                  |
 *                             |                     |  more has come already           | answered
 *                             +---------------------+----------------------------------+
 *                                                                                      | the last
 *          _HEAD, _BODY: refused, too slow                                             v
 *          -------------------------------------------------------------------> _CLOSING
 *          closed <---- the other side ends, or 2 s ---- _LINGERING <---- written ----+
 *          closed <---------------------------------------------- written ------------+
 *
 * Any state ends at once when the stream breaks.
 *
 * Invariants
 *   1. What must be done outside of a connection's own event is done in `attend`, from the server's
 *      one timer: a connection that needs it is in `todo`. The timer is always armed, if for never,
 *      so that arming it cannot fail.
 *   2. No deadline is written down. The sweep, once a second, derives it from when the state began
 *      and how many bytes have moved in it; so a request costs no timer.
 *   3. A connection without a request and without an answer that waits has neither of the buffers:
 *      they are lent by the server, and given back.
 *   4. `is_busy`: a function of the connection is on the stack and will settle it; who is called
 *      from there only changes it. A connection is closed by nobody but those who settle it. */
#ifndef DET_HTTP_HTTP_INTERNAL_H
#define DET_HTTP_HTTP_INTERNAL_H

#include <detent/driver/loop.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/map.h"
#include "http/byte_stream.h"
#include "http/request_parser.h"

#define HTTP_PEER_TEXT    64
#define HTTP_DATE_TEXT    40
#define HTTP_BLOCK_SIZE   16384
#define HTTP_LINGER_TIME  (2 * DET_SECOND)
#define HTTP_LINGER_BYTES (1 << 20)

struct http_listener;
struct http_tls_context;

enum http_connection_state {
    CONNECTION_IDLE,
    CONNECTION_HEAD,
    CONNECTION_BODY,
    CONNECTION_HANDLING,
    CONNECTION_CLOSING,
    CONNECTION_LINGERING,
};

/* Where a request is read to. */
struct http_block {
    struct http_block *next; /* of those that are free */
    char *data;
    size_t capacity;
    struct http_place *places;
    struct http_header headers[];
};

struct http_exchange {
    struct http_connection *connection;
    det_time since; /* the first byte of the request */
    void (*on_gone)(void *user);
    void (*on_drained)(void *user);
    void *user;
    unsigned status;
    uint64_t size;   /* of the answer's body */
    bool is_kept;    /* until it is over */
    bool is_stream;  /* http_begin() was called */
    bool is_chunked; /* and has to be ended by a chunk */
    bool is_over;
    _Alignas(max_align_t) unsigned char note[HTTP_NOTE_SIZE];
};

/* How many connections an address has. */
struct http_peer {
    const char *key; /* `address` */
    uint32_t count;
    struct det_list strangers; /* its connections that nobody vouched for, oldest first */
    char address[HTTP_PEER_TEXT];
};

struct http_connection {
    struct det_list node; /* of the server */
    struct det_list todo; /* of the server; alone when there is nothing to attend to */
    struct http_server *server;
    const struct http_io *io;
    void *stream;
    unsigned watched; /* enum det_poll_events */
    enum http_connection_state state;
    det_time since; /* when the state began */
    uint64_t moved; /* bytes that were read in it */
    bool is_busy;
    bool is_ended;    /* by its client: nothing more will come */
    bool is_broken;   /* nothing can be read or written any more */
    bool is_starved;  /* more has to come before anything can be read */
    bool shall_close; /* behind this answer */

    struct http_block *block; /* NULL: nothing of a request is here */
    struct http_parse parse;
    struct http_exchange exchange;

    struct det_buffer output; /* what waits, from `output_sent` on, and then the tail */
    size_t output_sent;
    const char *tail; /* static data */
    size_t tail_size;
    det_time waits_since; /* when something began to wait */
    uint64_t waits_moved; /* bytes that were taken since then */
    bool is_waiting;      /* the stream did not take all of it */
    size_t counted;       /* bytes of the output in the server's memory */

    struct http_peer *from; /* NULL: not counted */
    bool is_local;          /* over a unix socket */
    /* While nobody vouched for it: of the server and of its peer, which close it to make room. */
    struct det_list stranger, peer_stranger;
    char peer[HTTP_PEER_TEXT];
};

struct http_server {
    struct http_options options;
    struct http_limits limits;
    struct det_world *world;
    struct det_list connections;
    size_t connection_count;
    size_t local_count;        /* of them over unix sockets, which do not count with the others */
    struct det_list strangers; /* that nobody vouched for, oldest first; none of them is local */
    struct det_list todo;
    struct det_timer timer;
    det_time timer_at; /* when it is set to */
    det_time sweep_at;
    det_time rest_until; /* accepting rests; 0: it does not */
    bool is_draining;
    struct det_map peers;
    struct http_block *blocks; /* that are free */
    unsigned block_count;
    struct det_buffer spare; /* an output that nobody uses */
    uint64_t memory;         /* bytes of blocks that have grown, and of outputs that wait */
    char date[HTTP_DATE_TEXT];
    det_time date_until; /* monotonic */
    struct http_listener *listeners;
    int reserve; /* a descriptor to give up when there are none left; -1: none */
    struct http_tls_context *tls;
};

/* server.c */
det_time http_server_now(const struct http_server *server);
/* "Sun, 15 Nov 2026 20:41:46 GMT" */
const char *http_server_date(struct http_server *server);
/* The timer runs at this time at the latest. */
void http_server_wake(struct http_server *server, det_time at);
/* NULL: there is no memory. */
struct http_block *http_block_take(struct http_server *server);
void http_block_give(struct http_server *server, struct http_block *block);
/* Twice the room. The data may move. DET_ERR_LIMIT: all connections together have enough. */
int http_block_grow(struct http_server *server, struct http_block *block) DET_MUST_CHECK;

/* client_connection.c */
struct http_origin {
    const char *peer;
    struct http_peer *from;
    const void *user;
    int64_t uid;
    bool is_trusted, is_encrypted, is_local;
};
/* Takes the stream over, if it does not fail. */
int http_connection_open(
    struct http_server *server, const struct http_io *io, void *stream_take,
    const struct http_origin *origin, struct http_connection **ret) DET_MUST_CHECK;
void http_connection_ready(struct http_connection *connection, unsigned events);
/* What the timer does for those in `todo`. */
void http_connection_attend(struct http_connection *connection);
/* It will be attended to. */
void http_connection_wake(struct http_connection *connection);
bool http_connection_is_late(const struct http_connection *connection, det_time now);
/* At once; tells who keeps the exchange. */
void http_connection_cut(struct http_connection *connection);
/* The exchange is over: what comes next, unless it is busy, and its function will see to that. */
void http_connection_answered(struct http_connection *connection);

/* receive_buffer.c */
/* Bytes that can be read to the block as it is. */
size_t http_input_room(const struct http_connection *connection);
/* There is a block. If what is in it `may_move`, there is room, too. */
int http_input_prepare(struct http_connection *connection, bool may_move) DET_MUST_CHECK;
/* Reads once, or as long as the stream hides something; whether anything has come. */
bool http_input_fill(struct http_connection *connection);
/* Reads once, to nowhere. */
void http_input_discard(struct http_connection *connection);
/* Whether the stream has something to read that nobody will tell of. */
bool http_input_hides(const struct http_connection *connection);
void http_input_release(struct http_connection *connection);

/* send_buffer.c */
bool http_output_waits(const struct http_connection *connection);
size_t http_output_size(const struct http_connection *connection);
/* A buffer for what is to be written. */
struct det_buffer *http_output(struct http_connection *connection);
/* Writes what the stream takes. */
void http_output_flush(struct http_connection *connection);
void http_output_release(struct http_connection *connection);

/* response.c */
void http_answer_write(
    struct http_connection *connection, const struct http_answer *answer, bool has_length);
void http_answer_refusal(struct http_connection *connection, enum http_refusal refusal);
void http_exchange_gone(struct http_connection *connection);
/* The whole refusal as it is sent to those who get no connection. Returns its size. */
size_t http_refusal_text(enum http_refusal refusal, char *target, size_t capacity);

/* listener.c */
void http_listeners_rest(struct http_server *server);
void http_listeners_resume(struct http_server *server);
void http_listeners_close(struct http_server *server);
void http_peer_release(struct http_server *server, struct http_peer *peer);

#endif
