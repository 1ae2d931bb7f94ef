/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* body_reader.c - the body of a request: of a known length, or chunks that are joined in place.
 *
 *     data   | head | body so far | removed chunk framing        | not read yet |
 *                   body_at       body_end                       at             size
 *
 * The framing of chunks is removed whenever more room is needed, so a body needs only its own bytes
 * and one frame, however small its chunks are. */
#include <string.h>

#include "base/assert.h"
#include "base/hex.h"
#include "http/request_parser.h"

#define CHUNK_DIGITS_MAX 8
#define EXTENSION_MAX    1024 /* bytes of the extensions of all chunks of a body */

static enum http_verdict refuse_body(struct http_parse *parse, enum http_refusal refusal)
{
    parse->refusal = refusal;
    parse->phase = HTTP_PHASE_REFUSED;
    return HTTP_REFUSED;
}

static enum http_verdict finish_body(struct http_parse *parse)
{
    parse->used = parse->at;
    parse->phase = HTTP_PHASE_COMPLETE;
    if (parse->body_end == parse->body_at)
        return HTTP_COMPLETE;
    /* The NUL after the body may overwrite the first byte of the next request. */
    parse->is_cut = parse->body_end == parse->used;
    parse->cut = parse->data[parse->body_end];
    parse->data[parse->body_end] = '\0';
    return HTTP_COMPLETE;
}

static enum http_verdict read_length(struct http_parse *parse)
{
    if (parse->size - parse->at < parse->length)
        return HTTP_MORE;
    parse->at += (size_t)parse->length;
    parse->body_end = parse->at;
    return finish_body(parse);
}

/* Extensions have no meaning for us, but are parsed strictly: a program that sees the end of the
 * line elsewhere would see another body. */

enum extension_state {
    EXTENSION_END, /* of the size, or of an extension */
    EXTENSION_NAME_FIRST,
    EXTENSION_NAME,
    EXTENSION_VALUE_FIRST,
    EXTENSION_VALUE,
    EXTENSION_QUOTED,
    EXTENSION_PAIR, /* a backslash */
    EXTENSION_WRONG,
};

static enum extension_state after_word(char c, enum extension_state word, bool is_name)
{
    if (http_set_has(&http_token_set, c))
        return word;
    if (c == ';')
        return EXTENSION_NAME_FIRST;
    return is_name && c == '=' ? EXTENSION_VALUE_FIRST : EXTENSION_WRONG;
}

static enum extension_state next_state(enum extension_state state, char c)
{
    bool is_token = http_set_has(&http_token_set, c);
    bool is_text = ((unsigned char)c >= ' ' && c != '\x7f') || c == '\t';

    switch (state) {
    case EXTENSION_END:
        return c == ';' ? EXTENSION_NAME_FIRST : EXTENSION_WRONG;
    case EXTENSION_NAME_FIRST:
        return is_token ? EXTENSION_NAME : EXTENSION_WRONG;
    case EXTENSION_NAME:
        return after_word(c, EXTENSION_NAME, true);
    case EXTENSION_VALUE_FIRST:
        if (c == '"')
            return EXTENSION_QUOTED;
        return is_token ? EXTENSION_VALUE : EXTENSION_WRONG;
    case EXTENSION_VALUE:
        return after_word(c, EXTENSION_VALUE, false);
    case EXTENSION_QUOTED:
        if (c == '"')
            return EXTENSION_END;
        if (c == '\\')
            return EXTENSION_PAIR;
        return is_text ? EXTENSION_QUOTED : EXTENSION_WRONG;
    case EXTENSION_PAIR:
        return is_text ? EXTENSION_QUOTED : EXTENSION_WRONG;
    case EXTENSION_WRONG:
        break;
    }
    return EXTENSION_WRONG;
}

/* Returns the size of the extensions before the CR, or so far, up to `most` plus one; false if they
 * are malformed. */
static bool read_extensions(const char *text, size_t left, size_t most, size_t *ret)
{
    enum extension_state state = EXTENSION_END;
    size_t size = 0;

    while (size < left && size <= most && text[size] != '\r' && state != EXTENSION_WRONG)
        state = next_state(state, text[size++]);
    *ret = size;
    if (state == EXTENSION_WRONG)
        return false;
    /* A CR ends the line only where an extension may end. */
    return size == left || size > most || state == EXTENSION_END || state == EXTENSION_NAME ||
           state == EXTENSION_VALUE;
}

/* "1a", optional extensions, CR LF. A prefix that cannot become valid is refused at once. */
static enum http_verdict read_chunk_size(struct http_parse *parse)
{
    const char *text = parse->data + parse->at;
    size_t left = parse->size - parse->at, digits = 0, extension = 0, end;
    size_t most = EXTENSION_MAX - parse->extension_size;
    uint64_t size = 0;

