/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json.h - a strict reader of JSON (RFC 8259), token by token, that allocates nothing.
 *
 *     det_json_scanner_init(&json, text, size);
 *     while ((r = det_json_scan(&json, &token, &error)) == 0 && token.kind != DET_JSON_END) ...
 *
 * The grammar is enforced: the tokens are always those of one complete value, then END. Returned
 * strings are valid (UTF-8, escapes, surrogate pairs, no bare control characters) and numbers have
 * JSON's syntax; neither is copied until the caller requests it. Duplicate members are not detected
 * here: only the caller knows their meaning. */
#ifndef DET_RECORD_JSON_H
#define DET_RECORD_JSON_H

#include "base/text.h"

#define DET_JSON_DEPTH_MAX 64

enum det_json_kind {
    DET_JSON_END,
    DET_JSON_OBJECT, /* { */
    DET_JSON_OBJECT_END,
    DET_JSON_ARRAY, /* [ */
    DET_JSON_ARRAY_END,
    DET_JSON_KEY, /* of a member; its value is the next token */
    DET_JSON_STRING,
    DET_JSON_NUMBER,
    DET_JSON_TRUE,
    DET_JSON_FALSE,
    DET_JSON_NULL,
};

struct det_json_token {
    enum det_json_kind kind;
    size_t offset;        /* of its first byte */
    struct det_view text; /* KEY, STRING: between the quotes, still escaped; NUMBER: the whole
                           * number */
};

/* The tokens that may follow. */
enum det_json_place {
    DET_JSON_AT_VALUE,
    DET_JSON_AT_FIRST_ELEMENT, /* a value or ] */
    DET_JSON_AT_FIRST_MEMBER,  /* a key or } */
    DET_JSON_AFTER_VALUE,      /* a comma or the end of the enclosing array or object */
};

struct det_json_scanner {
    const char *text;
    size_t size;
    size_t offset;
    unsigned depth;
    uint64_t objects; /* bit n: an object is open at depth n, not an array */
    enum det_json_place place;
};

void det_json_scanner_init(struct det_json_scanner *json, const char *text, size_t size);
/* Reads the next token. DET_ERR_MALFORMED or DET_ERR_TRUNCATED, DET_ERR_LIMIT beyond
 * DET_JSON_DEPTH_MAX, with the offset. After an error the scanner must not be used. */
DET_MUST_CHECK int det_json_scan(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr);

/* Writes the text of a KEY or STRING without its escapes: at most `capacity` bytes, which may
 * contain 0, and no final 0. Returns the full size. */
size_t det_json_unescape(struct det_view escaped, char *target, size_t capacity);
bool det_json_text_is(struct det_view escaped, const char *text);

/* Converts a NUMBER to sign and magnitude. DET_ERR_TYPE if it has a fraction or an exponent,
 * DET_ERR_RANGE if the magnitude exceeds 64 bits. */
DET_MUST_CHECK int det_json_integer(struct det_view number, bool *ret_negative, uint64_t *ret);

#endif
