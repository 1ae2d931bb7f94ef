/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* passes.h - template: reads REC_SPEC several times and turns its record rows into C.
 *
 * For templates whose specs contain record rows among others: define REC_SPEC, define all other
 * rows as nothing, include <detent/rec/rows_off.h>, then this. Afterwards the record rows are
 * nothing again.
 *
 * END closes a RECORD and an ENUM alike, so every pass gives both a form with the same end. */
#include <detent/rec/types.h>

#include <detent/rec/names.h>

/* Names have no other meaning in C. */
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#define RECORD(...) REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
/* Types refer to other names. */
#define FIELD(field, ...)    REC__CHECK_NAME(#field, REC__NAME_##field, field)
#define OPTIONAL(field, ...) REC__CHECK_NAME(#field, REC__NAME_##field, field)
#define ARRAY(field, ...)    REC__CHECK_NAME(#field, REC__NAME_##field, field)
#define ENUM(name)           REC__CHECK_NAME(#name, REC__NAME_##name, name)
#define VALUE(c_name, wire)                              \
    REC__CHECK_NAME(#c_name, REC__NAME_##c_name, c_name) \
    REC__CHECK_NAME(#wire, REC__NAME_##wire, wire)
#include REC_SPEC

/* Names: enum color with its values, and payment_record_version, which also keeps a record from
 * being declared twice. */
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#undef END
#define FIELD(...)
#define OPTIONAL(...)
#define ARRAY(...)
#define RECORD(...)                   REC__N_RECORD(__VA_ARGS__, 1, ~)
#define REC__N_RECORD(record, v, ...) enum { record##_record_version = (v)
#define ENUM(name)                    enum name {
#define VALUE(c_name, wire)           c_name,
#define END \
    }       \
    ;
#include REC_SPEC
#undef REC__N_RECORD

/* Structs, and color_count. */
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#define RECORD(...)                   REC__S_RECORD(__VA_ARGS__, 1, ~)
#define REC__S_RECORD(record, v, ...) struct record {
#define FIELD(...)                    REC__S_FIELD(__VA_ARGS__, NO, NO, NO, ~)
#define REC__S_FIELD(field, type, a, b, c, ...)  \
    there_is_no_record_type_called_##type field; \
    REC__CHECK(type, a, b, c)
#define OPTIONAL(...) REC__S_OPTIONAL(__VA_ARGS__, NO, NO, NO, ~)
#define REC__S_OPTIONAL(field, type, a, b, c, ...) \
    _Bool has_##field;                             \
    REC__S_FIELD(field, type, a, b, c, ~)
#define ARRAY(...) REC__S_ARRAY(__VA_ARGS__, NO, NO, NO, ~)
#define REC__S_ARRAY(field, type, max, a, b, c, ...)                             \
    uint32_t field##_count;                                                      \
    _Static_assert((max) > 0, "an array must have room for at least 1 element"); \
    REC__S_FIELD(field[REC__AT_LEAST_1(max)], type, a, b, c, ~)
#define ENUM(name)          enum { name##_count = 0
#define VALUE(c_name, wire) +1
#include REC_SPEC
#undef REC__S_RECORD
#undef REC__S_FIELD
#undef REC__S_OPTIONAL
#undef REC__S_ARRAY

/* Functions, declared first, so that rows may name an enum that comes later. */
#include <detent/rec/rows_none.h>
#define RECORD(...)                   REC__F_RECORD(__VA_ARGS__, 1, ~)
#define REC__F_RECORD(record, v, ...) static inline const struct det_record *record##_record(void);
#define FIELD(...)
#define OPTIONAL(...)
#define ARRAY(...)
#define ENUM(name) static inline const struct det_enum *name##_enum(void);
#define VALUE(...)
#define END
#include REC_SPEC
#undef REC__F_RECORD

/* Tables. rec__struct, rec__version and rec__rows belong to the current record; END makes a record
 * or an enum of them. */
#include <detent/rec/rows_none.h>
#define RECORD(...) REC__T_RECORD(__VA_ARGS__, 1, ~)
#define REC__T_RECORD(record, v, ...)                                                     \
    static inline const struct det_record *record##_record(void)                          \
    {                                                                                     \
        typedef struct record rec__struct;                                                \
        enum { rec__version = (v) };                                                      \
        static const char rec__name[] = #record;                                          \
        _Static_assert((v) > 0, "the version of a record must be at least 1");            \
        _Static_assert(sizeof(rec__struct) > 0, "a record must have at least one field"); \
        _Static_assert(                                                                   \
            sizeof(rec__struct) <= DET_RECORD_SIZE_MAX,                                   \
            "a record must have at most DET_RECORD_SIZE_MAX bytes");                      \
        static const struct det_field rec__rows[] = {
#define FIELD(...) REC__T_FIELD(__VA_ARGS__, NO, NO, NO, ~)
#define REC__T_FIELD(field, type, a, b, ...) \
    { REC__T_VALUE(field, field, type, a, b), .flags = REC__FLAGS(a, b) },
#define OPTIONAL(...) REC__T_OPTIONAL(__VA_ARGS__, NO, NO, NO, ~)
#define REC__T_OPTIONAL(field, type, a, b, ...)                                               \
    { REC__T_VALUE(field, field, type, a, b), .flags = DET_FIELD_OPTIONAL | REC__FLAGS(a, b), \
      .presence = offsetof(rec__struct, has_##field) },
#define ARRAY(...) REC__T_ARRAY(__VA_ARGS__, NO, NO, NO, ~)
#define REC__T_ARRAY(field, type, max, a, b, ...)                                             \
    { REC__T_VALUE(field, field[0], type, a, b), .flags = DET_FIELD_ARRAY | REC__FLAGS(a, b), \
      .presence = offsetof(rec__struct, field##_count), .count_max = (max) },
#define REC__T_VALUE(field, element, type, a, b)                                                   \
    .name = #field, REC__KIND_##type,                                                              \
    .since = REC__SINCE(a, b) +                                                                    \
             REC__REFUSE_UNLESS(                                                                   \
                 REC__SINCE(a, b) <= rec__version, SINCE_is_newer_than_the_version_of_the_record), \
    .offset = offsetof(rec__struct, field), .size = sizeof(((rec__struct *)0)->element)
#define ENUM(name)                                         \
    static inline const struct det_enum *name##_enum(void) \
    {                                                      \
        typedef enum name rec__struct;                     \
        enum { rec__version = 1 };                         \
        static const char rec__name[] = #name;             \
        static const struct det_enum_value rec__rows[] = {
#define VALUE(c_name, wire) { #wire, c_name },
#define REC__T_ROWS(type)   _Generic(&rec__rows[0], const struct type * : rec__rows, default : NULL)
#define REC__T_COUNT        (sizeof rec__rows / sizeof rec__rows[0])
#define REC__T_RESULT \
    _Generic(&rec__rows[0], const struct det_field * : &rec__record, default : &rec__enumeration)
#define END                                                                                      \
    }                                                                                            \
    ;                                                                                            \
    static const struct det_record rec__record = { rec__name, rec__version, sizeof(rec__struct), \
                                                   REC__T_ROWS(det_field), REC__T_COUNT };       \
    static const struct det_enum rec__enumeration = { rec__name, REC__T_ROWS(det_enum_value),    \
                                                      REC__T_COUNT };                            \
    (void)rec__record;                                                                           \
    (void)rec__enumeration;                                                                      \
    return REC__T_RESULT;                                                                        \
    }
#include REC_SPEC
#undef REC__T_RECORD
#undef REC__T_FIELD
#undef REC__T_OPTIONAL
#undef REC__T_ARRAY
#undef REC__T_VALUE
#undef REC__T_ROWS
#undef REC__T_COUNT
#undef REC__T_RESULT

#include <detent/rec/rows_off.h>
