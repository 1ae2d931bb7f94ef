/* expect: has incomplete type */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A nested record comes before the one it is in. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "nested_later.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
#ifdef MENDED
RECORD(line)
    FIELD(name, u8)
END
#endif
RECORD(thing)
    FIELD(first, nested(line))
END
#endif



