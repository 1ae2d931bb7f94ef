/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_off.h - defines every row of a worker as nothing; a pass redefines the rows it needs. No
 * include guard on purpose. */
#include <detent/worker/rows_none.h>

#include <detent/rec/rows_off.h>

#define USES(...)
#define STATE(...)
#define ACTION(...)
