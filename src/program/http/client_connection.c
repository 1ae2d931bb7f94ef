/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_connection.c - one connection from accept to close: reads requests, calls the handler, and
 * settles what to write, watch or close. http_internal.h has its states and invariants. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "http/http_internal.h"

#define RATE_MIN      1024  /* bytes a second, of bodies and of answers */
#define PIPELINE_SIZE 65536 /* answers to pipelined requests that are written in one go */

static bool is_reading(const struct http_connection *connection)
{
    return connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY;
}

static void assert_connection(const struct http_connection *connection)
{
    const struct http_block *block = connection->block;
    const struct http_parse *parse = &connection->parse;

    if (connection->state == CONNECTION_IDLE)
        det_assert(!block && parse->size == 0);
    if (is_reading(connection) || connection->state == CONNECTION_HANDLING)
        det_assert(block && parse->data >= block->data);
    if (block)
        det_assert(parse->data + parse->size < block->data + block->capacity);
    det_assert(connection->output_sent <= connection->output.size);
}

static void set_state(struct http_connection *connection, enum http_connection_state state)
{
    connection->state = state;
    connection->since = http_server_now(connection->server);
    connection->moved = 0;
    assert_connection(connection);
}

/* A deadline that grows with the bytes moved: no single byte restarts it. */
static det_time paced_deadline(det_time since, det_time span, uint64_t moved)
{
    return det_add_time(since, span + (det_time)(moved / RATE_MIN) * DET_SECOND);
}

/* During a handshake no bytes of a request arrive: the connection is idle. */
static bool is_opening(const struct http_connection *connection)
{
    return connection->io->is_opening && connection->io->is_opening(connection->stream);
}

static det_time deadline_of(const struct http_connection *connection)
{
    const struct http_limits *limits = &connection->server->limits;

    if (connection->is_waiting)
        return paced_deadline(connection->waits_since, limits->read_time, connection->waits_moved);
    switch (connection->state) {
    case CONNECTION_IDLE:
        return connection->since +
               (is_opening(connection) ? limits->header_time : limits->idle_time);
    case CONNECTION_HEAD:
        return connection->since + limits->header_time;
    case CONNECTION_BODY:
        return paced_deadline(connection->since, limits->body_time, connection->moved);
    case CONNECTION_LINGERING:
        return connection->since + HTTP_LINGER_TIME;
    case CONNECTION_HANDLING:
    case CONNECTION_CLOSING:
        break;
    }
    return DET_NEVER;
}

bool http_connection_is_late(const struct http_connection *connection, det_time now)
{
    return now >= deadline_of(connection);
}

void http_connection_wake(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    if (!det_list_is_empty(&connection->todo))
        return;
    det_list_append(&server->todo, &connection->todo);
    http_server_wake(server, http_server_now(server));
}

static void close_connection(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    det_assert(!connection->is_busy);
    det_list_remove(&connection->node);
    det_list_remove(&connection->todo);
    det_list_remove(&connection->stranger);
    det_list_remove(&connection->peer_stranger);
    server->connection_count--;
    server->local_count -= connection->is_local;
    connection->io->close(connection->stream);
    http_input_release(connection);
    http_output_release(connection);
    if (connection->from)
        http_peer_release(server, connection->from);
    DET_DELETE(server->options.allocator, connection);
}

void http_connection_cut(struct http_connection *connection)
{
    if (connection->state == CONNECTION_HANDLING && !connection->exchange.is_over) {
        connection->is_busy = true;
        http_exchange_gone(connection);
        connection->is_busy = false;
    }
    close_connection(connection);
}

/* Returns true if there is room for more bytes, or will be. */
static bool can_read(const struct http_connection *connection)
{
    if (connection->is_ended || connection->state == CONNECTION_CLOSING)
        return false;
    if (!connection->block || connection->state == CONNECTION_LINGERING)
        return true;
    return (is_reading(connection) && connection->is_starved) || http_input_room(connection) > 0;
}

