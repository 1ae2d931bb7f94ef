/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum.h - a text of a user as a tree: null, bool, numbers, text, lists and ordered maps, each
 * with its place in the text. A tree lives in an arena and does not change once it is built. */
#ifndef DET_YAML_DATUM_H
#define DET_YAML_DATUM_H

#include "base/arena.h"
#include "base/buffer.h"

#define DET_DATUM_SIZE_MAX  1048576 /* bytes of a config, as rendered */
#define DET_DATUM_DEPTH_MAX 64
#define DET_DATUM_READ_MAX  16777216 /* bytes of a YAML text: enough for 100,000 workers */
#define DET_DATUM_NODES_MAX 1000000

/* The kinds, each with its name in messages. */
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
    bool is_plain;                 /* a scalar without quotes */
    bool is_too_large;             /* TEXT that is a number beyond 64 bits */
    uint32_t line, column;         /* from 1; 0: not from a text */
    uint32_t key_line, key_column; /* of its key, in a map */
    uint32_t count;                /* LIST, MAP: of elements */
    union {
        bool truth;
        int64_t number; /* SIGNED: every whole number that fits */
        uint64_t large; /* UNSIGNED: only numbers beyond INT64_MAX */
        double real;
    } as;
    /* TEXT: UTF-8, without a NUL in it. Other scalars: as written, or NULL: 0640 and 1.10 are not
     * 640 and 1.1 as texts. */
    const char *text;
    struct det_datum *first, *last; /* LIST, MAP */
    struct det_datum **index;       /* of a sealed MAP with many keys */
    uint64_t key_hash;
    const char *key; /* in a map; NULL elsewhere */
    struct det_datum *next;
};

/* The first error in a text, with its place. */
struct det_yaml_error {
    uint32_t line, column;
    char text[DET_ERROR_TEXT_MAX];
};

static inline bool det_datum_is_scalar(const struct det_datum *datum)
{
    return datum->kind != DET_DATUM_LIST && datum->kind != DET_DATUM_MAP;
}

/* Returns "a map", ..., for messages. */
const char *det_datum_kind_text(enum det_datum_kind kind);
/* Writes "config, line 3, column 5: ...", without the place if the line is 0; returns the code. */
int det_datum_fail(
    struct det_error *reterr, int code, const char *what, uint32_t line, uint32_t column,
    const char *format, ...) DET_PRINTF(6, 7);
/* Returns the value of a key; NULL: the map does not have the key, or `map` is not a map. */
const struct det_datum *det_datum_get(const struct det_datum *map, const char *key);

/* Reads one document of YAML 1.2 (core schema; JSON is YAML, too): plain null, true, 12, 0x1f, 1.5
 * and .inf have their types, quoted scalars are text. Aliases, anchors, tags, merge keys and
 * duplicate keys are refused; a number beyond 64 bits is text with a mark. DET_ERR_MALFORMED: not
 * YAML, refused, or without any value; DET_ERR_LIMIT; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_yaml_read(
    struct det_arena *arena, const char *text, size_t size, struct det_datum **ret,
    struct det_yaml_error *reterr);
/* The same, except that numbers beyond 64 bits are refused, and a text without any value is null.
 * `what` is for the message: "config". */
DET_MUST_CHECK int det_datum_from_yaml(
    struct det_arena *arena, const char *what, const char *text, size_t size,
    struct det_datum **ret, struct det_error *reterr);
/* Checks that all numbers of a tree fit 64 bits; DET_ERR_MALFORMED with the first that does not. */
DET_MUST_CHECK int det_datum_check_numbers(
    const struct det_datum *datum, const char *what, struct det_error *reterr);
/* Appends one line. Numbers that JSON lacks (.inf, .nan) become null. Failures stick in the
 * buffer. */
void det_datum_to_json(const struct det_datum *datum, struct det_buffer *buffer);

/* Compares kinds and values; the order of keys and the places do not matter. */
bool det_datum_equal(const struct det_datum *a, const struct det_datum *b);
/* Returns a hash that is equal for equal trees, on every machine and in every run. */
uint64_t det_datum_hash(const struct det_datum *datum);

/* Building. These functions return NULL if memory failed. Texts are copied. */
struct det_datum *det_datum_new(struct det_arena *arena, enum det_datum_kind kind);
struct det_datum *det_datum_new_text(struct det_arena *arena, const char *text);
/* Appends an item that is not in a tree to a list, or with a key to a map that does not have the
 * key. Returns the item; NULL also for a NULL item. */
struct det_datum *det_datum_append(
    struct det_arena *arena, struct det_datum *parent, const char *key, struct det_datum *item);
/* Checks a complete map for duplicate keys, and indexes one with many keys. DET_ERR_EXISTS:
 * `ret_twice` is the second item with a key; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_datum_seal(
    struct det_arena *arena, struct det_datum *map, const struct det_datum **ret_twice);
/* Copies the whole tree with its places, but without the key of its root. */
struct det_datum *det_datum_copy(struct det_arena *arena, const struct det_datum *datum);
/* Returns a map with deep copies of the items of both maps. An item of the child replaces that of
 * the parent, at its place in the order; maps in them are not merged. NULL is an empty map. */
struct det_datum *det_datum_merge(
    struct det_arena *arena, const struct det_datum *parent, const struct det_datum *child);

#endif
