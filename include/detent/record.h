/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record.h - a struct, its bytes, its JSON and its printed form, from one list of fields.
 *
 * A record is described by rows, in a file of their own (shop.rec) or inside a machine's spec:
 *
 *     RECORD(payment, 2)                       version 2; the default is 1
 *         FIELD(card,  str(24), SENSITIVE)     char card[25]; printed as {redacted}
 *         FIELD(cents, u64)                    uint64_t cents
 *         OPTIONAL(note, str(80))              bool has_note; char note[81]
 *         ARRAY(lines, nested(line), 16)       uint32_t lines_count; struct line lines[16]
 *         FIELD(tip, u64, SINCE(2))            zero when version 1 is read
 *     END
 *
 * and becomes C through a template:
 *
 *     #define REC_SPEC "shop.rec"
 *     #include <detent/rec/declare.h>          struct payment; payment_record()
 *
 * The types: u8 u16 u32 u64 i8 i16 i32 i64 f64 bool time str(n) bytes(n) one_of(enum)
 * nested(record). Records are flat: all their memory is in the struct, so they are copied by
 * assignment, compared, passed by value, and a decoded one owns nothing. The largest size is
 * therefore known, and is part of the type. */
#ifndef DETENT_RECORD_H
#define DETENT_RECORD_H

#include <detent/base.h>

DET_BEGIN

enum det_kind {
    DET_KIND_UNSIGNED, /* of `size` bytes: 1, 2, 4, 8 */
    DET_KIND_SIGNED,   /* of `size` bytes */
    DET_KIND_FLOAT,    /* double; JSON accepts finite values only */
    DET_KIND_BOOL,
    DET_KIND_TIME,  /* det_time, wall; RFC 3339 in JSON */
    DET_KIND_TEXT,  /* UTF-8, NUL-terminated, at most `capacity` bytes */
    DET_KIND_BYTES, /* struct det_bytes(n): size and data; base64 in JSON */
    DET_KIND_ENUM,  /* an enum; its names on disk and in JSON */
    DET_KIND_RECORD,
};

enum det_field_flags {
    DET_FIELD_SENSITIVE = 1, /* never printed, drawn or logged */
    DET_FIELD_OPTIONAL = 2,  /* `presence` is the offset of a bool */
    DET_FIELD_ARRAY = 4,     /* `presence` is the offset of a uint32_t count */
};

struct det_record;
struct det_enum;

/* A definition, or the function that returns it: exactly one is set. Definitions made at run time
 * set the first, templates the second. */
struct det_record_ref {
    const struct det_record *record;
    const struct det_record *(*get)(void);
};
struct det_enum_ref {
    const struct det_enum *enumeration;
    const struct det_enum *(*get)(void);
};

struct det_enum_value {
    const char *name; /* on disk; never change it */
    int value;
};

struct det_enum {
    const char *name;
    const struct det_enum_value *values;
    size_t value_count;
};

struct det_field {
    const char *name; /* on disk; never change it */
    enum det_kind kind;
    unsigned flags;     /* enum det_field_flags */
    uint32_t since;     /* first version with this field; 0 is 1 */
    uint32_t offset;    /* offset of the value, or of the first element */
    uint32_t size;      /* size of the value, or of one element, in memory */
    uint32_t capacity;  /* TEXT: bytes without the final 0; BYTES: bytes */
    uint32_t presence;  /* OPTIONAL, ARRAY: see the flags */
    uint32_t count_max; /* ARRAY */
    struct det_record_ref record;
    struct det_enum_ref enumeration;
};

struct det_record {
    const char *name;
    uint32_t version; /* 0 is 1 */
    uint32_t size;    /* size of the struct */
    const struct det_field *fields;
    size_t field_count;
};

/* The C type of bytes(n). */
#define DET_BYTES(n)     \
    struct {             \
        uint32_t size;   \
        uint8_t data[n]; \
    }

