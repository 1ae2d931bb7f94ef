/* expect: thing_record_version */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A record is declared once. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "record_twice.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
    FIELD(name, u8)
END
#ifndef MENDED
RECORD(thing)
#else
RECORD(other)
#endif
    FIELD(size, u8)
END
#endif



