/* expect: the version of a record must be at least 1 */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Versions count from 1. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "version_0.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
#ifndef MENDED
RECORD(thing, 0)
#else
RECORD(thing, 1)
#endif
    FIELD(name, u8)
END
#endif



