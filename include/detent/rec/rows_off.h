/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - defines every row of a record as nothing; a pass redefines the rows it needs. No
 * include guard on purpose. */
#include <detent/rec/rows_none.h>

#define RECORD(...)
#define FIELD(...)
#define OPTIONAL(...)
#define ARRAY(...)
#define ENUM(...)
#define VALUE(...)
#define END
