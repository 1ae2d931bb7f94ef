/* expect: a record must have at least one field */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A record without fields says nothing; an event without payload needs none. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "record_empty.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifdef MENDED
    FIELD(name, u8)
#endif
END
#endif



