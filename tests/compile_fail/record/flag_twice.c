/* expect: a field must not have a flag twice */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A flag is given once. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "flag_twice.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, u8, SENSITIVE, SENSITIVE)
#else
    FIELD(name, u8, SENSITIVE, SINCE(1))
#endif
END
#endif



