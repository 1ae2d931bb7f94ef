/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_body.c - the body of a request: so many bytes, or chunks that are put together in place.
 *
 *     data   | head | body so far | what chunks were framed with | not read yet |
 *                   body_at       body_end                       at             size
 *
 * The frames of chunks are closed up whenever more is needed, so that a body takes no more room
 * than its own bytes and one frame, however small its chunks are. */
#include <string.h>

#include "base/assert.h"
#include "console/http_parse.h"

#define CHUNK_DIGITS_MAX 8

static enum http_verdict refuse(struct http_parse *parse, enum http_refusal refusal)
{
    parse->refusal = refusal;
    parse->phase = HTTP_PHASE_REFUSED;
    return HTTP_REFUSED;
}

static enum http_verdict finish(struct http_parse *parse)
{
    parse->used = parse->at;
    parse->phase = HTTP_PHASE_WHOLE;
    if (parse->body_end == parse->body_at)
        return HTTP_WHOLE;
    /* The NUL behind the body may fall on the next request. */
    parse->is_cut = parse->body_end == parse->used;
    parse->cut = parse->data[parse->body_end];
    parse->data[parse->body_end] = '\0';
    return HTTP_WHOLE;
}

static enum http_verdict read_length(struct http_parse *parse)
{
    if (parse->size - parse->at < parse->length)
        return HTTP_MORE;
    parse->at += (size_t)parse->length;
    parse->body_end = parse->at;
    return finish(parse);
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* "1a" CR LF and nothing else. What cannot become that any more is refused whatever follows. */
static enum http_verdict read_chunk_size(struct http_parse *parse)
{
    const char *text = parse->data + parse->at;
    size_t left = parse->size - parse->at, digits = 0;
    uint64_t size = 0;

    while (digits < left && digits <= CHUNK_DIGITS_MAX && hex_of(text[digits]) >= 0)
        size = size * 16 + (uint64_t)hex_of(text[digits++]);
    if (digits > CHUNK_DIGITS_MAX || (digits == 0 && left > 0))
        return refuse(parse, HTTP_REFUSED_CHUNK_SIZE);
    if ((left > digits && text[digits] != '\r') || (left > digits + 1 && text[digits + 1] != '\n'))
        return refuse(parse, HTTP_REFUSED_CHUNK_SIZE);
    if (left < digits + 2)
        return HTTP_MORE;
    if (size > parse->limits->body_max - (parse->body_end - parse->body_at))
        return refuse(parse, HTTP_REFUSED_BODY_LONG);
    parse->at += digits + 2;
    parse->length = size;
    parse->phase = size ? HTTP_PHASE_CHUNK_DATA : HTTP_PHASE_CHUNK_LAST;
    return HTTP_GO_ON;
}

static enum http_verdict read_chunk_data(struct http_parse *parse)
{
    size_t left = parse->size - parse->at;
    size_t part = left < parse->length ? left : (size_t)parse->length;

    memmove(parse->data + parse->body_end, parse->data + parse->at, part);
    parse->body_end += part;
    parse->at += part;
    parse->length -= part;
    if (parse->length)
        return HTTP_MORE;
    parse->phase = HTTP_PHASE_CHUNK_END;
    return HTTP_GO_ON;
}

/* CR LF, or as much of it as has come. */
static enum http_verdict read_end(struct http_parse *parse, enum http_refusal otherwise)
{
    const char *text = parse->data + parse->at;
    size_t left = parse->size - parse->at;

    if ((left > 0 && text[0] != '\r') || (left > 1 && text[1] != '\n'))
        return refuse(parse, otherwise);
    if (left < 2)
        return HTTP_MORE;
    parse->at += 2;
    parse->phase = HTTP_PHASE_CHUNK_SIZE;
    return HTTP_GO_ON;
}

static enum http_verdict read_last(struct http_parse *parse)
{
    enum http_verdict verdict = read_end(parse, HTTP_REFUSED_TRAILER);

    return verdict == HTTP_GO_ON ? finish(parse) : verdict;
}

static void close_up(struct http_parse *parse)
{
    size_t gap = parse->at - parse->body_end;

    memmove(parse->data + parse->body_end, parse->data + parse->at, parse->size - parse->at);
    parse->size -= gap;
    parse->at -= gap;
}

/* One step. */
static enum http_verdict step(struct http_parse *parse)
{
    switch (parse->phase) {
    case HTTP_PHASE_BODY:
        return read_length(parse);
    case HTTP_PHASE_CHUNK_SIZE:
        return read_chunk_size(parse);
    case HTTP_PHASE_CHUNK_DATA:
        return read_chunk_data(parse);
    case HTTP_PHASE_CHUNK_END:
        return read_end(parse, HTTP_REFUSED_CHUNK_END);
    case HTTP_PHASE_CHUNK_LAST:
        return read_last(parse);
    case HTTP_PHASE_LINE:
    case HTTP_PHASE_HEADERS:
    case HTTP_PHASE_WHOLE:
    case HTTP_PHASE_REFUSED:
        break;
    }
    det_assert_failed("there is a body to read", __FILE__, __LINE__);
}

enum http_verdict http_body_read(struct http_parse *parse)
{
    enum http_verdict verdict;

    do
        verdict = step(parse);
    while (verdict == HTTP_GO_ON);
    if (verdict == HTTP_MORE && parse->has_encoding)
        close_up(parse);
    return verdict;
}
