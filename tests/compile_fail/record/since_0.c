/* expect: the version of SINCE must be at least 1 */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Versions count from 1. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "since_0.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing, 2)
#ifndef MENDED
    FIELD(name, u8, SINCE(0))
#else
    FIELD(name, u8, SINCE(1))
#endif
END
#endif



