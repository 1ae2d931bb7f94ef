/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* types.h - meaning of the types and flags of record rows; used by the templates only.
 *
 * A type is looked up by pasting its name to a prefix. The prefixes are sentences: for an unknown
 * type, the compiler prints the sentence. */
#ifndef DETENT_REC_TYPES_H
#define DETENT_REC_TYPES_H

#include <detent/record.h>

/* The type in C; a text is an array, and __typeof__ lets it be written like any other type. */
#define there_is_no_record_type_called_u8        uint8_t
#define there_is_no_record_type_called_u16       uint16_t
#define there_is_no_record_type_called_u32       uint32_t
#define there_is_no_record_type_called_u64       uint64_t
#define there_is_no_record_type_called_i8        int8_t
#define there_is_no_record_type_called_i16       int16_t
#define there_is_no_record_type_called_i32       int32_t
#define there_is_no_record_type_called_i64       int64_t
#define there_is_no_record_type_called_f64       double
#define there_is_no_record_type_called_bool      _Bool
#define there_is_no_record_type_called__Bool     _Bool
#define there_is_no_record_type_called_time      det_time
#define there_is_no_record_type_called_str(n)    __typeof__(char[(n) + 1])
#define there_is_no_record_type_called_bytes(n)  DET_BYTES(REC__AT_LEAST_1(n))
#define there_is_no_record_type_called_one_of(e) enum e
#define there_is_no_record_type_called_nested(r) struct r

/* The same size, or 1 in place of 0, so that only our own sentence is printed. */
#define REC__AT_LEAST_1(n) ((n) > 0 ? (n) : 1)

/* Initializers of the type in the table. */
#define REC__KIND_u8        .kind = DET_KIND_UNSIGNED
#define REC__KIND_u16       .kind = DET_KIND_UNSIGNED
#define REC__KIND_u32       .kind = DET_KIND_UNSIGNED
#define REC__KIND_u64       .kind = DET_KIND_UNSIGNED
#define REC__KIND_i8        .kind = DET_KIND_SIGNED
#define REC__KIND_i16       .kind = DET_KIND_SIGNED
#define REC__KIND_i32       .kind = DET_KIND_SIGNED
#define REC__KIND_i64       .kind = DET_KIND_SIGNED
#define REC__KIND_f64       .kind = DET_KIND_FLOAT
#define REC__KIND_bool      .kind = DET_KIND_BOOL
#define REC__KIND__Bool     .kind = DET_KIND_BOOL
#define REC__KIND_time      .kind = DET_KIND_TIME
#define REC__KIND_str(n)    .kind = DET_KIND_TEXT, .capacity = (n)
#define REC__KIND_bytes(n)  .kind = DET_KIND_BYTES, .capacity = (n)
#define REC__KIND_one_of(e) .kind = DET_KIND_ENUM, .enumeration = { .get = e##_enum }
#define REC__KIND_nested(r) .kind = DET_KIND_RECORD, .record = { .get = r##_record }

/* Whether the size is valid. */
#define REC__SIZED_u8        1
#define REC__SIZED_u16       1
#define REC__SIZED_u32       1
#define REC__SIZED_u64       1
#define REC__SIZED_i8        1
#define REC__SIZED_i16       1
#define REC__SIZED_i32       1
#define REC__SIZED_i64       1
#define REC__SIZED_f64       1
#define REC__SIZED_bool      1
#define REC__SIZED__Bool     1
#define REC__SIZED_time      1
#define REC__SIZED_str(n)    ((n) > 0)
#define REC__SIZED_bytes(n)  ((n) > 0)
#define REC__SIZED_one_of(e) 1
#define REC__SIZED_nested(r) 1

/* A flag is a number: the version of SINCE in the low half, one bit for each flag above. */
#define a_flag_is_SENSITIVE_or_SINCE_but_not_SENSITIVE ((uint64_t)DET_FIELD_SENSITIVE << 32)
#define a_flag_is_SENSITIVE_or_SINCE_but_not_SINCE(n)  ((uint64_t)1 << 63 | (uint32_t)(n))
#define a_flag_is_SENSITIVE_or_SINCE_but_not_NO        ((uint64_t)0)

/* The combined flags of a row. */
#define REC__FLAG(flag)       a_flag_is_SENSITIVE_or_SINCE_but_not_##flag
#define REC__FLAGS(a, b)      ((unsigned)((REC__FLAG(a) | REC__FLAG(b)) >> 32 & 0xff))
#define REC__SINCE(a, b)      ((uint32_t)(REC__FLAG(a) | REC__FLAG(b)))
#define REC__SINCE_IS_0(flag) ((REC__FLAG(flag)) == (uint64_t)1 << 63)
#define REC__SAME_FLAG(a, b)  ((REC__FLAG(a) & REC__FLAG(b)) >> 32 != 0)
#define REC__FLAG_IS_NO(flag) (REC__FLAG(flag) == 0)

/* The checks of one row, as a member of its struct. */
#define REC__CHECK(type, a, b, c)                                                               \
    _Static_assert(REC__SIZED_##type, "a str or bytes must have room for at least 1 byte");     \
    _Static_assert(                                                                             \
        !REC__SINCE_IS_0(a) && !REC__SINCE_IS_0(b), "the version of SINCE must be at least 1"); \
    _Static_assert(!REC__SAME_FLAG(a, b), "a field must not have a flag twice");                \
    _Static_assert(REC__FLAG_IS_NO(c), "a field must have at most two flags");

/* 0 if the condition holds; otherwise the compiler prints the sentence. */
#define REC__REFUSE_UNLESS(condition, sentence) \
    (0 * sizeof(struct { int sentence : (condition) ? 1 : -1; }))

#endif
