/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - every row of a record means nothing; a pass redefines the ones it needs. No include
 * guard on purpose. */
#include <detent/rec/rows_none.h>

#define RECORD(...)
#define FIELD(...)
#define OPTIONAL(...)
#define ARRAY(...)
#define ENUM(...)
#define VALUE(...)
#define END
