/* expect: SINCE_is_newer_than_the_version_of_the_record */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A field cannot be newer than its record. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "since_newer.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing, 2)
    FIELD(name, u8)
#ifndef MENDED
    FIELD(size, u8, SINCE(3))
#else
    FIELD(size, u8, SINCE(2))
#endif
END
#endif



