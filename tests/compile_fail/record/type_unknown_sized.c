/* expect: there_is_no_record_type_called_text */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Types are those of record.h, also when they have a size. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "type_unknown_sized.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, text(12))
#else
    FIELD(name, str(12))
#endif
END
#endif



