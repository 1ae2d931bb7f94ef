/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* options.h - the options at the end of a stage's row: loops over them, and their meaning in each
 * pass of define.h.
 *
 * An option such as ASYNC, ASYNC(8) or CURSOR(place) is first split into its name and its
 * arguments: ASYNC, (8). The rows end with the option a_record_of_the_stage_is_missing, which has
 * no effect, so that there is always one; it becomes the record of a row that is too short. */
#ifndef DETENT_FLOW_OPTIONS_H
#define DETENT_FLOW_OPTIONS_H

#include <detent/flow/pre.h>

/* FLOW__HAS(list) is 1 for a list in parentheses, 0 for nothing. */
#define FLOW__HAS(list)          FLOW__HAS_(list)
#define FLOW__HAS_(list)         FLOW__SECOND(FLOW__PROBE list, 0)
#define FLOW__UNLIST(...)        __VA_ARGS__
#define FLOW__SECOND_(a, b, ...) b
#define FLOW__SECOND(...)        FLOW__SECOND_(__VA_ARGS__, ~, ~)
#define FLOW__PROBE(...)         ~, 1

#define FLOW__PICK_16(                                                             \
    _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, n, ...) \
    n
/* Number of arguments, 1 to 13. */
#define FLOW__COUNT(...)                                                             \
    FLOW__PICK_16(                                                                   \
        __VA_ARGS__, a_stage_has_at_most_12_options, a_stage_has_at_most_12_options, \
        a_stage_has_at_most_12_options, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ~)

/* FLOW__EACH(F, x, a, b, ...) is F(x, a) F(x, b) ... */
#define FLOW__EACH(F, x, ...)   REC__CAT(FLOW__E, FLOW__COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)

#define FLOW__E1(F, x, a)       F(x, a)
#define FLOW__E2(F, x, a, ...)  F(x, a) FLOW__E1(F, x, __VA_ARGS__)
#define FLOW__E3(F, x, a, ...)  F(x, a) FLOW__E2(F, x, __VA_ARGS__)
#define FLOW__E4(F, x, a, ...)  F(x, a) FLOW__E3(F, x, __VA_ARGS__)
#define FLOW__E5(F, x, a, ...)  F(x, a) FLOW__E4(F, x, __VA_ARGS__)
#define FLOW__E6(F, x, a, ...)  F(x, a) FLOW__E5(F, x, __VA_ARGS__)
#define FLOW__E7(F, x, a, ...)  F(x, a) FLOW__E6(F, x, __VA_ARGS__)
#define FLOW__E8(F, x, a, ...)  F(x, a) FLOW__E7(F, x, __VA_ARGS__)
#define FLOW__E9(F, x, a, ...)  F(x, a) FLOW__E8(F, x, __VA_ARGS__)
#define FLOW__E10(F, x, a, ...) F(x, a) FLOW__E9(F, x, __VA_ARGS__)
#define FLOW__E11(F, x, a, ...) F(x, a) FLOW__E10(F, x, __VA_ARGS__)
#define FLOW__E12(F, x, a, ...) F(x, a) FLOW__E11(F, x, __VA_ARGS__)
#define FLOW__E13(F, x, a, ...) F(x, a) FLOW__E12(F, x, __VA_ARGS__)

/* The names in WITH(...), up to 8. */
#define FLOW__PICK_9(_1, _2, _3, _4, _5, _6, _7, _8, _9, n, ...) n
#define FLOW__COUNT_8(...) \
    FLOW__PICK_9(__VA_ARGS__, WITH_has_at_most_8_names, 8, 7, 6, 5, 4, 3, 2, 1, ~)
#define FLOW__TEXTS(...)      REC__CAT(FLOW__TEXTS_, FLOW__COUNT_8(__VA_ARGS__))(__VA_ARGS__)
#define FLOW__TEXTS_1(a)      #a,
#define FLOW__TEXTS_2(a, ...) #a, FLOW__TEXTS_1(__VA_ARGS__)
#define FLOW__TEXTS_3(a, ...) #a, FLOW__TEXTS_2(__VA_ARGS__)
#define FLOW__TEXTS_4(a, ...) #a, FLOW__TEXTS_3(__VA_ARGS__)
#define FLOW__TEXTS_5(a, ...) #a, FLOW__TEXTS_4(__VA_ARGS__)
#define FLOW__TEXTS_6(a, ...) #a, FLOW__TEXTS_5(__VA_ARGS__)
#define FLOW__TEXTS_7(a, ...) #a, FLOW__TEXTS_6(__VA_ARGS__)
#define FLOW__TEXTS_8(a, ...) #a, FLOW__TEXTS_7(__VA_ARGS__)

