/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_parser.h - from bytes to a request or a refusal; pure: no I/O, no clock, no memory of its
 * own.
 *
 *                 http_parse()
 *     HTTP_MORE <----- | -----> HTTP_REFUSED      the end: `refusal` says why
 *                      v
 *                 HTTP_HEADERS                    once: `request` is there but for its body
 *                      | http_parse()
 *     HTTP_MORE <----- | -----> HTTP_REFUSED
 *                      v
 *                  HTTP_COMPLETE                     `used` bytes were the request
 *                      | http_parse_next()
 *                      v                          `data` and `size` are what follows it
 *
 * The request is made of slices of the bytes themselves, which are changed for it: names in lower
 * case, a NUL after each slice, chunks put together.
 *
 * Invariants
 *   1. The verdict on a request does not depend on where its bytes were cut: a rule checks a
 *      whole line, or at a prefix that decides it whatever follows.
 *   2. Places are kept as offsets until a head or a whole request is returned, so that the caller
 *      may move the bytes between two calls.
 *   3. No byte is looked at twice, but for the rest of a line that was not whole. */
#ifndef DET_HTTP_REQUEST_PARSER_H
#define DET_HTTP_REQUEST_PARSER_H

#include "http/protocol_tables.h"

enum http_verdict {
    HTTP_MORE,
    HTTP_HEADERS,
    HTTP_COMPLETE,
    HTTP_REFUSED,
    HTTP_GO_ON, /* internal: this step is done */
};

enum http_phase {
    HTTP_PHASE_LINE,
    HTTP_PHASE_HEADERS,
    HTTP_PHASE_BODY, /* by Content-Length; also where there is none */
    HTTP_PHASE_CHUNK_SIZE,
    HTTP_PHASE_CHUNK_DATA,
    HTTP_PHASE_CHUNK_END,
    HTTP_PHASE_CHUNK_LAST,
    HTTP_PHASE_COMPLETE,
    HTTP_PHASE_REFUSED,
};

struct http_place {
    uint32_t name, value;
};

struct http_parse {
    /* Owned by the caller. `data` has room for one byte more than `size`, and begins with the
     * request. It may move between two calls. In http_parse() `size` may shrink, and `data` moves
     * past an empty line before the request. */
    const struct http_limits *limits; /* settled */
    struct http_header *headers;      /* room for header_count_max each */
    struct http_place *places;
    char *data;
    size_t size;

    struct http_request request; /* members of the connection are not touched */
    enum http_refusal refusal;
    size_t used;
    unsigned minor;      /* minor version: 1.x */
    bool is_keep_alive;  /* the client allows the connection to be reused */
    bool wants_continue; /* and has a body */
    bool has_body;       /* at a head: a body follows, possibly empty */

    /* Private to the parser. */
    enum http_phase phase;
    size_t at;      /* everything before it was parsed */
    size_t scanned; /* no line ends before it */
    size_t headers_at;
    size_t body_at, body_end;
    uint64_t length;       /* length of the body, or the rest of a chunk */
    size_t extension_size; /* of all chunks so far */
    size_t trailer_size;   /* bytes of trailers that were read */
    uint32_t trailer_count;
    size_t path, query, host; /* offsets; 0: none */
    size_t authority;         /* of an absolute target; 0: of another form */
    unsigned seen;            /* headers that the server knows, a bit each */
    bool has_length, has_encoding;
    bool has_blank; /* an empty line before the request was skipped */
    bool is_cut;    /* `cut` was at data[used], where the NUL of the body is */
    char cut;
};

/* `limits`, `headers`, `places`, `data` and `size` are set; resets the rest. */
void http_parse_begin(struct http_parse *parse);
/* Adds `size` bytes that arrived at data[size]; also while a whole request is being handled. */
void http_parse_add(struct http_parse *parse, size_t size);
enum http_verdict http_parse(struct http_parse *parse);
/* After HTTP_COMPLETE: moves to the next request; the slices of this one become invalid. */
void http_parse_next(struct http_parse *parse);

/* Returns true if the text is valid in Host: "example.org:80", "[::1]:80", "127.0.0.1". */
bool http_host_is_valid(const char *host);

/* Parses a header line without its end: the name becomes lower case, and both slices get a NUL. */
struct http_field {
    char *name, *value;
    size_t name_size;
};
enum http_refusal http_field_read(char *line, size_t size, struct http_field *ret);
/* Returns true for a header that the server itself interprets, which no trailer may be. */
bool http_field_is_known(const struct http_field *field);

/* The parts of target.c. */
enum http_refusal http_target_read(struct http_parse *parse, size_t at, size_t size);

/* The parts of body_reader.c. */
enum http_verdict http_body_read(struct http_parse *parse);

/* Sets of ASCII characters, a bit each. */
struct http_set {
    uint64_t low, high;
};
extern const struct http_set http_token_set;

static inline bool http_set_has(const struct http_set *set, char c)
{
    unsigned char byte = (unsigned char)c;

    return byte < 128 && ((byte < 64 ? set->low : set->high) >> (byte & 63) & 1);
}

#endif
