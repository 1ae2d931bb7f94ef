/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum.h - what a user wrote, as a tree: null, bool, numbers, text, lists and maps that keep their
 * order, each with its place in the text. A tree lives in an arena, and is not changed once it is
 * made. */
#ifndef DET_YAML_DATUM_H
#define DET_YAML_DATUM_H

#include "base/arena.h"
#include "base/buffer.h"

#define DET_DATUM_SIZE_MAX  1048576 /* bytes of a config, as rendered */
#define DET_DATUM_DEPTH_MAX 64
#define DET_DATUM_READ_MAX  16777216 /* bytes of YAML that is read: 100,000 workers have room */
#define DET_DATUM_NODES_MAX 1000000

/* Each with what a message calls it. */
#define DET_DATUM_KINDS(X)   \
    X(NULL, "null")          \
    X(BOOL, "a truth value") \
    X(SIGNED, "a number")    \
    X(UNSIGNED, "a number")  \
    X(FLOAT, "a number")     \
    X(TEXT, "text")          \
    X(LIST, "a list")        \
    X(MAP, "a map")
enum det_datum_kind {
#define DET_DATUM_KIND(name, text) DET_DATUM_##name,
    DET_DATUM_KINDS(DET_DATUM_KIND)
#undef DET_DATUM_KIND
};

struct det_datum {
    enum det_datum_kind kind;
    bool is_plain;                 /* a scalar that was written without quotes */
    bool is_too_large;             /* TEXT that is a number beyond what 64 bits hold */
    uint32_t line, column;         /* from 1; 0: it comes from no text */
    uint32_t key_line, key_column; /* of its key, in a map */
    uint32_t count;                /* LIST, MAP: of elements */
    union {
        bool truth;
        int64_t number; /* SIGNED: all whole numbers that fit it */
        uint64_t large; /* UNSIGNED: only what is beyond INT64_MAX */
        double real;
    } as;
    /* TEXT: UTF-8, without a NUL in it. Other scalars: as they were written, or NULL: 0640 and 1.10
     * are not 640 and 1.1 as texts. */
    const char *text;
    struct det_datum *first, *last; /* LIST, MAP */
    struct det_datum **index;       /* of a sealed MAP with many keys */
    uint64_t key_hash;
    const char *key; /* in a map; NULL elsewhere */
    struct det_datum *next;
};

/* What is wrong with a text, where. */
struct det_yaml_error {
    uint32_t line, column;
    char text[DET_ERROR_TEXT_MAX];
};

static inline bool det_datum_is_scalar(const struct det_datum *datum)
{
    return datum->kind != DET_DATUM_LIST && datum->kind != DET_DATUM_MAP;
}

/* "a map", ...: for messages. */
const char *det_datum_kind_text(enum det_datum_kind kind);
/* Says "config, line 3, column 5: ...", or without the place when the line is 0; returns the code.
 */
int det_datum_fail(
    struct det_error *reterr, int code, const char *what, uint32_t line, uint32_t column,
    const char *format, ...) DET_PRINTF(6, 7);
/* The value of a key; NULL: it has none, or is no map. */
const struct det_datum *det_datum_get(const struct det_datum *map, const char *key);

/* Reads one document of YAML 1.2 (core schema; JSON is YAML too): plain null, true, 12, 0x1f, 1.5,
 * .inf mean what they say, what is quoted is text. Aliases, anchors, tags, merge keys and duplicate
 * keys are refused; a number beyond 64 bits is text that is marked. A text without any value is
 * DET_ERR_MALFORMED, as all that is wrong, or DET_ERR_LIMIT, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_yaml_read(
    struct det_arena *arena, const char *text, size_t size, struct det_datum **ret,
    struct det_yaml_error *reterr);
/* The same where every number must be one, and a text without any value is null. `what` is for the
 * message: "config". */
DET_MUST_CHECK int det_datum_from_yaml(
    struct det_arena *arena, const char *what, const char *text, size_t size,
    struct det_datum **ret, struct det_error *reterr);
/* Whether all numbers of a tree fit 64 bits; DET_ERR_MALFORMED with the first that does not. */
DET_MUST_CHECK int det_datum_check_numbers(
    const struct det_datum *datum, const char *what, struct det_error *reterr);
/* On one line. Numbers that JSON has not (.inf, .nan) become null. Failures stick in the buffer. */
void det_datum_to_json(const struct det_datum *datum, struct det_buffer *buffer);
/* Block style; det_datum_from_yaml() of it is equal. */
void det_datum_to_yaml(const struct det_datum *datum, struct det_buffer *buffer);

/* Same kind, same value; maps whatever the order of their keys. Places do not count. */
bool det_datum_equal(const struct det_datum *a, const struct det_datum *b);
/* Equal ones have the same, on every machine and in every run; the order of keys does not matter.
 */
uint64_t det_datum_hash(const struct det_datum *datum);

/* Building. All of these return NULL when there is no memory. Texts are copied. */
struct det_datum *det_datum_new(struct det_arena *arena, enum det_datum_kind kind);
struct det_datum *det_datum_new_text(struct det_arena *arena, const char *text);
/* Puts an item that is in no tree yet at the end of a list, or with a key at the end of a map,
 * which must not have the key. Returns the item; NULL also when the item is. */
struct det_datum *det_datum_append(
    struct det_arena *arena, struct det_datum *parent, const char *key, struct det_datum *item);
/* Looks for doubled keys, and makes a map with many keys quick to search; for one that is complete.
 * DET_ERR_EXISTS: in `ret_twice` is the second one with a key; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_datum_seal(
    struct det_arena *arena, struct det_datum *map, const struct det_datum **ret_twice);
/* All of it, places too, but not its key. */
struct det_datum *det_datum_copy(struct det_arena *arena, const struct det_datum *datum);
/* The keys of both maps, deep copies; where both have one, that of the child, at the place of the
 * parent's. Maps in them are not merged: the child's replaces the parent's. NULL is an empty map.
 */
struct det_datum *det_datum_merge(
    struct det_arena *arena, const struct det_datum *parent, const struct det_datum *child);

#endif
