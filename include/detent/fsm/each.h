/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* each.h - preprocessor loops for the templates: FSM__EACH_X(F, x, a, b, ...) is F(x, a) F(x, b)
 * ...
 *
 * A macro cannot call itself, so there is one chain per level of nesting: ROW over the states of a
 * row, COLUMN over its events, EXTRA over the extras after them, FEW and MEMBER over the list
 * inside of an extra. The numbered lines have one shape; only their count matters (DET_LIST_MAX and
 * DET_EXTRAS_MAX in machine.h). A list that is too long needs FSM__ROW_at_most_64_fit_here, which
 * does not exist. */
#ifndef DETENT_FSM_EACH_H
#define DETENT_FSM_EACH_H

#define FSM__CAT_(a, b)         a##b
#define FSM__CAT(a, b)          FSM__CAT_(a, b)
#define FSM__CAT3_(a, b, c)     a##b##c
#define FSM__CAT3(a, b, c)      FSM__CAT3_(a, b, c)
#define FSM__STRING_(a)         #a
#define FSM__STRING(a)          FSM__STRING_(a)
#define FSM__SECOND_(a, b, ...) b
#define FSM__SECOND(...)        FSM__SECOND_(__VA_ARGS__, ~, ~)
#define FSM__UNLIST(...)        __VA_ARGS__

/* 1 for a list in parentheses, such as ANY(...); 0 for a plain name. */
#define FSM__PROBE(...) ~, 1
#define FSM__IS_LIST(x) FSM__SECOND(FSM__PROBE x, 0)

#define FSM__PICK(                                                                                 \
    _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20,     \
    _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, _33, _34, _35, _36, _37, _38, _39, \
    _40, _41, _42, _43, _44, _45, _46, _47, _48, _49, _50, _51, _52, _53, _54, _55, _56, _57, _58, \
    _59, _60, _61, _62, _63, _64, _65, n, ...)                                                     \
    n
/* Number of arguments, 1 to 64. */
#define FSM__COUNT(...)                                                                            \
    FSM__PICK(                                                                                     \
        __VA_ARGS__, at_most_64_fit_here, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51,  \
        50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29,    \
        28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, \
        4, 3, 2, 1, ~)
/* Number of arguments, 1 to 8: cheaper, for use in every row. */
#define FSM__PICK_9(_1, _2, _3, _4, _5, _6, _7, _8, _9, n, ...) n
/* One argument too many. */
#define FSM__COUNT_8(...) FSM__PICK_9(__VA_ARGS__, at_most_8_fit_here, 8, 7, 6, 5, 4, 3, 2, 1, ~)
/* ONE argument or MANY. */
#define FSM__ONE_OR_MANY(...)                                                                      \
    FSM__PICK(                                                                                     \
        __VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
        MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
        MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
        MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
        MANY, MANY, MANY, MANY, MANY, MANY, ONE, ~)

