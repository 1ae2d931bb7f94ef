/* expect: a str or bytes must have room for at least 1 byte */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A text of at most 0 bytes holds nothing. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "str_of_0.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, str(0))
#else
    FIELD(name, str(1))
#endif
END
#endif