/* Options that have arguments, and what they are split into. */
#define FLOW__CALLED_ASYNC(...)       ~, 1
#define FLOW__CALLED_CURSOR(...)      ~, 1
#define FLOW__CALLED_STATE(...)       ~, 1
#define FLOW__CALLED_KEY(...)         ~, 1
#define FLOW__CALLED_EMIT_EVERY(...)  ~, 1
#define FLOW__CALLED_EMIT_WITHIN(...) ~, 1
#define FLOW__CALLED_ON(...)          ~, 1
#define FLOW__CALLED_LIVE(...)        ~, 1
#define FLOW__CALLED_WINDOW(...)      ~, 1
#define FLOW__CALLED_USE(...)         ~, 1
#define FLOW__CALLED_WITH(...)        ~, 1
#define FLOW__SPLIT_ASYNC(...)        ASYNC, (__VA_ARGS__)
#define FLOW__SPLIT_CURSOR(...)       CURSOR, (__VA_ARGS__)
#define FLOW__SPLIT_STATE(...)        STATE, (__VA_ARGS__)
#define FLOW__SPLIT_KEY(...)          KEY, (__VA_ARGS__)
#define FLOW__SPLIT_EMIT_EVERY(...)   EMIT_EVERY, (__VA_ARGS__)
#define FLOW__SPLIT_EMIT_WITHIN(...)  EMIT_WITHIN, (__VA_ARGS__)
#define FLOW__SPLIT_ON(...)           ON, (__VA_ARGS__)
#define FLOW__SPLIT_LIVE(...)         LIVE, (__VA_ARGS__)
#define FLOW__SPLIT_WINDOW(...)       WINDOW, (__VA_ARGS__)
#define FLOW__SPLIT_USE(...)          USE, (__VA_ARGS__)
#define FLOW__SPLIT_WITH(...)         WITH, (__VA_ARGS__)
/* Options that have no arguments, and that must have some: split into a sentence. */
#define FLOW__CALLED_INFINITE(...)     ~, 1
#define FLOW__CALLED_ACKNOWLEDGES(...) ~, 1
#define FLOW__CALLED_EMIT_AT_END(...)  ~, 1
#define FLOW__CALLED_EMIT_ALWAYS(...)  ~, 1
#define FLOW__CALLED_INNER(...)        ~, 1
#define FLOW__CALLED_LEFT(...)         ~, 1
#define FLOW__CALLED_STRICT(...)       ~, 1
#define FLOW__CALLED_BEGINS(...)       ~, 1
#define FLOW__CALLED_BUFFERED(...)     ~, 1
#define FLOW__CALLED_OPENS(...)        ~, 1
#define FLOW__CALLED_DRAINS(...)       ~, 1
#define FLOW__SPLIT_INFINITE(...)      INFINITE_with_a_value, ()
#define FLOW__SPLIT_ACKNOWLEDGES(...)  ACKNOWLEDGES_with_a_value, ()
#define FLOW__SPLIT_EMIT_AT_END(...)   EMIT_AT_END_with_a_value, ()
#define FLOW__SPLIT_EMIT_ALWAYS(...)   EMIT_ALWAYS_with_a_value, ()
#define FLOW__SPLIT_INNER(...)         INNER_with_a_value, ()
#define FLOW__SPLIT_LEFT(...)          LEFT_with_a_value, ()
#define FLOW__SPLIT_STRICT(...)        STRICT_with_a_value, ()
#define FLOW__SPLIT_BEGINS(...)        BEGINS_with_a_value, ()
#define FLOW__SPLIT_BUFFERED(...)      BUFFERED_with_a_value, ()
#define FLOW__SPLIT_OPENS(...)         OPENS_with_a_value, ()
#define FLOW__SPLIT_DRAINS(...)        DRAINS_with_a_value, ()
#define there_is_no_option_CURSOR      CURSOR_without_a_value, ()
#define there_is_no_option_STATE       STATE_without_a_value, ()
#define there_is_no_option_KEY         KEY_without_a_value, ()
#define there_is_no_option_EMIT_EVERY  EMIT_EVERY_without_a_value, ()
#define there_is_no_option_EMIT_WITHIN EMIT_WITHIN_without_a_value, ()
#define there_is_no_option_ON          ON_without_a_value, ()
#define there_is_no_option_WINDOW      WINDOW_without_a_value, ()
#define there_is_no_option_USE         USE_without_a_value, ()
#define there_is_no_option_WITH        WITH_without_a_value, ()
/* Options without arguments. */
#define there_is_no_option_INFINITE                         INFINITE, ()
#define there_is_no_option_ASYNC                            ASYNC, (1)
#define there_is_no_option_ACKNOWLEDGES                     ACKNOWLEDGES, ()
#define there_is_no_option_EMIT_AT_END                      EMIT_AT_END, ()
#define there_is_no_option_EMIT_ALWAYS                      EMIT_ALWAYS, ()
#define there_is_no_option_INNER                            INNER, ()
#define there_is_no_option_LEFT                             LEFT, ()
#define there_is_no_option_STRICT                           STRICT, ()
#define there_is_no_option_LIVE                             LIVE, (8)
#define there_is_no_option_BUFFERED                         BUFFERED, ()
#define there_is_no_option_BEGINS                           BEGINS, ()
#define there_is_no_option_OPENS                            OPENS, ()
#define there_is_no_option_DRAINS                           DRAINS, ()
#define there_is_no_option_a_record_of_the_stage_is_missing NOTHING, ()