    while (digits < left && digits <= CHUNK_DIGITS_MAX && det_hex_digit_any_case(text[digits]) >= 0)
        size = size * 16 + (uint64_t)det_hex_digit_any_case(text[digits++]);
    if (digits > CHUNK_DIGITS_MAX || (digits == 0 && left > 0))
        return refuse_body(parse, HTTP_REFUSED_CHUNK_SIZE);
    if (left > digits && text[digits] != '\r' && text[digits] != ';')
        return refuse_body(parse, HTTP_REFUSED_CHUNK_SIZE);
    if (!read_extensions(text + digits, left - digits, most, &extension))
        return refuse_body(parse, HTTP_REFUSED_CHUNK_EXTENSION);
    if (extension > most)
        return refuse_body(parse, HTTP_REFUSED_CHUNK_EXTENSIONS_LONG);
    end = digits + extension;
    if (left > end + 1 && text[end + 1] != '\n')
        return refuse_body(parse, HTTP_REFUSED_CHUNK_SIZE);
    if (left < end + 2)
        return HTTP_MORE;
    if (size > parse->limits->body_max - (parse->body_end - parse->body_at))
        return refuse_body(parse, HTTP_REFUSED_BODY_LONG);
    parse->at += end + 2;
    parse->extension_size += extension;
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

/* CR LF, or the received part of it. */
static enum http_verdict read_end(struct http_parse *parse)
{
    const char *text = parse->data + parse->at;
    size_t left = parse->size - parse->at;

    if ((left > 0 && text[0] != '\r') || (left > 1 && text[1] != '\n'))
        return refuse_body(parse, HTTP_REFUSED_CHUNK_END);
    if (left < 2)
        return HTTP_MORE;
    parse->at += 2;
    parse->phase = HTTP_PHASE_CHUNK_SIZE;
    return HTTP_GO_ON;
}

/* A trailer is checked like a header, and ignored. */
static enum http_verdict drop_trailer(struct http_parse *parse, char *line, size_t size)
{
    struct http_field field;
    enum http_refusal refusal = http_field_read(line, size, &field);

    if (refusal == HTTP_ACCEPTED && http_field_is_known(&field))
        refusal = HTTP_REFUSED_TRAILER;
    if (refusal != HTTP_ACCEPTED)
        return refuse_body(parse, refusal);
    parse->trailer_size += size + 2;
    parse->trailer_count++;
    parse->at += size + 2;
    return HTTP_GO_ON;
}

/* The lines after the last chunk: trailers, and an empty line. */
static enum http_verdict read_last(struct http_parse *parse)
{
    const struct http_limits *limits = parse->limits;
    char *line = parse->data + parse->at;
    size_t left = parse->size - parse->at, size;
    char *end = memchr(line, '\n', left);

    size = end ? (size_t)(end - line) : left;
    if (parse->trailer_size + size >= limits->headers_max)
        return refuse_body(parse, HTTP_REFUSED_TRAILERS_LONG);
    if (!end)
        return HTTP_MORE;
    if (size == 0 || line[size - 1] != '\r')
        return refuse_body(parse, HTTP_REFUSED_BARE_LF);
    size--;
    if (memchr(line, '\r', size))
        return refuse_body(parse, HTTP_REFUSED_BARE_CR);
    if (size == 0) {
        parse->at += 2;
        return finish_body(parse);
    }
    if (parse->trailer_count == limits->header_count_max)
        return refuse_body(parse, HTTP_REFUSED_TRAILERS_LONG);
    return drop_trailer(parse, line, size);
}

static void close_up(struct http_parse *parse)
{
    size_t gap = parse->at - parse->body_end;

    memmove(parse->data + parse->body_end, parse->data + parse->at, parse->size - parse->at);
    parse->size -= gap;
    parse->at -= gap;
}

/* One step. */
static enum http_verdict read_step(struct http_parse *parse)
{
    switch (parse->phase) {
    case HTTP_PHASE_BODY:
        return read_length(parse);
    case HTTP_PHASE_CHUNK_SIZE:
        return read_chunk_size(parse);
    case HTTP_PHASE_CHUNK_DATA:
        return read_chunk_data(parse);
    case HTTP_PHASE_CHUNK_END:
        return read_end(parse);
    case HTTP_PHASE_CHUNK_LAST:
        return read_last(parse);
    case HTTP_PHASE_LINE:
    case HTTP_PHASE_HEADERS:
    case HTTP_PHASE_COMPLETE:
    case HTTP_PHASE_REFUSED:
        break;
    }
    det_assert_failed("there is a body to read", __FILE__, __LINE__);
}

enum http_verdict http_body_read(struct http_parse *parse)
{
    enum http_verdict verdict;

    do
        verdict = read_step(parse);
    while (verdict == HTTP_GO_ON);
    if (verdict == HTTP_MORE && parse->has_encoding)
        close_up(parse);
    return verdict;
}