#define FSM__EACH_ROW(F, x, ...)  FSM__CAT(FSM__ROW_, FSM__COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)
#define FSM__ROW_1(F, x, a)       F(x, a)
#define FSM__ROW_2(F, x, a, ...)  F(x, a) FSM__ROW_1(F, x, __VA_ARGS__)
#define FSM__ROW_3(F, x, a, ...)  F(x, a) FSM__ROW_2(F, x, __VA_ARGS__)
#define FSM__ROW_4(F, x, a, ...)  F(x, a) FSM__ROW_3(F, x, __VA_ARGS__)
#define FSM__ROW_5(F, x, a, ...)  F(x, a) FSM__ROW_4(F, x, __VA_ARGS__)
#define FSM__ROW_6(F, x, a, ...)  F(x, a) FSM__ROW_5(F, x, __VA_ARGS__)
#define FSM__ROW_7(F, x, a, ...)  F(x, a) FSM__ROW_6(F, x, __VA_ARGS__)
#define FSM__ROW_8(F, x, a, ...)  F(x, a) FSM__ROW_7(F, x, __VA_ARGS__)
#define FSM__ROW_9(F, x, a, ...)  F(x, a) FSM__ROW_8(F, x, __VA_ARGS__)
#define FSM__ROW_10(F, x, a, ...) F(x, a) FSM__ROW_9(F, x, __VA_ARGS__)
#define FSM__ROW_11(F, x, a, ...) F(x, a) FSM__ROW_10(F, x, __VA_ARGS__)
#define FSM__ROW_12(F, x, a, ...) F(x, a) FSM__ROW_11(F, x, __VA_ARGS__)
#define FSM__ROW_13(F, x, a, ...) F(x, a) FSM__ROW_12(F, x, __VA_ARGS__)
#define FSM__ROW_14(F, x, a, ...) F(x, a) FSM__ROW_13(F, x, __VA_ARGS__)
#define FSM__ROW_15(F, x, a, ...) F(x, a) FSM__ROW_14(F, x, __VA_ARGS__)
#define FSM__ROW_16(F, x, a, ...) F(x, a) FSM__ROW_15(F, x, __VA_ARGS__)
#define FSM__ROW_17(F, x, a, ...) F(x, a) FSM__ROW_16(F, x, __VA_ARGS__)
#define FSM__ROW_18(F, x, a, ...) F(x, a) FSM__ROW_17(F, x, __VA_ARGS__)
#define FSM__ROW_19(F, x, a, ...) F(x, a) FSM__ROW_18(F, x, __VA_ARGS__)
#define FSM__ROW_20(F, x, a, ...) F(x, a) FSM__ROW_19(F, x, __VA_ARGS__)
#define FSM__ROW_21(F, x, a, ...) F(x, a) FSM__ROW_20(F, x, __VA_ARGS__)
#define FSM__ROW_22(F, x, a, ...) F(x, a) FSM__ROW_21(F, x, __VA_ARGS__)
#define FSM__ROW_23(F, x, a, ...) F(x, a) FSM__ROW_22(F, x, __VA_ARGS__)
#define FSM__ROW_24(F, x, a, ...) F(x, a) FSM__ROW_23(F, x, __VA_ARGS__)
#define FSM__ROW_25(F, x, a, ...) F(x, a) FSM__ROW_24(F, x, __VA_ARGS__)
#define FSM__ROW_26(F, x, a, ...) F(x, a) FSM__ROW_25(F, x, __VA_ARGS__)
#define FSM__ROW_27(F, x, a, ...) F(x, a) FSM__ROW_26(F, x, __VA_ARGS__)
#define FSM__ROW_28(F, x, a, ...) F(x, a) FSM__ROW_27(F, x, __VA_ARGS__)
#define FSM__ROW_29(F, x, a, ...) F(x, a) FSM__ROW_28(F, x, __VA_ARGS__)
#define FSM__ROW_30(F, x, a, ...) F(x, a) FSM__ROW_29(F, x, __VA_ARGS__)
#define FSM__ROW_31(F, x, a, ...) F(x, a) FSM__ROW_30(F, x, __VA_ARGS__)
#define FSM__ROW_32(F, x, a, ...) F(x, a) FSM__ROW_31(F, x, __VA_ARGS__)
#define FSM__ROW_33(F, x, a, ...) F(x, a) FSM__ROW_32(F, x, __VA_ARGS__)
#define FSM__ROW_34(F, x, a, ...) F(x, a) FSM__ROW_33(F, x, __VA_ARGS__)
#define FSM__ROW_35(F, x, a, ...) F(x, a) FSM__ROW_34(F, x, __VA_ARGS__)
#define FSM__ROW_36(F, x, a, ...) F(x, a) FSM__ROW_35(F, x, __VA_ARGS__)
#define FSM__ROW_37(F, x, a, ...) F(x, a) FSM__ROW_36(F, x, __VA_ARGS__)
#define FSM__ROW_38(F, x, a, ...) F(x, a) FSM__ROW_37(F, x, __VA_ARGS__)
#define FSM__ROW_39(F, x, a, ...) F(x, a) FSM__ROW_38(F, x, __VA_ARGS__)
#define FSM__ROW_40(F, x, a, ...) F(x, a) FSM__ROW_39(F, x, __VA_ARGS__)
#define FSM__ROW_41(F, x, a, ...) F(x, a) FSM__ROW_40(F, x, __VA_ARGS__)
#define FSM__ROW_42(F, x, a, ...) F(x, a) FSM__ROW_41(F, x, __VA_ARGS__)
#define FSM__ROW_43(F, x, a, ...) F(x, a) FSM__ROW_42(F, x, __VA_ARGS__)
#define FSM__ROW_44(F, x, a, ...) F(x, a) FSM__ROW_43(F, x, __VA_ARGS__)
#define FSM__ROW_45(F, x, a, ...) F(x, a) FSM__ROW_44(F, x, __VA_ARGS__)
#define FSM__ROW_46(F, x, a, ...) F(x, a) FSM__ROW_45(F, x, __VA_ARGS__)
#define FSM__ROW_47(F, x, a, ...) F(x, a) FSM__ROW_46(F, x, __VA_ARGS__)
#define FSM__ROW_48(F, x, a, ...) F(x, a) FSM__ROW_47(F, x, __VA_ARGS__)
#define FSM__ROW_49(F, x, a, ...) F(x, a) FSM__ROW_48(F, x, __VA_ARGS__)
#define FSM__ROW_50(F, x, a, ...) F(x, a) FSM__ROW_49(F, x, __VA_ARGS__)
#define FSM__ROW_51(F, x, a, ...) F(x, a) FSM__ROW_50(F, x, __VA_ARGS__)
#define FSM__ROW_52(F, x, a, ...) F(x, a) FSM__ROW_51(F, x, __VA_ARGS__)
#define FSM__ROW_53(F, x, a, ...) F(x, a) FSM__ROW_52(F, x, __VA_ARGS__)
#define FSM__ROW_54(F, x, a, ...) F(x, a) FSM__ROW_53(F, x, __VA_ARGS__)
#define FSM__ROW_55(F, x, a, ...) F(x, a) FSM__ROW_54(F, x, __VA_ARGS__)
#define FSM__ROW_56(F, x, a, ...) F(x, a) FSM__ROW_55(F, x, __VA_ARGS__)
#define FSM__ROW_57(F, x, a, ...) F(x, a) FSM__ROW_56(F, x, __VA_ARGS__)
#define FSM__ROW_58(F, x, a, ...) F(x, a) FSM__ROW_57(F, x, __VA_ARGS__)
#define FSM__ROW_59(F, x, a, ...) F(x, a) FSM__ROW_58(F, x, __VA_ARGS__)
#define FSM__ROW_60(F, x, a, ...) F(x, a) FSM__ROW_59(F, x, __VA_ARGS__)
#define FSM__ROW_61(F, x, a, ...) F(x, a) FSM__ROW_60(F, x, __VA_ARGS__)
#define FSM__ROW_62(F, x, a, ...) F(x, a) FSM__ROW_61(F, x, __VA_ARGS__)
#define FSM__ROW_63(F, x, a, ...) F(x, a) FSM__ROW_62(F, x, __VA_ARGS__)
#define FSM__ROW_64(F, x, a, ...) F(x, a) FSM__ROW_63(F, x, __VA_ARGS__)

