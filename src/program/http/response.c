/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* response.c - serializes answers, and implements an exchange for its handler. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "http/http_internal.h"
#include "record/text_sink.h"

static struct http_connection *connection_of(const struct http_exchange *exchange)
{
    return exchange->connection;
}

const struct http_request *http_request(const struct http_exchange *exchange)
{
    return &connection_of(exchange)->parse.request;
}

void *http_note(struct http_exchange *exchange)
{
    return exchange->note;
}

size_t http_waiting(const struct http_exchange *exchange)
{
    return http_output_size(connection_of(exchange));
}

bool http_is_ended(const struct http_exchange *exchange)
{
    return connection_of(exchange)->is_ended;
}

static void append_number(struct det_buffer *to, uint64_t number)
{
    char digits[20], *at = digits + sizeof digits;

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    det_buffer_append(to, at, (size_t)(digits + sizeof digits - at));
}

static void append_header(struct det_buffer *to, const char *name, const char *value)
{
    det_buffer_append_text(to, name);
    det_buffer_append(to, ": ", 2);
    det_buffer_append_text(to, value);
    det_buffer_append(to, "\r\n", 2);
}

static void append_status(struct det_buffer *to, unsigned status, const char *date)
{
    det_buffer_append(to, "HTTP/1.1 ", 9);
    append_number(to, status);
    det_buffer_append_char(to, ' ');
    det_buffer_append_text(to, http_status_phrase(status));
    det_buffer_append(to, "\r\nDate: ", 8);
    det_buffer_append_text(to, date);
    det_buffer_append(to, "\r\n", 2);
}