/* FLOW__OPTION(F, x, option) is F(members of the list x, name, arguments, ...). */
#define FLOW__OPTION(F, x, option) FLOW__OPTION_(F, FLOW__UNLIST x, FLOW__SPLIT(option), (), ~)
#define FLOW__OPTION_(F, ...)      F(__VA_ARGS__)

#define FLOW__SPLIT(option)        REC__CAT(FLOW__SPLIT_, FLOW__IS_CALLED(option))(option)
#define FLOW__IS_CALLED(option)    FLOW__SECOND(FLOW__CALLED_##option, 0)

#define FLOW__SPLIT_0(option)      there_is_no_option_##option
#define FLOW__SPLIT_1(option)      FLOW__SPLIT_##option

/* Options of each kind of stage. */
#define a_SOURCE_has_no_option_NOTHING       0
#define a_SOURCE_has_no_option_INFINITE      0
#define a_SOURCE_has_no_option_ASYNC         0
#define a_SOURCE_has_no_option_CURSOR        0
#define a_SOURCE_has_no_option_ACKNOWLEDGES  0
#define a_SOURCE_has_no_option_WINDOW        0
#define a_SOURCE_has_no_option_OPENS         0
#define a_SOURCE_has_no_option_DRAINS        0
#define a_SOURCE_has_no_option_USE           0
#define a_SOURCE_has_no_option_WITH          0
#define a_TRANSFORM_has_no_option_NOTHING    0
#define a_TRANSFORM_has_no_option_ASYNC      0
#define a_TRANSFORM_has_no_option_WINDOW     0
#define a_TRANSFORM_has_no_option_OPENS      0
#define a_TRANSFORM_has_no_option_DRAINS     0
#define a_TRANSFORM_has_no_option_USE        0
#define a_TRANSFORM_has_no_option_WITH       0
#define a_STATEFUL_has_no_option_NOTHING     0
#define a_STATEFUL_has_no_option_STATE       0
#define a_STATEFUL_has_no_option_KEY         0
#define a_STATEFUL_has_no_option_EMIT_AT_END 0
#define a_STATEFUL_has_no_option_EMIT_ALWAYS 0
#define a_STATEFUL_has_no_option_EMIT_EVERY  0
#define a_STATEFUL_has_no_option_EMIT_WITHIN 0
#define a_STATEFUL_has_no_option_WINDOW      0
#define a_STATEFUL_has_no_option_OPENS       0
#define a_STATEFUL_has_no_option_DRAINS      0
#define a_STATEFUL_has_no_option_USE         0
#define a_STATEFUL_has_no_option_WITH        0
#define a_JOIN_has_no_option_NOTHING         0
#define a_JOIN_has_no_option_ON              0
#define a_JOIN_has_no_option_INNER           0
#define a_JOIN_has_no_option_LEFT            0
#define a_JOIN_has_no_option_STRICT          0
#define a_JOIN_has_no_option_LIVE            0
#define a_JOIN_has_no_option_WINDOW          0
#define a_JOIN_has_no_option_OPENS           0
#define a_JOIN_has_no_option_DRAINS          0
#define a_JOIN_has_no_option_USE             0
#define a_JOIN_has_no_option_WITH            0
#define a_SINK_has_no_option_NOTHING         0
#define a_SINK_has_no_option_ASYNC           0
#define a_SINK_has_no_option_CURSOR          0
#define a_SINK_has_no_option_BUFFERED        0
#define a_SINK_has_no_option_BEGINS          0
#define a_SINK_has_no_option_OPENS           0
#define a_SINK_has_no_option_DRAINS          0
#define a_SINK_has_no_option_USE             0
#define a_SINK_has_no_option_WITH            0

