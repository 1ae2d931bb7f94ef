/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* duration.h - the durations of a spec, such as SECONDS(90): digits and a unit.
 *
 * A unit expands to a triple: the number, its text, and the length of the unit in nanoseconds. A
 * bare number is no triple and does not compile; the text shows whether the number consists of
 * digits only, as the spec reader requires. REC__CHECK_DURATION(d) has the sentences,
 * REC__NANOSECONDS(d) the value. No include guard on the units: templates undefine them. */
#undef MILLISECONDS
#undef SECONDS
#undef MINUTES
#undef HOURS
#undef DAYS
#define MILLISECONDS(n) (n, #n, DET_MILLISECOND)
#define SECONDS(n)      (n, #n, DET_SECOND)
#define MINUTES(n)      (n, #n, DET_MINUTE)
#define HOURS(n)        (n, #n, DET_HOUR)
#define DAYS(n)         (n, #n, DET_DAY)

#ifndef DETENT_REC_DURATION_H
#define DETENT_REC_DURATION_H

#include <detent/rec/names.h>

/* 1 for a triple without further arguments; another text otherwise. */
#define REC__IS_DURATION(d)                     REC__SECOND(REC__ASK_DURATION d, 0)
#define REC__ASK_DURATION(...)                  ~, REC__FIFTH(__VA_ARGS__, 0, 1, 0, 0, ~)
#define REC__SECOND(...)                        REC__SECOND_(__VA_ARGS__, ~)
#define REC__SECOND_(a, b, ...)                 b
#define REC__FIFTH(...)                         REC__FIFTH_(__VA_ARGS__)
#define REC__FIFTH_(_1, _2, _3, _4, fifth, ...) fifth

#define REC__CHECK_DURATION(d)                                                             \
    _Static_assert(                                                                        \
        __builtin_strcmp(REC__STRING(REC__IS_DURATION(d)), "1") == 0,                      \
        "a duration must be one number with its unit, such as SECONDS(90) or MINUTES(2)"); \
    REC__CAT(REC__CHECK_DURATION_, REC__IS_DURATION(d))(d)
#define REC__CHECK_DURATION_0(d)
#define REC__CHECK_DURATION_1(d) REC__CHECK_TRIPLE d
#define REC__CHECK_TRIPLE(n, text, unit)                                                 \
    _Static_assert(                                                                      \
        REC__IS_DIGITS(text), "the number of a duration must be digits only: write the " \
                              "computed value (120, not 2*60), or use a smaller unit");  \
    _Static_assert(                                                                      \
        (n) > 0 && (n) <= DET_DELAY_MAX / (unit), "a duration must be more than 0 and "  \
                                                  "at most ten years");

#define REC__NANOSECONDS(d)                REC__CAT(REC__NANOSECONDS_, REC__IS_DURATION(d))(d)
#define REC__NANOSECONDS_0(d)              0
#define REC__NANOSECONDS_1(d)              REC__NANOSECONDS_OF d
#define REC__NANOSECONDS_OF(n, text, unit) ((n) * (unit))

/* Ten years in milliseconds have twelve digits; a number that begins with 0 is octal in C. */
#define REC__IS_DIGITS(text)                                                          \
    (sizeof(text) <= 13 && (sizeof(text) == 2 || __builtin_strcmp(text, "1") >= 0) && \
     REC__IS_DIGIT(text, 0) && REC__IS_DIGIT(text, 1) && REC__IS_DIGIT(text, 2) &&    \
     REC__IS_DIGIT(text, 3) && REC__IS_DIGIT(text, 4) && REC__IS_DIGIT(text, 5) &&    \
     REC__IS_DIGIT(text, 6) && REC__IS_DIGIT(text, 7) && REC__IS_DIGIT(text, 8) &&    \
     REC__IS_DIGIT(text, 9) && REC__IS_DIGIT(text, 10) && REC__IS_DIGIT(text, 11))
/* ':' comes after '9'. */
#define REC__IS_DIGIT(text, i)                                                            \
    (sizeof(text) <= (i) + 1 || (__builtin_strcmp(&(text "            ")[i], "0") >= 0 && \
                                 __builtin_strcmp(&(text "            ")[i], ":") < 0))

#endif
