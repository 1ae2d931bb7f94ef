/* expect: define REC_SPEC, the file of rows in quotes */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* The template has to know the file of rows. */
#ifdef ROWS
/* clang-format off */
RECORD(thing)
    FIELD(name, u8)
END
/* clang-format on */
#else
#define ROWS
#ifdef MENDED
#define REC_SPEC "spec_missing.c"
#endif
#include <detent/rec/declare.h>
#endif