#define FSM__EACH_COLUMN(F, x, ...) \
    FSM__CAT(FSM__COLUMN_, FSM__COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)
#define FSM__COLUMN_1(F, x, a)       F(x, a)
#define FSM__COLUMN_2(F, x, a, ...)  F(x, a) FSM__COLUMN_1(F, x, __VA_ARGS__)
#define FSM__COLUMN_3(F, x, a, ...)  F(x, a) FSM__COLUMN_2(F, x, __VA_ARGS__)
#define FSM__COLUMN_4(F, x, a, ...)  F(x, a) FSM__COLUMN_3(F, x, __VA_ARGS__)
#define FSM__COLUMN_5(F, x, a, ...)  F(x, a) FSM__COLUMN_4(F, x, __VA_ARGS__)
#define FSM__COLUMN_6(F, x, a, ...)  F(x, a) FSM__COLUMN_5(F, x, __VA_ARGS__)
#define FSM__COLUMN_7(F, x, a, ...)  F(x, a) FSM__COLUMN_6(F, x, __VA_ARGS__)
#define FSM__COLUMN_8(F, x, a, ...)  F(x, a) FSM__COLUMN_7(F, x, __VA_ARGS__)
#define FSM__COLUMN_9(F, x, a, ...)  F(x, a) FSM__COLUMN_8(F, x, __VA_ARGS__)
#define FSM__COLUMN_10(F, x, a, ...) F(x, a) FSM__COLUMN_9(F, x, __VA_ARGS__)
#define FSM__COLUMN_11(F, x, a, ...) F(x, a) FSM__COLUMN_10(F, x, __VA_ARGS__)
#define FSM__COLUMN_12(F, x, a, ...) F(x, a) FSM__COLUMN_11(F, x, __VA_ARGS__)
#define FSM__COLUMN_13(F, x, a, ...) F(x, a) FSM__COLUMN_12(F, x, __VA_ARGS__)
#define FSM__COLUMN_14(F, x, a, ...) F(x, a) FSM__COLUMN_13(F, x, __VA_ARGS__)
#define FSM__COLUMN_15(F, x, a, ...) F(x, a) FSM__COLUMN_14(F, x, __VA_ARGS__)
#define FSM__COLUMN_16(F, x, a, ...) F(x, a) FSM__COLUMN_15(F, x, __VA_ARGS__)
#define FSM__COLUMN_17(F, x, a, ...) F(x, a) FSM__COLUMN_16(F, x, __VA_ARGS__)
#define FSM__COLUMN_18(F, x, a, ...) F(x, a) FSM__COLUMN_17(F, x, __VA_ARGS__)
#define FSM__COLUMN_19(F, x, a, ...) F(x, a) FSM__COLUMN_18(F, x, __VA_ARGS__)
#define FSM__COLUMN_20(F, x, a, ...) F(x, a) FSM__COLUMN_19(F, x, __VA_ARGS__)
#define FSM__COLUMN_21(F, x, a, ...) F(x, a) FSM__COLUMN_20(F, x, __VA_ARGS__)
#define FSM__COLUMN_22(F, x, a, ...) F(x, a) FSM__COLUMN_21(F, x, __VA_ARGS__)
#define FSM__COLUMN_23(F, x, a, ...) F(x, a) FSM__COLUMN_22(F, x, __VA_ARGS__)
#define FSM__COLUMN_24(F, x, a, ...) F(x, a) FSM__COLUMN_23(F, x, __VA_ARGS__)
#define FSM__COLUMN_25(F, x, a, ...) F(x, a) FSM__COLUMN_24(F, x, __VA_ARGS__)
#define FSM__COLUMN_26(F, x, a, ...) F(x, a) FSM__COLUMN_25(F, x, __VA_ARGS__)
#define FSM__COLUMN_27(F, x, a, ...) F(x, a) FSM__COLUMN_26(F, x, __VA_ARGS__)
#define FSM__COLUMN_28(F, x, a, ...) F(x, a) FSM__COLUMN_27(F, x, __VA_ARGS__)
#define FSM__COLUMN_29(F, x, a, ...) F(x, a) FSM__COLUMN_28(F, x, __VA_ARGS__)
#define FSM__COLUMN_30(F, x, a, ...) F(x, a) FSM__COLUMN_29(F, x, __VA_ARGS__)
#define FSM__COLUMN_31(F, x, a, ...) F(x, a) FSM__COLUMN_30(F, x, __VA_ARGS__)
#define FSM__COLUMN_32(F, x, a, ...) F(x, a) FSM__COLUMN_31(F, x, __VA_ARGS__)
#define FSM__COLUMN_33(F, x, a, ...) F(x, a) FSM__COLUMN_32(F, x, __VA_ARGS__)
#define FSM__COLUMN_34(F, x, a, ...) F(x, a) FSM__COLUMN_33(F, x, __VA_ARGS__)
#define FSM__COLUMN_35(F, x, a, ...) F(x, a) FSM__COLUMN_34(F, x, __VA_ARGS__)
#define FSM__COLUMN_36(F, x, a, ...) F(x, a) FSM__COLUMN_35(F, x, __VA_ARGS__)
#define FSM__COLUMN_37(F, x, a, ...) F(x, a) FSM__COLUMN_36(F, x, __VA_ARGS__)
#define FSM__COLUMN_38(F, x, a, ...) F(x, a) FSM__COLUMN_37(F, x, __VA_ARGS__)
#define FSM__COLUMN_39(F, x, a, ...) F(x, a) FSM__COLUMN_38(F, x, __VA_ARGS__)
#define FSM__COLUMN_40(F, x, a, ...) F(x, a) FSM__COLUMN_39(F, x, __VA_ARGS__)
#define FSM__COLUMN_41(F, x, a, ...) F(x, a) FSM__COLUMN_40(F, x, __VA_ARGS__)
#define FSM__COLUMN_42(F, x, a, ...) F(x, a) FSM__COLUMN_41(F, x, __VA_ARGS__)
#define FSM__COLUMN_43(F, x, a, ...) F(x, a) FSM__COLUMN_42(F, x, __VA_ARGS__)
#define FSM__COLUMN_44(F, x, a, ...) F(x, a) FSM__COLUMN_43(F, x, __VA_ARGS__)
#define FSM__COLUMN_45(F, x, a, ...) F(x, a) FSM__COLUMN_44(F, x, __VA_ARGS__)
#define FSM__COLUMN_46(F, x, a, ...) F(x, a) FSM__COLUMN_45(F, x, __VA_ARGS__)
#define FSM__COLUMN_47(F, x, a, ...) F(x, a) FSM__COLUMN_46(F, x, __VA_ARGS__)
#define FSM__COLUMN_48(F, x, a, ...) F(x, a) FSM__COLUMN_47(F, x, __VA_ARGS__)
#define FSM__COLUMN_49(F, x, a, ...) F(x, a) FSM__COLUMN_48(F, x, __VA_ARGS__)
#define FSM__COLUMN_50(F, x, a, ...) F(x, a) FSM__COLUMN_49(F, x, __VA_ARGS__)
#define FSM__COLUMN_51(F, x, a, ...) F(x, a) FSM__COLUMN_50(F, x, __VA_ARGS__)
#define FSM__COLUMN_52(F, x, a, ...) F(x, a) FSM__COLUMN_51(F, x, __VA_ARGS__)
#define FSM__COLUMN_53(F, x, a, ...) F(x, a) FSM__COLUMN_52(F, x, __VA_ARGS__)
#define FSM__COLUMN_54(F, x, a, ...) F(x, a) FSM__COLUMN_53(F, x, __VA_ARGS__)
#define FSM__COLUMN_55(F, x, a, ...) F(x, a) FSM__COLUMN_54(F, x, __VA_ARGS__)
#define FSM__COLUMN_56(F, x, a, ...) F(x, a) FSM__COLUMN_55(F, x, __VA_ARGS__)
#define FSM__COLUMN_57(F, x, a, ...) F(x, a) FSM__COLUMN_56(F, x, __VA_ARGS__)
#define FSM__COLUMN_58(F, x, a, ...) F(x, a) FSM__COLUMN_57(F, x, __VA_ARGS__)
#define FSM__COLUMN_59(F, x, a, ...) F(x, a) FSM__COLUMN_58(F, x, __VA_ARGS__)
#define FSM__COLUMN_60(F, x, a, ...) F(x, a) FSM__COLUMN_59(F, x, __VA_ARGS__)
#define FSM__COLUMN_61(F, x, a, ...) F(x, a) FSM__COLUMN_60(F, x, __VA_ARGS__)
#define FSM__COLUMN_62(F, x, a, ...) F(x, a) FSM__COLUMN_61(F, x, __VA_ARGS__)
#define FSM__COLUMN_63(F, x, a, ...) F(x, a) FSM__COLUMN_62(F, x, __VA_ARGS__)
#define FSM__COLUMN_64(F, x, a, ...) F(x, a) FSM__COLUMN_63(F, x, __VA_ARGS__)

