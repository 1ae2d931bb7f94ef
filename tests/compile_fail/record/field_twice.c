/* expect: duplicate member */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A field is declared once. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "field_twice.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
    FIELD(name, u8)
#ifndef MENDED
    FIELD(name, u16)
#else
    FIELD(size, u16)
#endif
END
#endif