static void update_watch(struct http_connection *connection)
{
    unsigned events = 0;

    if (can_read(connection))
        events |= DET_POLL_READ;
    if (connection->is_waiting)
        events |= DET_POLL_WRITE;
    if (connection->io->wants && connection->io->wants(connection->stream))
        events = connection->io->wants(connection->stream);
    if (events == connection->watched)
        return;
    if (connection->io->watch(connection->stream, connection, events) < 0) {
        /* No further event would report it. */
        connection->is_broken = true;
        http_connection_wake(connection);
        return;
    }
    connection->watched = events;
}

/* Closing at once would reset the connection of a client that still sends, before it reads the
 * answer. */
static bool linger_wanted(const struct http_connection *connection)
{
    return !connection->is_ended && connection->state == CONNECTION_CLOSING &&
           (connection->parse.size > 0 || connection->parse.phase != HTTP_PHASE_LINE);
}

static void end_connection(struct http_connection *connection)
{
    if (!linger_wanted(connection)) {
        close_connection(connection);
        return;
    }
    http_input_release(connection);
    connection->io->end(connection->stream);
    set_state(connection, CONNECTION_LINGERING);
    update_watch(connection);
}

/* After an answer, when the bytes of the request are no longer needed. */
static void next_request(struct http_connection *connection)
{
    struct http_parse *parse = &connection->parse;

    connection->is_starved = false;
    if (connection->close_wanted) {
        if (parse->phase == HTTP_PHASE_COMPLETE)
            http_parse_next(parse);
        set_state(connection, CONNECTION_CLOSING);
        return;
    }
    http_parse_next(parse);
    if (parse->size == 0) {
        http_input_release(connection);
        set_state(connection, CONNECTION_IDLE);
        return;
    }
    set_state(connection, CONNECTION_HEAD);
    connection->exchange.since = connection->since;
}

static bool is_stream(const struct http_connection *connection)
{
    return connection->state == CONNECTION_HANDLING && connection->exchange.is_stream;
}

/* All output was read; the handler may write more, or end. */
static void report_drained(struct http_connection *connection)
{
    struct http_exchange *exchange = &connection->exchange;

    if (!is_stream(connection) || !exchange->is_kept || !exchange->on_drained)
        return;
    connection->is_busy = true;
    exchange->on_drained(exchange->user);
    connection->is_busy = false;
    if (exchange->is_over)
        next_request(connection);
    if (http_output_waits(connection))
        http_connection_wake(connection);
}

static void write_out(struct http_connection *connection)
{
    bool had_something = http_output_waits(connection);

    http_output_flush(connection);
    if (had_something && !http_output_waits(connection))
        report_drained(connection);
}

/* Returns true if the connection is finished now that all output is written. */
static bool is_at_end(const struct http_connection *connection)
{
    switch (connection->state) {
    case CONNECTION_IDLE:
        return connection->is_ended || connection->server->is_draining;
    case CONNECTION_HEAD:
    case CONNECTION_BODY:
        return connection->is_ended && connection->is_starved;
    case CONNECTION_CLOSING:
        return true;
    case CONNECTION_LINGERING:
        return connection->is_ended;
    case CONNECTION_HANDLING:
        break;
    }
    return false;
}

/* The last call on a connection in each event: it may free the connection. */
static void settle_connection(struct http_connection *connection)
{
    det_assert(!connection->is_busy);
    write_out(connection);
    if (connection->is_broken || (connection->is_ended && is_stream(connection))) {
        http_connection_cut(connection);
        return;
    }
    if (!http_output_waits(connection) && is_at_end(connection)) {
        end_connection(connection);
        return;
    }
    if (is_reading(connection) && !connection->is_starved && !connection->is_waiting)
        http_connection_wake(connection);
    if (http_input_hides(connection) && can_read(connection))
        http_connection_wake(connection);
    update_watch(connection);
    assert_connection(connection);
}

/* Like settle_connection(), but leaves the output for the next turn of the loop: the answers of one
 * turn are sent together, and wake a sleeping client once, not once each. */
