/* expect: a record must have at most */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A record has a largest size in memory. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "record_too_large.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    ARRAY(pages, bytes(4096), 64)
#else
    ARRAY(pages, bytes(4096), 63)
#endif
END
#endif



