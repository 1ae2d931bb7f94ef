/* expect: a_flag_is_SENSITIVE_or_SINCE_but_not_SECRET */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Flags are those of record.h. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "flag_unknown.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, u8, SECRET)
#else
    FIELD(name, u8, SENSITIVE)
#endif
END
#endif



