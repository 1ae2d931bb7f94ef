/* expect: COLOR_RED */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A value of an enum is declared once. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "value_twice.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
ENUM(color)
    VALUE(COLOR_RED, red)
#ifndef MENDED
    VALUE(COLOR_RED, crimson)
#else
    VALUE(COLOR_CRIMSON, crimson)
#endif
END
#endif