#define FSM__EACH_EXTRA(F, x, ...) \
    FSM__CAT(FSM__EXTRA_, FSM__COUNT_8(__VA_ARGS__))(F, x, __VA_ARGS__)
#define FSM__EXTRA_1(F, x, a)      F(x, a)
#define FSM__EXTRA_2(F, x, a, ...) F(x, a) FSM__EXTRA_1(F, x, __VA_ARGS__)
#define FSM__EXTRA_3(F, x, a, ...) F(x, a) FSM__EXTRA_2(F, x, __VA_ARGS__)
#define FSM__EXTRA_4(F, x, a, ...) F(x, a) FSM__EXTRA_3(F, x, __VA_ARGS__)
#define FSM__EXTRA_5(F, x, a, ...) F(x, a) FSM__EXTRA_4(F, x, __VA_ARGS__)
#define FSM__EXTRA_6(F, x, a, ...) F(x, a) FSM__EXTRA_5(F, x, __VA_ARGS__)
#define FSM__EXTRA_7(F, x, a, ...) F(x, a) FSM__EXTRA_6(F, x, __VA_ARGS__)
#define FSM__EXTRA_8(F, x, a, ...) F(x, a) FSM__EXTRA_7(F, x, __VA_ARGS__)

#define FSM__EACH_FEW(F, x, ...)   FSM__CAT(FSM__FEW_, FSM__COUNT_8(__VA_ARGS__))(F, x, __VA_ARGS__)
#define FSM__FEW_1(F, x, a)        F(x, a)
#define FSM__FEW_2(F, x, a, ...)   F(x, a) FSM__FEW_1(F, x, __VA_ARGS__)
#define FSM__FEW_3(F, x, a, ...)   F(x, a) FSM__FEW_2(F, x, __VA_ARGS__)
#define FSM__FEW_4(F, x, a, ...)   F(x, a) FSM__FEW_3(F, x, __VA_ARGS__)
#define FSM__FEW_5(F, x, a, ...)   F(x, a) FSM__FEW_4(F, x, __VA_ARGS__)
#define FSM__FEW_6(F, x, a, ...)   F(x, a) FSM__FEW_5(F, x, __VA_ARGS__)
#define FSM__FEW_7(F, x, a, ...)   F(x, a) FSM__FEW_6(F, x, __VA_ARGS__)
#define FSM__FEW_8(F, x, a, ...)   F(x, a) FSM__FEW_7(F, x, __VA_ARGS__)

