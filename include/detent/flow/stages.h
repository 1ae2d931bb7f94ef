/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stages.h - the meaning of the rows of stages and edges in the passes of define.h. */
#ifndef DETENT_FLOW_STAGES_H
#define DETENT_FLOW_STAGES_H

#include <detent/flow/options.h>

/* Pass 1: the kind, and the options after one, two or three records. */
#define FLOW__CHECK_1(kind, s, a, ...)       FLOW__CHECK(kind, s, __VA_ARGS__)
#define FLOW__CHECK_2(kind, s, a, b, ...)    FLOW__CHECK(kind, s, __VA_ARGS__)
#define FLOW__CHECK_3(kind, s, a, b, c, ...) FLOW__CHECK(kind, s, __VA_ARGS__)
#define FLOW__CHECK(kind, s, ...)              \
    enum { FLOW__KIND(s) = DET_STAGE_##kind }; \
    FLOW__EACH(FLOW__O, (kind, s), __VA_ARGS__)

/* The form of a row: USED has a connector; TYPED a cursor or a state; PLAIN neither. */
#define FLOW__FORM(use, record) REC__CAT(REC__CAT(FLOW__FORM_, FLOW__HAS(use)), FLOW__HAS(record))
#define FLOW__FORM_00           PLAIN
#define FLOW__FORM_01           TYPED
#define FLOW__FORM_10           USED
#define FLOW__FORM_11           USED
/* The record in a list of one, or a word that is used for nothing. */
#define FLOW__RECORD(list)   REC__CAT(FLOW__RECORD_, FLOW__HAS(list))(list)
#define FLOW__RECORD_0(list) det_empty
#define FLOW__RECORD_1(list) FLOW__UNLIST list
#define FLOW__CURSOR_FORM(...) \
    FLOW__FORM(FLOW__FIND_USE(__VA_ARGS__), FLOW__FIND_CURSOR(__VA_ARGS__))
#define FLOW__STATE_FORM(...) FLOW__FORM(FLOW__FIND_USE(__VA_ARGS__), FLOW__FIND_STATE(__VA_ARGS__))
#define FLOW__USE_FORM(...)   FLOW__FORM(FLOW__FIND_USE(__VA_ARGS__), )

/* Pass 2. The records of an edge's ends: SOURCE and SINK have one. */
#define FLOW__TYPES(s, in, out, reference) \
    typedef struct in FLOW__IN(s);         \
    typedef struct out FLOW__OUT(s);       \
    typedef struct reference FLOW__BESIDE(s);

#define FLOW__EMITTER(s, out)                                                                 \
    static inline int s##_emit(struct det_stage_call *call, struct out value)                 \
    {                                                                                         \
        return det_stage_emit(call, &value);                                                  \
    }                                                                                         \
    static inline int s##_emit_at(struct det_stage_call *call, struct out value, det_time at) \
    {                                                                                         \
        return det_stage_emit_at(call, &value, at);                                           \
    }

#define FLOW__F_SOURCE(s, out, ...)                           \
    FLOW__TYPES(s, det_empty, out, det_empty)                 \
    REC__CAT(FLOW__F_SOURCE_, FLOW__CURSOR_FORM(__VA_ARGS__)) \
    (s, out, FLOW__RECORD(FLOW__FIND_CURSOR(__VA_ARGS__)))    \
        FLOW__EACH(FLOW__X, (s, USED, det_empty), __VA_ARGS__)
#define FLOW__F_SOURCE_USED(s, out, record)
#define FLOW__F_SOURCE_PLAIN(s, out, record)                                   \
    FLOW__EMITTER(s, out)                                                      \
    static int s(struct det_stage_call *call);                                 \
    static int FLOW__CALL(s, next)(struct det_stage_call * call, void *cursor) \
    {                                                                          \
        (void)cursor;                                                          \
        return s(call);                                                        \
    }
#define FLOW__F_SOURCE_TYPED(s, out, record)                                   \
    FLOW__EMITTER(s, out)                                                      \
    static int s(struct det_stage_call *call, struct record *cursor);          \
    static int FLOW__CALL(s, next)(struct det_stage_call * call, void *cursor) \
    {                                                                          \
        return s(call, (struct record *)cursor);                               \
    }

#define FLOW__F_TRANSFORM(s, in, out, ...)                    \
    FLOW__TYPES(s, in, out, det_empty)                        \
    REC__CAT(FLOW__F_TRANSFORM_, FLOW__USE_FORM(__VA_ARGS__)) \
    (s, in, out) FLOW__EACH(FLOW__X, (s, USED, det_empty), __VA_ARGS__)
#define FLOW__F_TRANSFORM_USED(s, in_, out)
#define FLOW__F_TRANSFORM_PLAIN(s, in_, out)                                        \
    FLOW__EMITTER(s, out)                                                           \
    static int s(struct det_stage_call *call, const struct in_ *in);                \
    static int FLOW__CALL(s, process)(struct det_stage_call * call, const void *in) \
    {                                                                               \
        return s(call, (const struct in_ *)in);                                     \
    }

#define FLOW__F_STATEFUL(s, in, out, ...)                      \
    FLOW__TYPES(s, in, out, det_empty)                         \
    REC__CAT(FLOW__F_STATEFUL_, FLOW__STATE_FORM(__VA_ARGS__)) \
    (s, in, out, FLOW__RECORD(FLOW__FIND_STATE(__VA_ARGS__)))  \
        FLOW__EACH(FLOW__X, (s, USED, det_empty), __VA_ARGS__)
#define FLOW__F_STATEFUL_USED(s, in_, out, record)
#define FLOW__F_STATEFUL_PLAIN(s, in_, out, record) \
    _Static_assert(0, #s ": a STATEFUL stage must have STATE(record)");
#define FLOW__F_STATEFUL_TYPED(s, in_, out, record)                                        \
    FLOW__EMITTER(s, out)                                                                  \
    static int s(struct det_stage_call *call, struct record *state, const struct in_ *in); \
    static int s##_result(struct det_stage_call *call, struct record *state);              \
    static int FLOW__CALL(s, accumulate)(                                                  \
        struct det_stage_call * call, void *state, const void *in)                         \
    {                                                                                      \
        return s(call, (struct record *)state, (const struct in_ *)in);                    \
    }                                                                                      \
    static int FLOW__CALL(s, result)(struct det_stage_call * call, void *state)            \
    {                                                                                      \
        return s##_result(call, (struct record *)state);                                   \
    }

#define FLOW__F_JOIN(s, reference, in, out, ...)         \
    FLOW__TYPES(s, in, out, reference)                   \
    REC__CAT(FLOW__F_JOIN_, FLOW__USE_FORM(__VA_ARGS__)) \
    (s, reference, in, out) FLOW__EACH(FLOW__X, (s, USED, det_empty), __VA_ARGS__)
#define FLOW__F_JOIN_USED(s, reference_, in_, out)
#define FLOW__F_JOIN_PLAIN(s, reference_, in_, out)                                             \
    FLOW__EMITTER(s, out)                                                                       \
    static int s(                                                                               \
        struct det_stage_call *call, const struct reference_ *reference, const struct in_ *in); \
    static int FLOW__CALL(s, join)(                                                             \
        struct det_stage_call * call, const void *reference, const void *in)                    \
    {                                                                                           \
        return s(call, (const struct reference_ *)reference, (const struct in_ *)in);           \
    }

#define FLOW__F_SINK(s, in, ...)                                                           \
    FLOW__TYPES(s, in, det_empty, det_empty)                                               \
    REC__CAT(FLOW__F_SINK_, FLOW__CURSOR_FORM(__VA_ARGS__))                                \
    (s, in, FLOW__RECORD(FLOW__FIND_CURSOR(__VA_ARGS__))) FLOW__EACH(                      \
        FLOW__X,                                                                           \
        (s, FLOW__CURSOR_FORM(__VA_ARGS__), FLOW__RECORD(FLOW__FIND_CURSOR(__VA_ARGS__))), \
        __VA_ARGS__)
#define FLOW__F_SINK_USED(s, in_, record)
#define FLOW__F_SINK_PLAIN(s, in_, record)                                                        \
    static int s(struct det_stage_call *call, const struct in_ *in);                              \
    static int FLOW__CALL(s, deliver)(struct det_stage_call * call, void *cursor, const void *in) \
    {                                                                                             \
        (void)cursor;                                                                             \
        return s(call, (const struct in_ *)in);                                                   \
    }
#define FLOW__F_SINK_TYPED(s, in_, record)                                                        \
    static int s(struct det_stage_call *call, struct record *cursor, const struct in_ *in);       \
    static int FLOW__CALL(s, deliver)(struct det_stage_call * call, void *cursor, const void *in) \
    {                                                                                             \
        return s(call, (struct record *)cursor, (const struct in_ *)in);                          \
    }

/* Pass 3. */
#define FLOW__E_ENDS(word, a, b)                                                 \
    enum { FLOW__PAIR(a, b) = FLOW__STAGE(a) + 0 * FLOW__STAGE(b) };             \
    _Static_assert(                                                              \
        (int)FLOW__STAGE(a) != (int)FLOW__STAGE(b),                              \
        word "(" #a ", " #b "): an edge leads from a stage to another one");     \
    _Static_assert(                                                              \
        (int)FLOW__KIND(a) != DET_STAGE_SINK,                                    \
        word "(" #a ", " #b "): " #a " is a SINK, and nothing leads out of it"); \
    _Static_assert(                                                              \
        (int)FLOW__KIND(b) != DET_STAGE_SOURCE,                                  \
        word "(" #a ", " #b "): " #b " is a SOURCE, and nothing leads into it");
#define FLOW__E_SAME(a, b) _Generic((a *)0, b * : 1, default : 0)
#define FLOW__E_EDGE(word, a, b)                                                          \
    FLOW__E_ENDS(word, a, b)                                                              \
    _Static_assert(                                                                       \
        (int)FLOW__KIND(a) == DET_STAGE_SINK || (int)FLOW__KIND(b) == DET_STAGE_SOURCE || \
            FLOW__E_SAME(FLOW__OUT(a), FLOW__IN(b)),                                      \
        word "(" #a ", " #b "): " #a " makes another record than " #b " takes");          \
    typedef char FLOW__READ(a);                                                           \
    typedef char FLOW__FED(b);
#define FLOW__E_REFERENCE(a, b)                                                              \
    FLOW__E_ENDS("REFERENCE", a, b)                                                          \
    _Static_assert(                                                                          \
        (int)FLOW__KIND(b) == DET_STAGE_JOIN || (int)FLOW__KIND(b) == DET_STAGE_SOURCE,      \
        "REFERENCE(" #a ", " #b "): " #b " is not a JOIN, and has no reference");            \
    _Static_assert(                                                                          \
        (int)FLOW__KIND(a) == DET_STAGE_SINK || (int)FLOW__KIND(b) != DET_STAGE_JOIN ||      \
            FLOW__E_SAME(FLOW__OUT(a), FLOW__BESIDE(b)),                                     \
        "REFERENCE(" #a ", " #b "): " #a " makes another record than the reference of " #b); \
    enum { FLOW__JOINED(b) };                                                                \
    typedef char FLOW__READ(a);

/* Pass 5. A stage with a connector has no functions. */
#define FLOW__T_COMMON(s, kind_, ...)                                                         \
    .name = #s, .kind = DET_STAGE_##kind_, .flags = 0u FLOW__EACH(FLOW__G, (~), __VA_ARGS__), \
    FLOW__EACH(FLOW__I, (~), __VA_ARGS__)
#define FLOW__T_FUNCTIONS(form, ...) REC__CAT(FLOW__T_FUNCTIONS_, form)(__VA_ARGS__)
#define FLOW__T_FUNCTIONS_USED(...)
#define FLOW__T_FUNCTIONS_PLAIN(...) \
    .functions = &(const struct det_stage_functions){ __VA_ARGS__ },
#define FLOW__T_FUNCTIONS_TYPED(...) \
    .functions = &(const struct det_stage_functions){ __VA_ARGS__ },
#define FLOW__T_MORE(s, ...) FLOW__EACH(FLOW__M, s, __VA_ARGS__)

#define FLOW__T_SOURCE(s, out_, ...)                                                            \
    [FLOW__STAGE(s)] = { FLOW__T_COMMON(s, SOURCE, __VA_ARGS__).out = { .get = out_##_record }, \
                         FLOW__T_FUNCTIONS(                                                     \
                             FLOW__CURSOR_FORM(__VA_ARGS__), .next = FLOW__CALL(s, next),       \
                             FLOW__T_MORE(s, __VA_ARGS__)) },
#define FLOW__T_TRANSFORM(s, in_, out_, ...)                                                     \
    [FLOW__STAGE(s)] = { FLOW__T_COMMON(s, TRANSFORM, __VA_ARGS__).in = { .get = in_##_record }, \
                         .out = { .get = out_##_record },                                        \
                         FLOW__T_FUNCTIONS(                                                      \
                             FLOW__USE_FORM(__VA_ARGS__), .process = FLOW__CALL(s, process),     \
                             FLOW__T_MORE(s, __VA_ARGS__)) },
#define FLOW__T_STATEFUL(s, in_, out_, ...)                                                        \
    [FLOW__STAGE(s)] = { FLOW__T_COMMON(s, STATEFUL, __VA_ARGS__).in = { .get = in_##_record },    \
                         .out = { .get = out_##_record },                                          \
                         FLOW__T_FUNCTIONS(                                                        \
                             FLOW__USE_FORM(__VA_ARGS__), .accumulate = FLOW__CALL(s, accumulate), \
                             .emit = FLOW__CALL(s, result), FLOW__T_MORE(s, __VA_ARGS__)) },
#define FLOW__T_JOIN(s, reference_, in_, out_, ...)                                              \
    [FLOW__STAGE(                                                                                \
        s)] = { FLOW__T_COMMON(s, JOIN, __VA_ARGS__).reference = { .get = reference_##_record }, \
                .in = { .get = in_##_record }, .out = { .get = out_##_record },                  \
                FLOW__T_FUNCTIONS(                                                               \
                    FLOW__USE_FORM(__VA_ARGS__), .join = FLOW__CALL(s, join),                    \
                    FLOW__T_MORE(s, __VA_ARGS__)) },
#define FLOW__T_SINK(s, in_, ...)                                                               \
    [FLOW__STAGE(s)] = { FLOW__T_COMMON(s, SINK, __VA_ARGS__).in = { .get = in_##_record },     \
                         FLOW__T_FUNCTIONS(                                                     \
                             FLOW__CURSOR_FORM(__VA_ARGS__), .deliver = FLOW__CALL(s, deliver), \
                             FLOW__T_MORE(s, __VA_ARGS__)) },

#endif
