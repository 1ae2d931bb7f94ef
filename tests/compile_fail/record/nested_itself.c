/* expect: has incomplete type */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A record is not inside itself. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "nested_itself.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(line)
    FIELD(name, u8)
END
RECORD(thing)
#ifndef MENDED
    FIELD(next, nested(thing))
#else
    FIELD(next, nested(line))
#endif
END
#endif



