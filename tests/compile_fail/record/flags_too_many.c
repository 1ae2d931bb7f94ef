/* expect: a field must have at most two flags */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* There are two kinds of flags. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "flags_too_many.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, u8, SENSITIVE, SINCE(1), SENSITIVE)
#else
    FIELD(name, u8, SINCE(1), SENSITIVE)
#endif
END
#endif



