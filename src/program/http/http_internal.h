/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_internal.h - shared by the files of the HTTP server.
 *
 *            accept                   first byte        headers         body
 *     ---------------> CONNECTION_IDLE ---------> _HEAD --------> _BODY ---------> _HANDLING
 *                             ^                     ^                                  |
 *                             |                     |  more bytes are buffered         | answered
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
 *   1. Work outside a connection's own event is done in `attend`, from the server's one timer: a
 *      connection that needs it is in `todo`. The timer is always armed, possibly for never, so
 *      that arming it cannot fail.
 *   2. No deadline is stored. The sweep, once a second, derives it from the start of the state and
 *      the bytes moved in it; so a request costs no timer.
 *   3. A connection without a request and without a pending answer holds neither buffer: they are
 *      lent by the server, and returned.
 *   4. `is_busy`: a function of the connection is on the stack and will settle it; functions called
 *      from there only change it. Only code that settles a connection closes it. */
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

/* The buffer of a request. */
struct http_block {
    struct http_block *next; /* next free block */
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
    bool is_chunked; /* must be ended by a last chunk */
    bool is_over;
    _Alignas(max_align_t) unsigned char note[HTTP_NOTE_SIZE];
};

/* The connections of an address. */
struct http_peer {
    const char *key; /* `address` */
    uint32_t count;
    struct det_list strangers; /* its untrusted connections, oldest first */
    char address[HTTP_PEER_TEXT];
};

struct http_connection {
    struct det_list node; /* of the server */
    struct det_list todo; /* empty when there is nothing to attend to */
    struct http_server *server;
    const struct http_io *io;
    void *stream;
    unsigned watched; /* enum det_poll_events */
    enum http_connection_state state;
    det_time since; /* start of the state */
    uint64_t moved; /* bytes read in it */
    bool is_busy;
    bool is_ended;     /* by its client: end of input */
    bool is_broken;    /* nothing more can be read or written */
    bool is_starved;   /* more input is required before the parser can continue */
    bool close_wanted; /* after this answer */

    struct http_block *block; /* NULL: no bytes of a request */
    struct http_parse parse;
    struct http_exchange exchange;

    struct det_buffer output; /* pending output from `output_sent` on, before the tail */
    size_t output_sent;
    const char *tail; /* static data */
    size_t tail_size;
    det_time waits_since; /* when output began to wait */
    uint64_t waits_moved; /* bytes written since then */
    bool is_waiting;      /* the stream did not take all of it */
    size_t counted;       /* bytes of the output in the server's memory */

    struct http_peer *from; /* NULL: not counted */
    bool is_local;          /* over a unix socket */
    /* While untrusted: in the lists of the server and of its peer, which close it to make room. */
    struct det_list stranger, peer_stranger;
    char peer[HTTP_PEER_TEXT];
};

struct http_server {
    struct http_options options;
    struct http_limits limits;
    struct det_world *world;
    struct det_list connections;
    size_t connection_count;
    size_t local_count;        /* over unix sockets, which are not counted with the others */
    struct det_list strangers; /* untrusted ones, oldest first; none of them is local */
    struct det_list todo;
    struct det_timer timer;
    det_time timer_at; /* when it fires */
    det_time sweep_at;
    det_time rest_until; /* accepting is paused until then; 0: not paused */
    bool is_draining;
    struct det_map peers;
    struct http_block *blocks; /* free */
    unsigned block_count;
    struct det_buffer spare; /* a free output buffer */
    uint64_t memory;         /* bytes of grown blocks and of pending outputs */
    char date[HTTP_DATE_TEXT];
    det_time date_until; /* monotonic */
    struct http_listener *listeners;
    int reserve; /* a descriptor to release when none are left; -1: none */
    struct http_tls_context *tls;
};

/* server.c */
det_time http_server_now(const struct http_server *server);
/* "Sun, 15 Nov 2026 20:41:46 GMT" */
const char *http_server_date(struct http_server *server);
/* The timer runs at this time at the latest. */
void http_server_wake(struct http_server *server, det_time at);
/* Returns NULL without memory. */
struct http_block *http_block_take(struct http_server *server);
void http_block_give(struct http_server *server, struct http_block *block);
/* Doubles the room. The data may move. DET_ERR_LIMIT: the limit of all connections together. */
int http_block_grow(struct http_server *server, struct http_block *block) DET_MUST_CHECK;

/* client_connection.c */
struct http_origin {
    const char *peer;
    struct http_peer *from;
    const void *user;
    int64_t uid;
    bool is_trusted, is_encrypted, is_local;
};
/* Takes over the stream on success. */
int http_connection_open(
    struct http_server *server, const struct http_io *io, void *stream_take,
    const struct http_origin *origin, struct http_connection **ret) DET_MUST_CHECK;
void http_connection_ready(struct http_connection *connection, unsigned events);
/* Called by the timer for those in `todo`. */
void http_connection_attend(struct http_connection *connection);
/* Schedules http_connection_attend(). */
void http_connection_wake(struct http_connection *connection);
bool http_connection_is_late(const struct http_connection *connection, det_time now);
/* Closes it at once; reports to the owner of a kept exchange. */
void http_connection_cut(struct http_connection *connection);
/* The exchange is over: starts the next one, unless the connection is busy, whose function will do
 * it. */
void http_connection_answered(struct http_connection *connection);

/* receive_buffer.c */
/* Bytes that can be read to the block as it is. */
size_t http_input_room(const struct http_connection *connection);
/* Requires a block. Makes room if its content `may_move`. */
int http_input_prepare(struct http_connection *connection, bool may_move) DET_MUST_CHECK;
/* Reads once, or until the stream has no hidden input; returns whether anything arrived. */
bool http_input_fill(struct http_connection *connection);
/* Reads once and discards the bytes. */
void http_input_discard(struct http_connection *connection);
/* Returns true if the stream has buffered input that no event reports. */
bool http_input_hides(const struct http_connection *connection);
void http_input_release(struct http_connection *connection);

/* send_buffer.c */
bool http_output_waits(const struct http_connection *connection);
size_t http_output_size(const struct http_connection *connection);
/* Returns a buffer for output. */
struct det_buffer *http_output(struct http_connection *connection);
/* Writes as much as the stream accepts. */
void http_output_flush(struct http_connection *connection);
void http_output_release(struct http_connection *connection);

/* response.c */
void http_answer_refusal(struct http_connection *connection, enum http_refusal refusal);
void http_exchange_gone(struct http_connection *connection);
/* Writes the whole refusal sent to clients that get no connection. Returns its size. */
size_t http_refusal_text(enum http_refusal refusal, char *target, size_t capacity);

/* listener.c */
void http_listeners_resume(struct http_server *server);
void http_listeners_close(struct http_server *server);
void http_peer_release(struct http_server *server, struct http_peer *peer);

#endif