/* Pass 1: the option belongs to the kind, and is there once. */
#define FLOW__O(x, option) FLOW__OPTION(FLOW__O_, x, option)
#define FLOW__O_(kind, s, name, list, ...)                    \
    _Static_assert(a_##kind##_has_no_option_##name == 0, ""); \
    FLOW__APPLY(FLOW__O_##name, s, FLOW__UNLIST list)
#define FLOW__APPLY(F, ...) F(__VA_ARGS__)
#define FLOW__O_NOTHING(s, ...)
#define FLOW__O_INFINITE(s, ...) FLOW__O_ONE(s, one_INFINITE)
#define FLOW__O_ASYNC(s, n) \
    FLOW__O_ONE(s, one_ASYNC) FLOW__O_RANGE(s, "ASYNC", n, DET_PIPELINE_THREADS_MAX)
#define FLOW__O_CURSOR(s, record)    FLOW__O_ONE(s, one_CURSOR_and_no_USE)
#define FLOW__O_ACKNOWLEDGES(s, ...) FLOW__O_ONE(s, one_ACKNOWLEDGES_and_no_USE)
#define FLOW__O_STATE(s, record)     FLOW__O_ONE(s, one_STATE)
#define FLOW__O_KEY(s, text)         FLOW__O_ONE(s, one_KEY)
#define FLOW__O_EMIT_AT_END(s, ...)  FLOW__O_ONE(s, one_EMIT_option)
#define FLOW__O_EMIT_ALWAYS(s, ...)  FLOW__O_ONE(s, one_EMIT_option)
#define FLOW__O_EMIT_EVERY(s, n) \
    FLOW__O_ONE(s, one_EMIT_option) FLOW__O_RANGE(s, "EMIT_EVERY", n, UINT32_MAX)
#define FLOW__O_EMIT_WITHIN(s, d) FLOW__O_ONE(s, one_EMIT_option) REC__CHECK_DURATION(d)
#define FLOW__O_ON(s, a, b)       FLOW__O_ONE(s, one_ON)
#define FLOW__O_INNER(s, ...)     FLOW__O_ONE(s, one_of_INNER_LEFT_and_STRICT)
#define FLOW__O_LEFT(s, ...)      FLOW__O_ONE(s, one_of_INNER_LEFT_and_STRICT)
#define FLOW__O_STRICT(s, ...)    FLOW__O_ONE(s, one_of_INNER_LEFT_and_STRICT)
#define FLOW__O_LIVE(s, n)        FLOW__O_ONE(s, one_LIVE) FLOW__O_RANGE(s, "LIVE", n, UINT16_MAX)
#define FLOW__O_BUFFERED(s, ...)  FLOW__O_ONE(s, one_BUFFERED_and_no_USE)
#define FLOW__O_BEGINS(s, ...)    FLOW__O_ONE(s, one_BEGINS_and_no_USE)
#define FLOW__O_WINDOW(s, n) \
    FLOW__O_ONE(s, one_WINDOW) FLOW__O_RANGE(s, "WINDOW", n, DET_PIPELINE_WINDOW_MAX)
#define FLOW__O_OPENS(s, ...)  FLOW__O_ONE(s, one_OPENS_and_no_USE)
#define FLOW__O_DRAINS(s, ...) FLOW__O_ONE(s, one_DRAINS_and_no_USE)
#define FLOW__O_USE(s, ...)                     \
    FLOW__O_ONE(s, one_USE)                     \
    FLOW__O_ONE(s, one_CURSOR_and_no_USE)       \
    FLOW__O_ONE(s, one_ACKNOWLEDGES_and_no_USE) \
    FLOW__O_ONE(s, one_BUFFERED_and_no_USE)     \
    FLOW__O_ONE(s, one_BEGINS_and_no_USE)       \
    FLOW__O_ONE(s, one_OPENS_and_no_USE)        \
    FLOW__O_ONE(s, one_DRAINS_and_no_USE)
#define FLOW__O_WITH(s, ...) FLOW__O_ONE(s, one_WITH)
#define FLOW__O_ONE(s, what) enum { REC__CAT(FLOW__ONE(s, what##_in_), FLOW_NAME) };
#define FLOW__O_RANGE(s, name, n, most)                                                     \
    _Static_assert(                                                                         \
        (n) >= 1 && (n) <= (most), #s ": the number of " name " must be at least 1 and at " \
                                      "most " #most);

/* The list (record) of an option that the row has; nothing otherwise. */
#define FLOW__FIND_CURSOR(...)       FLOW__EACH(FLOW__C, (~), __VA_ARGS__)
#define FLOW__C(x, option)           FLOW__OPTION(FLOW__C_, x, option)
#define FLOW__C_(x, name, list, ...) FLOW__C_##name(list)
#define FLOW__FIND_STATE(...)        FLOW__EACH(FLOW__S, (~), __VA_ARGS__)
#define FLOW__S(x, option)           FLOW__OPTION(FLOW__S_, x, option)
#define FLOW__S_(x, name, list, ...) FLOW__S_##name(list)
#define FLOW__FIND_USE(...)          FLOW__EACH(FLOW__U, (~), __VA_ARGS__)
#define FLOW__U(x, option)           FLOW__OPTION(FLOW__U_, x, option)
#define FLOW__U_(x, name, list, ...) FLOW__U_##name(list)
#define FLOW__C_NOTHING(list)
#define FLOW__C_INFINITE(list)
#define FLOW__C_ASYNC(list)
#define FLOW__C_CURSOR(list) list
#define FLOW__C_ACKNOWLEDGES(list)
#define FLOW__C_STATE(list)
#define FLOW__C_KEY(list)
#define FLOW__C_EMIT_AT_END(list)
#define FLOW__C_EMIT_ALWAYS(list)
#define FLOW__C_EMIT_EVERY(list)
#define FLOW__C_EMIT_WITHIN(list)
#define FLOW__C_ON(list)
#define FLOW__C_INNER(list)
#define FLOW__C_LEFT(list)
#define FLOW__C_STRICT(list)
#define FLOW__C_LIVE(list)
#define FLOW__C_BUFFERED(list)
#define FLOW__C_BEGINS(list)
#define FLOW__C_WINDOW(list)
#define FLOW__C_OPENS(list)
#define FLOW__C_DRAINS(list)
#define FLOW__C_USE(list)
#define FLOW__C_WITH(list)
#define FLOW__S_NOTHING(list)
#define FLOW__S_INFINITE(list)
#define FLOW__S_ASYNC(list)
#define FLOW__S_CURSOR(list)
#define FLOW__S_ACKNOWLEDGES(list)
#define FLOW__S_STATE(list) list
#define FLOW__S_KEY(list)
#define FLOW__S_EMIT_AT_END(list)
#define FLOW__S_EMIT_ALWAYS(list)
#define FLOW__S_EMIT_EVERY(list)
#define FLOW__S_EMIT_WITHIN(list)
#define FLOW__S_ON(list)
#define FLOW__S_INNER(list)
#define FLOW__S_LEFT(list)
#define FLOW__S_STRICT(list)
#define FLOW__S_LIVE(list)
#define FLOW__S_BUFFERED(list)
#define FLOW__S_BEGINS(list)
#define FLOW__S_WINDOW(list)
#define FLOW__S_OPENS(list)
#define FLOW__S_DRAINS(list)
#define FLOW__S_USE(list)
#define FLOW__S_WITH(list)
#define FLOW__U_NOTHING(list)
#define FLOW__U_INFINITE(list)
#define FLOW__U_ASYNC(list)
#define FLOW__U_CURSOR(list)
#define FLOW__U_ACKNOWLEDGES(list)
#define FLOW__U_STATE(list)
#define FLOW__U_KEY(list)
#define FLOW__U_EMIT_AT_END(list)
#define FLOW__U_EMIT_ALWAYS(list)
#define FLOW__U_EMIT_EVERY(list)
#define FLOW__U_EMIT_WITHIN(list)
#define FLOW__U_ON(list)
#define FLOW__U_INNER(list)
#define FLOW__U_LEFT(list)
#define FLOW__U_STRICT(list)
#define FLOW__U_LIVE(list)
#define FLOW__U_BUFFERED(list)
#define FLOW__U_BEGINS(list)
#define FLOW__U_WINDOW(list)
#define FLOW__U_OPENS(list)
#define FLOW__U_DRAINS(list)
#define FLOW__U_USE(list) list
#define FLOW__U_WITH(list)

/* The functions of options: prototypes, and thunks for what has a typed cursor; x is (stage, form
 * of the row, its cursor or state). */
#define FLOW__X(x, option)                         FLOW__OPTION(FLOW__X_, x, option)
#define FLOW__X_(s, form, record, name, list, ...) FLOW__X_##name(s, form, record)
#define FLOW__X_OPENS(s, form, record)                \
    static int s##_open(struct det_stage_call *call); \
    static void s##_close(struct det_stage_call *call);
#define FLOW__X_DRAINS(s, form, record) static int s##_drain(struct det_stage_call *call);
#define FLOW__X_ACKNOWLEDGES(s, form, record) \
    static void s##_acknowledged(struct det_stage_call *call, uint64_t sequence);
#define FLOW__X_BUFFERED(s, form, record) REC__CAT(FLOW__X_BUFFERED_, form)(s, record)
#define FLOW__X_BUFFERED_PLAIN(s, record)                                       \
    static int s##_flush(struct det_stage_call *call);                          \
    static int FLOW__CALL(s, flush)(struct det_stage_call * call, void *cursor) \
    {                                                                           \
        (void)cursor;                                                           \
        return s##_flush(call);                                                 \
    }
#define FLOW__X_BUFFERED_TYPED(s, record)                                       \
    static int s##_flush(struct det_stage_call *call, struct record *cursor);   \
    static int FLOW__CALL(s, flush)(struct det_stage_call * call, void *cursor) \
    {                                                                           \
        return s##_flush(call, (struct record *)cursor);                        \
    }
#define FLOW__X_BUFFERED_USED(s, record)
#define FLOW__X_BEGINS(s, form, record) REC__CAT(FLOW__X_BEGINS_, form)(s, record)
#define FLOW__X_BEGINS_PLAIN(s, record) \
    _Static_assert(0, #s ": a stage with BEGINS must have CURSOR(record)");
#define FLOW__X_BEGINS_TYPED(s, record)                                         \
    static int s##_begin(struct det_stage_call *call, struct record *cursor);   \
    static int FLOW__CALL(s, begin)(struct det_stage_call * call, void *cursor) \
    {                                                                           \
        return s##_begin(call, (struct record *)cursor);                        \
    }
#define FLOW__X_BEGINS_USED(s, record)

/* Initializers of the struct det_stage_functions. */
#define FLOW__M(s, option)           FLOW__OPTION(FLOW__M_, (s), option)
#define FLOW__M_(s, name, list, ...) FLOW__M_##name(s)
#define FLOW__M_OPENS(s)             .open = s##_open, .close = s##_close,
#define FLOW__M_DRAINS(s)            .drain = s##_drain,
#define FLOW__M_ACKNOWLEDGES(s)      .acknowledged = s##_acknowledged,
#define FLOW__M_BUFFERED(s)          .flush = FLOW__CALL(s, flush),
#define FLOW__M_BEGINS(s)            .begin = FLOW__CALL(s, begin),

/* Flags of the struct det_stage, and its other initializers. */
#define FLOW__G(x, option)           FLOW__OPTION(FLOW__G_, x, option)
#define FLOW__G_(x, name, list, ...) FLOW__G_##name
#define FLOW__G_INFINITE             | (unsigned)DET_STAGE_INFINITE
#define FLOW__G_ASYNC                | (unsigned)DET_STAGE_ASYNC
#define FLOW__G_LIVE                 | (unsigned)DET_STAGE_LIVE
#define FLOW__G_BUFFERED             | (unsigned)DET_STAGE_BUFFERED
#define FLOW__I(x, option)           FLOW__OPTION(FLOW__I_, x, option)
#define FLOW__I_(x, name, list, ...) FLOW__I_##name list
#define FLOW__I_ASYNC(n)             .concurrency = (n),
#define FLOW__I_CURSOR(record)       .cursor = { .get = record##_record },
#define FLOW__I_STATE(record_)       .state = { .get = record_##_record },
#define FLOW__I_KEY(text)            .key = "" text,
#define FLOW__I_EMIT_AT_END()        .emission = { .kind = DET_EMIT_AT_END },
#define FLOW__I_EMIT_ALWAYS()        .emission = { .kind = DET_EMIT_ALWAYS },
#define FLOW__I_EMIT_EVERY(n)        .emission = { .kind = DET_EMIT_EVERY, .rows = (n) },
#define FLOW__I_EMIT_WITHIN(d)       .emission = { DET_EMIT_WITHIN, 0, REC__NANOSECONDS(d) },
#define FLOW__I_ON(a, b)             .reference_key = "" a, .key = "" b,
#define FLOW__I_INNER()              .join = DET_JOIN_INNER,
#define FLOW__I_LEFT()               .join = DET_JOIN_LEFT,
#define FLOW__I_STRICT()             .join = DET_JOIN_STRICT,
#define FLOW__I_LIVE(n)              .reference_batch = (n),
#define FLOW__I_WINDOW(n)            .window = (n),
#define FLOW__I_USE(...)             REC__CAT(FLOW__I_USE_, FLOW__COUNT(__VA_ARGS__))(__VA_ARGS__)
#define FLOW__I_USE_1(name)          .use = #name,
#define FLOW__I_USE_2(name, text)    .use = #name, .settings = "" text,
#define FLOW__I_WITH(...)            .with = (const char *const[]){ FLOW__TEXTS(__VA_ARGS__) NULL },

/* The other options have none of these. */
#define FLOW__X_NOTHING(s, form, record)
#define FLOW__X_INFINITE(s, form, record)
#define FLOW__X_ASYNC(s, form, record)
#define FLOW__X_CURSOR(s, form, record)
#define FLOW__X_STATE(s, form, record)
#define FLOW__X_KEY(s, form, record)
#define FLOW__X_EMIT_AT_END(s, form, record)
#define FLOW__X_EMIT_ALWAYS(s, form, record)
#define FLOW__X_EMIT_EVERY(s, form, record)
#define FLOW__X_EMIT_WITHIN(s, form, record)
#define FLOW__X_ON(s, form, record)
#define FLOW__X_INNER(s, form, record)
#define FLOW__X_LEFT(s, form, record)
#define FLOW__X_STRICT(s, form, record)
#define FLOW__X_LIVE(s, form, record)
#define FLOW__X_WINDOW(s, form, record)
#define FLOW__X_USE(s, form, record)
#define FLOW__X_WITH(s, form, record)
#define FLOW__M_NOTHING(s)
#define FLOW__M_INFINITE(s)
#define FLOW__M_ASYNC(s)
#define FLOW__M_CURSOR(s)
#define FLOW__M_STATE(s)
#define FLOW__M_KEY(s)
#define FLOW__M_EMIT_AT_END(s)
#define FLOW__M_EMIT_ALWAYS(s)
#define FLOW__M_EMIT_EVERY(s)
#define FLOW__M_EMIT_WITHIN(s)
#define FLOW__M_ON(s)
#define FLOW__M_INNER(s)
#define FLOW__M_LEFT(s)
#define FLOW__M_STRICT(s)
#define FLOW__M_LIVE(s)
#define FLOW__M_WINDOW(s)
#define FLOW__M_USE(s)
#define FLOW__M_WITH(s)
#define FLOW__G_NOTHING
#define FLOW__G_CURSOR
#define FLOW__G_ACKNOWLEDGES
#define FLOW__G_STATE
#define FLOW__G_KEY
#define FLOW__G_EMIT_AT_END
#define FLOW__G_EMIT_ALWAYS
#define FLOW__G_EMIT_EVERY
#define FLOW__G_EMIT_WITHIN
#define FLOW__G_ON
#define FLOW__G_INNER
#define FLOW__G_LEFT
#define FLOW__G_STRICT
#define FLOW__G_WINDOW
#define FLOW__G_OPENS
#define FLOW__G_DRAINS
#define FLOW__G_USE
#define FLOW__G_WITH
#define FLOW__G_BEGINS
#define FLOW__I_NOTHING()
#define FLOW__I_INFINITE()
#define FLOW__I_ACKNOWLEDGES()
#define FLOW__I_BUFFERED()
#define FLOW__I_BEGINS()
#define FLOW__I_OPENS()
#define FLOW__I_DRAINS()

#endif