/* A value that contains a line end could inject a header. */
static bool is_safe(const char *value)
{
    for (; *value; value++)
        if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

static bool has_content(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

static bool has_header(const struct http_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcmp(answer->headers[i].name, name) == 0)
            return true;
    return false;
}

static void append_headers(
    struct det_buffer *to, const struct http_options *options, const struct http_answer *answer)
{
    for (size_t i = 0; i < options->header_count; i++)
        if (!has_header(answer, options->headers[i].name))
            append_header(to, options->headers[i].name, options->headers[i].value);
    for (size_t i = 0; i < answer->header_count; i++)
        if (is_safe(answer->headers[i].value))
            append_header(to, answer->headers[i].name, answer->headers[i].value);
}

static void write_head(
    struct http_connection *connection, const struct http_answer *answer, bool has_length)
{
    struct det_buffer *to = http_output(connection);

    append_status(to, answer->status, http_server_date(connection->server));
    if (answer->type)
        append_header(to, "Content-Type", answer->type);
    if (has_length && has_content(answer->status)) {
        det_buffer_append_text(to, "Content-Length: ");
        append_number(to, answer->body_size);
        det_buffer_append(to, "\r\n", 2);
    }
    append_headers(to, &connection->server->options, answer);
    if (connection->exchange.is_chunked)
        det_buffer_append_text(to, "Transfer-Encoding: chunked\r\n");
    if (connection->close_wanted)
        det_buffer_append_text(to, "Connection: close\r\n");
    else if (connection->parse.minor == 0)
        det_buffer_append_text(to, "Connection: keep-alive\r\n");
    det_buffer_append(to, "\r\n", 2);
}

/* Returns true if the answer to this request must not have a body. */
static bool is_bodiless(const struct http_connection *connection, unsigned status)
{
    return connection->parse.request.method == HTTP_HEAD || !has_content(status);
}

static void write_answer(
    struct http_connection *connection, const struct http_answer *answer, bool has_length)
{
    write_head(connection, answer, has_length);
    if (is_bodiless(connection, answer->status) || answer->body_size == 0)
        return;
    if (!answer->is_static) {
        det_buffer_append(&connection->output, answer->body, answer->body_size);
        return;
    }
    connection->tail = answer->body;
    connection->tail_size = answer->body_size;
}

static const char error_end[] = "}}\n";

/* Returns the size of the longest prefix, of whole characters, that as a string of JSON has at most
 * `room` bytes. */
static size_t fitting_size(const char *text, size_t room)
{
    size_t size = strnlen(text, room);

    for (;; size--) {
        struct det_output quoted = { .target = NULL };

        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
        det_output_quoted(&quoted, det_view_of(text, size));
        if (quoted.length <= room || size == 0)
            return size;
    }
}

size_t http_error_body(char target[HTTP_ERROR_BODY], const char *code, const char *text)
{
    struct det_output output = { .target = target, .capacity = HTTP_ERROR_BODY };
    size_t size;

    det_output_text(&output, "{\"error\":{\"code\":");
    det_output_quoted(&output, det_view_text(code));
    det_output_text(&output, ",\"text\":");
    size = fitting_size(text, HTTP_ERROR_BODY - output.length - sizeof error_end);
    det_output_quoted(&output, det_view_of(text, size));
    det_output_text(&output, error_end);
    size = det_output_finish(&output);
    det_assert(size < HTTP_ERROR_BODY);
    return size;
}

static size_t refusal_body(const struct http_refusal_facts *facts, char body[HTTP_ERROR_BODY])
{
    return http_error_body(body, det_error_name(facts->code), facts->text);
}

size_t http_refusal_text(enum http_refusal refusal, char *target, size_t capacity)
{
    const struct http_refusal_facts *facts = http_refusal_facts(refusal);
    char body[HTTP_ERROR_BODY];
    size_t body_size = refusal_body(facts, body);
    int size = snprintf(
        target, capacity,
        "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s",
        facts->status, http_status_phrase(facts->status), body_size, body);

    det_assert(size > 0 && (size_t)size < capacity);
    return (size_t)size;
}

static void report_done(struct http_connection *connection, const struct http_done *done)
{
    const struct http_options *options = &connection->server->options;

    if (options->done)
        options->done(options->context, done);
}

void http_answer_refusal(struct http_connection *connection, enum http_refusal refusal)
{
    const struct http_refusal_facts *facts = http_refusal_facts(refusal);
    char body[HTTP_ERROR_BODY];
    struct http_answer answer = {
        .status = facts->status,
        .type = "application/json",
        .body = body,
        .body_size = refusal_body(facts, body),
    };

    connection->close_wanted = true;
    write_answer(connection, &answer, true);
    report_done(
        connection, &(struct http_done){
                        .peer = connection->peer,
                        .status = facts->status,
                        .size = answer.body_size,
                        .span = http_server_now(connection->server) - connection->exchange.since,
                        .why_not = facts->text,
                    });
}

/* The one place where an exchange ends. */
static void finish_exchange(struct http_connection *connection, unsigned status)
{
    struct http_exchange *exchange = &connection->exchange;

    det_assert(connection->state == CONNECTION_HANDLING && !exchange->is_over);
    exchange->is_over = true;
    exchange->is_kept = false;
    report_done(
        connection, &(struct http_done){
                        .request = &connection->parse.request,
                        .note = exchange->note,
                        .peer = connection->peer,
                        .status = status,
                        .size = exchange->size,
                        .span = http_server_now(connection->server) - exchange->since,
                        .is_stream = exchange->is_stream,
                    });
}

void http_exchange_gone(struct http_connection *connection)
{
    struct http_exchange *exchange = &connection->exchange;
    bool was_kept = exchange->is_kept;

    finish_exchange(connection, 0);
    if (was_kept && exchange->on_gone)
        exchange->on_gone(exchange->user);
}

/* A drain may have begun since the request was handled. */
static void note_close(struct http_connection *connection, bool close_wanted)
{
    if (close_wanted || connection->server->is_draining)
        connection->close_wanted = true;
}

void http_answer(struct http_exchange *exchange, const struct http_answer *answer)
{
    struct http_connection *connection = connection_of(exchange);

    det_assert(answer->status >= 200 && answer->status <= 999 && !exchange->is_stream);
    note_close(connection, answer->close_wanted);
    exchange->status = answer->status;
    exchange->size = is_bodiless(connection, answer->status) ? 0 : answer->body_size;
    write_answer(connection, answer, true);
    finish_exchange(connection, answer->status);
    http_connection_answered(connection);
}

/* A chunk of no bytes would be the last one. */
static void append_chunk(struct http_connection *connection, const void *data, size_t size)
{
    struct http_exchange *exchange = &connection->exchange;
    struct det_buffer *to = http_output(connection);

    exchange->size += size;
    if (exchange->is_chunked)
        det_buffer_format(to, "%zx\r\n", size);
    det_buffer_append(to, data, size);
    if (exchange->is_chunked)
        det_buffer_append(to, "\r\n", 2);
}

void http_begin(struct http_exchange *exchange, const struct http_answer *answer)
{
    struct http_connection *connection = connection_of(exchange);
    struct http_answer head = *answer;

    det_assert(connection->state == CONNECTION_HANDLING && !exchange->is_over);
    det_assert(has_content(answer->status) && !exchange->is_stream);
    exchange->is_stream = true;
    exchange->status = answer->status;
    exchange->is_chunked = connection->parse.minor == 1;
    note_close(connection, answer->close_wanted || !exchange->is_chunked);
    head.body_size = 0;
    write_answer(connection, &head, false);
    if (answer->body_size && !is_bodiless(connection, answer->status))
        append_chunk(connection, answer->body, answer->body_size);
    http_connection_wake(connection);
}

int http_write(struct http_exchange *exchange, const void *data, size_t size)
{
    struct http_connection *connection = connection_of(exchange);
    size_t waiting;

    det_assert(exchange->is_stream && !exchange->is_over);
    if (connection->is_broken)
        return DET_ERR_CLOSED;
    if (size == 0 || is_bodiless(connection, exchange->status))
        return 0;
    http_connection_wake(connection);
    waiting = http_output_size(connection);
    if (waiting && waiting + size > connection->server->limits.unread_max) {
        connection->is_broken = true;
        return DET_ERR_CLOSED;
    }
    append_chunk(connection, data, size);
    if (det_buffer_status(&connection->output) < 0)
        connection->is_broken = true;
    return connection->is_broken ? DET_ERR_CLOSED : 0;
}

void http_end(struct http_exchange *exchange)
{
    struct http_connection *connection = connection_of(exchange);

    det_assert(exchange->is_stream);
    if (exchange->is_chunked && !is_bodiless(connection, exchange->status))
        det_buffer_append(http_output(connection), "0\r\n\r\n", 5);
    note_close(connection, false);
    finish_exchange(connection, exchange->status);
    http_connection_answered(connection);
}

void http_keep(
    struct http_exchange *exchange, void (*on_gone)(void *user), void (*on_drained)(void *user),
    void *user)
{
    det_assert(!exchange->is_over);
    exchange->is_kept = true;
    exchange->on_gone = on_gone;
    exchange->on_drained = on_drained;
    exchange->user = user;
}