static void settle_later(struct http_connection *connection)
{
    if (!http_output_waits(connection) || connection->is_waiting || connection->is_broken)
        settle_connection(connection);
    else
        http_connection_wake(connection);
}

void http_connection_answered(struct http_connection *connection)
{
    if (connection->is_busy)
        return;
    next_request(connection);
    settle_later(connection);
}

static void refuse_request(struct http_connection *connection, enum http_refusal refusal)
{
    http_answer_refusal(connection, refusal);
    set_state(connection, CONNECTION_CLOSING);
}

/* The headers are there. */
static void open_exchange(struct http_connection *connection)
{
    connection->exchange = (struct http_exchange){
        .connection = connection,
        .since = connection->exchange.since,
    };
}

/* The handler may answer now. */
static void begin_exchange(struct http_connection *connection)
{
    set_state(connection, CONNECTION_HANDLING);
    connection->close_wanted = connection->server->is_draining || !connection->parse.is_keep_alive;
}

static void handle_request(struct http_connection *connection)
{
    const struct http_options *options = &connection->server->options;
    struct http_exchange *exchange = &connection->exchange;

    begin_exchange(connection);
    options->handle(options->context, exchange);
    det_assert(exchange->is_over || exchange->is_kept);
    if (exchange->is_over)
        next_request(connection);
}

/* Answers instead of the handler, now or later. The body is not read. */
static void turn_down(
    struct http_connection *connection, unsigned status, struct http_answer *answer)
{
    bool is_later = status == HTTP_LATER;

    det_assert(is_later == connection->exchange.is_kept);
    begin_exchange(connection);
    if (connection->parse.has_body)
        connection->close_wanted = true;
    answer->status = status;
    if (!is_later)
        http_answer(&connection->exchange, answer);
    if (!connection->parse.has_body)
        (void)http_parse(&connection->parse);
    if (!is_later)
        next_request(connection);
}

static void admit_request(struct http_connection *connection)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct http_options *options = &connection->server->options;
    struct http_parse *parse = &connection->parse;
    struct http_answer answer = { 0 };
    unsigned status = 0;

    if (connection->io->subject)
        parse->request.subject = connection->io->subject(connection->stream);
    open_exchange(connection);
    if (options->admit)
        status = options->admit(options->context, &connection->exchange, &answer);
    if (status) {
        turn_down(connection, status, &answer);
        return;
    }
    if (parse->wants_continue && parse->size == parse->at)
        det_buffer_append_text(http_output(connection), go_on);
    if (parse->has_body)
        set_state(connection, CONNECTION_BODY);
}

/* Takes one step of the parser; returns true if another may follow. */
static bool advance_parse(struct http_connection *connection)
{
    switch (http_parse(&connection->parse)) {
    case HTTP_MORE:
        connection->is_starved = true;
        return false;
    case HTTP_HEADERS:
        admit_request(connection);
        return true;
    case HTTP_COMPLETE:
        handle_request(connection);
        return true;
    case HTTP_REFUSED:
    case HTTP_GO_ON:
        break;
    }
    refuse_request(connection, connection->parse.refusal);
    return false;
}

/* Flushes static data, or much output, before the next answer. Returns true if nothing is left
 * waiting. */
static bool can_answer(struct http_connection *connection)
{
    if (connection->tail_size || connection->output.size >= PIPELINE_SIZE)
        http_output_flush(connection);
    return !connection->is_waiting && !connection->is_broken;
}

/* Processes all requests received, as long as their answers are read. */
static void process_input(struct http_connection *connection)
{
    connection->is_busy = true;
    while (is_reading(connection) && can_answer(connection) && advance_parse(connection))
        continue;
    connection->is_busy = false;
    settle_later(connection);
}

/* There is no memory for the input. */
static void give_up(struct http_connection *connection)
{
    if (connection->block && !connection->is_waiting)
        refuse_request(connection, HTTP_REFUSED_MEMORY);
    else
        connection->is_broken = true;
}

