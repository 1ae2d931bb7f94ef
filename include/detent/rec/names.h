/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* names.h - refuses names of a spec that have another meaning in C: keywords, macros and reserved
 * names. The spec reader refuses the same names.
 *
 * A row checks its first name with REC__CHECK_NAME("STATE", REC__NAME_##s, s). The preprocessor
 * expands the third argument and leaves the second alone, unless reserved.h defines it: the two
 * texts differ if the name is a macro or is reserved. */
#ifndef DETENT_REC_NAMES_H
#define DETENT_REC_NAMES_H

#include <detent/rec/reserved.h>

#define REC__CAT_(a, b)     a##b
#define REC__CAT(a, b)      REC__CAT_(a, b)
#define REC__STRING_(a)     #a
#define REC__STRING(a)      REC__STRING_(a)
#define REC__FIRST_(a, ...) a
#define REC__FIRST(...)     REC__FIRST_(__VA_ARGS__, ~)

#define REC__IS_NAME(pasted, expanded)                                                 \
    (__builtin_strcmp(REC__STRING(pasted), "REC__NAME_" REC__STRING(expanded)) == 0 && \
     !REC__IS_KEPT(REC__STRING(expanded)))
/* Names that begin with two underscores, with one and a capital letter, or with DET_. */
#define REC__IS_KEPT(text)                                                      \
    (__builtin_strncmp(text, "__", 2) == 0 ||                                   \
     (__builtin_strcmp(text, "_A") >= 0 && __builtin_strcmp(text, "_[") < 0) || \
     __builtin_strncmp(text, "DET_", 4) == 0)
#define REC__SENTENCE " is a keyword of C, a macro or a reserved name: choose another name"

/* `name` is the text of the name in the spec. */
#define REC__CHECK_NAME(name, pasted, expanded) \
    _Static_assert(REC__IS_NAME(pasted, expanded), name REC__SENTENCE);
/* The value of a word such as FSM_PREFIX, which cannot be pasted before it is expanded: the
 * expansion of a macro such as NULL begins with a digit or a parenthesis. */
#define REC__CHECK_VALUE(name, pasted, expanded)                                             \
    _Static_assert(                                                                          \
        REC__IS_NAME(pasted, expanded) && __builtin_strcmp(REC__STRING(expanded), "A") >= 0, \
        name REC__SENTENCE);
/* The first of two lists of arguments in parentheses; `names` is the text of all of them. */
#define REC__CHECK_FIRST(names, pasted, expanded)             \
    _Static_assert(                                           \
        REC__IS_NAME(REC__FIRST pasted, REC__FIRST expanded), \
        "the first name in '" names "'" REC__SENTENCE);
/* The name of a function must not be that of a function-like macro either. */
#define REC__CHECK_FUNCTION(name, pasted, function)                                   \
    REC__CHECK_NAME(name, pasted, function)                                           \
    _Static_assert(                                                                   \
        __builtin_strcmp(REC__STRING(function(~)), REC__STRING(function) "(~)") == 0, \
        name " is a macro or a row and cannot be the name of a function: choose another name");
/* The first of two lists, which names a function. */
#define REC__CHECK_FIRST_FUNCTION(names, pasted, expanded) \
    REC__CHECK_FUNCTION("the first name in '" names "'", REC__FIRST pasted, REC__FIRST expanded)

#endif
