/* expect: there_is_no_record_type_called_u128 */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* Types are those of record.h. */
#ifndef ROWS
#define ROWS
#define REC_SPEC "type_unknown.c"
#include <detent/rec/declare.h>
#else
/* clang-format off */
RECORD(thing)
#ifndef MENDED
    FIELD(name, u128)
#else
    FIELD(name, u64)
#endif
END
#endif



