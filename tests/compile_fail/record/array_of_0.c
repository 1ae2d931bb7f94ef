/* expect: an array must have room for at least 1 element */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* An array of at most 0 elements holds nothing. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "array_of_0.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    ARRAY(numbers, u8, 0)
#else
    ARRAY(numbers, u8, 1)
#endif
END
#endif



