/* expect: color_enum */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* An enum has rows of its own. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "enum_unknown.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
ENUM(colour)
    VALUE(COLOUR_RED, red)
END
RECORD(thing)
#ifndef MENDED
    FIELD(paint, one_of(color))
#else
    FIELD(paint, one_of(colour))
#endif
END
#endif