#define FSM__EACH_MEMBER(F, x, ...) \
    FSM__CAT(FSM__MEMBER_, FSM__COUNT(__VA_ARGS__))(F, x, __VA_ARGS__)
#define FSM__MEMBER_1(F, x, a)       F(x, a)
#define FSM__MEMBER_2(F, x, a, ...)  F(x, a) FSM__MEMBER_1(F, x, __VA_ARGS__)
#define FSM__MEMBER_3(F, x, a, ...)  F(x, a) FSM__MEMBER_2(F, x, __VA_ARGS__)
#define FSM__MEMBER_4(F, x, a, ...)  F(x, a) FSM__MEMBER_3(F, x, __VA_ARGS__)
#define FSM__MEMBER_5(F, x, a, ...)  F(x, a) FSM__MEMBER_4(F, x, __VA_ARGS__)
#define FSM__MEMBER_6(F, x, a, ...)  F(x, a) FSM__MEMBER_5(F, x, __VA_ARGS__)
#define FSM__MEMBER_7(F, x, a, ...)  F(x, a) FSM__MEMBER_6(F, x, __VA_ARGS__)
#define FSM__MEMBER_8(F, x, a, ...)  F(x, a) FSM__MEMBER_7(F, x, __VA_ARGS__)
#define FSM__MEMBER_9(F, x, a, ...)  F(x, a) FSM__MEMBER_8(F, x, __VA_ARGS__)
#define FSM__MEMBER_10(F, x, a, ...) F(x, a) FSM__MEMBER_9(F, x, __VA_ARGS__)
#define FSM__MEMBER_11(F, x, a, ...) F(x, a) FSM__MEMBER_10(F, x, __VA_ARGS__)
#define FSM__MEMBER_12(F, x, a, ...) F(x, a) FSM__MEMBER_11(F, x, __VA_ARGS__)
#define FSM__MEMBER_13(F, x, a, ...) F(x, a) FSM__MEMBER_12(F, x, __VA_ARGS__)
#define FSM__MEMBER_14(F, x, a, ...) F(x, a) FSM__MEMBER_13(F, x, __VA_ARGS__)
#define FSM__MEMBER_15(F, x, a, ...) F(x, a) FSM__MEMBER_14(F, x, __VA_ARGS__)
#define FSM__MEMBER_16(F, x, a, ...) F(x, a) FSM__MEMBER_15(F, x, __VA_ARGS__)
#define FSM__MEMBER_17(F, x, a, ...) F(x, a) FSM__MEMBER_16(F, x, __VA_ARGS__)
#define FSM__MEMBER_18(F, x, a, ...) F(x, a) FSM__MEMBER_17(F, x, __VA_ARGS__)
#define FSM__MEMBER_19(F, x, a, ...) F(x, a) FSM__MEMBER_18(F, x, __VA_ARGS__)
#define FSM__MEMBER_20(F, x, a, ...) F(x, a) FSM__MEMBER_19(F, x, __VA_ARGS__)
#define FSM__MEMBER_21(F, x, a, ...) F(x, a) FSM__MEMBER_20(F, x, __VA_ARGS__)
#define FSM__MEMBER_22(F, x, a, ...) F(x, a) FSM__MEMBER_21(F, x, __VA_ARGS__)
#define FSM__MEMBER_23(F, x, a, ...) F(x, a) FSM__MEMBER_22(F, x, __VA_ARGS__)
#define FSM__MEMBER_24(F, x, a, ...) F(x, a) FSM__MEMBER_23(F, x, __VA_ARGS__)
#define FSM__MEMBER_25(F, x, a, ...) F(x, a) FSM__MEMBER_24(F, x, __VA_ARGS__)
#define FSM__MEMBER_26(F, x, a, ...) F(x, a) FSM__MEMBER_25(F, x, __VA_ARGS__)
#define FSM__MEMBER_27(F, x, a, ...) F(x, a) FSM__MEMBER_26(F, x, __VA_ARGS__)
#define FSM__MEMBER_28(F, x, a, ...) F(x, a) FSM__MEMBER_27(F, x, __VA_ARGS__)
#define FSM__MEMBER_29(F, x, a, ...) F(x, a) FSM__MEMBER_28(F, x, __VA_ARGS__)
#define FSM__MEMBER_30(F, x, a, ...) F(x, a) FSM__MEMBER_29(F, x, __VA_ARGS__)
#define FSM__MEMBER_31(F, x, a, ...) F(x, a) FSM__MEMBER_30(F, x, __VA_ARGS__)
#define FSM__MEMBER_32(F, x, a, ...) F(x, a) FSM__MEMBER_31(F, x, __VA_ARGS__)
#define FSM__MEMBER_33(F, x, a, ...) F(x, a) FSM__MEMBER_32(F, x, __VA_ARGS__)
#define FSM__MEMBER_34(F, x, a, ...) F(x, a) FSM__MEMBER_33(F, x, __VA_ARGS__)
#define FSM__MEMBER_35(F, x, a, ...) F(x, a) FSM__MEMBER_34(F, x, __VA_ARGS__)
#define FSM__MEMBER_36(F, x, a, ...) F(x, a) FSM__MEMBER_35(F, x, __VA_ARGS__)
#define FSM__MEMBER_37(F, x, a, ...) F(x, a) FSM__MEMBER_36(F, x, __VA_ARGS__)
#define FSM__MEMBER_38(F, x, a, ...) F(x, a) FSM__MEMBER_37(F, x, __VA_ARGS__)
#define FSM__MEMBER_39(F, x, a, ...) F(x, a) FSM__MEMBER_38(F, x, __VA_ARGS__)
#define FSM__MEMBER_40(F, x, a, ...) F(x, a) FSM__MEMBER_39(F, x, __VA_ARGS__)
#define FSM__MEMBER_41(F, x, a, ...) F(x, a) FSM__MEMBER_40(F, x, __VA_ARGS__)
#define FSM__MEMBER_42(F, x, a, ...) F(x, a) FSM__MEMBER_41(F, x, __VA_ARGS__)
#define FSM__MEMBER_43(F, x, a, ...) F(x, a) FSM__MEMBER_42(F, x, __VA_ARGS__)
#define FSM__MEMBER_44(F, x, a, ...) F(x, a) FSM__MEMBER_43(F, x, __VA_ARGS__)
#define FSM__MEMBER_45(F, x, a, ...) F(x, a) FSM__MEMBER_44(F, x, __VA_ARGS__)
#define FSM__MEMBER_46(F, x, a, ...) F(x, a) FSM__MEMBER_45(F, x, __VA_ARGS__)
#define FSM__MEMBER_47(F, x, a, ...) F(x, a) FSM__MEMBER_46(F, x, __VA_ARGS__)
#define FSM__MEMBER_48(F, x, a, ...) F(x, a) FSM__MEMBER_47(F, x, __VA_ARGS__)
#define FSM__MEMBER_49(F, x, a, ...) F(x, a) FSM__MEMBER_48(F, x, __VA_ARGS__)
#define FSM__MEMBER_50(F, x, a, ...) F(x, a) FSM__MEMBER_49(F, x, __VA_ARGS__)
#define FSM__MEMBER_51(F, x, a, ...) F(x, a) FSM__MEMBER_50(F, x, __VA_ARGS__)
#define FSM__MEMBER_52(F, x, a, ...) F(x, a) FSM__MEMBER_51(F, x, __VA_ARGS__)
#define FSM__MEMBER_53(F, x, a, ...) F(x, a) FSM__MEMBER_52(F, x, __VA_ARGS__)
#define FSM__MEMBER_54(F, x, a, ...) F(x, a) FSM__MEMBER_53(F, x, __VA_ARGS__)
#define FSM__MEMBER_55(F, x, a, ...) F(x, a) FSM__MEMBER_54(F, x, __VA_ARGS__)
#define FSM__MEMBER_56(F, x, a, ...) F(x, a) FSM__MEMBER_55(F, x, __VA_ARGS__)
#define FSM__MEMBER_57(F, x, a, ...) F(x, a) FSM__MEMBER_56(F, x, __VA_ARGS__)
#define FSM__MEMBER_58(F, x, a, ...) F(x, a) FSM__MEMBER_57(F, x, __VA_ARGS__)
#define FSM__MEMBER_59(F, x, a, ...) F(x, a) FSM__MEMBER_58(F, x, __VA_ARGS__)
#define FSM__MEMBER_60(F, x, a, ...) F(x, a) FSM__MEMBER_59(F, x, __VA_ARGS__)
#define FSM__MEMBER_61(F, x, a, ...) F(x, a) FSM__MEMBER_60(F, x, __VA_ARGS__)
#define FSM__MEMBER_62(F, x, a, ...) F(x, a) FSM__MEMBER_61(F, x, __VA_ARGS__)
#define FSM__MEMBER_63(F, x, a, ...) F(x, a) FSM__MEMBER_62(F, x, __VA_ARGS__)
#define FSM__MEMBER_64(F, x, a, ...) F(x, a) FSM__MEMBER_63(F, x, __VA_ARGS__)