/* Input has arrived. */
static void note_bytes(struct http_connection *connection)
{
    if (connection->state == CONNECTION_IDLE) {
        set_state(connection, CONNECTION_HEAD);
        connection->exchange.since = connection->since;
    }
    if (is_reading(connection))
        connection->is_starved = false;
}

/* Room is made only for a request that is being read: an exchange needs its bytes where they are.
 */
static void receive_bytes(struct http_connection *connection)
{
    if (http_input_prepare(connection, is_reading(connection) && connection->is_starved) < 0)
        give_up(connection);
    else if (http_input_fill(connection))
        note_bytes(connection);
    else if (connection->state == CONNECTION_IDLE)
        http_input_release(connection);
    if (is_reading(connection))
        process_input(connection);
    else
        settle_connection(connection);
}

static void discard_input(struct http_connection *connection)
{
    http_input_discard(connection);
    if (connection->moved > HTTP_LINGER_BYTES)
        connection->is_ended = true;
    settle_connection(connection);
}

int http_connection_open(
    struct http_server *server, const struct http_io *io, void *stream_take,
    const struct http_origin *origin, struct http_connection **ret)
{
    struct http_connection *connection = DET_NEW(server->options.allocator, struct http_connection);

    if (!connection)
        return DET_ERR_NO_MEMORY;
    connection->server = server;
    connection->io = io;
    connection->stream = stream_take;
    connection->from = origin->from;
    connection->is_local = origin->is_local;
    (void)det_text_copy(connection->peer, sizeof connection->peer, origin->peer);
    det_buffer_init(&connection->output, server->options.allocator);
    connection->parse.limits = &server->limits;
    connection->parse.request = (struct http_request){
        .peer = connection->peer,
        .user = origin->user,
        .uid = origin->uid,
        .is_trusted = origin->is_trusted,
        .is_encrypted = origin->is_encrypted,
    };
    if (io->watch(stream_take, connection, DET_POLL_READ) < 0) {
        DET_DELETE(server->options.allocator, connection);
        return DET_ERR_IO;
    }
    connection->watched = DET_POLL_READ;
    det_list_init(&connection->todo);
    det_list_append(&server->connections, &connection->node);
    det_list_init(&connection->stranger);
    det_list_init(&connection->peer_stranger);
    if (!origin->is_local)
        det_list_append(&server->strangers, &connection->stranger);
    if (origin->from)
        det_list_append(&origin->from->strangers, &connection->peer_stranger);
    server->connection_count++;
    server->local_count += origin->is_local;
    set_state(connection, CONNECTION_IDLE);
    http_server_wake(server, server->sweep_at);
    *ret = connection;
    return 0;
}

void http_vouch(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;

    det_list_remove(&connection->stranger);
    det_list_remove(&connection->peer_stranger);
}

void http_connection_ready(struct http_connection *connection, unsigned events)
{
    if ((events & DET_POLL_HANGUP) && !can_read(connection))
        connection->is_broken = true;
    if (connection->is_waiting && (events & (DET_POLL_WRITE | DET_POLL_HANGUP))) {
        http_connection_attend(connection);
        return;
    }
    if (connection->state == CONNECTION_LINGERING)
        discard_input(connection);
    else if (can_read(connection))
        receive_bytes(connection);
    else
        settle_connection(connection);
}

/* Deadline passed: a slow sender gets an answer; a client that does not read gets none. */
static void end_late(struct http_connection *connection)
{
    if (connection->is_waiting || !is_reading(connection)) {
        http_connection_cut(connection);
        return;
    }
    refuse_request(
        connection,
        connection->state == CONNECTION_HEAD ? HTTP_REFUSED_HEADER_SLOW : HTTP_REFUSED_BODY_SLOW);
    settle_connection(connection);
}

void http_connection_attend(struct http_connection *connection)
{
    if (http_connection_is_late(connection, http_server_now(connection->server))) {
        end_late(connection);
        return;
    }
    write_out(connection);
    if (http_input_hides(connection) && can_read(connection))
        receive_bytes(connection);
    else if (is_reading(connection) && !connection->is_waiting)
        process_input(connection);
    else
        settle_connection(connection);
}