/* The payload of an event without payload, and the data of a machine without data. */
struct det_empty {
    char unused;
};
DET_API const struct det_record *det_empty_record(void);

/* The record or the enum of a reference; NULL: none. */
static inline const struct det_record *det_record_of(struct det_record_ref ref)
{
    return ref.record ? ref.record : ref.get ? ref.get() : NULL;
}
static inline const struct det_enum *det_enum_of(struct det_enum_ref ref)
{
    return ref.enumeration ? ref.enumeration : ref.get ? ref.get() : NULL;
}

/* Limits of the nesting of records, and of the size of a struct. Larger ones are DET_ERR_LIMIT. */
#define DET_RECORD_DEPTH_MAX 8
#define DET_RECORD_SIZE_MAX  262144
/* Limit of the fields of a record, and of the values of an enum. */
#define DET_RECORD_FIELD_MAX 256
#define DET_ENUM_VALUE_MAX   1024

/* NULL: no such field. */
DET_API const struct det_field *det_record_field(const struct det_record *record, const char *name);
/* Checks that the definition is sound: names, sizes, depth, no record inside itself. */
DET_API int det_record_check(const struct det_record *record, struct det_error *reterr)
    DET_MUST_CHECK;
/* Checks that a value can be encoded: texts are UTF-8 and terminated, counts and enums are in
 * range. */
DET_API int det_record_validate(
    const struct det_record *record, const void *value, struct det_error *reterr) DET_MUST_CHECK;
/* Compares field by field: absent values, bytes after the end of a text and padding are ignored. */
DET_API bool det_record_equal(const struct det_record *record, const void *a, const void *b);

/* The binary form (docs/formats/record.md): versioned, checksummed, the same bytes for equal
 * values. Returns the size, at most det_record_encoded_max(); DET_ERR_LIMIT when `capacity` is too
 * small. */
DET_API size_t det_record_encoded_max(const struct det_record *record);
DET_API int64_t det_record_encode(
    const struct det_record *record, const void *value, void *target, size_t capacity,
    struct det_error *reterr) DET_MUST_CHECK;
/* Strict: any input that encode cannot have written is an error with its offset, and `value` is
 * then all zero. Older versions are read, newer ones are DET_ERR_VERSION. Absent and unused memory
 * in `value` is zero afterwards. */
DET_API int det_record_decode(
    const struct det_record *record, const void *data, size_t size, void *value,
    struct det_error *reterr) DET_MUST_CHECK;

enum det_text_flags {
    DET_TEXT_REVEAL = 1,  /* show sensitive fields: for storage, not for display */
    DET_TEXT_INDENT = 2,  /* several lines */
    DET_TEXT_PARTIAL = 4, /* reading: a missing field is zero instead of an error */
    DET_TEXT_HIDDEN = 8,  /* reading: a sensitive field may be "{redacted}", and is then zero */
    DET_TEXT_EXTRA = 16,  /* reading: unknown fields are skipped, if their values are JSON */
};

/* These write like snprintf(): at most `capacity` bytes with a final 0. They return the full
 * length, so a capacity of 0 measures. Values must be valid (det_record_validate()). JSON has
 * fields in declared order, omits absent optional ones, and has exact 64-bit integers. A sensitive
 * field is "{redacted}" unless DET_TEXT_REVEAL. */
DET_API size_t det_record_to_json(
    const struct det_record *record, const void *value, unsigned flags, char *target,
    size_t capacity);
/* For people: payment{card={redacted}, cents=1999}. Control characters are escaped. */
DET_API size_t det_record_print(
    const struct det_record *record, const void *value, unsigned flags, char *target,
    size_t capacity);
/* Strict RFC 8259: unknown, duplicate and missing fields, wrong types, numbers that do not fit,
 * lone surrogates, NUL in text, trailing bytes and nesting beyond that of the record are errors
 * with their offset, and `value` is then all zero. */
DET_API int det_record_from_json(
    const struct det_record *record, const char *text, size_t size, unsigned flags, void *value,
    struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
