/* expect: a str or bytes must have room for at least 1 byte */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Bytes of at most 0 hold nothing. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "bytes_of_0.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(data, bytes(0))
#else
    FIELD(data, bytes(1))
#endif
END
#endif