/* FSM__PAIRS(F, x, S, E): F(x, s, e) for every state in S and every event in E. S and E are names
 * or lists. */
#define FSM__PAIRS(F, x, S, E) FSM__CAT3(FSM__PAIRS_, FSM__IS_LIST(S), FSM__IS_LIST(E))(F, x, S, E)
/* 0 is a name, 1 a list. */
#define FSM__PAIRS_00(F, x, s, e) F(x, s, e)
#define FSM__PAIRS_10(F, x, S, e) FSM__EACH_ROW(FSM__PAIR_OF_STATE, (F, x, e), FSM__UNLIST S)
#define FSM__PAIRS_01(F, x, s, E) FSM__EACH_COLUMN(FSM__PAIR_OF_EVENT, (F, x, s), FSM__UNLIST E)
#define FSM__PAIRS_11(F, x, S, E) FSM__EACH_ROW(FSM__PAIR_OF_BOTH, (F, x, E), FSM__UNLIST S)
/* The context c is (F, x, the fixed argument). */
#define FSM__PAIR_OF_STATE(c, s)         FSM__PAIR_OF_STATE_(s, FSM__UNLIST c)
#define FSM__PAIR_OF_STATE_(...)         FSM__PAIR_OF_STATE__(__VA_ARGS__)
#define FSM__PAIR_OF_STATE__(s, F, x, e) F(x, s, e)
#define FSM__PAIR_OF_EVENT(c, e)         FSM__PAIR_OF_EVENT_(e, FSM__UNLIST c)
#define FSM__PAIR_OF_EVENT_(...)         FSM__PAIR_OF_EVENT__(__VA_ARGS__)
#define FSM__PAIR_OF_EVENT__(e, F, x, s) F(x, s, e)
#define FSM__PAIR_OF_BOTH(c, s)          FSM__PAIR_OF_BOTH_(s, FSM__UNLIST c)
#define FSM__PAIR_OF_BOTH_(...)          FSM__PAIR_OF_BOTH__(__VA_ARGS__)
#define FSM__PAIR_OF_BOTH__(s, F, x, E) \
    FSM__EACH_COLUMN(FSM__PAIR_OF_EVENT, (F, x, s), FSM__UNLIST E)

/* FSM__STATES(F, x, S): F(x, s) for every state in S, which is a name or a list. */
#define FSM__STATES(F, x, S)   FSM__CAT(FSM__STATES_, FSM__IS_LIST(S))(F, x, S)
#define FSM__STATES_0(F, x, s) F(x, s)
#define FSM__STATES_1(F, x, S) FSM__EACH_ROW(F, x, FSM__UNLIST S)

#endif
